"""Augmentation: exact where a closed form is known, and a function of seed, epoch and sample."""

import random

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf

from regnet import ops
from regnet.config import config_dir
from regnet.data.augment import Augmentation
from regnet.data.pose import random_pose

SHAPES = [(12, 14), (9, 11, 10)]


def batch_of(shape, epoch=0, indices=(0, 1), channels=2):
    """Smooth pairs whose moving image lies on a finer grid of its own, flipped along its last axis."""
    ndim, n = len(shape), len(indices)
    generator = torch.Generator().manual_seed(5)
    own = tuple(2 * size for size in shape)
    coarse = torch.rand(n, channels + 1, *[4] * ndim, generator=generator)
    matrix = torch.zeros(n, ndim, ndim + 1)
    for axis in range(ndim):
        matrix[:, axis, axis] = 2.0
        matrix[:, axis, -1] = 0.5
    matrix[:, -1, -2], matrix[:, -1, -1] = -2.0, own[-1] - 1.5
    source = torch.cat([ops.resize(coarse[:, :-1], own), torch.ones(n, 1, *own)], 1)
    moved = ops.warp(source, torch.zeros(n, ndim, *shape), bound="replicate", extrapolate="edge", matrix=matrix)
    labels = (ops.resize(coarse[:, -1:], shape) > 0.5).to(torch.int16)
    labels[:, :, : shape[0] // 2] *= 2
    points = torch.rand(n, 6, ndim, generator=generator) * (torch.tensor(shape) - 5.0) + 2.0
    return {
        "fixed": ops.resize(coarse[:, :-1], shape),
        "moving": moved[:, :-1],
        "view": moved[:, -1:],
        "fixed_mask": torch.ones(n, 1, *shape),
        "source": source,
        "matrix": matrix,
        "fixed_labels": labels,
        "moving_labels": labels.clone(),
        "fixed_points": points,
        "moving_points": points.clone(),
        "spacing": torch.full((n, ndim), 2.0),
        "flow": torch.zeros(n, ndim, *shape),
        "epoch": torch.tensor([epoch] * n),
        "index": torch.tensor(indices),
        "id": ["x"] * n,
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_without_settings_nothing_changes(shape):
    batch = batch_of(shape)
    found = Augmentation()(batch, seed=0)
    for key in found.keys() - {"id"}:
        torch.testing.assert_close(found[key], batch[key], atol=1e-5, rtol=0)
    assert "flow" not in found and "flow" in batch


@pytest.mark.parametrize("shape", SHAPES)
def test_a_flip_mirrors_the_first_axis_of_all_and_swaps_left_and_right(shape):
    batch = batch_of(shape, indices=range(8))
    found = Augmentation(flip=True, swap=[[1, 2]])(batch, seed=1)
    size = shape[0]
    flipped = [n for n in range(8) if not torch.allclose(found["fixed"][n], batch["fixed"][n], atol=1e-4)]
    assert 0 < len(flipped) < 8
    for n in flipped:
        for key in ("fixed", "moving"):
            torch.testing.assert_close(found[key][n], batch[key][n].flip(1), atol=1e-5, rtol=0)
        swapped = torch.tensor([0, 2, 1], dtype=torch.int16)[batch["fixed_labels"][n].long()]
        assert torch.equal(found["fixed_labels"][n], swapped.flip(1))
        torch.testing.assert_close(found["fixed_points"][n, :, 0], size - 1 - batch["fixed_points"][n, :, 0])
        torch.testing.assert_close(found["moving_points"][n, :, 1:], batch["moving_points"][n, :, 1:])
    for n in set(range(8)) - set(flipped):
        assert torch.equal(found["moving_labels"][n], batch["moving_labels"][n])


@pytest.mark.parametrize("shape", SHAPES)
def test_an_affine_map_of_the_moving_image_touches_no_voxel_of_it(shape):
    batch = batch_of(shape)
    found = Augmentation(rotation_deg=10, scaling=0.1, shift_mm=3)(batch, seed=2)
    assert torch.equal(found["source"], batch["source"])
    assert not torch.allclose(found["matrix"], batch["matrix"], atol=1e-2)
    still = torch.zeros_like(batch["flow"])
    there = ops.warp(found["source"], still, bound="replicate", extrapolate="edge", matrix=found["matrix"])
    torch.testing.assert_close(there[:, :-1], found["moving"])
    assert 0.5 < found["fixed_mask"].mean() < 1  # what came from outside does not count


@pytest.mark.parametrize("deviation", [0.0, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_landmarks_go_where_their_image_goes(shape, deviation):
    batch = batch_of(shape)
    ndim = len(shape)
    axes = [torch.arange(size, dtype=torch.float32) for size in shape]
    batch["fixed"] = torch.stack(torch.meshgrid(*axes, indexing="ij"))[None].repeat(2, *[1] * (ndim + 1))
    settings = {"rotation_deg": 6.0, "shift_mm": 1.0, "displacement_mm": (deviation, deviation)}
    found = Augmentation(scales_mm=(12.0,), **settings)(batch, seed=3)
    # an image of coordinates says, at the landmark's new place, where it came from
    places = found["fixed_points"].mT.reshape(2, ndim, *[1] * (ndim - 1), -1)
    inside = ((found["fixed_points"] >= 1) & (found["fixed_points"] <= torch.tensor(shape) - 2)).all(2)
    came = ops.pull(found["fixed"], places, bound="replicate").flatten(2).mT
    assert inside.sum() > 4
    torch.testing.assert_close(came[inside], batch["fixed_points"][inside], atol=0.15 if deviation else 1e-3, rtol=0)


def test_a_deformed_pair_has_labels_and_images_that_still_go_together():
    batch = batch_of((12, 14))
    batch["fixed"] = (batch["fixed_labels"] > 0).float().repeat(1, 2, 1, 1)
    found = Augmentation(displacement_mm=(2.0, 2.0), scales_mm=(12.0,))(batch, seed=4)
    inside = found["fixed_mask"] > 0
    agree = (found["fixed"][:, :1] > 0.5) == (found["fixed_labels"] > 0)
    assert agree[inside].float().mean() > 0.97
    assert torch.equal(found["source"][:, :-1], found["moving"])
    change = (found["moving"] - batch["moving"]).abs().mean()
    assert change > 0.01


def test_draws_are_functions_of_seed_epoch_and_sample_and_disturb_no_generator():
    # case C-59: neither the batch they are in nor what was drawn before matters
    augmentation = Augmentation(
        rotation_deg=10,
        displacement_mm=(0.5, 1.0),
        intensity=lambda image: image * random.uniform(0.5, 1.5) + torch.rand(()) * 0.1,
    )
    torch.manual_seed(0)
    random.seed(0)
    before = torch.random.get_rng_state(), random.getstate()
    whole = augmentation(batch_of((12, 14), 1, range(4)), seed=7)
    assert torch.equal(before[0], torch.random.get_rng_state()) and before[1] == random.getstate()
    part = batch_of((12, 14), 1, range(4))
    part = {key: value[2:] for key, value in part.items()}
    torch.rand(5)
    again = augmentation(part, seed=7)
    for key in ("fixed", "moving", "source", "fixed_points"):
        torch.testing.assert_close(again[key], whole[key][2:], atol=1e-6, rtol=0)
    values = {round(float(image.sum()), 4) for image in whole["fixed"]}
    for epoch, seed in ((2, 7), (1, 8)):
        values |= {round(float(i.sum()), 4) for i in augmentation(batch_of((12, 14), epoch, range(4)), seed)["fixed"]}
    assert len(values) == 12


def test_layers_of_cornucopia_change_the_intensities_of_both_images():
    pytest.importorskip("cornucopia")
    layers = instantiate(OmegaConf.load(config_dir() / "data" / "augmented.yaml").augmentation.intensity)
    batch = batch_of((9, 11, 10), channels=1)
    found = Augmentation(intensity=layers)(batch, seed=0)
    again = Augmentation(intensity=layers)(batch, seed=0)
    for key in ("fixed", "moving", "source"):
        assert torch.equal(found[key], again[key]) and not torch.allclose(found[key], batch[key], atol=1e-2)
    assert torch.equal(found["view"], batch["view"])


@pytest.mark.parametrize("ndim", [2, 3])
def test_a_pose_is_a_rigid_and_a_scaling_map_in_mm_about_the_centre(ndim):
    shape, spacing = (12, 14, 10)[:ndim], (1.0, 2.0, 3.0)[:ndim]
    draw = torch.Generator().manual_seed(0)
    (pose,) = random_pose(shape, spacing, 20.0, 0.0, 0.0, draw)
    steps = torch.tensor(spacing).double()
    turn = steps[:, None] * pose[:, :-1] / steps
    torch.testing.assert_close(turn @ turn.T, torch.eye(ndim).double())
    centre = (torch.tensor(shape).double() - 1) / 2
    torch.testing.assert_close(pose[:, :-1] @ centre + pose[:, -1], centre)
    (pose,) = random_pose(shape, spacing, 0.0, 0.1, 4.0, draw)
    assert torch.count_nonzero(pose[:, :-1]) == ndim
    assert ((pose[:, :-1].diagonal().log().abs() <= 0.1) & (pose[:, :-1].diagonal() != 1)).all()
    assert (((pose[:, :-1] @ centre + pose[:, -1] - centre) * steps).abs() <= 4).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"displacement_mm": (2, 1)}, "two ends"), ({"swap": [[1, 2], [2, 3]]}, "none of them twice")],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Augmentation(**settings)
