"""FSL's matrices, fields and spline coefficients, against fslpy and nitransforms."""

from pathlib import Path

import nibabel as nib
import nitransforms
import numpy as np
import pytest
import torch
from fsl.data.image import Image as FslImage
from fsl.transform.fnirt import readFnirt
from nitransforms.io.fsl import FSLLinearTransform

from regnet.errors import InputError
from regnet.io import read_transform, write_image, write_transform
from regnet.spatial import Affine, Composite, Grid, chain
from tests.io.maps import affine, apart, field, inner, random_grid
from tests.spatial.worlds import waves

SEEDS = (0, 1, 2, 3)  # every sign of both determinants


def images(folder: Path, seed: int, shear: float = 0.0) -> tuple[Grid, Grid]:
    """The grids of a fixed and a moving image, and their files."""
    fixed = random_grid(3, seed, shear, mirrored=bool(seed & 1))
    moving = random_grid(3, seed + 10, mirrored=bool(seed & 2))
    write_image(folder / "fixed.nii.gz", torch.zeros(fixed.shape), fixed)
    write_image(folder / "moving.nii.gz", waves(moving)[0], moving)
    return fixed, moving


@pytest.mark.parametrize("seed", SEEDS)
def test_a_matrix_of_flirt_is_what_nitransforms_makes_of_it(tmp_path: Path, seed: int) -> None:
    fixed, moving = images(tmp_path, seed, shear=0.02)
    path, files = tmp_path / "new/a.mat", [tmp_path / f"{name}.nii.gz" for name in ("moving", "fixed")]
    write_transform(path, affine(3), fixed, target="fsl", moving=moving)
    theirs = FSLLinearTransform.from_string(path.read_text("utf-8")).to_ras(*files)
    assert np.allclose(theirs, affine(3).matrix, atol=1e-5)  # header geometry is float32
    back = read_transform(path, moving=moving, fixed=fixed)
    assert isinstance(back, Affine) and apart(back, affine(3), inner(fixed)) < 1e-9


def by_fslpy(folder: Path, name: str, points: torch.Tensor) -> torch.Tensor:
    source, reference = (FslImage(str(folder / f"{image}.nii.gz")) for image in ("moving", "fixed"))
    warp = readFnirt(str(folder / name), source, reference)
    return torch.from_numpy(warp.transform(points.numpy(), "world", "world"))


@pytest.mark.parametrize("seed", SEEDS)
def test_fslpy_reads_our_field_as_we_do(tmp_path: Path, seed: int) -> None:
    fixed, moving = images(tmp_path, seed)
    whole = chain([field(fixed), affine(3)]).on(fixed)
    write_transform(tmp_path / "w.nii.gz", whole, fixed, target="fsl", moving=moving)
    header = nib.load(tmp_path / "w.nii.gz").header
    assert (header.get_data_shape(), int(header["intent_code"])) == ((*fixed.shape, 3), 2006)
    back = read_transform(tmp_path / "w.nii.gz", moving=moving)
    assert apart(back, whole, inner(fixed)) < 1e-4
    # fslpy takes the vector of the nearest voxel, so ask at voxels.
    points = fixed.to_world(fixed.to_voxel(inner(fixed)).round())
    theirs = by_fslpy(tmp_path, "w.nii.gz", points)
    assert (theirs - back.map_points(points)).abs().max() < 1e-3


@pytest.mark.parametrize("seed", SEEDS)
def test_spline_coefficients_of_fnirt_are_a_free_form_deformation(tmp_path: Path, seed: int) -> None:
    fixed, moving = images(tmp_path, seed)
    knots = (4, 3, 5)
    # As many as FNIRT makes: ceil((n + 1) / spacing) + 2.
    count = [int(np.ceil((n + 1) / k)) + 2 for n, k in zip(fixed.shape, knots, strict=True)]
    values = np.random.default_rng(seed).normal(size=(*count, 3)).astype(np.float32)
    image = nib.Nifti1Image(values, None)
    matrix = np.eye(4)
    matrix[:3] += np.random.default_rng(seed + 1).normal(scale=0.03, size=(3, 4))
    header = image.header
    header["pixdim"][1:4] = knots
    header.set_sform(matrix, 1)
    for axis, size, step, number in zip("xyz", fixed.shape, fixed.spacing, (1, 2, 3), strict=True):
        header[f"qoffset_{axis}"], header[f"intent_p{number}"] = size, step
    header["intent_code"] = 2007
    nib.save(nib.Nifti1Image(values, None, header), tmp_path / "c.nii.gz")
    ours = read_transform(tmp_path / "c.nii.gz", moving=moving, fixed=fixed)
    assert isinstance(ours, Composite)
    points = fixed.to_world(fixed.to_voxel(inner(fixed)).round())
    assert (by_fslpy(tmp_path, "c.nii.gz", points) - ours.map_points(points)).abs().max() < 1e-3
    with pytest.raises(InputError, match="need the fixed image"):
        read_transform(tmp_path / "c.nii.gz", moving=moving)
    with pytest.raises(InputError, match="is of a fixed image of"):
        read_transform(tmp_path / "c.nii.gz", moving=moving, fixed=moving)


def test_nitransforms_resamples_with_our_matrix_as_we_do(tmp_path: Path) -> None:
    fixed, moving = images(tmp_path, 1)
    write_transform(tmp_path / "a.mat", affine(3), fixed, target="fsl", moving=moving)
    theirs = nitransforms.linear.load(
        tmp_path / "a.mat", fmt="fsl", reference=tmp_path / "fixed.nii.gz", moving=tmp_path / "moving.nii.gz"
    )
    moved = nitransforms.resampling.apply(theirs, tmp_path / "moving.nii.gz", tmp_path / "fixed.nii.gz", order=1)
    ours = affine(3).apply(waves(moving), moving, fixed)[0, 0].numpy()
    both = (ours > 0) & (moved.get_fdata() > 0)
    inside = np.zeros_like(both)
    inside[2:-2, 2:-2, 2:-2] = True
    difference = np.abs(ours - moved.get_fdata())[both & inside]
    assert difference.size > 500 and np.quantile(difference, 0.95) < 0.1
