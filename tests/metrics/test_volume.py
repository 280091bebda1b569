"""Non-diffeomorphic volume of maps whose tetrahedra are known, and against each of them worked out alone."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from regnet.metrics import folding_fraction, non_diffeomorphic_volume


def _points(*shape: int) -> Tensor:
    axes = [torch.arange(n, dtype=torch.float64) for n in shape]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"))[None]


def _random(*shape: int) -> Tensor:
    return 0.8 * torch.randn(1, len(shape), *shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def _inner(*shape: int) -> Tensor:
    mask = torch.zeros(1, 1, *shape)
    mask[(..., *(slice(1, -1),) * len(shape))] = 1
    return mask


@pytest.mark.parametrize("shape", [(7, 6), (6, 5, 7)])
def test_a_map_without_folds_has_none_and_a_mirror_image_is_all_turned(shape: tuple[int, ...]) -> None:
    assert non_diffeomorphic_volume(torch.zeros(2, len(shape), *shape)) == 0
    smooth = 0.3 * torch.sin(_points(*shape))
    assert non_diffeomorphic_volume(smooth) == 0
    mirror = torch.zeros(1, len(shape), *shape, dtype=torch.float64)
    mirror[:, 1] = -2 * _points(*shape)[:, 1]
    assert non_diffeomorphic_volume(mirror, _inner(*shape)) == pytest.approx(1)
    stretched = mirror.clone()
    stretched[:, 0] = 0.5 * _points(*shape)[:, 0]  # the volume is that of the image: 1.5 times as much
    assert non_diffeomorphic_volume(stretched, _inner(*shape)) == pytest.approx(1.5)


def test_it_sees_a_checkerboard_that_central_differences_do_not() -> None:
    flow = torch.zeros(1, 3, 8, 7, 6, dtype=torch.float64)
    flow[0, 0] = 0.7 * (-1) ** _points(8, 7, 6)[0].sum(0)
    assert folding_fraction(flow, _inner(8, 7, 6)) == 0
    assert non_diffeomorphic_volume(flow, _inner(8, 7, 6)) > 0.1


def _slow(flow: np.ndarray, mask: np.ndarray) -> float:
    """Every tetrahedron (triangle) at every voxel of the mask, as a determinant of three (two) edges."""
    ndim = len(flow)
    shape = flow.shape[1:]

    def image(p: np.ndarray) -> np.ndarray:
        held = tuple(np.clip(p, 0, np.array(shape) - 1))
        return p + flow[(slice(None), *held)]

    lost = 0.0
    for p in np.argwhere(mask):
        for signs in itertools.product((1, -1), repeat=ndim):
            edges = [image(p + s * e) - image(p) for s, e in zip(signs, np.eye(ndim, dtype=int), strict=True)]
            orientation = np.prod(signs)
            lost += max(0, -orientation * np.linalg.det(edges)) / math.factorial(ndim) / 2
        if ndim == 3:
            for sign in (1, -1):
                steps = [sign * np.array(s) for s in ((1, 1, 0), (0, 1, 1), (1, 0, 1))]
                edges = [image(p + s) - image(p) for s in steps]
                orientation = np.sign(np.linalg.det(steps))
                lost += max(0, -orientation * np.linalg.det(edges)) / 6 / 2
    return lost / mask.sum()


@pytest.mark.parametrize("shape", [(7, 6), (5, 4, 6)])
def test_it_is_the_sum_over_all_pieces(shape: tuple[int, ...]) -> None:
    flow = _random(*shape)
    mask = torch.rand(1, 1, *shape, generator=torch.Generator().manual_seed(4)) > 0.3
    assert non_diffeomorphic_volume(flow, mask) == pytest.approx(_slow(flow[0].numpy(), mask[0, 0].numpy()))
    everywhere = torch.ones(1, 1, *shape)
    assert non_diffeomorphic_volume(flow) == pytest.approx(_slow(flow[0].numpy(), everywhere[0, 0].numpy()))
    assert non_diffeomorphic_volume(flow.repeat(2, *[1] * (1 + len(shape))), mask) == pytest.approx(
        non_diffeomorphic_volume(flow, mask)
    )


def test_what_does_not_fit_is_refused_and_an_empty_mask_has_no_volume() -> None:
    assert math.isnan(non_diffeomorphic_volume(torch.zeros(1, 2, 4, 5), torch.zeros(1, 1, 4, 5)))
    with pytest.raises(ValueError, match="flow must be"):
        non_diffeomorphic_volume(torch.zeros(1, 3, 4, 5))
    with pytest.raises(ValueError, match="mask must be"):
        non_diffeomorphic_volume(torch.zeros(1, 2, 4, 5), torch.zeros(1, 1, 5, 4))
