"""The affine stage finds known maps: any turn, other contrast, partial overlap, masks."""

import pytest
import torch

from regnet.inference.affine import Aligner
from regnet.io import Image
from regnet.spatial import Affine, Grid
from tests.inference.heads import centred, head, intensity, points
from tests.spatial.worlds import rotation

RADIUS = 30.0


def known(ndim: int, degrees: float, stretch: float = 0.06) -> Affine:
    """A turn, a stretch, a shear and a shift of some millimetres, fixed -> moving."""
    matrix = torch.eye(ndim + 1, dtype=torch.float64)
    upper = torch.diag(torch.tensor([1 + stretch, 1 - stretch, 1.0], dtype=torch.float64)[:ndim])
    upper[0, 1] = stretch
    matrix[:-1, :-1] = rotation(ndim, degrees) @ upper
    matrix[:-1, -1] = torch.tensor([9.0, -6.0, 4.0], dtype=torch.float64)[:ndim]
    return Affine(matrix)


def seen(grid: Grid, there: Affine, contrast: bool = False) -> Image:
    """The moving image: the head at ``there^-1 (y)``, in another contrast if told."""
    values = intensity(there.inverse().map_points(points(grid)), RADIUS) / 140
    if contrast:
        values = torch.where(values > 0.03, 0.2 + 0.8 * torch.sin(4 * values + 1).abs(), values)
    noise = torch.randn(values.shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return Image((100 * values + noise).float()[None], grid)


def grids(ndim: int) -> tuple[Grid, Grid]:
    """Of the moving and the fixed image: 3 mm, oblique, unequal."""
    moving = centred((36, 38, 34)[:ndim], (2.8, 2.9, 3.0)[:ndim], turn=12)
    return moving, centred((30, 34, 28)[:ndim], (3.0, 3.0, 3.2)[:ndim])


def error(found: Affine, truth: Affine, grid: Grid) -> float:
    """The largest distance within the head, mm."""
    at = points(grid).reshape(-1, grid.ndim)
    at = at[at.norm(dim=1) < RADIUS]
    return float((found.map_points(at) - truth.map_points(at)).norm(dim=1).max())


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize(("degrees", "contrast"), [(10, False), (-80, True), (170, True)])
def test_a_known_map_is_found_whatever_the_turn_and_the_contrast(ndim: int, degrees: float, contrast: bool) -> None:
    there, here = grids(ndim)
    truth = known(ndim, degrees)
    found = Aligner(seen(there, truth, contrast), head(here, RADIUS)).align("affine")
    assert error(found, truth, here) < 0.5


@pytest.mark.parametrize("similarity", ["mi", "ncc"])
def test_a_rigid_alignment_finds_a_rigid_map_and_gives_one(similarity: str) -> None:
    there, here = grids(3)
    truth = known(3, 25, stretch=0.0)
    found = Aligner(seen(there, truth), head(here, RADIUS), similarity=similarity).align("rigid")
    linear = found.matrix[:3, :3]
    torch.testing.assert_close(linear @ linear.T, torch.eye(3, dtype=torch.float64))
    assert error(found, truth, here) < 0.3


@pytest.mark.parametrize("part", ["moving", "fixed"])
def test_half_an_image_finds_its_place_in_the_whole_one(part: str) -> None:
    there, here = grids(3)
    truth = known(3, 20)
    if part == "moving":
        there = there.window((0, 0, 0), (19, 38, 34))
    else:
        here = here.window((0, 15, 0), (30, 19, 28))
    found = Aligner(seen(there, truth), head(here, RADIUS)).align("affine")
    assert error(found, truth, here) < 1.0


def test_what_a_mask_leaves_out_does_not_count() -> None:
    # A bright block that is in the same place of both images, wherever the head is, against the head.
    there, here = grids(3)
    truth = known(3, 8)
    moving, fixed = seen(there, truth), head(here, RADIUS)
    masks = []
    for image in (moving, fixed):
        block = (points(image.grid) - torch.tensor([0.0, 8.0, 5.0])).abs().amax(-1) < 12
        image.data[0, block] = 400.0
        masks.append(Image((~block)[None].to(torch.uint8), image.grid))
    masked = Aligner(moving, fixed, *masks).align("affine")
    assert error(masked, truth, here) < 0.5
    assert error(Aligner(moving, fixed).align("affine"), truth, here) > 0.6


def test_the_same_images_and_seed_give_the_same_map_for_any_number_of_threads() -> None:
    there, here = centred((60, 64), turn=12), centred((56, 66))
    moving, fixed = seen(there, known(2, 30)), head(here, RADIUS)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = Aligner(moving, fixed, seed=5).align("rigid").matrix
        torch.testing.assert_close(Aligner(moving, fixed, seed=5).align("rigid").matrix, one, rtol=0, atol=0)
        torch.set_num_threads(2)
        torch.testing.assert_close(Aligner(moving, fixed, seed=5).align("rigid").matrix, one, rtol=0, atol=1e-3)
    finally:
        torch.set_num_threads(before)


def test_what_looks_alike_when_turned_over_stays_as_its_header_puts_it() -> None:
    # An ellipsoid of three unequal axes: turned by 180 degrees about any of them it is the same.
    grid = centred((30, 34, 28), 2.0)
    truth = known(3, 20, stretch=0.0)
    lengths = torch.tensor([12.0, 22.0, 17.0], dtype=torch.float64)

    def ellipsoid(world: torch.Tensor) -> Image:
        return Image((1.2 - (world / lengths).norm(dim=-1)).clamp(0, 1).float()[None], grid)

    at = points(grid)
    found = Aligner(ellipsoid(truth.inverse().map_points(at)), ellipsoid(at)).align("rigid")
    assert float((found.matrix - truth.matrix)[:3, :3].abs().max()) < 0.02
    torch.testing.assert_close(found.matrix[:3, 3], truth.matrix[:3, 3], atol=0.3, rtol=0)


def test_centre_and_moments_put_centres_together() -> None:
    there, here = centred((30, 34, 28), 3.0).window((0, 0, 0), (28, 30, 28)), centred((30, 34, 28), 3.0)
    truth = known(3, 35, stretch=0.0)
    aligner = Aligner(seen(there, truth), head(here, RADIUS))
    middle = Affine(aligner.align("centre").matrix)
    # 2 and 4 voxels of 3 mm less at the far ends.
    torch.testing.assert_close(middle.matrix[:3, 3], torch.tensor([-3.0, -6.0, 0.0], dtype=torch.float64))
    assert error(aligner.align("moments"), truth, here) < 8.0


def test_a_search_can_begin_from_a_given_map() -> None:
    there, here = grids(3)
    truth = known(3, 120)
    near = Affine(known(3, 115).matrix)
    assert error(Aligner(seen(there, truth), head(here, RADIUS)).align("affine", near), truth, here) < 0.5


@pytest.mark.parametrize("words", [("similarity", "cc"), ("kind", "warp")])
def test_unknown_words_are_refused(words: tuple[str, str]) -> None:
    image = head(centred((20, 20)), 8)
    with pytest.raises(ValueError, match=words[1]):
        if words[0] == "similarity":
            Aligner(image, image, similarity=words[1])
        else:
            Aligner(image, image).align(words[1])
