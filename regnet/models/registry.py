"""Models from plain dictionaries, and which classes such a dictionary may name.

A configuration names each part by ``_target_``: a key of ``REGISTRY``, or the import path of a class. Checkpoints hold
the keys, so that moving a class inside regnet breaks no file. Loading runs no code but regnet's and that of the
packages one trusts by name.
"""

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch import nn

from regnet.models.compositions import Cascade, Pyramid, Symmetric
from regnet.models.heads import (
    AffineHead,
    DisplacementHead,
    ProbabilisticVelocityHead,
    SplineHead,
    SplineVelocityHead,
    VelocityHead,
)
from regnet.models.model import Model
from regnet.models.networks import ConditionalUNet, CostVolumeNet, DualStreamUNet, LargeKernelUNet, UNet
from regnet.models.registration import Registration

REGISTRY: dict[str, type[nn.Module]] = {
    "registration": Registration,
    "symmetric": Symmetric,
    "cascade": Cascade,
    "pyramid": Pyramid,
    "unet": UNet,
    "conditional_unet": ConditionalUNet,
    "large_kernel_unet": LargeKernelUNet,
    "dual_stream_unet": DualStreamUNet,
    "cost_volume": CostVolumeNet,
    "displacement": DisplacementHead,
    "velocity": VelocityHead,
    "probabilistic_velocity": ProbabilisticVelocityHead,
    "spline": SplineHead,
    "spline_velocity": SplineVelocityHead,
    "affine": AffineHead,
}


def build(config: Mapping[str, Any], trust: Sequence[str] = ()) -> Model:
    """Make the model that a plain dictionary describes, with fresh weights.

    Args:
        config: ``_target_`` and arguments, as in ``configs/model``. A bare network is taken as one that returns the
            displacement.
        trust: packages of other people whose classes may be used: ``mypkg`` allows ``mypkg.nets.Net``.

    Raises:
        ValueError: unknown or untrusted class, unknown or missing argument, argument that is not a plain value.
    """
    model = _make(config, trust)
    return model if isinstance(model, Model) else Registration(model)


def describe(config: Mapping[str, Any], trust: Sequence[str] = ()) -> dict[str, Any]:
    """The same configuration with regnet's own classes named by their key, as checkpoints hold it."""
    keys = {cls: key for key, cls in REGISTRY.items()}
    cls = _find(config, trust)
    parts = {name: _each(value, lambda part: describe(part, trust)) for name, value in config.items()}
    return {**parts, "_target_": keys.get(cls, config["_target_"])}


def packages(config: Mapping[str, Any]) -> list[str]:
    """Top-level packages that a configuration names: what the author of a configuration trusts."""
    return sorted({target.split(".")[0] for target in _targets(config) if "." in target})


def _targets(config: Any) -> Iterator[str]:
    if _names_class(config):
        yield str(config["_target_"])
    if isinstance(config, Mapping | list | tuple):
        for value in config.values() if isinstance(config, Mapping) else config:
            yield from _targets(value)


def _each(value: Any, change: Callable[[Mapping[str, Any]], Any]) -> Any:
    """An argument of a model, each part that names a class changed: the argument itself, or those of a list."""
    if isinstance(value, list | tuple):
        return [_each(inner, change) for inner in value]
    return change(value) if _names_class(value) else value


def _names_class(value: Any) -> bool:
    return isinstance(value, Mapping) and "_target_" in value


def _make(config: Mapping[str, Any], trust: Sequence[str]) -> nn.Module:
    cls = _find(config, trust)
    arguments = {name: value for name, value in config.items() if name != "_target_"}
    if issubclass(cls, Model):
        arguments = {name: _each(value, lambda part: _make(part, trust)) for name, value in arguments.items()}
    else:
        for name, value in arguments.items():
            _require_plain(config["_target_"], name, value)
    _require_known(config["_target_"], cls, arguments)
    return cls(**arguments)


def _find(config: Mapping[str, Any], trust: Sequence[str]) -> type[nn.Module]:
    if not _names_class(config):
        raise ValueError("a part of a model needs a `_target_`: one of " + ", ".join(REGISTRY) + ", or a class's path")
    target = str(config["_target_"])
    if target in REGISTRY:
        return REGISTRY[target]
    module, _, name = target.rpartition(".")
    trusted = ["regnet.models", *trust]
    if not module:
        close = difflib.get_close_matches(target, REGISTRY, n=1)
        raise ValueError(f"no model part is called {target!r}" + (f": did you mean {close[0]!r}?" if close else ""))
    if not _inside(module, trusted):
        package = module.split(".")[0]
        raise ValueError(f"{target} is code from outside regnet: trust the package {package!r} to load it (--trust)")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot import {target}: {error}") from error
    # The class itself must live in a trusted package: a prefix of the path can be led out through module attributes.
    if not (isinstance(found, type) and issubclass(found, nn.Module) and _inside(found.__module__, trusted)):
        raise ValueError(f"{target} is no nn.Module defined in a trusted package")
    return found


def _inside(module: str, trusted: Sequence[str]) -> bool:
    return any(module == root or module.startswith(root + ".") for root in trusted)


def _require_plain(target: str, name: str, value: Any) -> None:
    if isinstance(value, Mapping):
        if any(not isinstance(key, str) or key.startswith("_") for key in value):
            raise ValueError(f"argument {name!r} of {target} must be a plain value without a `_target_` inside")
        for inner in value.values():
            _require_plain(target, name, inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _require_plain(target, name, inner)
    elif value is not None and not isinstance(value, bool | int | float | str):
        raise ValueError(f"argument {name!r} of {target} must be a plain value, got {type(value).__name__}")


def _require_known(target: str, cls: type[nn.Module], arguments: Mapping[str, Any]) -> None:
    signature = inspect.signature(cls)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        unknown = next((name for name in arguments if name not in signature.parameters), None)
        if unknown is None:
            raise ValueError(f"{target}: {error}") from error
        close = difflib.get_close_matches(unknown, signature.parameters, n=1, cutoff=0)
        raise ValueError(f"{target} has no argument {unknown!r}: did you mean {close[0]!r}?") from error
