"""A registered pair read for a report: its images on the fixed grid, and what was measured of it."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regnet.data.foreground import background_of, foreground_of
from regnet.data.reader import read_channels
from regnet.inference.case import Case, Protocol, read_label_map, read_map, read_mask
from regnet.inference.evaluate import evaluate
from regnet.inference.register import check_pair
from regnet.io import Image, check_image
from regnet.report.registration import Registration
from regnet.spatial import Displacement


def scene(case: Case, about: Mapping[str, Any], protocol: Protocol | None = None) -> Registration:
    """Read and measure a pair.

    Args:
        case: its files.
        about: of its manifest, or as much as is known; what measuring warns of is added to its ``warnings``.
        protocol: how it is measured.

    Raises:
        InputError: a file cannot be used; the message names it.
    """
    pair = case.pair
    fixed, moving = check_image(read_channels(pair.fixed)), check_image(read_channels(pair.moving))
    check_pair(moving, fixed)
    there, volume = read_map(case.transforms, moving.grid, fixed)
    still = Displacement.identity(fixed.grid)
    mask = read_mask(pair.fixed_mask, fixed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        before = evaluate(replace(case, transforms=(), inverse=None), protocol)
        after = evaluate(case, protocol)
    told = dict.fromkeys([*about.get("warnings", ()), *(str(each.message) for each in caught)])
    view = torch.ones(1, 1, *moving.grid.shape, dtype=torch.uint8)
    return Registration(
        name=pair.id,
        fixed=fixed.data[0],
        moving=_brought(still, moving),
        moved=_brought(there, moving),
        flow=there.flow,
        grid=fixed.grid,
        mask=(foreground_of(fixed) if mask is None else mask)[0, 0],
        view=there.apply_labels(view, moving.grid)[0, 0] > 0,
        volume=volume,
        labels=_labels(case, moving, fixed, still, there),
        before=before,
        after=after,
        about={**about, "warnings": list(told)},
    )


def _brought(there: Displacement, moving: Image) -> Tensor:
    return there.apply(moving.data[None, :1], moving.grid, background=background_of(moving))[0, 0]


def _labels(case: Case, moving: Image, fixed: Image, still: Displacement, there: Displacement) -> dict[str, Tensor]:
    pair = case.pair
    if pair.moving_labels is None or pair.fixed_labels is None:
        return {}
    ours, target = read_label_map(pair.moving_labels, moving), read_label_map(pair.fixed_labels, fixed)
    carried = [by.apply_labels(ours.data[None], ours.grid)[0, 0] for by in (still, there)]
    return {"fixed": target.data[0], "moving": carried[0], "moved": carried[1]}
