"""Register one pair: affine stage, network, refinement, or some of them, as one map on the fixed image's grid."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regnet.data.prepare import check_mask, check_same_grid, place, prepare
from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.inference import refine as refinement
from regnet.inference.initial import check_init, initial
from regnet.inference.load import LoadedModel, load_model
from regnet.inference.preflight import check_pair
from regnet.inference.result import Result
from regnet.inference.uncertainty import told_at_inference, uncertainty
from regnet.io.image import Image, as_image, check_image
from regnet.spatial.affine import Affine
from regnet.spatial.displacement import Displacement
from regnet.spatial.transform import Transform
from regnet.spatial.velocity import Velocity

_LEAST_MASK = 100  # voxels that must count


@torch.inference_mode(False)
def register(
    moving: Any,
    fixed: Any,
    model: LoadedModel | str | os.PathLike[str] | None = None,
    refine: int = 0,
    **options: Any,
) -> Transform:
    """Find the map that carries the moving image onto the fixed one.

    Arguments, errors and defaults as :func:`find`.

    Returns:
        The map fixed -> moving: a displacement field on the fixed image's own grid, followed by the affine map where
        there is one. Its ``apply`` resamples the moving image, interpolating it once.
    """
    return find(moving, fixed, model, refine, **options).transform


# The refinement differentiates, wherever it is called from; what it gives takes part in the caller's own autograd.
@torch.inference_mode(False)
@torch.enable_grad()
def find(
    moving: Any,
    fixed: Any,
    model: LoadedModel | str | os.PathLike[str] | None = None,
    refine: int = 0,
    *,
    finetune: int = 0,
    seconds: float | None = None,
    init: str = "auto",
    initial_transform: Transform | None = None,
    moving_mask: Any = None,
    fixed_mask: Any = None,
    device: torch.device | str = "cpu",
    seed: int = 0,
    regularity: float | None = None,
    draws: int = 0,
    trust: Sequence[str] = (),
    progress: refinement.Progress | None = None,
    **settings: Any,
) -> Result:
    """Find the affine map and the deformation that together carry the moving image onto the fixed one.

    The affine map changes where the moving image lies, never its voxels: they are interpolated from as they are.

    Args:
        moving, fixed: paths, nibabel images, :class:`regnet.io.Image`, or ``(tensor, affine)`` with a tensor of
            ``(*spatial)`` or ``(C, *spatial)`` and the voxel -> RAS mm affine. Any shapes, spacings and orientations.
        model: a loaded network, or the checkpoint or run folder to load it from; none: the affine map is the start.
        refine: optimiser steps on this pair after the network, over all levels; 0: none. The network's weights stay.
        finetune: optimiser steps of a copy of the network on this pair, before it is asked; 0: none.
        seconds: time for the fine-tuning and again for the refinement; default: as long as their steps take.
        init: what comes first. ``none``: the headers say where the images lie. ``centre``, ``moments``, ``rigid``,
            ``affine``: see :meth:`regnet.inference.affine.Aligner.align`. ``auto``: none where the headers overlap and
            the network was trained on images that lie over each other, else affine.
        initial_transform: an affine map, fixed -> moving, to start from. A rigid or affine stage then improves it;
            otherwise it stays as it is.
        moving_mask, fixed_mask: images on the grids of theirs; what is 0 there does not count in the affine stage and
            in the refinement.
        device: where the network and the optimisation run; the result is on the CPU.
        seed: of the samples that the affine stage draws, and of ``draws``.
        regularity: how much the regularisation weighs, for a conditional model; none: the middle of its range.
        draws: deformations that a probabilistic model draws for the result's ``uncertainty``, 2 or more; 0: none.
        trust: packages whose network classes may be built when ``model`` is a path.
        progress: called after every step of the refinement with the steps done, the steps in all and the loss.
        settings: passed on to :func:`regnet.inference.refine.refine`, such as ``smoothness=0.5``.

    Returns:
        The parts of the map.

    Raises:
        InputError: an image cannot be read, is constant or not finite, or is not what the network takes; a mask does
            not lie on its image; or the two lie in different places.
        InputError: ``regularity`` for a model that takes none, or outside its range; ``draws`` of a model that cannot.
        ValueError: nothing was asked for, an unknown init, an initial transform that is not affine, or no such device.
    """
    device = check_device(device)
    check_init(init, initial_transform)
    start = initial_transform if isinstance(initial_transform, Affine) else None
    if model is None and finetune > 0:
        raise ValueError("fine-tuning needs a model")
    if model is None and refine < 1 and start is None and init in ("auto", "none"):
        raise ValueError("nothing to register with: give a model, a number of refinement steps, or an affine stage")
    loaded = model if model is None or isinstance(model, LoadedModel) else load_model(Path(model), trust=trust)
    told = told_at_inference(loaded, regularity, draws)
    there, here = check_image(as_image(moving)), check_image(as_image(fixed))
    check_pair(there, here)
    there_mask, here_mask = _mask(moving_mask, there), _mask(fixed_mask, here)
    spec = None if loaded is None else loaded.spec
    affine = initial(there, here, init, spec, start, there_mask, here_mask, seed)
    placed = place(there, affine)
    nothing = Displacement.identity(here.grid.with_shape((1,) * here.grid.ndim))
    result, velocity = Result(affine, nothing, here.grid), None
    common: dict[str, Any] = {
        "moving_mask": None if there_mask is None else place(there_mask, affine),
        "fixed_mask": here_mask,
        "seconds": seconds,
        "device": device,
        "progress": progress,
    }
    if loaded is not None:
        if finetune > 0:
            shared = {name: settings[name] for name in ("objective", "window", "smoothness") if name in settings}
            loaded = refinement.finetune(loaded, placed, here, finetune, **common, **shared, told=told)
            common["progress"] = _after(finetune, progress)
        velocity, field = predict(loaded, placed, here, device, **told)
        back = None if velocity is None else Velocity(-velocity.flow, velocity.grid)
        spread = uncertainty(loaded, placed, here, draws, seed, device, **told) if draws else None
        result = replace(result, deformation=field, reverse=back, uncertainty=spread)
    if refine < 1:
        return result
    refined = refinement.refine(
        placed,
        here,
        spec or InputSpec(ndim=here.grid.ndim, channels=here.data.shape[0]),
        refine,
        # A stationary velocity goes on from the network's own; any other map stays as it is under the optimised one.
        velocity,
        result.deformation if loaded is not None and velocity is None else None,
        **common,
        **settings,
    )
    return replace(result, deformation=refined, reverse=None)


def _after(done: int, progress: refinement.Progress | None) -> refinement.Progress | None:
    """The same, told of steps that come after ``done`` others."""
    if progress is None:
        return None
    return lambda step, steps, loss: progress(done + step, done + steps, loss)


def _mask(source: Any, image: Image) -> Image | None:
    if source is None:
        return None
    mask = as_image(source)
    check_same_grid(mask, image.grid, image.name)
    check_mask(mask)
    counts = int((mask.data > 0).sum())
    if counts < _LEAST_MASK:
        raise InputError(f"{mask.name}: the mask has {counts} voxels, too few to register {image.name} by")
    return mask


def predict(
    loaded: LoadedModel, moving: Image, fixed: Image, device: torch.device | str = "cpu", **told: Tensor
) -> tuple[Displacement | None, Displacement]:
    """Run the network once; ``told`` is handed on to ``Model``.

    Returns:
        Its stationary velocity (None where its head has none) and its map fixed -> moving, on the network's grid.

    Raises:
        InputError: the images have not the number of axes or channels that the network takes.
    """
    target = prepare(fixed, loaded.spec)
    source = prepare(moving, loaded.spec, grid=target.grid)
    model = loaded.model.to(device)
    with torch.inference_mode():
        outputs = model(source.data.to(device), target.data.to(device), source.view.to(device), **told)
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
