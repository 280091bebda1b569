"""Laws of the normalised gradient fields."""

import pytest
import torch
from torch import Tensor

from regnet import ops
from regnet.losses import ngf
from tests.losses.cases import pair


def _ramps(*shape: int) -> list[Tensor]:
    return [p[None, None] for p in torch.meshgrid(*(torch.arange(n).double() for n in shape), indexing="ij")]


@pytest.mark.parametrize("edge", [0.5, 1.0])
def test_parallel_edges_are_alike_and_crossed_ones_are_not(edge: float) -> None:
    # both gradients have length 1: crossed, 1 - e⁴ / (1 + e²)²
    a, b, _ = _ramps(7, 6, 5)
    assert float(ngf(a, 5 - 3 * a, edge)) == pytest.approx(0, abs=1e-12)
    assert float(ngf(a, 3 * a - 5, edge)) == pytest.approx(0, abs=1e-12)
    assert float(ngf(a, b, edge)) == pytest.approx(1 - edge**4 / (1 + edge**2) ** 2)


def test_angles_are_those_in_mm() -> None:
    # The normals of x + y and x - y: in voxels they are at right angles. At 1 x 2 mm, (1, 1/2) and (1, -1/2) of
    # lengths² 5/4, scaled to 1: a·b = (1 - 1/4) / (5/4) = 0.6, and 1 - (0.6 + 1)² / 4 = 0.36
    a, b = _ramps(7, 6)
    assert float(ngf(a + b, a - b)) == pytest.approx(0.75)
    assert float(ngf(a + b, a - b, voxel_size=(1.0, 2.0))) == pytest.approx(0.36)


@pytest.mark.parametrize("shape", [(2, 2, 9, 8), (1, 2, 6, 5, 1)])
def test_gain_and_offset_do_not_matter(shape: tuple[int, ...]) -> None:
    x, y = pair(shape)
    torch.testing.assert_close(ngf(1000 * x + 50, y), ngf(x, y))
    assert float(ngf(1000 * x + 50, x)) == pytest.approx(0, abs=1e-12)
    assert 0 < float(ngf(x, y)) < 1


@pytest.mark.parametrize("edge", [0.3, 1.0])
@pytest.mark.parametrize("shape", [(2, 2, 24, 17), (1, 1, 14, 12, 11)])
def test_the_sign_of_the_contrast_does_not_matter_and_the_true_place_is_the_best(
    shape: tuple[int, ...], edge: float
) -> None:
    x, y = pair(shape)
    torch.testing.assert_close(ngf(x, -y, edge), ngf(x, y, edge), atol=0, rtol=0)
    smooth = ops.box_sum(x, 5)
    shifted = [float(ngf(smooth, 3 - 2 * smooth.roll(shift, 2), edge)) for shift in (0, 1, 2, 3)]
    assert shifted[0] == pytest.approx(0, abs=1e-12)
    assert shifted == sorted(shifted) and shifted[1] > 0.01


def test_nothing_facing_nothing_is_alike_with_zero_gradient() -> None:
    flat = torch.full((1, 1, 6, 5), 1 / 3).requires_grad_()
    value = ngf(flat, torch.ones(1, 1, 6, 5))
    value.backward()
    assert value.item() == 0 and not flat.grad.any()
    structure = ngf(flat, pair((1, 1, 6, 5), torch.float32)[0])
    structure.backward()
    assert structure.item() > 0 and flat.grad.isfinite().all()


def test_a_single_voxel_has_no_edge_and_no_gradient() -> None:
    voxel = torch.ones(1, 1, 1, 1, requires_grad=True)
    ngf(voxel, torch.zeros(1, 1, 1, 1)).backward()
    assert not voxel.grad.any()


def test_an_edge_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="edge must be positive"):
        ngf(*pair((1, 1, 6, 5)), edge=0.0)
