"""``regnet convert``, ``compose``, ``invert`` and ``jacobian``."""

from pathlib import Path

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk
import torch

from regnet.io import read_image, read_transform, write_image, write_transform
from regnet.spatial import Affine, Composite, Displacement, Grid, chain
from tests.io.maps import affine, apart, field, inner, random_grid
from tests.spatial.worlds import waves

from .command import refused, regnet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A fixed and a moving image, a field, an affine map, and both in one file."""
    fixed, moving = grids()
    write_image(tmp_path / "fixed.nii.gz", waves(fixed)[0], fixed)
    write_image(tmp_path / "moving.nii.gz", waves(moving)[0], moving)
    write_transform(tmp_path / "w.nii.gz", field(fixed))
    write_transform(tmp_path / "a.mat", affine(3))
    write_transform(tmp_path / "both.h5", chain([field(fixed), affine(3)]))
    return tmp_path


def grids() -> tuple[Grid, Grid]:
    return random_grid(3, 1), random_grid(3, 12)


@pytest.mark.parametrize(
    ("convention", "name"),
    [
        ("itk", "o.nii.gz"),
        ("itk-h5", "o.h5"),
        ("fsl", "o.nii.gz"),
        ("freesurfer", "o.mgz"),
        ("learn2reg", "o.npz"),
        ("learn2reg", "o.nii.gz"),
        ("nifty", "o.nii"),
        ("spm", "y_o.nii"),
    ],
)
def test_there_and_back_is_the_same_map(folder: Path, convention: str, name: str) -> None:
    images = ("--moving", folder / "moving.nii.gz", "--fixed", folder / "fixed.nii.gz")
    there, back = folder / "new" / name, folder / "back.nii.gz"
    assert regnet("convert", folder / "both.h5", "--to", convention, *images, "--out", there) == 0
    source = ("--from", convention) if convention == "learn2reg" else ()
    assert regnet("convert", there, *source, *images, "--to", "itk", "--out", back) == 0
    expected = chain([field(grids()[0]), affine(3)])
    at = inner(grids()[0])
    at = grids()[0].to_world(grids()[0].to_voxel(at).round())
    assert apart(read_transform(back), expected, at) < 2e-4  # two files of float32


@pytest.mark.parametrize(
    ("convention", "name"), [("itk", "o.tfm"), ("fsl", "o.mat"), ("freesurfer", "o.lta"), ("ras", "o.txt")]
)
def test_an_affine_map_stays_one(folder: Path, convention: str, name: str) -> None:
    images = ("--moving", folder / "moving.nii.gz", "--fixed", folder / "fixed.nii.gz")
    there, back = folder / name, folder / "back.mat"
    assert regnet("convert", folder / "a.mat", "--to", convention, *images, "--out", there) == 0
    source = ("--from", convention) if convention in ("fsl", "ras") else ()
    assert regnet("convert", there, *source, *images, "--out", back) == 0
    found = read_transform(back)
    assert isinstance(found, Affine) and torch.allclose(found.matrix, affine(3).matrix, atol=1e-6)
    # The inverse of FLIRT's matrix is FLIRT's matrix of the two images the other way round.
    words = ("--moving", folder / "fixed.nii.gz", "--fixed", folder / "moving.nii.gz", *source)
    assert regnet("convert", f"{there}:inverse", *words, "--out", folder / "inverse.mat") == 0
    inverse = read_transform(folder / "inverse.mat")
    assert torch.allclose(inverse.matrix, torch.linalg.inv(affine(3).matrix), atol=1e-6)


def test_itk_composes_the_files_to_the_same_image(folder: Path) -> None:
    order = ("-t", folder / "w.nii.gz", "-t", folder / "a.mat")
    fixed, moving = folder / "fixed.nii.gz", folder / "moving.nii.gz"
    for name, kind in (("one.h5", Composite), ("one.nii.gz", Displacement)):
        assert regnet("compose", *order, "--reference", fixed, "--out", folder / name) == 0
        one = read_transform(folder / name)
        assert isinstance(one, kind)
        at = grids()[0].to_world(grids()[0].to_voxel(inner(grids()[0])).round())
        assert apart(one, chain([field(grids()[0]), affine(3)]), at) < 1e-4
    pair = [sitk.ReadImage(str(path)) for path in (moving, fixed)]
    theirs = sitk.GetArrayFromImage(sitk.Resample(*pair, sitk.ReadTransform(str(folder / "one.h5")), sitk.sitkLinear))
    out = folder / "moved.nii.gz"
    assert regnet("apply", "--moving", moving, "--reference", fixed, "-t", folder / "one.nii.gz", "--out", out) == 0
    ours = read_image(out).data[0].numpy()
    both = (ours > 0) & (theirs.T > 0)
    both[[0, -1]] = both[:, [0, -1]] = both[:, :, [0, -1]] = False
    assert both.mean() > 0.15 and np.quantile(np.abs(ours - theirs.T)[both], 0.99) < 0.1


def test_affine_maps_compose_to_a_matrix(folder: Path) -> None:
    order = ("-t", folder / "a.mat", "-t", f"{folder / 'a.mat'}:inverse", "-t", folder / "a.mat")
    assert regnet("compose", *order, "--reference", folder / "fixed.nii.gz", "--out", folder / "c.mat") == 0
    assert torch.allclose(read_transform(folder / "c.mat").matrix, affine(3).matrix, atol=1e-9)


def test_the_inverse_says_what_it_misses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "inverse.nii.gz"
    assert regnet("invert", folder / "w.nii.gz", "--reference", folder / "moving.nii.gz", "--out", out) == 0
    text = capsys.readouterr().out
    assert "forward after inverse misses by" in text and "folds nowhere" in text
    back = read_transform(out)
    assert back.grid.matches(grids()[1])
    points = inner(grids()[0], 60)
    inside = points[(grids()[1].to_voxel(points) > 2).all(-1)]
    there = read_transform(folder / "w.nii.gz").map_points(inside)
    at = grids()[1].to_voxel(there)
    seen = ((at > 1) & (at < torch.tensor(grids()[1].shape) - 2)).all(-1)
    assert int(seen.sum()) > 5
    # Between its voxels the inverse is linear, a curved one is not: a twentieth of a voxel.
    assert (back.map_points(there) - inside)[seen].norm(dim=-1).max() < 0.1


def test_where_it_folds_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = grids()[0]
    flow = torch.zeros(3, *grid.shape)
    flow[0, 8], flow[0, 9] = 4, -4  # 7, 8, 9, 10 go to 7, 12, 5, 10: the central slopes at 8 and 9 are -1
    write_transform(folder / "fold.nii.gz", Displacement(flow, grid))
    words = ("--reference", folder / "fixed.nii.gz", "--out", folder / "inverse.nii.gz")
    assert regnet("invert", folder / "fold.nii.gz", *words) == 0
    text = capsys.readouterr().out
    folded = 2 * grid.voxels // grid.shape[0]
    assert f"the transform folds at {folded} voxels ({200 / grid.shape[0]:.3g} %, from (" in text
    assert regnet("jacobian", folder / "fold.nii.gz", "--out", folder / "j.nii.gz") == 0
    assert f"folded voxels: {200 / grid.shape[0]:.4f} %" in capsys.readouterr().out
    assert float(read_image(folder / "j.nii.gz").data.min()) == pytest.approx(-1, abs=1e-5)
    assert regnet("jacobian", folder / "fold.nii.gz", "--log", "--out", folder / "l.nii.gz") == 0
    assert float(read_image(folder / "l.nii.gz").data.min()) == pytest.approx(np.log(1e-9))


def test_an_affine_map_is_inverted_exactly(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--reference", folder / "moving.nii.gz", "--out", folder / "i.tfm")
    assert regnet("invert", folder / "a.mat", *words) == 0
    assert "exactly" in capsys.readouterr().out
    assert torch.allclose((read_transform(folder / "i.tfm") @ affine(3)).matrix, torch.eye(4).double(), atol=1e-12)


def test_the_determinant_is_without_the_affine_unless_it_is_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fixed, volume = folder / "fixed.nii.gz", float(torch.linalg.det(affine(3).matrix))
    names = {"w.nii.gz": (), "both.h5": (), "total": ("--total",)}
    values = {}
    for name, words in names.items():
        source = folder / ("both.h5" if name == "total" else name)
        out = folder / f"{source.name}{len(words)}.nii.gz"
        assert regnet("jacobian", source, "--fixed", fixed, *words, "--out", out) == 0
        assert ("affine part left out (--total keeps it)" in capsys.readouterr().out) == (name == "both.h5")
        values[name] = nibabel.load(out).get_fdata()
    assert np.allclose(values["both.h5"], values["w.nii.gz"], atol=1e-4)
    assert np.allclose(values["total"], values["w.nii.gz"] * volume, atol=1e-4)
    assert regnet("jacobian", source, "--fixed", fixed, "--total", "--log", "--out", folder / "log.nii.gz") == 0
    assert np.allclose(nibabel.load(folder / "log.nii.gz").get_fdata(), np.log(values["total"]), atol=1e-5)


def test_a_mistake_gets_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixed, moving, out = folder / "fixed.nii.gz", folder / "moving.nii.gz", folder / "o.nii.gz"
    flat = folder / "flat.nii.gz"
    write_image(flat, torch.zeros(5, 6), Grid((5, 6), torch.eye(3)))
    (folder / "plain.mat").write_text("1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n")
    warp = folder / "w.nii.gz"
    for words, reason in (
        (("convert", folder / "none.h5", "--out", out), "no such file"),
        (("convert", warp, "--to", "fsl", "--out", out), "give --moving"),
        (("convert", warp, "--to", "fsl", "--out", folder / "o.mgz"), "is written as"),
        (("convert", warp, "--to", "fsl", "--moving", moving, "--out", folder / "o.mat"), "deforms"),
        (("convert", warp, "--out", warp), "is an input and an output"),
        (("convert", warp, "--out", fixed), "exists already"),
        (("convert", warp, "--moving", flat, "--fixed", fixed, "--out", out), "2-D and 3-D"),
        (("convert", warp, "--fixed", flat, "--out", out), "3-D, but"),
        (("convert", folder / "plain.mat", "--out", out), "--from fsl"),
        (("convert", fixed, "--out", out), "displacement field has the shape"),
        (("convert", folder / "a.mat", "--out", out), "no grid of its own"),
        (("compose", "-t", warp, "--reference", flat, "--out", out), "3-D, but"),
        (("invert", warp, "--reference", moving, "--tolerance", "0", "--out", out), "--tolerance"),
        (("jacobian", folder / "a.mat", "--out", out), "give --fixed"),
        (("jacobian", warp, "--out", folder / "o.h5"), "--out is written as"),
    ):
        assert reason in refused(capsys, *words)
        assert not out.exists()
