"""Laws of the other views of a pair: on a coarser grid, and from moving to fixed."""

import pytest
import torch
from torch import Tensor

from regnet import ops
from regnet.losses.views import coarser, reversed_view


def _pair(shape: tuple[int, ...]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    ndim = len(shape)
    flow = torch.rand(2, ndim, *shape, generator=generator)
    moving, fixed = torch.rand(2, 2, 1, *shape, generator=generator)
    batch = {"moving": moving, "fixed": fixed, "spacing": torch.tensor([[1.0, 2.0, 3.0]] * 2)[:, :ndim]}
    moved = ops.warp(moving, flow, bound="replicate", extrapolate="edge")
    return {"moved": moved, "displacement": flow, "velocity": flow / 2}, batch


@pytest.mark.parametrize("shape", [(8, 6), (8, 4, 6)])
def test_a_coarse_voxel_is_the_mean_of_those_it_covers_and_as_large_as_they(shape: tuple[int, ...]) -> None:
    outputs, batch = _pair(shape)
    out, data = coarser(outputs, batch, 1)
    pool = torch.nn.functional.avg_pool2d if len(shape) == 2 else torch.nn.functional.avg_pool3d
    for key, image, found in (("moved", outputs, out), ("fixed", batch, data), ("moving", batch, data)):
        torch.testing.assert_close(found[key], pool(image[key], 2))
    # the same displacement in voxels twice as long
    torch.testing.assert_close(out["displacement"], pool(outputs["displacement"], 2) / 2)
    assert torch.equal(data["spacing"], 2 * batch["spacing"])
    assert torch.equal(out["velocity"], outputs["velocity"])
    assert batch["fixed"].shape[2:] == shape


def test_an_odd_axis_keeps_its_extent() -> None:
    outputs, batch = _pair((7, 5))
    out, data = coarser(outputs, batch, 2)
    assert data["fixed"].shape[2:] == out["displacement"].shape[2:] == (2, 2)
    torch.testing.assert_close(data["spacing"] * 2, batch["spacing"] * torch.tensor([7.0, 5.0]))


def test_a_coarse_label_is_the_one_with_the_largest_share() -> None:
    labels = torch.tensor([[4, 4, 9, 0], [4, 0, 9, 9]], dtype=torch.int16)[None, None]
    batch = {"fixed": torch.zeros(1, 1, 2, 4), "fixed_labels": labels}
    found = coarser({}, batch, 1)[1]["fixed_labels"]
    assert found.dtype == torch.int16 and found.tolist() == [[[[4, 9]]]]


def test_backwards_the_fixed_image_is_warped_onto_the_moving_one() -> None:
    outputs, batch = _pair((8, 6))
    batch |= {"moving_labels": torch.zeros(2, 1, 8, 6).long(), "fixed_labels": torch.ones(2, 1, 8, 6).long()}
    out, data = reversed_view(outputs, batch)
    back = ops.integrate(-outputs["velocity"], bound="replicate")
    torch.testing.assert_close(out["displacement"], back)
    torch.testing.assert_close(out["moved"], ops.warp(batch["fixed"], back, bound="replicate", extrapolate="edge"))
    assert torch.equal(data["fixed"], batch["moving"]) and torch.equal(data["moving"], batch["fixed"])
    assert bool(data["moving_labels"].all()) and not bool(data["fixed_labels"].any())
    assert torch.equal(out["velocity"], -outputs["velocity"])
    # where the fixed image was not in view, it does not count
    shifted = {"displacement": outputs["displacement"], "inverse_displacement": torch.full((2, 2, 8, 6), 3.0)}
    view = reversed_view(shifted, batch)[0]["moved_view"]
    assert bool((view[:, :, 5:] == 0).all()) and bool((view[:, :, :5, :3] == 1).all())


def test_the_field_back_is_the_most_exact_that_the_model_gives() -> None:
    outputs, batch = _pair((8, 6))
    field = outputs["displacement"]
    for key in ("swapped_displacement", "inverse_displacement"):
        given = {"displacement": field, key: -field}
        assert torch.equal(reversed_view(given, batch)[0]["displacement"], -field)
    with pytest.raises(ValueError, match="both_directions needs a field from moving to fixed"):
        reversed_view({"displacement": field}, batch)


def test_masks_change_places() -> None:
    outputs, batch = _pair((8, 6))
    view, mask = torch.ones(2, 1, 8, 6), torch.zeros(2, 1, 8, 6)
    out, data = reversed_view(outputs, {**batch, "view": view, "fixed_mask": mask})
    assert torch.equal(data["fixed_mask"], view) and not out["moved_view"].any()
