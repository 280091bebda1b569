"""Fields of Learn2Reg, NiftyReg and SPM, the round trip of every format, and how the front door tells them apart."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
import torch
from scipy.ndimage import map_coordinates

from regnet.errors import InputError
from regnet.io import CONVENTIONS, read_image, read_transform, target_of, write_image, write_transform
from regnet.spatial import FFD, Displacement, Grid, Velocity, chain
from tests.spatial.worlds import centres, waves

from .maps import affine, apart, field, inner, random_grid


def save(path: Path, array: np.ndarray, grid: Grid, intent: int, name: str = "", p1: float = 0.0) -> Path:
    """A file as another program would leave it."""
    image = nib.Nifti1Image(array.astype(np.float32), grid.affine.numpy())
    image.header["intent_code"], image.header["intent_name"], image.header["intent_p1"] = intent, name, p1
    nib.save(image, path)
    return path


def places(transform: Any, grid: Grid) -> np.ndarray:
    """Where the voxels of a grid go, RAS mm, ``(X, Y, Z, 1, 3)``."""
    return transform.map_points(centres(grid)).numpy()[:, :, :, None]


FORMATS = [
    ("itk", "x.nii.gz", 2),
    ("itk", "x.nii.gz", 3),
    ("itk-h5", "x.h5", 2),
    ("itk-h5", "x.h5", 3),
    ("fsl", "x.nii.gz", 3),
    ("freesurfer", "x.mgz", 3),
    ("learn2reg", "x.nii.gz", 3),
    ("learn2reg", "x.npz", 3),
    ("learn2reg", "x.npz", 2),
    ("nifty", "x.nii.gz", 2),
    ("nifty", "x.nii.gz", 3),
    ("spm", "x.nii", 3),
]


@pytest.mark.parametrize(("convention", "name", "ndim"), FORMATS)
def test_every_format_gives_back_the_same_map(tmp_path: Path, convention: str, name: str, ndim: int) -> None:
    # ITK alone has no sheared grids; what becomes of them is in test_itk.py.
    shear = 0.0 if convention.startswith("itk") else 0.2
    fixed, moving = random_grid(ndim, 1, shear), random_grid(ndim, 12)
    whole = chain([field(fixed), affine(ndim)]).on(fixed)
    write_transform(tmp_path / name, whole, fixed, target=convention, moving=moving)
    source = None if convention in ("itk", "itk-h5", "fsl", "freesurfer", "nifty", "spm") else convention
    back = read_transform(tmp_path / name, source, moving, fixed)
    assert apart(back, whole, inner(fixed)) < 1e-4


@pytest.mark.parametrize(
    "make", [lambda g: Velocity(field(g).flow, g), lambda g: control_points(g), lambda g: affine(3)]
)
@pytest.mark.parametrize("convention", ["itk", "fsl", "learn2reg", "nifty", "spm"])
def test_every_kind_of_map_is_written_as_a_field(tmp_path: Path, convention: str, make: Callable[[Grid], Any]) -> None:
    fixed, moving = random_grid(3, 2), random_grid(3, 13)
    write_transform(tmp_path / "x.nii.gz", make(fixed), fixed, target=convention, moving=moving)
    back = read_transform(tmp_path / "x.nii.gz", convention, moving, fixed)
    at = fixed.to_world(fixed.to_voxel(inner(fixed)).round())
    assert apart(back, make(fixed), at) < 1e-4


def control_points(grid: Grid) -> FFD:
    points = tuple(int((n - 1) // 4) + 4 for n in grid.shape)
    return FFD(torch.randn(3, *points, generator=torch.Generator().manual_seed(1)), grid, 4)


def test_learn2reg_warps_arrays_with_our_field_as_we_warp_images(tmp_path: Path) -> None:
    fixed, moving = random_grid(3, 0), random_grid(3, 11)
    whole = chain([field(fixed), affine(3)]).on(fixed)
    write_transform(tmp_path / "disp.npz", whole, fixed, moving=moving)
    with np.load(tmp_path / "disp.npz") as file:
        (array,) = file.values()
    assert array.shape == (*fixed.shape, 3) and array.dtype == np.float32
    # Their evaluation: identity of the fixed array plus displacement, into the moving array.
    at = np.moveaxis(array, -1, 0) + np.stack(np.meshgrid(*map(np.arange, fixed.shape), indexing="ij"))
    theirs = map_coordinates(waves(moving)[0, 0].numpy(), at, order=1, cval=-1)
    ours = whole.apply(waves(moving), moving, background=-1)[0, 0].numpy()
    seen = theirs >= 0
    assert seen.mean() > 0.2 and np.abs(theirs - ours)[seen].max() < 0.01
    # The same, channels first, is told by its shape.
    np.savez(tmp_path / "first.npz", np.moveaxis(array, -1, 0))
    assert apart(read_transform(tmp_path / "first.npz", moving=moving, fixed=fixed), whole, inner(fixed)) < 1e-4


def test_niftyreg_means_ras_millimetres_by_an_intent_that_means_lps_elsewhere(tmp_path: Path) -> None:
    grid = random_grid(3, 1)
    there = places(field(grid), grid)
    steps = there - centres(grid).numpy()[:, :, :, None]
    for name, array, kind in (("def.nii", there, 0), ("disp.nii.gz", steps, 1)):
        save(tmp_path / name, array, grid, 1007, "NREG_TRANS", kind)
        assert apart(read_transform(tmp_path / name), field(grid), inner(grid)) < 1e-4
    save(tmp_path / "points.nii", there, grid, 1007, "NREG_TRANS", 2)
    with pytest.raises(InputError, match=r"points\.nii: .*control points"):
        read_transform(tmp_path / "points.nii")
    save(tmp_path / "bare.nii", there, grid, 0)
    assert apart(read_transform(tmp_path / "bare.nii", "nifty"), field(grid), inner(grid)) < 1e-4


def test_spm_means_places(tmp_path: Path) -> None:
    grid = random_grid(3, 2)
    save(tmp_path / "y_named.nii", places(field(grid), grid), grid, 1007, "Mapping")
    assert apart(read_transform(tmp_path / "y_named.nii"), field(grid), inner(grid)) < 1e-4
    save(tmp_path / "y_bare.nii", places(field(grid), grid), grid, 0)
    with pytest.raises(InputError, match="give --from itk, fsl, learn2reg, nifty, spm"):
        read_transform(tmp_path / "y_bare.nii")
    assert apart(read_transform(tmp_path / "y_bare.nii", "spm"), field(grid), inner(grid)) < 1e-4
    bare = nib.load(tmp_path / "y_bare.nii")  # as "Segment" leaves it
    bare.header["descrip"] = "Deformation"
    nib.save(bare, tmp_path / "y_described.nii")
    assert apart(read_transform(tmp_path / "y_described.nii"), field(grid), inner(grid)) < 1e-4


@pytest.mark.parametrize("shape", [(6, 5, 4, 3), (6, 5, 4, 1, 3)])
def test_a_field_that_does_not_say_whose_it_is_needs_a_word(tmp_path: Path, shape: tuple[int, ...]) -> None:
    # C-38. With the word, the numbers (-1, -2, -3) are what the convention says they are.
    grid = Grid((6, 5, 4), torch.eye(4))
    path = save(tmp_path / "x.nii.gz", np.broadcast_to(np.array([-1.0, -2, -3]), shape), grid, 0)
    with pytest.raises(InputError, match=r"x\.nii\.gz: .*--from"):
        read_transform(path)
    point = torch.tensor([3.0, 2, 1])
    for convention, expected in {
        "itk": (1, 2, -3),  # LPS
        "learn2reg": (-1, -2, -3),  # voxels of 1 mm
        "fsl": (1, -2, -3),  # the affine has a positive determinant: FSL's x runs to the left
    }.items():
        there = read_transform(path, convention, grid, grid).map_points(point)
        assert torch.allclose(there - point, torch.tensor(expected, dtype=torch.float64), atol=1e-5)


def test_which_way_a_field_points_in_each_file(tmp_path: Path) -> None:
    # C-39. The moving image is the fixed one shifted by 2 voxels along axis 0, RAS, 1 mm: what is at p lies at p + 2.
    grid = Grid((8, 7, 6), torch.eye(4))
    flow = torch.zeros(3, *grid.shape)
    flow[0] = 2
    transform, at = Displacement(flow, grid), (3, 2, 1)
    expected = {
        "itk": (-2, 0, 0),  # LPS
        "fsl": (-2, 0, 0),  # FSL's x runs to the left here
        "learn2reg": (2, 0, 0),
        "nifty": (5, 2, 1),
        "spm": (5, 2, 1),
    }
    for convention, vector in expected.items():
        path = tmp_path / f"{convention}.nii"
        write_transform(path, transform, grid, target=convention, moving=grid)
        stored = nib.load(path)
        assert stored.get_data_dtype() == np.float32
        assert np.allclose(np.asarray(stored.dataobj)[at].ravel(), vector, atol=1e-5)


def test_a_field_keeps_its_digits_whatever_the_fixed_image_stores(tmp_path: Path) -> None:
    # C-41. The fixed image is uint8 with a slope; the fields are float32 without.
    grid = Grid((9, 8, 7), torch.eye(4))
    image = nib.Nifti1Image(np.zeros(grid.shape, np.uint8), np.eye(4))
    image.header.set_slope_inter(0.5, 3)
    nib.save(image, tmp_path / "fixed.nii")
    fixed = read_image(tmp_path / "fixed.nii")
    flow = torch.linspace(-0.5, 0.5, 3 * grid.voxels).reshape(3, *grid.shape)
    for convention in ("itk", "fsl", "learn2reg"):
        path = tmp_path / f"{convention}.nii"
        write_transform(path, Displacement(flow, grid), fixed, target=convention, moving=fixed)
        back = read_transform(path, convention, fixed, fixed)
        assert (back.flow - flow).abs().max() < 2e-6  # sums with places of up to 9 mm in float32


def test_names_and_words_that_do_not_fit_are_told_before_the_work(tmp_path: Path) -> None:
    for name, convention in (("x.nii.gz", "itk-h5"), ("x.h5", "fsl"), ("x.png", None), ("x.mgz", "spm"), ("x", "ras")):
        with pytest.raises(InputError, match=rf"{name}: a transform .*is written as"):
            target_of(tmp_path / name, convention)
    for name, meant in (
        ("x.nii", "itk"),
        ("x.h5", "itk"),
        ("x.mat", "itk"),
        ("x.lta", "freesurfer"),
        ("x.npz", "learn2reg"),
    ):
        assert target_of(Path(name))[0] == meant
    with pytest.raises(ValueError, match="no convention 'ants'; use " + ", ".join(CONVENTIONS)):
        target_of(tmp_path / "x.nii", "ants")
    grid = random_grid(3, 1)
    write_transform(tmp_path / "x.h5", affine(3))
    with pytest.raises(InputError, match="spm has no such files"):
        read_transform(tmp_path / "x.h5", "spm")
    for convention in ("fsl", "learn2reg"):
        write_image(tmp_path / "image.nii.gz", torch.zeros(5, 6, 7), Grid((5, 6, 7), torch.eye(4)))
        with pytest.raises(InputError, match=r"image\.nii\.gz: "):
            read_transform(tmp_path / "image.nii.gz", convention, grid, grid)
    (tmp_path / "object.npz").write_bytes(b"PK\x03\x04 nothing")
    np.savez(tmp_path / "pickle.npz", np.array([{}], dtype=object))
    np.savez(tmp_path / "two.npz", np.zeros(3), np.zeros(3))
    for name, reason in {"object": "damaged", "pickle": "damaged", "two": "holds 2 arrays"}.items():
        with pytest.raises(InputError, match=rf"{name}\.npz: .*{reason}"):
            read_transform(tmp_path / f"{name}.npz", moving=grid, fixed=grid)
    (tmp_path / "what.bin").write_bytes(b"\0\1\2hello")
    with pytest.raises(InputError, match="not a transform we know"):
        read_transform(tmp_path / "what.bin")
