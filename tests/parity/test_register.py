"""What ``regnet register`` writes after an affine stage, read and applied by other tools, on unlike oblique grids."""

from pathlib import Path

import ants
import nibabel
import numpy as np
import pytest
import SimpleITK as sitk
import torch
from torch import Tensor

from regnet import ops
from regnet.data.spec import InputSpec
from regnet.io import read_image, read_transform, write_image
from regnet.spatial import Affine, Displacement, Grid
from tests.cli.command import refused, regnet
from tests.inference.heads import centred, head, label_map, points, shift
from tests.inference.networks import write_checkpoint
from tests.spatial.worlds import rotation

BACKGROUND = -5.0


def truth() -> Affine:
    """The head is turned by 25 degrees, stretched and shifted by up to 6 mm in the moving image."""
    matrix = torch.eye(4, dtype=torch.float64)
    matrix[:3, :3] = rotation(3, 25) @ torch.diag(torch.tensor([1.06, 0.95, 1.0], dtype=torch.float64))
    matrix[:3, 3] = torch.tensor([6.0, -3.0, 2.0], dtype=torch.float64)
    return Affine(matrix)


def oriented(shape: tuple[int, ...], spacing: tuple[float, ...], turn: float, axes: tuple[int, ...], flip: int) -> Grid:
    """A turned grid about the origin whose array axes are permuted and one of them reversed."""
    grid = centred(shape, spacing, turn)
    order = torch.eye(4, dtype=torch.float64)[[*axes, 3]].T
    affine = grid.affine @ order
    affine[:, flip] *= -1
    shape = tuple(shape[axis] for axis in axes)
    affine[:3, 3] = -affine[:3, :3] @ (torch.tensor(shape, dtype=torch.float64) - 1) / 2
    return Grid(shape, affine)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pair, registered with an affine stage, and every file."""
    folder = tmp_path_factory.mktemp("files")
    there = oriented((40, 38, 42), (1.6, 1.5, 1.4), 14, (1, 2, 0), 0)
    here = oriented((34, 40, 30), (1.5, 1.4, 1.7), -9, (2, 0, 1), 1)
    back = truth().inverse().map_points
    write_image(folder / "moving.nii.gz", head(there, 18, back).data, there)
    write_image(folder / "labels.nii.gz", label_map(there, 18, back).data, there)
    write_image(folder / "fixed.nii.gz", head(here, 18).data, here)
    status = regnet(
        *("register", "--moving", folder / "moving.nii.gz", "--fixed", folder / "fixed.nii.gz", "--init", "affine"),
        *(
            "--model",
            "none",
            "--refine",
            8,
            "--background",
            BACKGROUND,
            "--prefix",
            folder / "P",
            "--composite",
            folder / "x.h5",
        ),
        *("--warp", folder / "warp.nii.gz", "--inverse-warp", folder / "back.nii.gz"),
        *("--moved", folder / "moved.nii.gz", "--jacobian", folder / "jacobian.nii.gz"),
        *("--moving-labels", folder / "labels.nii.gz", "--moved-labels", folder / "moved_labels.nii.gz"),
    )
    assert status == 0
    return folder


def same(ours: Tensor, theirs: Tensor) -> None:
    """Equal to a thousandth of the range where neither is at the border of the field of view."""
    one, other = (ops.box_sum((image == BACKGROUND)[None, None].float(), 3)[0, 0] == 0 for image in (ours, theirs))
    both = one & other
    assert float(both.float().mean()) > 0.5
    assert float((ours - theirs)[both].abs().max()) < 1e-3 * float(ours.max() - ours.min())


def by_ants(folder: Path, fixed: str, moving: str, transforms: list[str], inverted: list[bool]) -> Tensor:
    result = ants.apply_transforms(
        ants.image_read(str(folder / fixed)),
        ants.image_read(str(folder / moving)),
        [str(folder / name) for name in transforms],
        whichtoinvert=inverted,
        defaultvalue=BACKGROUND,
    )
    return torch.from_numpy(result.numpy())


def by_simpleitk(folder: Path, fixed: str, moving: str, transform: str) -> Tensor:
    result = sitk.Resample(
        sitk.ReadImage(str(folder / moving)),
        sitk.ReadImage(str(folder / fixed)),
        sitk.ReadTransform(str(folder / transform)),
        sitk.sitkLinear,
        BACKGROUND,
    )
    return torch.from_numpy(sitk.GetArrayFromImage(result).transpose(2, 1, 0).copy())


def test_ants_gets_the_moved_image_from_the_prefixed_files(folder: Path) -> None:
    ours = read_image(folder / "PWarped.nii.gz").data[0]
    files = ["P1Warp.nii.gz", "P0GenericAffine.mat"]
    same(ours, by_ants(folder, "fixed.nii.gz", "moving.nii.gz", files, [False, False]))
    torch.testing.assert_close(read_image(folder / "moved.nii.gz").data[0], ours)


def test_ants_goes_back_by_the_prefixed_files(folder: Path) -> None:
    files = ["P0GenericAffine.mat", "P1InverseWarp.nii.gz"]
    theirs = by_ants(folder, "moving.nii.gz", "fixed.nii.gz", files, [True, False])
    fixed, moving = read_image(folder / "fixed.nii.gz"), read_image(folder / "moving.nii.gz")
    ours = read_transform(folder / "back.nii.gz").apply(fixed.data[None], fixed.grid, background=BACKGROUND)[0, 0]
    assert ours.shape == moving.grid.shape
    # Once through a field on the moving grid, once through one on the fixed grid: interpolated twice each.
    inside = points(moving.grid).norm(dim=-1) < 17
    assert float((ours - theirs)[inside].abs().mean()) < 5e-3 * float(ours.max())


def test_simpleitk_reads_the_composite_and_its_inverse(folder: Path) -> None:
    moved = by_simpleitk(folder, "fixed.nii.gz", "moving.nii.gz", "x.h5")
    same(read_image(folder / "moved.nii.gz").data[0], moved)
    fixed = read_image(folder / "fixed.nii.gz")
    whole = read_transform(folder / "xInverse.h5")
    moving = read_image(folder / "moving.nii.gz").grid
    ours = whole.apply(fixed.data[None], fixed.grid, moving, background=BACKGROUND)[0, 0]
    same(ours, by_simpleitk(folder, "moving.nii.gz", "fixed.nii.gz", "xInverse.h5"))


def test_both_prefixed_warps_lie_on_the_fixed_grid_and_hold_no_affine_part(folder: Path) -> None:
    fixed = read_image(folder / "fixed.nii.gz")
    whole = read_transform(folder / "warp.nii.gz")
    assert isinstance(whole, Displacement)
    for name in ("P1Warp.nii.gz", "P1InverseWarp.nii.gz"):
        part = read_transform(folder / name)
        assert isinstance(part, Displacement)
        assert part.grid.matches(fixed.grid)
        assert float(part.displacement_mm().norm(dim=0).max()) < 0.5 * float(whole.displacement_mm().norm(dim=0).max())
    affine = read_transform(folder / "P0GenericAffine.mat")
    assert isinstance(affine, Affine)
    at = points(fixed.grid).reshape(-1, 3)
    at = at[at.norm(dim=1) < 15]
    assert float((affine.map_points(at) - truth().map_points(at)).norm(dim=1).max()) < 0.6


def test_the_whole_warp_is_the_deformation_and_then_the_affine_map(folder: Path) -> None:
    fixed = read_image(folder / "fixed.nii.gz").grid
    parts = read_transform(folder / "P0GenericAffine.mat") @ read_transform(folder / "P1Warp.nii.gz")
    found = read_transform(folder / "warp.nii.gz").on(fixed).displacement_mm()
    torch.testing.assert_close(found, parts.on(fixed).displacement_mm(), atol=1e-3, rtol=0)


def test_there_and_back_again_is_told_and_small(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there, back = read_transform(folder / "x.h5"), read_transform(folder / "xInverse.h5")
    at = points(read_image(folder / "fixed.nii.gz").grid)
    at = at[at.norm(dim=-1) < 17]
    away = (back.map_points(there.map_points(at)) - at).norm(dim=-1)
    assert float(away.mean()) < 0.05 * 1.4
    capsys.readouterr()
    regnet(
        *("register", "--moving", folder / "moving.nii.gz", "--fixed", folder / "fixed.nii.gz", "--init", "rigid"),
        *("--model", "none", "--inverse-warp", folder / "only.nii.gz", "--overwrite"),
    )
    told = capsys.readouterr().out
    assert "affine only: " in told
    assert "affine: turned by 2" in told


@pytest.mark.parametrize(
    ("there", "back", "home"),
    (("P1Warp.nii.gz", "P1InverseWarp.nii.gz", "fixed.nii.gz"), ("warp.nii.gz", "back.nii.gz", "moving.nii.gz")),
)
def test_forward_after_the_inverse_of_written_fields_misses_less_than_a_twentieth_of_a_voxel(
    folder: Path, there: str, back: str, home: str
) -> None:
    forward, inverse = read_transform(folder / there), read_transform(folder / back)
    grid = read_image(folder / home).grid
    at = points(grid)
    begin = inverse.map_points(at)
    assert forward.home is not None
    voxel = forward.home.to_voxel(begin)
    inside = ((voxel >= 0) & (voxel <= torch.tensor(forward.home.shape) - 1)).all(dim=-1)
    assert int(inside.sum()) > 0.4 * inside.numel()
    assert float((forward.map_points(begin) - at)[inside].norm(dim=-1).max()) < 0.05 * min(grid.spacing)


def test_the_jacobian_leaves_the_affine_part_out(folder: Path) -> None:
    part = read_transform(folder / "P1Warp.nii.gz")
    assert isinstance(part, Displacement)
    expected = ops.jacobian_determinant(part.flow[None])[0]
    torch.testing.assert_close(read_image(folder / "jacobian.nii.gz").data, expected, atol=1e-4, rtol=0)


def test_outputs_keep_the_fixed_image_s_orientation_codes_and_type(folder: Path) -> None:
    fixed = nibabel.load(folder / "fixed.nii.gz")
    for name in ("moved", "PWarped", "jacobian", "moved_labels"):
        file = nibabel.load(folder / f"{name}.nii.gz")
        np.testing.assert_allclose(file.affine, fixed.affine)
        assert nibabel.aff2axcodes(file.affine) == nibabel.aff2axcodes(fixed.affine)
        assert [int(file.header[c]) for c in ("sform_code", "qform_code")] == [1, 1]
    labels = nibabel.load(folder / "moved_labels.nii.gz")
    assert labels.get_data_dtype() == np.int16
    assert set(np.unique(labels.dataobj)) == {0, 7, 41}


def test_an_affine_map_of_a_file_is_where_it_starts_and_stays(folder: Path, tmp_path: Path) -> None:
    common = ("register", "--moving", folder / "moving.nii.gz", "--fixed", folder / "fixed.nii.gz", "--model", "none")
    start = ("--initial-transform", folder / "P0GenericAffine.mat")
    assert regnet(*common, *start, "--prefix", tmp_path / "kept_") == 0
    assert regnet(*common, *start, "--init", "affine", "--prefix", tmp_path / "better_") == 0
    given, kept, better = (
        read_transform(path.with_name(f"{path.name}0GenericAffine.mat"))
        for path in (folder / "P", tmp_path / "kept_", tmp_path / "better_")
    )
    assert isinstance(given, Affine) and isinstance(kept, Affine) and isinstance(better, Affine)
    torch.testing.assert_close(kept.matrix, given.matrix, atol=1e-9, rtol=0)
    torch.testing.assert_close(better.matrix, given.matrix, atol=0.1, rtol=0)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--initial-transform", "warp.nii.gz", "--moved", "m.nii.gz"), "holds a deformation"),
        (("--initial-transform", "P0GenericAffine.mat", "--init", "centre", "--moved", "m.nii.gz"), "--init centre"),
        (("--init", "affine", "--total", "--moved", "m.nii.gz"), "--jacobian"),
        (("--init", "affine", "--composite", "m.nii.gz"), "m.nii.gz"),
        (("--init", "affine", "--prefix", "P"), "P0GenericAffine.mat: exists already"),
        (("--init", "affine", "--moved", "m.nii.gz", "--fixed-mask", "moving.nii.gz"), "moving.nii.gz: shape"),
        (("--init", "affine", "--moved", "m.nii.gz", "--moving-mask", "nothing.nii.gz"), "the mask is empty"),
        (("--init", "affine", "--moved", "m.nii.gz", "--moving-mask", "one.nii.gz"), "the mask has 1 voxels, too few"),
        (
            ("--init", "affine", "--moved", "m.nii.gz", "--moving-mask", "nan.nii.gz"),
            "the mask has values that are NaN",
        ),
    ],
)
def test_options_of_the_affine_stage_that_cannot_work_are_refused(
    folder: Path,
    words: tuple[str, ...],
    reason: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    if not Path("nothing.nii.gz").exists():
        grid = read_image("moving.nii.gz").grid
        mask = torch.zeros(grid.shape)
        write_image("nothing.nii.gz", mask, grid)
        mask[3, 4, 5] = 1
        write_image("one.nii.gz", mask, grid)
        write_image("nan.nii.gz", mask / mask, grid)
    before = sorted(folder.iterdir())
    assert reason in refused(capsys, "register", "--moving", "moving.nii.gz", "--fixed", "fixed.nii.gz", *words)
    assert sorted(folder.iterdir()) == before


def test_slices_get_the_same_files(tmp_path: Path) -> None:
    there, here = centred((50, 46), (1.2, 1.4), turn=10), centred((44, 52), (1.3, 1.2))
    turn = torch.eye(3, dtype=torch.float64)
    turn[:2, :2] = rotation(2, 20)
    write_image(tmp_path / "moving.nii.gz", head(there, 18, Affine(turn).inverse().map_points).data, there)
    write_image(tmp_path / "fixed.nii.gz", head(here, 18).data, here)
    status = regnet(
        *("register", "--moving", tmp_path / "moving.nii.gz", "--fixed", tmp_path / "fixed.nii.gz", "--init", "rigid"),
        *("--refine", 4, "--background", BACKGROUND, "--prefix", tmp_path / "P", "--composite", tmp_path / "x.h5"),
    )
    assert status == 0
    ours = read_image(tmp_path / "PWarped.nii.gz").data[0]
    same(
        ours, by_ants(tmp_path, "fixed.nii.gz", "moving.nii.gz", ["P1Warp.nii.gz", "P0GenericAffine.mat"], [False] * 2)
    )


def test_a_velocity_at_half_the_resolution_gives_whole_fields_that_give_the_moved_image(tmp_path: Path) -> None:
    # case C-40, and the codes of C-44: sform 4, qform 1
    grid = centred((32, 40, 24), (1.25, 1.0, 1.5))
    for name, there in (("fixed", shift(0.0, 0.0, 0.0)), ("moving", shift(1.0, 0.0, 0.5))):
        file = nibabel.Nifti1Image(head(grid, 11, there).data[0].numpy(), grid.affine.numpy())
        file.set_sform(grid.affine.numpy(), 4)
        file.set_qform(grid.affine.numpy(), 1)
        nibabel.save(file, tmp_path / f"{name}.nii.gz")
    model = write_checkpoint(tmp_path / "half.ckpt", InputSpec(spacing=None, margin_mm=None), "half", push=1.0)
    status = regnet(
        *("register", "--moving", tmp_path / "moving.nii.gz", "--fixed", tmp_path / "fixed.nii.gz", "--model", model),
        *("--moved", tmp_path / "moved.nii.gz", "--warp", tmp_path / "warp.nii.gz", "--background", BACKGROUND),
        *("--inverse-warp", tmp_path / "back.nii.gz", "--jacobian", tmp_path / "jacobian.nii.gz"),
    )
    assert status == 0
    for name in ("warp", "back"):
        assert nibabel.load(tmp_path / f"{name}.nii.gz").shape == (32, 40, 24, 1, 3)
    same(
        read_image(tmp_path / "moved.nii.gz").data[0],
        by_ants(tmp_path, "fixed.nii.gz", "moving.nii.gz", ["warp.nii.gz"], [False]),
    )
    for name in ("moved", "jacobian", "warp"):
        header = nibabel.load(tmp_path / f"{name}.nii.gz").header
        assert [int(header[c]) for c in ("sform_code", "qform_code")] == [4, 1]
        np.testing.assert_allclose(header.get_qform(), header.get_sform(), atol=1e-5)
