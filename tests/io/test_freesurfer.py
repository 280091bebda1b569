"""FreeSurfer's linear transforms and warps; the warps against files that surfa wrote.

``golden/surfa_*.mgz`` are of surfa 0.6.3, ``Warp(data, source, target, format).save``. Their target has 4 x 5 x 6
voxels, their source 7 x 6 x 5; voxel (i, j, k) goes (0.25 i + 1.5, -0.5 j, 0.125 k - 1) mm to the right, front and up.
"""

import gzip
from pathlib import Path

import pytest
import torch

from regnet.errors import InputError
from regnet.io import read_transform, write_image, write_transform
from regnet.spatial import Affine, Displacement, Grid, chain
from tests.spatial.worlds import centres

from .maps import affine, apart, field, inner, random_grid

GOLDEN = Path(__file__).parent / "golden"
TARGET = torch.tensor([[-1.5, 0, 0, 3], [0, 0, 2, -4], [0, -1, 0, 5], [0, 0, 0, 1]], dtype=torch.float64)
SHEARED = torch.tensor([[-1.5, 0.5, 0, 3], [0, 0, 2, -4], [0, -1, 0.25, 5], [0, 0, 0, 1]], dtype=torch.float64)
SOURCE = torch.tensor([[0, 1, 0, -2], [1.25, 0, 0, -5], [0, 0, -2, 6], [0, 0, 0, 1]], dtype=torch.float64)


def images(seed: int, shear: float = 0.0) -> tuple[Grid, Grid]:
    return random_grid(3, seed, shear), random_grid(3, seed + 11)


def steps_mm() -> torch.Tensor:
    """What the golden files say, ``(4, 5, 6, 3)``."""
    index = centres(Grid((4, 5, 6), torch.eye(4)))
    return index * torch.tensor([0.25, -0.5, 0.125]) + torch.tensor([1.5, 0, -1])


@pytest.mark.parametrize(
    ("meaning", "affine_of"),
    [("abs_crs", SHEARED), ("disp_crs", SHEARED), ("abs_ras", SHEARED), ("disp_ras", TARGET)],
)
def test_we_read_the_four_meanings_of_a_warp_of_surfa(meaning: str, affine_of: torch.Tensor) -> None:
    warp = read_transform(GOLDEN / f"surfa_{meaning}.mgz")
    assert isinstance(warp, Displacement) and warp.grid.matches(Grid((4, 5, 6), affine_of))
    there = warp.map_points(centres(warp.grid)) - centres(warp.grid)
    assert torch.allclose(there, steps_mm(), atol=1e-4)


def test_our_warp_is_byte_for_byte_that_of_surfa(tmp_path: Path) -> None:
    theirs = gzip.decompress((GOLDEN / "surfa_disp_ras.mgz").read_bytes())
    # Less two tags that say nothing of a warp: 41, the phase encoding (4 + 8 + 7 bytes), and 35, the field strength
    # (4 + 8 + 4), behind 284 bytes of header, 4 x 5 x 6 vectors and five numbers, of which the last is surfa's extent.
    start = 284 + 4 * 5 * 6 * 12
    theirs = theirs[: start + 16] + bytes(4) + theirs[start + 20 + 19 + 16 :]
    grid = Grid((4, 5, 6), TARGET)
    flow = torch.tensordot(torch.linalg.inv(TARGET[:3, :3]), steps_mm().movedim(-1, 0), dims=1)
    write_transform(tmp_path / "w.mgh", Displacement(flow, grid), grid, moving=Grid((7, 6, 5), SOURCE))
    assert (tmp_path / "w.mgh").read_bytes() == theirs


@pytest.mark.parametrize("seed", (0, 1, 2))
@pytest.mark.parametrize("shear", (0.0, 0.2))
@pytest.mark.parametrize("name", ("w.mgz", "w.mgh"))
def test_a_warp_comes_back(tmp_path: Path, name: str, shear: float, seed: int) -> None:
    fixed, moving = images(seed, shear)
    whole = chain([field(fixed), affine(3)]).on(fixed)
    write_transform(tmp_path / name, whole, fixed, moving=moving)
    back = read_transform(tmp_path / name)
    assert apart(back, whole, inner(fixed)) < 1e-4 and back.grid.matches(fixed)


def test_an_affine_map_comes_back(tmp_path: Path) -> None:
    fixed, moving = images(0)
    write_transform(tmp_path / "a.lta", affine(3), fixed, moving=moving)
    back = read_transform(tmp_path / "a.lta")
    assert isinstance(back, Affine) and torch.allclose(back.matrix, affine(3).matrix, atol=1e-12)


def test_what_is_no_transform_of_freesurfer_gets_one_line(tmp_path: Path) -> None:
    fixed, moving = images(0)
    write_transform(tmp_path / "a.lta", affine(3), fixed, moving=moving)
    text = (tmp_path / "a.lta").read_text("utf-8")
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
