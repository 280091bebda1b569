"""Register one pair: network, refinement, or both, as one map on the fixed image's grid."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from regnet.data.prepare import prepare
from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.inference import refine as refinement
from regnet.inference.load import LoadedModel, load_model
from regnet.io.image import Image, as_image, check_image
from regnet.spatial.displacement import Displacement


# The refinement differentiates, wherever it is called from; what it gives takes part in the caller's own autograd.
@torch.inference_mode(False)
@torch.enable_grad()
def register(
    moving: Any,
    fixed: Any,
    model: LoadedModel | str | os.PathLike[str] | None = None,
    refine: int = 0,
    *,
    device: torch.device | str = "cpu",
    trust: Sequence[str] = (),
    progress: refinement.Progress | None = None,
    **settings: Any,
) -> Displacement:
    """Find the map that carries the moving image onto the fixed one.

    Args:
        moving, fixed: paths, nibabel images, :class:`regnet.io.Image`, or ``(tensor, affine)`` with a tensor of
            ``(*spatial)`` or ``(C, *spatial)`` and the voxel -> RAS mm affine. Any shapes, spacings and orientations.
        model: a loaded network, or the checkpoint or run folder to load it from; none: the identity is the start.
        refine: optimiser steps on this pair after the network, over all levels; 0: none. The network's weights stay.
        device: where the network and the optimisation run; the result is on the CPU.
        trust: packages whose network classes may be built when ``model`` is a path.
        progress: called after every step of the refinement with the steps done, the steps in all and the loss.
        settings: passed on to :func:`regnet.inference.refine.refine`, such as ``smoothness=0.5``.

    Returns:
        The map fixed -> moving on the fixed image's own grid; its ``apply`` resamples the moving image.

    Raises:
        InputError: an image cannot be read, is constant or not finite, or is not what the network takes, or the two
            lie in different places.
        ValueError: neither a network nor refinement was asked for, or there is no such device.
    """
    device = check_device(device)
    if model is None and refine < 1:
        raise ValueError("nothing to register with: give a model, or a number of refinement steps")
    moving_image, fixed_image = check_image(as_image(moving)), check_image(as_image(fixed))
    check_pair(moving_image, fixed_image)
    if not moving_image.grid.overlaps(fixed_image.grid):
        raise InputError(f"{moving_image.name} and {fixed_image.name}: do not overlap in the world; align them first")
    spec = InputSpec(ndim=fixed_image.grid.ndim, channels=fixed_image.data.shape[0])
    velocity = start = None
    if model is not None:
        loaded = model if isinstance(model, LoadedModel) else load_model(Path(model), trust=trust)
        spec = loaded.spec
        velocity, start = predict(loaded, moving_image, fixed_image, device)
    if refine > 0 or start is None:
        # A stationary velocity goes on from the network's own; any other map stays as it is under the optimised one.
        start = refinement.refine(
            moving_image,
            fixed_image,
            spec,
            refine,
            velocity,
            start if velocity is None else None,
            device=device,
            progress=progress,
            **settings,
        )
    return start.on(fixed_image.grid)


def predict(
    loaded: LoadedModel, moving: Image, fixed: Image, device: torch.device | str = "cpu"
) -> tuple[Displacement | None, Displacement]:
    """Run the network once.

    Returns:
        Its stationary velocity (None where its head has none) and its map fixed -> moving, on the network's grid.

    Raises:
        InputError: the images have not the number of axes or channels that the network takes.
    """
    target = prepare(fixed, loaded.spec)
    source = prepare(moving, loaded.spec, grid=target.grid)
    model = loaded.model.to(device)
    with torch.inference_mode():
        outputs = model(source.data.to(device), target.data.to(device), source.view.to(device))
    # Clones: a tensor made in inference mode could take no part in the refinement's autograd.
    fields = {name: outputs[name][0].cpu().clone() for name in ("velocity", "displacement") if name in outputs}
    velocity = fields.get("velocity")
    return None if velocity is None else Displacement(velocity, target.grid), Displacement(
        fields["displacement"], target.grid
    )


def check_device(device: torch.device | str) -> torch.device:
    """A device that torch can compute on here.

    Raises:
        ValueError: there is none of that name.
    """
    try:
        checked = torch.device(device)
        torch.empty(0, device=checked)
    except (RuntimeError, AssertionError) as error:  # unknown; not built, or no driver
        raise ValueError(f"no such device here: {str(device)!r}; give 'cpu'") from error
    if checked.type == "meta":
        raise ValueError("the meta device computes nothing; give 'cpu'")
    return checked


def check_pair(moving: Image, fixed: Image) -> None:
    """Refuse two images of different kinds.

    Raises:
        InputError: the images differ in their number of axes or channels; the message names both.
    """
    for what, a, b in (
        ("axes", moving.grid.ndim, fixed.grid.ndim),
        ("channels", moving.data.shape[0], fixed.data.shape[0]),
    ):
        if a != b:
            raise InputError(f"{moving.name} and {fixed.name}: cannot be registered: they have {a} and {b} {what}")
