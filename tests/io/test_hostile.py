"""What random bytes in transform files found: each gets one line. Some 100 000 mutated files were read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk
import torch

from regnet.errors import InputError
from regnet.io import as_image, itk_h5, read_header, read_image, read_transform, write_transform
from regnet.spatial import Displacement, Grid

from .maps import affine, field, random_grid


def spoilt(folder: Path, change: Callable[[Any], None], target: str = "itk") -> Path:
    """A field whose header is not what it was."""
    fixed = random_grid(3, 1)
    path = folder / "x.nii"
    write_transform(path, field(fixed), fixed, target=target, moving=fixed)
    data = bytearray(path.read_bytes())
    header = nib.Nifti1Header(bytes(data[:348]), check=False)
    change(header)
    data[:348] = header.binaryblock
    path.write_bytes(data)
    return path


def dimensions(*sizes: int) -> Callable[[Any], None]:
    def change(header: Any) -> None:
        header["dim"][: len(sizes)] = sizes

    return change


def put(key: str, value: float) -> Callable[[Any], None]:
    def change(header: Any) -> None:
        header[key] = value

    return change


@pytest.mark.parametrize(
    ("change", "target"),
    [
        (dimensions(5, -3, 20, 15, 1, 3), "itk"),
        (dimensions(5, 32767, 32767, 32767, 1, 3), "itk"),
        (dimensions(7, 32767, 32767, 32767, 32767, 32767, 32767, 32767), "itk"),
        (dimensions(0, 0, 0, 0, 0, 0), "itk"),
        (put("vox_offset", 1e30), "itk"),
        (put("vox_offset", np.nan), "itk"),
        (put("datatype", 1234), "itk"),
        (put("srow_x", np.nan), "itk"),
        (put("srow_x", (0, 0, 0, 0)), "itk"),
        (put("intent_p1", np.inf), "nifty"),
        (put("intent_p1", np.nan), "nifty"),
        (put("intent_code", 2007), "fsl"),
    ],
)
def test_a_spoilt_header_gets_one_line(tmp_path: Path, change: Callable[[Any], None], target: str) -> None:
    path = spoilt(tmp_path, change, target)
    grid = random_grid(3, 1)
    with np.errstate(all="ignore"), pytest.raises(InputError, match=r"x\.nii: ") as caught:
        read_transform(path, moving=grid, fixed=grid)
    assert "\n" not in str(caught.value)


def test_a_qform_that_is_no_rotation_is_told_of_and_not_used(tmp_path: Path) -> None:
    path = spoilt(tmp_path, put("quatern_b", 3.0))
    with pytest.warns(UserWarning, match=r"x\.nii: sform and qform differ by up to inf mm"):
        assert read_transform(path).home.matches(random_grid(3, 1))


def coefficients(**changes: float) -> nib.Nifti1Image:
    """FNIRT's, for the grid of seed 1, but for the changes."""
    grid = random_grid(3, 1)
    image = nib.Nifti1Image(np.zeros((9, 9, 9, 3), np.float32), None)
    header = image.header
    header["pixdim"][1:4] = changes.get("knots", 4)
    header.set_sform(np.eye(4), 1)
    for axis, size, step, number in zip("xyz", grid.shape, grid.spacing, (1, 2, 3), strict=True):
        header[f"qoffset_{axis}"], header[f"intent_p{number}"] = changes.get("size", size), step
    header["intent_code"] = 2007
    return nib.Nifti1Image(np.full((9, 9, 9, 3), changes.get("value", 0), np.float32), None, header)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"size": np.inf}, "of a fixed image of inf"), ({"knots": 1}, "needed"), ({"value": np.nan}, "finite")],
)
def test_spoilt_coefficients_get_one_line(tmp_path: Path, changes: dict[str, float], reason: str) -> None:
    nib.save(coefficients(**changes), tmp_path / "c.nii")
    with pytest.raises(InputError, match=rf"c\.nii: .*{reason}"):
        read_transform(tmp_path / "c.nii", moving=random_grid(3, 1), fixed=random_grid(3, 1))


@pytest.mark.parametrize("share", (0.2, 0.5, 0.9))
@pytest.mark.parametrize("name", ("x.nii", "x.nii.gz", "x.h5", "x.mat", "x.tfm", "x.mgz", "x.mgh", "x.npz"))
def test_a_file_that_was_cut_gets_one_line(tmp_path: Path, name: str, share: float) -> None:
    fixed = random_grid(3, 1)
    transform = affine(3) if name.endswith((".mat", ".tfm")) else field(fixed)
    write_transform(tmp_path / name, transform, fixed, moving=fixed)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match=rf"{name}: ") as caught:
        read_transform(tmp_path / name, moving=fixed, fixed=fixed)
    assert "\n" not in str(caught.value)


def test_damage_within_an_archive_gets_one_line(tmp_path: Path) -> None:
    fixed = random_grid(3, 1)
    write_transform(tmp_path / "x.npz", field(fixed), fixed, moving=fixed)
    data = (tmp_path / "x.npz").read_bytes()
    for at in range(60, 400, 40):
        (tmp_path / "x.npz").write_bytes(data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :])
        with pytest.raises(InputError, match=r"x\.npz: damaged"):
            read_transform(tmp_path / "x.npz", moving=fixed, fixed=fixed)


def test_words_without_end_get_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    # A byte of the heap that holds the words of a composite, changed: HDF5 itself never comes back.
    monkeypatch.setattr(itk_h5, "_SECONDS", 3)
    with pytest.raises(InputError, match=r"endless\.h5: damaged"):
        read_transform(Path(__file__).parent / "golden" / "endless.h5")


@pytest.mark.parametrize("offset", [1e9, -3e7, 2e6])
def test_voxels_that_float32_does_not_tell_apart_are_no_geometry(tmp_path: Path, offset: float) -> None:
    affine = np.diag([2.0, 1.5, 2.0, 1.0])
    affine[1, 3] = offset
    data = np.random.default_rng(0).random((5, 6, 7))
    nib.save(nib.Nifti1Image(data, affine), tmp_path / "far.nii")
    image = sitk.GetImageFromArray(data)
    image.SetOrigin((0.0, offset, 0.0))
    sitk.WriteImage(image, str(tmp_path / "far.mha"))
    write_transform(tmp_path / "w.h5", Displacement(torch.zeros(3, 5, 6, 7), Grid((5, 6, 7), torch.tensor(affine))))
    for attempt in (
        lambda: read_image(tmp_path / "far.nii"),
        lambda: read_image(tmp_path / "far.mha"),
        lambda: read_header(tmp_path / "far.nii"),
        lambda: as_image((data, affine)),
        lambda: read_transform(tmp_path / "w.h5"),
    ):
        with pytest.raises(InputError, match="mm from the origin, where float32"):
            attempt()
    affine[1, 3] = 1e5  # a hundred metres, as of a table that was driven out
    assert as_image((data, affine)).grid.shape == (5, 6, 7)


@pytest.mark.parametrize(
    ("target", "name"), [("itk", "x.nii"), ("nifty", "x.nii"), ("learn2reg", "x.npz"), ("itk", "x.h5")]
)
def test_a_field_that_leads_out_of_the_world_gets_one_line(tmp_path: Path, target: str, name: str) -> None:
    fixed = random_grid(3, 1)
    flow = torch.zeros(3, *fixed.shape)
    flow[0, 3, 4, 5] = 1e36
    write_transform(tmp_path / name, Displacement(flow, fixed), fixed, target=target, moving=fixed)
    with pytest.raises(InputError, match="voxels away; such a field is damaged"):
        read_transform(tmp_path / name, target, fixed, fixed)


def test_numbers_beyond_float32_are_refused_wherever_they_stand(tmp_path: Path) -> None:
    data = np.zeros((5, 6, 7))
    data[2, 3, 4] = -1e302
    nib.save(nib.Nifti1Image(data, np.eye(4)), tmp_path / "x.nii.gz")
    sitk.WriteImage(sitk.GetImageFromArray(data), str(tmp_path / "x.mha"))
    scaled = nib.Nifti1Image(np.full((5, 6, 7), 100, np.int16), np.eye(4))
    scaled.header.set_slope_inter(3e38, 0)
    nib.save(scaled, tmp_path / "scaled.nii")
    for source in (tmp_path / "x.nii.gz", tmp_path / "x.mha", tmp_path / "scaled.nii", (data, np.eye(4))):
        with pytest.raises(InputError, match="which float32 does not hold"):
            as_image(source)
    data[2, 3, 4] = np.inf  # is what the file says
    assert bool(torch.isinf(as_image((data, np.eye(4))).data).any())
