"""Files and orders that ``regnet apply`` cannot use: one line, status 2, and nothing written."""

import gzip
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import torch

from regnet.io import write_image, write_transform
from regnet.spatial import Affine, Displacement, Grid
from tests.inference.heads import centred, head
from tests.spatial.worlds import smooth_flow

from .command import refused, regnet

Spoil = Callable[[bytes], bytes]


def header(field: str, values: object) -> Spoil:
    """Write numbers into a field of a NIfTI header."""

    def spoil(raw: bytes) -> bytes:
        found = nib.Nifti1Header(raw[:348], check=False)
        found[field] = values
        return found.binaryblock + raw[348:]

    return spoil


SPOILED: dict[str, Spoil] = {
    "empty": lambda raw: b"",
    "half": lambda raw: raw[: len(raw) // 2],
    "a header alone": lambda raw: raw[:348],
    "no header": lambda raw: raw[:100],
    "wrong magic": header("magic", b"x+1"),
    "enormous": header("dim", [3, 32767, 32767, 32767, 1, 1, 1, 1]),
    "no axes": header("dim", [0] * 8),
    "negative": header("dim", [3, -4, 5, 6, 1, 1, 1, 1]),
    "NaN": header("srow_x", [np.nan, 0, 0, 0]),
    "flat": header("srow_x", [0, 0, 0, 0]),
    "infinite offset": header("vox_offset", np.inf),
    "unknown type": header("datatype", 77),
    "text": lambda raw: b"this is no image\n" * 30,
}


@pytest.fixture
def sound(tmp_path: Path) -> tuple[Path, Path]:
    """An image and a warp, not compressed."""
    grid = centred((12, 14, 11))
    write_image(tmp_path / "image.nii", head(grid, 5).data, grid)
    write_transform(tmp_path / "warp.nii", Displacement(smooth_flow(grid, 1.0), grid), grid)
    return tmp_path / "image.nii", tmp_path / "warp.nii"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", SPOILED)
def test_a_spoiled_file_is_named_wherever_it_stands(
    tmp_path: Path, sound: tuple[Path, Path], kind: str, packed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    image, warp = sound
    out = tmp_path / "out.nii"
    for option, file in (("--moving", image), ("--reference", image), ("-t", warp)):
        raw = SPOILED[kind](file.read_bytes())
        bad = tmp_path / ("bad.nii.gz" if packed else "bad.nii")
        bad.write_bytes(gzip.compress(raw) if packed else raw)
        words = {"--moving": image, "--reference": image, "-t": warp, option: bad}
        line = refused(capsys, "apply", *(word for pair in words.items() for word in pair), "--out", out)
        assert str(bad) in line
        assert not out.exists()


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.999])
def test_a_gz_file_that_ends_early_is_named_wherever_it_stands(
    tmp_path: Path, sound: tuple[Path, Path], share: float, capsys: pytest.CaptureFixture[str]
) -> None:
    image, warp = sound
    for option, file in (("--moving", image), ("--reference", image), ("-t", warp)):
        bad = tmp_path / "bad.nii.gz"
        packed = gzip.compress(file.read_bytes())
        bad.write_bytes(packed[: int(share * len(packed))])
        words = {"--moving": image, "--reference": image, "-t": warp, option: bad}
        flat = [word for pair in words.items() for word in pair]
        assert str(bad) in refused(capsys, "apply", *flat, "--out", tmp_path / "out.nii")


def test_a_chain_that_cannot_be_in_this_order_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The warp lies about the fixed image, the affine map leads 500 mm away from there to the moving one."""
    fixed = centred((12, 14, 11))
    affine = torch.eye(4, dtype=torch.float64)
    affine[:3, 3] = torch.tensor([500.0, 0, 0])
    there = fixed.affine.clone()
    there[:3, 3] += affine[:3, 3]
    write_image(tmp_path / "fixed.nii", head(fixed, 5).data, fixed)
    write_image(tmp_path / "moving.nii", head(fixed, 5).data, Grid(fixed.shape, there))
    write_transform(tmp_path / "affine.mat", Affine(affine))
    write_transform(tmp_path / "warp.nii", Displacement(smooth_flow(fixed, 1.0), fixed), fixed)
    words = ("apply", "--moving", tmp_path / "moving.nii", "--reference", tmp_path / "fixed.nii")
    right = ("-t", tmp_path / "warp.nii", "-t", tmp_path / "affine.mat")
    wrong = (*right[2:], *right[:2])
    assert regnet(*words, *right, "--out", tmp_path / "out.nii") == 0
    line = refused(capsys, *words, *wrong, "--out", tmp_path / "wrong.nii")
    assert (
        f"{tmp_path / 'warp.nii'}: lies elsewhere" in line and "the last given touches the moving image first" in line
    )
    for chain in ((), right[:2], (*right[:2], "-t", f"{tmp_path / 'affine.mat'}:inverse")):
        line = refused(capsys, *words, *chain, "--out", tmp_path / "wrong.nii")
        assert f"{tmp_path / 'moving.nii'}: nothing of it comes into the view" in line
    assert not (tmp_path / "wrong.nii").exists()


@pytest.mark.filterwarnings("default")
def test_an_affine_map_before_its_warp_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = centred((12, 14, 11))
    affine = torch.eye(4, dtype=torch.float64)
    affine[0, 3] = 2
    write_image(tmp_path / "image.nii", head(grid, 5).data, grid)
    write_transform(tmp_path / "affine.mat", Affine(affine))
    write_transform(tmp_path / "warp.nii", Displacement(smooth_flow(grid, 1.0), grid), grid)
    files = ("-t", tmp_path / "warp.nii", "-t", tmp_path / "affine.mat")
    words = ("apply", "--moving", tmp_path / "image.nii", "--reference", tmp_path / "image.nii", "--overwrite")
    for order, warned in ((files, False), ((*files[2:], *files[:2]), True)):
        assert regnet(*words, *order, "--out", tmp_path / "out.nii") == 0
        assert ("an affine transform usually follows its warp" in capsys.readouterr().err) == warned


def test_an_image_is_no_transform_and_a_checkpoint_no_image(
    tmp_path: Path, sound: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    image, _ = sound
    words = ("apply", "--reference", image, "--out", tmp_path / "out.nii")
    assert str(image) in refused(capsys, *words, "--moving", image, "-t", image)
    torch.save({"a": torch.ones(2)}, tmp_path / "net.ckpt")
    torch.save({"a": torch.ones(2)}, tmp_path / "net.nii")
    for name in ("net.ckpt", "net.nii"):
        assert str(tmp_path / name) in refused(capsys, *words, "--moving", tmp_path / name)
        assert str(tmp_path / name) in refused(capsys, *words, "--moving", image, "-t", tmp_path / name)


@pytest.mark.filterwarnings("default")
def test_a_result_that_is_all_background_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The field leads 40 mm away, and so does its inverse: on its own grid nothing is left in view."""
    grid = centred((12, 14, 11))
    flow = torch.zeros(3, *grid.shape)
    flow[0] = 40.0 / grid.spacing[0]
    write_image(tmp_path / "image.nii", head(grid, 5).data, grid)
    write_transform(tmp_path / "warp.nii", Displacement(flow, grid), grid)
    words = ("apply", "--moving", tmp_path / "image.nii", "--reference", tmp_path / "image.nii", "--overwrite")
    out = ("--out", tmp_path / "out.nii")
    for interp in ("linear", "cubic", "nearest"):
        chain = ("-t", f"{tmp_path / 'warp.nii'}:inverse", "--interp", interp)
        assert regnet(*words, *chain, *out) == 0
        assert "every voxel of the result is background: nothing of" in capsys.readouterr().err
    assert regnet(*words, *out) == 0
    assert capsys.readouterr().err == ""


def test_values_that_cannot_be_interpolated_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = centred((12, 14, 11))
    data = torch.zeros(grid.shape)
    data[4:8, 4:8, 4:8] = 3.3e38
    write_image(tmp_path / "image.nii", data, grid)
    words = ("apply", "--moving", tmp_path / "image.nii", "--reference", tmp_path / "image.nii")
    line = refused(capsys, *words, "--interp", "cubic", "--out", tmp_path / "out.nii")
    assert "too large to be interpolated" in line and not (tmp_path / "out.nii").exists()
    assert regnet(*words, "--out", tmp_path / "out.nii") == 0
