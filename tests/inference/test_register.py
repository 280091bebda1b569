"""One pair, from whatever the caller has, to one map on the fixed grid."""

from pathlib import Path

import nibabel
import pytest
import torch

from regnet.data import sample_path
from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.inference import load_model, register
from regnet.io import Image, read_image, read_labels, write_image
from regnet.metrics import dice
from regnet.spatial import Displacement, Grid, Transform, canonical, resample

from .heads import centred, head, shift
from .networks import write_checkpoint


def test_paths_nibabel_images_and_tensors_give_the_same_map(tmp_path: Path) -> None:
    # Spacings that the float32 of a file header holds exactly.
    grid, other = centred((26, 30, 22), (1.0, 0.75, 1.25)), centred((24, 28, 26), (1.25, 1.0, 1.0))
    moving, fixed = head(other, 9, shift(1.0, 0.0, 0.0)), head(grid, 9)
    for name, image in (("moving", moving), ("fixed", fixed)):
        write_image(tmp_path / f"{name}.nii.gz", image.data, image)
    paths = (tmp_path / "moving.nii.gz", str(tmp_path / "fixed.nii.gz"))
    expected = register(moving, fixed, refine=4)
    assert expected.grid == grid
    for a, b in (
        paths,
        (nibabel.load(paths[0]), nibabel.load(paths[1])),
        ((moving.data[0], other.affine), (fixed.data, grid.affine.numpy())),
    ):
        found = register(a, b, refine=4)
        assert found.grid.matches(grid)
        torch.testing.assert_close(found.flow, expected.flow, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("kind", "push"), [("velocity", 2.0), ("displacement", 2.0), ("half", 1.0)])
@pytest.mark.parametrize("refine", [0, 2])
def test_a_network_that_says_two_voxels_moves_by_two_of_its_voxels_of_3_mm(
    tmp_path: Path, kind: str, push: float, refine: int
) -> None:
    # The network's first axis points right, the fixed image's first axis to the left: RAS + 6 mm is LAS - 6 mm.
    spec = InputSpec(ndim=3, spacing=3.0, margin_mm=None)
    model = load_model(write_checkpoint(tmp_path / "a.ckpt", spec, kind, push))
    grid = centred((20, 25, 18), (1.5, 1.0, 2.0))
    flipped = Grid(grid.shape, grid.affine * torch.tensor([-1.0, 1, 1, 1]))
    image = head(flipped, 9)
    found = register(image, image, model, refine=refine, **({"learning_rate": 0.0} if refine else {}))
    assert found.grid == flipped
    expected = torch.tensor([6.0, 0.0, 0.0]).view(3, 1, 1, 1).expand(3, *grid.shape)
    torch.testing.assert_close(found.displacement_mm(), expected, atol=2e-2, rtol=0)
    torch.testing.assert_close(found.flow[0], torch.full(grid.shape, -4.0), atol=2e-2, rtol=0)


def test_refinement_leaves_the_weights_as_they_are(tmp_path: Path) -> None:
    model = load_model(write_checkpoint(tmp_path / "a.ckpt", InputSpec(ndim=2, spacing=2.0), push=0.5))
    before = {name: value.clone() for name, value in model.model.state_dict().items()}
    fixed = head(centred((34, 40)), 10)
    first = register(head(centred((34, 40)), 10, shift(1.0, 0.0)), fixed, model, refine=3)
    again = register(head(centred((34, 40)), 10, shift(1.0, 0.0)), fixed, model, refine=3)
    torch.testing.assert_close(first.flow, again.flow, atol=0, rtol=0)
    for name, value in model.model.state_dict().items():
        assert torch.equal(value, before[name])


def test_any_shape_goes_through_a_network(tmp_path: Path) -> None:
    model = load_model(write_checkpoint(tmp_path / "a.ckpt", InputSpec(ndim=3, spacing=None, margin_mm=None)))
    fixed, moving = head(centred((17, 19, 23)), 7), head(centred((12, 31, 9), (2.0, 1.0, 3.0)), 7)
    assert register(moving, fixed, model).flow.shape == (3, 17, 19, 23)


def test_neither_model_nor_refinement_is_refused() -> None:
    image = head(centred((26, 30)), 8)
    with pytest.raises(ValueError, match="nothing to register with"):
        register(image, image)


def test_a_slice_and_a_volume_cannot_be_registered() -> None:
    with pytest.raises(InputError, match="they have 2 and 3 axes"):
        register(head(centred((26, 30)), 8), head(centred((20, 20, 20)), 8), refine=1)


def test_a_network_for_volumes_refuses_slices(tmp_path: Path) -> None:
    model = write_checkpoint(tmp_path / "a.ckpt", InputSpec(ndim=3))
    image = head(centred((26, 30)), 8)
    with pytest.raises(InputError, match="2-D"):
        register(image, image, model)


@pytest.mark.slow
def test_how_colin27_is_stored_does_not_change_where_it_is_registered_to(tmp_path: Path) -> None:
    # As LAS, 2 x 2 x 2.5 mm, on a grid turned by 7 degrees in sform and qform, int16 with slope and intercept.
    moving, fixed = read_image(sample_path("colin27_t1")), read_image(sample_path("mni152_t1"))
    tissue, truth = read_labels(sample_path("colin27_tissue")), read_labels(sample_path("mni152_tissue"))
    stored = read_image(stored_otherwise(moving.path, tmp_path / "stored.nii.gz"))
    assert stored.grid.orientation == "LAS"

    def overlap(transform: Transform) -> dict[int, float]:
        moved = transform.apply_labels(tissue.data[None], tissue.grid)
        return dice(moved[0, 0], truth.data[0], labels=[1, 2])

    before = overlap(Displacement.identity(fixed.grid))
    plain = overlap(register(moving, fixed, refine=20))
    other = overlap(register(stored, fixed, refine=20))
    for label in (1, 2):
        assert plain[label] > before[label] + 0.05
        assert other[label] == pytest.approx(plain[label], abs=0.02)


def stored_otherwise(path: Path, out: Path) -> Path:
    """Store a volume in another orientation, spacing, on a turned grid and as scaled integers."""
    image = read_image(path)
    straight = canonical(image.grid, (2.0, 2.0, 2.5))
    turn = torch.eye(4, dtype=torch.float64)
    turn[:2, :2] = centred((2, 2), turn=7).affine[:2, :2]
    middle = torch.tensor([(n - 1) / 2 for n in straight.shape], dtype=torch.float64)
    flip = torch.diag(torch.tensor([-1.0, 1.0, 1.0, 1.0], dtype=torch.float64))
    affine = turn @ straight.affine @ flip
    affine[:3, 3] = straight.to_world(middle) - affine[:3, :3] @ middle
    grid = Grid(straight.shape, affine)
    data = resample(image.data[None], image.grid, grid)[0, 0].numpy()
    file = nibabel.Nifti1Image(data, affine.numpy())
    file.set_data_dtype("int16")  # nibabel chooses slope and intercept
    file.set_sform(affine.numpy(), 1)
    file.set_qform(affine.numpy(), 1)
    nibabel.save(file, out)
    return out


def test_images_that_lie_in_different_places_are_refused() -> None:
    fixed = head(centred((20, 20, 20)), 8)
    elsewhere = Image(fixed.data, fixed.grid.window((100, 0, 0), fixed.grid.shape))
    with pytest.raises(InputError, match="do not overlap"):
        register(elsewhere, fixed, refine=1)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_refinement_runs_where_gradients_are_off(mode: type) -> None:
    grid = centred((14, 15, 16))
    moving, fixed = head(grid, 6, shift(1.0, 0.0, 0.0)), head(grid, 6)
    expected = register(moving, fixed, refine=2).flow
    with mode():
        pair = [(image.data * 1, grid.affine) for image in (moving, fixed)]
        result = register(*pair, refine=2).flow
    torch.testing.assert_close(result, expected)
    assert not result.requires_grad and not result.is_inference()


@pytest.mark.parametrize("device", ["cuda:99", "nowhere", "meta"])
def test_a_device_that_is_not_there_is_refused(device: str) -> None:
    image = head(centred((14, 15, 16)), 6)
    with pytest.raises(ValueError, match=device):
        register(image, image, refine=1, device=device)
