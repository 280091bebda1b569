"""ITK's transform files, against SimpleITK."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import SimpleITK as sitk
import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io import read_image, read_transform, write_image, write_transform
from regnet.spatial import Affine, Composite, Displacement, Transform, Velocity, chain

from .maps import affine, apart, field, in_view, inner, random_grid, write_pair

SEEDS = (0, 1, 2)


def signs(ndim: int) -> Tensor:
    return torch.tensor([-1.0, -1.0, 1.0], dtype=torch.float64)[:ndim]


def by_itk(path: Path, points: Tensor) -> Tensor:
    """Where SimpleITK's reading of a file takes RAS points."""
    transform, turn = sitk.ReadTransform(str(path)), signs(points.shape[-1])
    return torch.tensor([transform.TransformPoint(p) for p in (points * turn).tolist()], dtype=torch.float64) * turn


def whole(ndim: int, seed: int) -> Transform:
    """An affine map under a deformation under another affine map."""
    return chain([affine(ndim, 4), field(random_grid(ndim, seed)), affine(ndim)])


@pytest.mark.parametrize("ndim", (2, 3))
@pytest.mark.parametrize("suffix", (".mat", ".txt", ".tfm", ".h5"))
def test_itk_reads_our_affine_maps_and_we_read_its(tmp_path: Path, suffix: str, ndim: int) -> None:
    ours, points = affine(ndim), inner(random_grid(ndim, 0))
    path, theirs = tmp_path / f"new/a{suffix}", tmp_path / f"b{suffix}"
    write_transform(path, ours)
    assert (by_itk(path, points) - ours.map_points(points)).abs().max() < 1e-9
    # Theirs, turned about a centre that is not the origin.
    copy = sitk.AffineTransform(ndim)
    copy.SetCenter((10.0, -20.0, 5.0)[:ndim])
    copy.SetMatrix(np.asarray([[0.9, 0.1, 0.05], [-0.2, 1.1, 0.02], [0.01, 0.03, 0.95]])[:ndim, :ndim].ravel().tolist())
    copy.SetTranslation((1.0, 2.0, 3.0)[:ndim])
    sitk.WriteTransform(copy, str(theirs))
    back = read_transform(theirs)
    assert isinstance(back, Affine)
    assert (by_itk(theirs, points) - back.map_points(points)).abs().max() < 1e-9


def rigid_transforms() -> list[sitk.Transform]:
    turn = sitk.VersorRigid3DTransform((0.1, -0.2, 0.3, 0.9273618495495703), (4.0, 5, 6), (1.0, 2, 3))
    last = sitk.Euler3DTransform((1.0, 2, 3), 0.1, 0.2, 0.3, (4.0, 5, 6))
    last.SetComputeZYX(True)
    similar = sitk.Similarity3DTransform(1.2, turn.GetVersor(), (4.0, 5, 6), (1.0, 2, 3))
    return [
        sitk.Euler3DTransform((1.0, 2, 3), 0.1, 0.2, 0.3, (4.0, 5, 6)),
        last,
        turn,
        similar,
        sitk.VersorTransform(turn.GetVersor(), (1.0, 2, 3)),
        sitk.TranslationTransform(3, (1.0, -2, 3)),
        sitk.ScaleTransform(3, (1.1, 0.9, 1.2)),
        sitk.Euler2DTransform((1.0, 2), 0.3, (4.0, 5)),
        sitk.Similarity2DTransform(1.3, 0.2, (4.0, 5), (1.0, 2)),
        sitk.TranslationTransform(2, (1.0, -2)),
    ]


@pytest.mark.parametrize("suffix", (".txt", ".h5"))
@pytest.mark.parametrize("number", range(10))
def test_rotations_shifts_and_scales_are_read_as_itk_reads_them(tmp_path: Path, number: int, suffix: str) -> None:
    theirs = rigid_transforms()[number]
    sitk.WriteTransform(theirs, str(tmp_path / f"t{suffix}"))
    points = inner(random_grid(theirs.GetDimension(), 1))
    ours = read_transform(tmp_path / f"t{suffix}").map_points(points)
    assert (by_itk(tmp_path / f"t{suffix}", points) - ours).abs().max() < 1e-9


@pytest.mark.parametrize("ndim", (2, 3))
@pytest.mark.parametrize("seed", SEEDS)
def test_itk_reads_our_composite_and_maps_points_as_we_do(tmp_path: Path, seed: int, ndim: int) -> None:
    ours, path = whole(ndim, seed), tmp_path / "x.h5"
    write_transform(path, ours)
    points = inner(random_grid(ndim, seed))
    assert (by_itk(path, points) - ours.map_points(points)).abs().max() < 1e-3
    kinds = [record.split("Transform")[0] for record in itk_kinds(path)]
    assert kinds == ["Composite", "Affine", "DisplacementField", "Affine"]
    back = read_transform(path)
    assert isinstance(back, Composite) and [type(part) for part in back.parts] == [Affine, Displacement, Affine]
    assert apart(back, ours, points) < 1e-4
    inverse = tmp_path / "inverse.h5"
    write_transform(inverse, ours.inverse())
    assert apart(read_transform(inverse), ours.inverse(), points) < 1e-4


def itk_kinds(path: Path) -> list[str]:
    with h5py.File(path) as file:
        group = file["TransformGroup"]
        return [group[key]["TransformType"][0].decode() for key in sorted(group, key=int)]


@pytest.mark.parametrize("ndim", (2, 3))
def test_we_read_a_composite_of_itk_and_end_its_field_where_it_does(tmp_path: Path, ndim: int) -> None:
    grid = random_grid(ndim, 3)
    write_transform(tmp_path / "field.nii.gz", field(grid))
    image = sitk.ReadImage(str(tmp_path / "field.nii.gz"), sitk.sitkVectorFloat64)
    turn = sitk.Euler3DTransform() if ndim == 3 else sitk.Euler2DTransform()
    turn.SetParameters((0.1, 0.05, -0.1, 1.0, 2, 3) if ndim == 3 else (0.1, 1.0, 2))
    path = tmp_path / "theirs.h5"
    sitk.WriteTransform(sitk.CompositeTransform([turn, sitk.DisplacementFieldTransform(image)]), str(path))
    wide = grid.window((-4,) * ndim, tuple(n + 8 for n in grid.shape))
    points = torch.cat([inner(grid), wide.to_world(wide.outer_corners())])
    assert (by_itk(path, points) - read_transform(path).map_points(points)).abs().max() < 1e-3


@pytest.mark.parametrize("ndim", (2, 3))
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ("x.h5", "x.nii.gz"))
def test_itk_resamples_with_our_files_as_we_do(tmp_path: Path, name: str, seed: int, ndim: int) -> None:
    fixed, moving = random_grid(ndim, seed, shear=5e-5), random_grid(ndim, seed + 10)
    image = write_pair(tmp_path, fixed, moving)
    write_transform(tmp_path / name, whole(ndim, seed) if name.endswith("h5") else field(fixed))
    read = read_transform(tmp_path / name)
    ours = read.apply(image, moving, fixed)[0, 0].numpy()
    theirs, seen = with_itk(tmp_path / name), in_view(read, moving, fixed).numpy()
    assert seen.mean() > 0.1
    assert np.abs(ours - theirs)[seen].max() < 0.1  # of a range of 100
    still = Affine.identity(ndim).apply(image, moving, fixed)[0, 0].numpy()
    assert np.abs(still - theirs)[seen].mean() > 1


def with_itk(path: Path) -> np.ndarray:
    folder = path.parent
    transform = (
        sitk.ReadTransform(str(path))
        if path.suffix == ".h5"
        else sitk.DisplacementFieldTransform(sitk.ReadImage(str(path), sitk.sitkVectorFloat64))
    )
    images = (sitk.ReadImage(str(folder / f"{name}.nii.gz")) for name in ("moving", "fixed"))
    return sitk.GetArrayFromImage(sitk.Resample(*images, transform, sitk.sitkLinear, 0.0)).T


@pytest.mark.parametrize("ndim", (2, 3))
def test_maps_that_itk_has_no_word_for_become_fields(tmp_path: Path, ndim: int) -> None:
    grid = random_grid(ndim, 2)
    velocity = Velocity(field(grid).flow, grid)
    write_transform(tmp_path / "v.h5", chain([velocity, affine(ndim)]))
    assert apart(read_transform(tmp_path / "v.h5"), chain([velocity, affine(ndim)]), inner(grid)) < 1e-4
    write_transform(tmp_path / "a.nii.gz", affine(ndim), like=grid)
    assert apart(read_transform(tmp_path / "a.nii.gz"), affine(ndim), inner(grid)) < 1e-4


@pytest.mark.parametrize("name", ("x.h5", "x.nii.gz"))
def test_a_sheared_grid_is_replaced_by_an_upright_one_with_the_same_map(tmp_path: Path, name: str) -> None:
    sheared = random_grid(3, 4, shear=0.25)
    with pytest.warns(UserWarning, match="sheared"):
        write_transform(tmp_path / name, field(sheared, 1.0))
    back = read_transform(tmp_path / name)
    # Linear interpolation of a curved field on another grid: a hundredth of a voxel.
    assert apart(back, field(sheared, 1.0), inner(sheared)) < 0.02
    points = inner(sheared)
    theirs = by_itk(tmp_path / name, points) if name.endswith("h5") else points_of_field(tmp_path / name, points)
    assert (theirs - back.map_points(points)).abs().max() < 1e-3


def points_of_field(path: Path, points: Tensor) -> Tensor:
    transform = sitk.DisplacementFieldTransform(sitk.ReadImage(str(path), sitk.sitkVectorFloat64))
    turn = signs(3)
    return torch.tensor([transform.TransformPoint(p) for p in (points * turn).tolist()], dtype=torch.float64) * turn


def test_what_is_no_transform_gets_one_line(tmp_path: Path) -> None:
    grid = random_grid(3, 1)
    write_transform(tmp_path / "whole.h5", whole(3, 1))
    content = (tmp_path / "whole.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(content[: len(content) // 2])
    (tmp_path / "text.h5").write_text("hello")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "cut.tfm").write_text("#Insight Transform File V1.0\nTransform: AffineTransform_double_3_3\n")
    (tmp_path / "few.txt").write_text(
        "#Insight Transform File V1.0\nTransform: AffineTransform_double_3_3\nParameters: 1 2\nFixedParameters: 0 0 0\n"
    )
    (tmp_path / "other.txt").write_text(
        "#Insight Transform File V1.0\nTransform: BSplineTransform_double_3_3\nParameters: 1\nFixedParameters: 0\n"
    )
    (tmp_path / "noise.mat").write_bytes(np.random.default_rng(0).bytes(300))
    (tmp_path / "flat.txt").write_text(
        "#Insight Transform File V1.0\nTransform: ScaleTransform_double_3_3\nParameters: 1 0 1\nFixedParameters: 0\n"
    )
    with h5py.File(tmp_path / "huge.h5", "w") as file:
        file.create_group("TransformGroup/0")["TransformType"] = np.array([b"DisplacementFieldTransform_double_3_3"])
        file["TransformGroup/0"].create_dataset("TransformParameters", shape=(3 * 10**15,), dtype="f4")
        file["TransformGroup/0"]["TransformFixedParameters"] = np.r_[[1e5] * 3, [0] * 3, [1] * 3, np.eye(3).ravel()]
    for name, reason in {
        "none.h5": "no such file",
        "cut.h5": "damaged",
        "text.h5": "damaged",
        "empty.txt": "empty",
        "cut.tfm": "ends within",
        "few.txt": "needs 12 parameters, got 2",
        "other.txt": "not known here",
        "noise.mat": "damaged",
        "flat.txt": "inverse",
        "huge.h5": "not there",
    }.items():
        with pytest.raises(InputError, match=rf"{name}: .*{reason}") as caught:
            read_transform(tmp_path / name)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="one affine map"):
        write_transform(tmp_path / "a.mat", field(grid))
    with pytest.raises(InputError, match="not written as text"):
        write_transform(tmp_path / "a.tfm", field(grid))
    with pytest.raises(InputError, match="exists already"):
        write_transform(tmp_path / "whole.h5", affine(3), overwrite=False)
    with pytest.raises(InputError, match="no grid of its own"):
        write_transform(tmp_path / "a.nii", affine(3))
    assert not (tmp_path / "a.mat").exists()


def test_images_and_fields_meet_at_the_fixed_image(tmp_path: Path) -> None:
    grid = random_grid(3, 6)
    write_image(tmp_path / "f.nii.gz", torch.zeros(grid.shape), grid)
    fixed = read_image(tmp_path / "f.nii.gz")
    write_transform(tmp_path / "w.nii.gz", whole(3, 6), fixed)
    back = Transform.load(tmp_path / "w.nii.gz")
    assert isinstance(back, Displacement) and back.grid.matches(grid)
    field(grid).save(tmp_path / "s.nii.gz")
    assert apart(Transform.load(tmp_path / "s.nii.gz"), field(grid), inner(grid)) < 1e-4
