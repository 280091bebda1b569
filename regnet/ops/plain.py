"""The operators of the networks in plain torch, for programs that shall run without regnet."""

from collections.abc import Callable
from typing import Any

import torch

from regnet.ops import _torch, _torch_lines


def kernels() -> dict[Any, Callable]:
    """By registered operator, the same in torch's own operators, none of which changes a tensor.

    For ``torch.export.ExportedProgram.run_decompositions``. Those that a forward pass of our networks and heads
    calls: sampling (composition and integration of fields) and splines on lattices (resizing, control points).
    """
    return {
        torch.ops.regnet.sample.default: _torch.sampled,
        torch.ops.regnet.lattice.default: _torch_lines.on_lattice,
    }
