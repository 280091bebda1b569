"""Lengths of displacements in millimetres."""

import math

import pytest
import torch

from regnet.metrics import displacement_statistics, endpoint_error, inverse_consistency_error


def test_lengths_are_in_mm() -> None:
    # C-34: (1, 1, 1) voxels of 1.5 x 1.5 x 3 mm are 3.6742 mm
    flow = torch.ones(2, 3, 4, 5, 6)
    spacing = (1.5, 1.5, 3.0)
    assert displacement_statistics(flow, spacing) == pytest.approx({"mean": 3.6742, "max": 3.6742}, abs=1e-4)
    assert endpoint_error(flow, torch.zeros_like(flow), spacing) == pytest.approx(3.6742, abs=1e-4)
    assert endpoint_error(flow, flow, spacing) == 0


def test_each_sample_may_have_its_spacing() -> None:
    flow = torch.zeros(2, 2, 4, 5)
    flow[:, 1] = 3
    assert displacement_statistics(flow, torch.tensor([[1.0, 2.0], [1.0, 4.0]])) == {"mean": 9.0, "max": 12.0}


def test_only_what_is_inside_the_mask_counts() -> None:
    flow, mask = torch.zeros(1, 2, 4, 5), torch.zeros(1, 1, 4, 5)
    flow[:, 0, :2], mask[:, :, 1:3] = 2, 0.5
    assert displacement_statistics(flow, 1.0, mask) == {"mean": 1.0, "max": 2.0}
    assert endpoint_error(flow, torch.zeros_like(flow), 1.0, mask) == 1
    assert all(math.isnan(value) for value in displacement_statistics(flow, 1.0, 0 * mask).values())
    assert math.isnan(endpoint_error(flow, flow, 1.0, 0 * mask))


def test_a_field_that_is_being_trained_can_be_measured() -> None:
    flow = torch.ones(1, 2, 4, 5, requires_grad=True)
    assert displacement_statistics(flow)["max"] == pytest.approx(2**0.5)


def test_a_field_and_its_undoing_are_consistent_and_twice_the_same_field_is_not() -> None:
    x = torch.arange(12, dtype=torch.float64)
    forward, backward = torch.zeros(2, 1, 2, 12, 7, dtype=torch.float64)
    forward[0, 0], backward[0, 0] = (0.25 * x)[:, None], (-0.2 * x)[:, None]  # x -> 1.25 x -> 0.8 (1.25 x) = x
    mask = torch.zeros(1, 1, 12, 7)
    mask[:, :, :8] = 1  # 1.25 * 7 is still on the grid
    assert inverse_consistency_error(forward, backward, (2.0, 1.0), mask)["max"] == pytest.approx(0, abs=1e-12)
    # 1.25² - 1 = 0.5625 of 0 to 7 voxels of 2 mm
    found = inverse_consistency_error(forward, forward, (2.0, 1.0), mask)
    assert found == pytest.approx({"mean": 0.5625 * 3.5 * 2, "max": 0.5625 * 7 * 2})
    with pytest.raises(ValueError, match="one shape"):
        inverse_consistency_error(forward, backward[..., :5])


def test_fields_and_spacings_that_do_not_fit_are_refused() -> None:
    flow = torch.zeros(2, 2, 4, 5)
    with pytest.raises(ValueError, match="one shape"):
        endpoint_error(flow, flow[:1])
    with pytest.raises(ValueError, match="one channel per spatial axis"):
        displacement_statistics(torch.zeros(1, 3, 4, 5))
    for spacing in ((1.0, 2.0, 3.0), torch.ones(3, 2), 0.0, (1.0, torch.nan)):
        with pytest.raises(ValueError, match="spacing must be"):
            displacement_statistics(flow, spacing)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int16])
def test_lengths_of_fields_in_any_type_are_taken_in_float32(dtype: torch.dtype) -> None:
    # 300² is more than float16 holds
    flow = torch.tensor([300, 400]).view(1, 2, 1, 1).expand(1, 2, 4, 5).to(dtype)
    assert displacement_statistics(flow) == {"mean": 500.0, "max": 500.0}
    assert endpoint_error(flow, torch.zeros_like(flow)) == 500
    assert inverse_consistency_error(torch.zeros_like(flow), flow)["max"] == 500
