"""Laws of the self-similarity descriptors."""

import itertools

import pytest
import torch
from torch import Tensor

from regnet.losses import mind, mind_descriptor
from tests.losses.cases import pair


def _slow(image: Tensor, radius: int, dilation: int) -> Tensor:
    """``(pairs, *spatial)`` of an image ``(*spatial)``, patch by patch."""
    ndim, sizes = image.dim(), torch.tensor(image.shape)

    def at(place: Tensor) -> Tensor:
        return image[tuple(torch.minimum(place.clamp(min=0), sizes - 1))]

    neighbours = [
        sign * dilation * torch.eye(ndim, dtype=torch.int64)[axis] for axis in range(ndim) for sign in (-1, 1)
    ]
    pairs = [(a, b) for a, b in itertools.combinations(neighbours, 2) if (a + b).any()]
    offsets = [torch.tensor(o) for o in itertools.product(range(-radius, radius + 1), repeat=ndim)]
    distances = torch.zeros(len(pairs), *image.shape, dtype=image.dtype)
    for index in itertools.product(*map(range, image.shape)):
        for k, (a, b) in enumerate(pairs):
            here = torch.tensor(index)
            squares = [(at(here + a + o) - at(here + b + o)) ** 2 for o in offsets]
            distances[(k, *index)] = torch.stack(squares).mean()
    variance = distances.mean(0)
    variance = variance.clamp(1e-3 * variance.mean(), 1e3 * variance.mean())
    return torch.exp(-(distances - distances.amin(0)) / variance)


@pytest.mark.parametrize(("shape", "pairs"), [((5, 4), 4), ((4, 3, 3), 12)])
def test_the_descriptor_is_what_its_definition_says_inside(shape: tuple[int, ...], pairs: int) -> None:
    # a patch past the face has other voxels where the centre is clamped and where the patch is, as here
    image = pair((1, 1, *shape))[0]
    found = mind_descriptor(image, radius=1, dilation=2)[0]
    expected = _slow(image[0, 0], 1, 2)
    assert found.shape == (pairs, *shape)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("shape", [(2, 2, 9, 8), (1, 1, 8, 7, 6)])
def test_gain_offset_and_inversion_do_not_matter(shape: tuple[int, ...]) -> None:
    x, y = pair(shape)
    for other in (1000 * x + 50, 3 - x):
        assert float(mind(other, x)) == pytest.approx(0, abs=1e-12)
        torch.testing.assert_close(mind(other, y), mind(x, y))
    assert float(mind(x, y)) > 0.01


def test_a_constant_image_has_descriptors_of_one() -> None:
    flat = torch.full((1, 2, 6, 5), 1 / 3).requires_grad_()
    assert bool((mind_descriptor(flat) == 1).all())
    value = mind(flat, torch.ones(1, 2, 6, 5))
    value.backward()
    assert value.item() == 0 and not flat.grad.any()


def test_what_it_cannot_compute_is_refused() -> None:
    with pytest.raises(ValueError, match="2 or 3 spatial axes"):
        mind_descriptor(torch.zeros(1, 1, 9))
    for radius, dilation in ((-1, 1), (1, 0)):
        with pytest.raises(ValueError, match="radius must be"):
            mind_descriptor(torch.zeros(1, 1, 9, 8), radius, dilation)
