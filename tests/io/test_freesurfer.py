"""FreeSurfer's linear transforms and warps, against nitransforms and surfa."""

from pathlib import Path

import numpy as np
import pytest
import surfa
import torch
from nitransforms.io.lta import FSLinearTransform

from regnet.errors import InputError
from regnet.io import read_transform, write_image, write_transform
from regnet.spatial import Affine, Grid, chain
from tests.spatial.worlds import waves

from .maps import affine, apart, field, inner, random_grid


@pytest.fixture(autouse=True)
def binary(monkeypatch: pytest.MonkeyPatch) -> None:
    """surfa 0.6.3 reads by what numpy 2.3 took away."""
    monkeypatch.setattr(np, "fromstring", lambda data, dtype, **_: np.frombuffer(data, dtype).copy())


def images(folder: Path, seed: int, shear: float = 0.0) -> tuple[Grid, Grid]:
    fixed, moving = random_grid(3, seed, shear), random_grid(3, seed + 11)
    write_image(folder / "fixed.nii.gz", torch.zeros(fixed.shape), fixed)
    write_image(folder / "moving.nii.gz", waves(moving)[0], moving)
    return fixed, moving


@pytest.mark.parametrize("seed", (0, 1, 2))
def test_nitransforms_and_surfa_read_our_lta_as_we_do(tmp_path: Path, seed: int) -> None:
    fixed, moving = images(tmp_path, seed)
    path = tmp_path / "new/a.lta"
    write_transform(path, affine(3), fixed, moving=moving)
    back = read_transform(path)
    assert isinstance(back, Affine) and apart(back, affine(3), inner(fixed)) < 1e-9
    assert np.allclose(FSLinearTransform.from_string(path.read_text()).to_ras(), affine(3).matrix, atol=1e-4)
    theirs = surfa.load_affine(str(path))
    # Theirs goes from the source, our moving image, to the target, our fixed one.
    assert theirs.space.name == "world" and np.allclose(np.linalg.inv(theirs.matrix), affine(3).matrix, atol=1e-5)
    assert np.allclose(theirs.source.vox2world.matrix, moving.affine, atol=1e-4)
    assert np.allclose(theirs.target.vox2world.matrix, fixed.affine, atol=1e-4)


@pytest.mark.parametrize("space", ("voxel", "world"))
def test_we_read_an_lta_of_surfa_in_either_space(tmp_path: Path, space: str) -> None:
    fixed, _ = images(tmp_path, 3)
    source, target = (surfa.load_volume(str(tmp_path / f"{name}.nii.gz")) for name in ("moving", "fixed"))
    there = surfa.Affine(np.linalg.inv(affine(3).matrix.numpy()), source, target, "world").convert(space=space)
    there.save(str(tmp_path / "theirs.lta"))
    assert f"type      = {'01'[space == 'world']}" in (tmp_path / "theirs.lta").read_text()
    assert apart(read_transform(tmp_path / "theirs.lta"), affine(3), inner(fixed)) < 1e-3


@pytest.mark.parametrize("seed", (0, 1, 2))
@pytest.mark.parametrize("shear", (0.0, 0.2))
def test_surfa_reads_our_warp_as_we_do(tmp_path: Path, shear: float, seed: int) -> None:
    fixed, moving = images(tmp_path, seed, shear)
    whole = chain([field(fixed), affine(3)]).on(fixed)
    write_transform(tmp_path / "w.mgz", whole, fixed, moving=moving)
    assert apart(read_transform(tmp_path / "w.mgz"), whole, inner(fixed)) < 1e-4
    theirs = surfa.load_warp(str(tmp_path / "w.mgz"))
    there = theirs.convert(surfa.Warp.Format.abs_ras).data
    voxels = torch.tensor([[3.0, 4, 5], [7, 6, 5], [0, 0, 0], [11, 11, 11]], dtype=torch.float64)
    expected = whole.map_points(fixed.to_world(voxels))
    found = torch.from_numpy(np.stack([there[tuple(int(i) for i in voxel)] for voxel in voxels])).double()
    assert (found - expected).abs().max() < 1e-3
    assert np.allclose(theirs.source.vox2world.matrix, moving.affine, atol=1e-4)


@pytest.mark.parametrize("meaning", ("abs_crs", "disp_crs", "abs_ras", "disp_ras"))
def test_we_read_the_four_meanings_of_a_warp_of_surfa(tmp_path: Path, meaning: str) -> None:
    fixed, moving = images(tmp_path, 4, shear=0.1)
    whole = chain([field(fixed), affine(3)]).on(fixed)
    write_transform(tmp_path / "w.mgz", whole, fixed, moving=moving)
    other = surfa.load_warp(str(tmp_path / "w.mgz")).convert(getattr(surfa.Warp.Format, meaning))
    for name in ("theirs.mgz", "theirs.mgh"):
        other.save(str(tmp_path / name))
        assert apart(read_transform(tmp_path / name), whole, inner(fixed)) < 1e-3


def test_surfa_resamples_with_our_warp_as_we_do(tmp_path: Path) -> None:
    fixed, moving = images(tmp_path, 1)
    write_transform(tmp_path / "w.mgz", field(fixed), fixed, moving=moving)
    theirs = surfa.load_warp(str(tmp_path / "w.mgz")).transform(surfa.load_volume(str(tmp_path / "moving.nii.gz")))
    ours = field(fixed).apply(waves(moving), moving)[0, 0].numpy()
    at = moving.to_voxel(field(fixed).map_points(fixed.to_world(voxels(fixed))))
    seen = ((at > 0.5) & (at < torch.tensor(moving.shape) - 1.5)).all(-1).numpy()
    assert seen.mean() > 0.1 and np.abs(theirs.data - ours)[seen].max() < 0.1  # of 100


def voxels(grid: Grid) -> torch.Tensor:
    axes = [torch.arange(n, dtype=torch.float64) for n in grid.shape]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)


def test_what_is_no_transform_of_freesurfer_gets_one_line(tmp_path: Path) -> None:
    fixed, moving = images(tmp_path, 0)
    write_transform(tmp_path / "a.lta", affine(3), fixed, moving=moving)
    text = (tmp_path / "a.lta").read_text()
    (tmp_path / "cut.lta").write_text(text[:200])
    (tmp_path / "dat.lta").write_text(text.replace("type      = 1", "type      = 14"))
    (tmp_path / "voxels.lta").write_text(
        text.replace("type      = 1", "type      = 0").replace("valid = 1", "valid = 0")
    )
    write_transform(tmp_path / "w.mgh", field(fixed), fixed, moving=moving)
    data = (tmp_path / "w.mgh").read_bytes()
    (tmp_path / "cut.mgh").write_bytes(data[:900])
    (tmp_path / "headless.mgh").write_bytes(data[:-40])
    (tmp_path / "nan.mgh").write_bytes(data[:284] + b"\xff" * 400 + data[684:])
    write_image(tmp_path / "image.mgz", torch.zeros(fixed.shape), fixed)
    (tmp_path / "noise.mgz").write_bytes(b"\x1f\x8b" + bytes(100))
    (tmp_path / "old.m3z").write_bytes(b"\x1f\x8b" + bytes(100))
    for name, reason in {
        "cut.lta": "not a FreeSurfer transform",
        "dat.lta": "type 14",
        "voxels.lta": "no valid geometry",
        "cut.mgh": "damaged",
        "headless.mgh": "does not say what its vectors mean",
        "nan.mgh": "NaN",
        "image.mgz": "no warp",
        "noise.mgz": "damaged",
        "old.m3z": "mri_warp_convert",
    }.items():
        with pytest.raises(InputError, match=rf"{name}: .*{reason}"):
            read_transform(tmp_path / name)
    with pytest.raises(InputError, match="this transform deforms"):
        write_transform(tmp_path / "x.lta", field(fixed), fixed, moving=moving)
