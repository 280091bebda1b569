"""Laws of the landmark distance."""

import pytest
import torch

from regnet.losses import landmark_distance


def _points(*rows: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor([rows], dtype=torch.float64)


def test_landmarks_move_with_the_field_from_fixed_to_moving() -> None:
    # C-35: the image's bright voxel at moving index 10 shows at fixed index 8
    flow = torch.zeros(1, 2, 14, 6, dtype=torch.float64)
    flow[:, 0] = 2
    fixed, moving = _points((8, 3)), _points((10, 3))
    assert float(landmark_distance(flow, moving, fixed)) == 0
    assert float(landmark_distance(flow, fixed, moving)) == 4


def test_distances_are_in_mm() -> None:
    # C-34: (1, 1, 1) voxel at 1.5 x 1.5 x 3 mm: sqrt(2.25 + 2.25 + 9)
    flow = torch.zeros(1, 3, 5, 6, 7, dtype=torch.float64)
    value = landmark_distance(flow, _points((2, 3, 4)), _points((1, 2, 3)), (1.5, 1.5, 3.0))
    assert float(value) == pytest.approx(3.6742, abs=1e-4)


def test_the_field_is_read_between_voxels_and_goes_on_beyond_the_faces() -> None:
    # u(x) = x / 2: at 2.25 it is 1.125; at -3 as at 0, at 9 as at 5
    flow = (torch.arange(6, dtype=torch.float64) / 2).view(1, 1, 6)
    fixed = _points((2.25,), (-3,), (9,))
    moving = fixed + _points((1.125,), (0,), (2.5,))
    assert float(landmark_distance(flow, moving, fixed)) == pytest.approx(0, abs=1e-12)


def test_each_sample_counts_with_its_own_weighted_landmarks() -> None:
    flow = torch.zeros(2, 2, 5, 6, dtype=torch.float64)
    fixed = torch.ones(2, 3, 2, dtype=torch.float64)
    moving = fixed + torch.tensor([[[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]], [[torch.nan] * 2] * 3], dtype=torch.float64)
    # first sample: (5 + 0 + 1) / 3; second: all padding
    assert float(landmark_distance(flow, moving, fixed)) == pytest.approx(2 / 2)
    weight = torch.tensor([[1.0, 0.0, 3.0]])
    assert float(landmark_distance(flow, moving, fixed, weight=weight)) == pytest.approx((5 + 3) / 4 / 2)
    negative = torch.tensor([[1.0, -2.0, 3.0]])
    assert landmark_distance(flow, moving, fixed, weight=negative) == landmark_distance(
        flow, moving, fixed, 1.0, weight
    )


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 5)])
def test_it_has_the_exact_gradient(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    flow = torch.rand(2, len(shape), *shape, generator=generator, dtype=torch.float64).requires_grad_()
    fixed = 3 * torch.rand(2, 4, len(shape), generator=generator, dtype=torch.float64)
    moving = fixed + torch.randn(2, 4, len(shape), generator=generator, dtype=torch.float64)
    moving[0, 1] = torch.nan
    size = [1.0, 2.0, 0.5][: len(shape)]
    assert torch.autograd.gradcheck(
        lambda u: landmark_distance(u, moving, fixed, size), (flow,), eps=1e-6, atol=1e-8, rtol=1e-6
    )


def test_a_landmark_in_place_has_no_gradient() -> None:
    flow = torch.zeros(1, 2, 5, 6, requires_grad=True)
    landmark_distance(flow, _points((1, 2)), _points((1, 2))).backward()
    assert not flow.grad.any()


def test_landmarks_that_do_not_fit_are_refused() -> None:
    flow = torch.zeros(1, 2, 5, 6)
    for moving, fixed in ((_points((1, 2)), _points((1, 2), (3, 4))), (_points((1, 2, 3)), _points((1, 2, 3)))):
        with pytest.raises(ValueError, match="landmarks must both be"):
            landmark_distance(flow, moving, fixed)
    for weight in (torch.ones(1), torch.ones(3, 1), torch.ones(1, 2), torch.ones(1, 1, 1)):
        with pytest.raises(ValueError, match=r"weight must be \(N or 1, K\)"):
            landmark_distance(flow, _points((1, 2)), _points((1, 2)), weight=weight)
