"""What comes before the deformation, and what is refused or warned of before the work."""

import warnings
from pathlib import Path

import pytest
import torch

from regnet.data.prepare import place
from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.inference import find, load_model, register
from regnet.inference.initial import initial
from regnet.io import Image
from regnet.spatial import Affine, Composite, Displacement, Grid
from tests.spatial.worlds import rotation

from .heads import centred, head, points, shift
from .networks import write_checkpoint

ALIGNED = InputSpec(ndim=2)


def far(mm: float) -> tuple[Image, Image]:
    """A slice and itself, whose header puts it so many mm away."""
    grid = centred((40, 44))
    away = grid.affine.clone()
    away[0, 2] += mm
    return Image(head(grid, 14).data, Grid(grid.shape, away)), head(grid, 14)


def test_auto_trusts_headers_that_overlap_where_the_network_expects_aligned_images() -> None:
    moving, fixed = far(3.0)
    nothing = torch.eye(3, dtype=torch.float64)
    assert torch.equal(initial(moving, fixed, "auto", ALIGNED).matrix, nothing)
    for spec in (None, InputSpec(ndim=2, affine_first=True)):
        found = initial(moving, fixed, "auto", spec).matrix
        torch.testing.assert_close(found[:2, 2], torch.tensor([3.0, 0.0], dtype=torch.float64), atol=0.1, rtol=0)


def test_auto_finds_images_whose_headers_do_not_overlap() -> None:
    moving, fixed = far(500.0)
    found = initial(moving, fixed, "auto", ALIGNED).matrix
    torch.testing.assert_close(found[:2, 2], torch.tensor([500.0, 0.0], dtype=torch.float64), atol=0.1, rtol=0)
    with pytest.raises(InputError, match="do not overlap in the world; --init affine"):
        initial(moving, fixed, "none", ALIGNED)


def test_a_placed_image_keeps_its_voxels_and_changes_its_header() -> None:
    image = head(centred((20, 24)), 8)
    there = Affine(torch.tensor([[0.0, -1.0, 2.0], [1.0, 0.0, -3.0], [0.0, 0.0, 1.0]]))
    placed = place(image, there)
    assert placed.data is image.data
    # What the map takes to a place of the image lies there, seen from the fixed space.
    at = torch.tensor([[3.0, 1.0], [-2.0, 5.0]], dtype=torch.float64)
    torch.testing.assert_close(placed.grid.to_voxel(at), image.grid.to_voxel(there.map_points(at)))


def test_register_gives_a_deformation_on_the_fixed_grid_and_the_affine_map_after_it() -> None:
    moving, fixed = far(30.0)
    found = register(moving, fixed, refine=2)
    assert isinstance(found, Composite)
    deformation, affine = found.parts
    assert isinstance(deformation, Displacement) and deformation.grid == fixed.grid
    assert isinstance(affine, Affine)
    assert isinstance(register(moving, moving, refine=2, init="none"), Displacement)
    only = register(moving, fixed, init="rigid")
    torch.testing.assert_close(
        only.map_points(torch.zeros(1, 2)), torch.tensor([[30.0, 0.0]], dtype=torch.float64), atol=0.1, rtol=0
    )


@pytest.mark.parametrize("kind", ["velocity", "displacement", "half"])
def test_the_deformation_of_a_network_is_turned_back_by_its_inverse(tmp_path: Path, kind: str) -> None:
    spec = InputSpec(ndim=2, spacing=2.0, margin_mm=None)
    model = load_model(write_checkpoint(tmp_path / "a.ckpt", spec, kind, push=1.0))
    moving, fixed = far(30.0)
    result = find(moving, fixed, model, init="rigid")
    at = points(fixed.grid).reshape(-1, 2)
    at = at[at.norm(dim=1) < 15]
    away = result.inverse.map_points(result.transform.map_points(at)) - at
    assert float(away.norm(dim=1).max()) < 0.05
    assert float((result.backward.map_points(result.forward.map_points(at)) - at).norm(dim=1).max()) < 0.05
    assert float(result.forward.displacement_mm().norm(dim=0).mean()) > 1.0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"init": "similarity"}, "init must be one of"),
        ({"init": "none"}, "nothing to register with"),
        ({"init": "moments", "initial_transform": Affine.identity(2)}, "init=moments"),
        ({"initial_transform": Displacement.identity(centred((5, 6)))}, "must be an affine map"),
    ],
)
def test_what_cannot_be_started_with_is_refused(options: dict[str, object], reason: str) -> None:
    moving, fixed = far(0.0)
    with pytest.raises(ValueError, match=reason):
        register(moving, fixed, **options)  # type: ignore[arg-type]


def scaled(image: Image, factor: float) -> Image:
    affine = image.grid.affine.clone()
    affine[:-1] *= factor
    return Image(image.data, Grid(image.grid.shape, affine))


@pytest.mark.parametrize(("factor", "reason"), [(1e-6, "absurd"), (1e3, "absurd"), (1 / 25, "other units")])
def test_an_image_in_other_units_is_refused_in_words(factor: float, reason: str) -> None:
    image = head(centred((30, 34)), 10)
    with pytest.raises(InputError, match=reason):
        register(scaled(image, factor), image, init="rigid")


def lopsided(grid: Grid, turn: float = 0.0, mirror: bool = False) -> Image:
    """A head with a bright spot to the right and in front: not like its mirror image."""
    at = points(grid) @ rotation(2, turn)
    if mirror:
        at = at * torch.tensor([-1.0, 1.0], dtype=torch.float64)
    spots = [((9.0, 5.0), 4.0), ((4.0, -11.0), 3.0), ((-3.0, 14.0), 2.5)]
    glow = sum(torch.exp(-((at - torch.tensor(c, dtype=torch.float64)) / w).square().sum(-1)) for c, w in spots)
    outline = torch.sigmoid((1 - (at / torch.tensor([16.0, 20.0])).norm(dim=-1)) * 10)
    return Image((outline * 60 + 90 * glow).float()[None], grid)


def test_images_that_fit_only_in_a_mirror_are_warned_of() -> None:
    grid = centred((50, 54))
    with pytest.warns(UserWarning, match="mirrored; is left-right flipped"):
        initial(lopsided(grid, mirror=True), lopsided(grid), "affine", None)


def test_images_that_fit_only_when_turned_are_warned_of_where_nothing_turns_them() -> None:
    grid = centred((50, 54))
    with pytest.warns(UserWarning, match="turned by 1[78][0-9] degrees; does a header name the wrong axes"):
        initial(lopsided(grid, turn=180), lopsided(grid), "none", None)
    with pytest.warns(UserWarning, match="the affine stage turns one by 1[78][0-9] degrees"):
        initial(lopsided(grid, turn=180), lopsided(grid), "affine", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        initial(lopsided(grid, turn=15), lopsided(grid), "none", None)
        initial(lopsided(grid, turn=15), lopsided(grid), "affine", None)


def test_a_masked_false_lesion_changes_the_field_outside_it_by_less_than_half_a_millimetre() -> None:
    # A head of 80 mm at 2 mm; the lesion is a ball of 30 mm, at the brightest value, in the fixed image.
    grid = centred((48, 56, 44), 2.0)
    plain, moving = head(grid, 36), head(grid, 36, shift(-3.0, 2.0, 0.0))
    distance = (points(grid) - torch.tensor([10.0, 5.0, 0.0])).norm(dim=-1)
    lesion = distance < 15
    data = plain.data.clone()
    data[0, lesion] = plain.data.max()
    ill = Image(data, grid)
    mask = Image((distance >= 17)[None].to(torch.uint8), grid)

    def field(fixed: Image, **masks: Image) -> torch.Tensor:
        return register(moving, fixed, refine=25, init="affine", **masks).on(grid).displacement_mm()

    expected = field(plain)
    outside = (distance > 20) & (plain.data[0] > 5)
    masked, unmasked = ((found - expected).norm(dim=0)[outside] for found in (field(ill, fixed_mask=mask), field(ill)))
    assert float(masked.max()) < 0.5
    assert float(unmasked.max()) > 1.0
