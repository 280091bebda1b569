"""Small networks, and checkpoints as a training run writes them."""

from pathlib import Path
from typing import Any

import torch

from regnet.data.spec import InputSpec
from regnet.models import Registration, build


def small_model(ndim: int, width: int = 4, head: str = "velocity") -> dict[str, Any]:
    """Configuration of a U-Net of two levels.

    The head ``half`` is a velocity at half the resolution, ``told`` a probabilistic one whose network
    is conditional.
    """
    half = head == "half"
    network = {"_target_": "conditional_unet" if head == "told" else "unet", "ndim": ndim, "in_channels": 2}
    return {
        "_target_": "registration",
        "network": {**network, "encoder": [width, width], "decoder": [] if half else [width]},
        "head": {
            "_target_": {"half": "velocity", "told": "probabilistic_velocity"}.get(head, head),
            "ndim": ndim,
            "in_channels": width,
            "stride": 2 if half else 1,
        },
    }


def checkpoint(spec: InputSpec, head: str = "velocity", push: float = 0.0) -> tuple[Registration, dict[str, Any]]:
    """A network and its checkpoint.

    Args:
        spec: the input contract.
        head: of :func:`small_model`.
        push: bias of the head's first component: a field of so many of its voxels along the first axis everywhere.
    """
    torch.manual_seed(0)
    config = small_model(spec.ndim, head=head)
    model = build(config)
    with torch.no_grad():
        model.head.field.convolution.bias[0] = push
    content = {
        "state_dict": {f"model.{name}": value for name, value in model.state_dict().items()},
        "hyper_parameters": {"model": config, "spec": spec.to_dict(), "regnet": "0.1.0"},
    }
    return model, content


def write_checkpoint(path: Path, spec: InputSpec, head: str = "velocity", push: float = 0.0) -> Path:
    """Write :func:`checkpoint` to ``path``."""
    torch.save(checkpoint(spec, head, push)[1], path)
    return path
