"""A trained network for others: a model file with all that registration needs, or the network alone."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from csv import DictReader
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.torch_version import TorchVersion

from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.inference.load import LoadedModel
from regnet.io.atomic import atomic_path
from regnet.io.weights import find_weights, read_weights
from regnet.models.model import Model
from regnet.ops.plain import kernels

INPUTS, OUTPUT = ("moving", "fixed"), "displacement"
_OLDEST = "2.6"  # the torch whose exporters take a program
_TOLERANCE = 1e-4  # voxels, or of the largest displacement where that is more


def describe_model(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What a model file of ``regnet export`` holds.

    Args:
        path: checkpoint, model file, or a run's folder.

    Returns:
        The weights by name, averaged where training averaged; and ``model`` (the configuration), ``spec`` (the input
        contract), ``regnet`` (the version that trained it), ``epoch`` and ``metrics`` (of the validation then): no
        optimiser, no path, no name of a person.

    Raises:
        InputError: it is none of these.
    """
    file = find_weights(Path(path))
    weights, known = read_weights(file)
    about: dict[str, Any] = {
        name: known[name] for name in ("model", "spec", "regnet", "epoch", "metrics") if name in known
    }
    if "epoch" in about and "metrics" not in about:
        about["metrics"] = _measured(file.parent.parent, about["epoch"])
    return weights, about


def _measured(run: Path, epoch: int) -> dict[str, float]:
    """The validation of an epoch, as a run's ``csv/`` has it."""
    found: dict[str, float] = {}
    for table in sorted(run.glob("csv/*/metrics.csv"), key=lambda table: table.stat().st_mtime):
        with table.open(encoding="utf-8", newline="") as stream:
            rows = [row for row in DictReader(stream) if row.get("epoch") == str(epoch)]
        values = {name: value for row in rows for name, value in row.items() if value}
        found |= {name: float(value) for name, value in values.items() if name.startswith("val/")}
    return found


class _Field(nn.Module):
    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, moving: Tensor, fixed: Tensor) -> Tensor:
        return self.model.fields(moving, fixed)[OUTPUT]


def program(loaded: LoadedModel, shape: Sequence[int]) -> ExportedProgram:
    """The network with its head, as torch's own operators alone: it runs without regnet.

    Args:
        loaded: the model; it has to be on the CPU.
        shape: D ints, the only size of images that the program will take.

    Returns:
        A program of prepared ``moving`` and ``fixed``, ``(1, C, *shape)`` float32 both, that gives the displacement
        ``(1, D, *shape)`` in voxels, fixed to moving.

    Raises:
        InputError: ``shape`` does not fit, the model cannot be traced, or torch is older than 2.6.
    """
    spec = loaded.spec
    if len(shape) != spec.ndim or min(shape) < 1:
        raise InputError(f"--shape: {loaded.path} takes {spec.ndim}-D images, so {spec.ndim} sizes, got {list(shape)}")
    if TorchVersion(torch.__version__) < TorchVersion(_OLDEST):
        raise InputError(f"--to onnx and torch need torch 2.6 or newer; this is {torch.__version__}")
    network = _Field(loaded.model).eval()
    try:
        with torch.no_grad(), _quiet():
            traced = torch.export.export(network, _example(spec, shape))
            return traced.run_decompositions(kernels())
    except Exception as error:  # whatever the tracer says of a network that is not ours
        raise InputError(f"{loaded.path}: cannot be traced: {_short(error)}") from error


def write_torch(loaded: LoadedModel, shape: Sequence[int], path: Path, overwrite: bool = False) -> None:
    """Write :func:`program` for ``torch.export.load``.

    Raises:
        InputError: as ``program``; or the file exists.
    """
    traced = program(loaded, shape)
    with atomic_path(path, overwrite) as temporary, _quiet():
        torch.export.save(traced, temporary)


def write_onnx(loaded: LoadedModel, shape: Sequence[int], path: Path, overwrite: bool = False) -> float:
    """Write :func:`program` as ONNX, after its displacement in onnxruntime was compared with ours.

    Returns:
        The largest difference, in voxels, on two images of noise.

    Raises:
        InputError: as ``program``; onnx is not installed; the network has an operator that ONNX has not; the answers
            differ by more than 1e-4 voxel (of larger displacements: of their size); or the file exists.
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise InputError('--to onnx: needs onnx and onnxruntime: pip install "regnet[onnx]"') from error
    traced, images = program(loaded, shape), _example(loaded.spec, shape)
    with atomic_path(path, overwrite) as temporary, _quiet():
        try:
            torch.onnx.export(
                traced,
                images,
                temporary,
                dynamo=True,
                external_data=False,
                verbose=False,
                input_names=list(INPUTS),
                output_names=[OUTPUT],
            )
        except torch.onnx.OnnxExporterError as error:
            raise InputError(f"{loaded.path}: has an operator that ONNX has not: {_short(error)}") from error
        session = onnxruntime.InferenceSession(temporary, providers=["CPUExecutionProvider"])
        there = session.run(None, {name: image.numpy() for name, image in zip(INPUTS, images, strict=True)})[0]
        ours = loaded.model.fields(*images)[OUTPUT]
        difference = float((torch.from_numpy(there) - ours).abs().max())
        if not difference <= _TOLERANCE * max(1.0, float(ours.abs().max())):
            raise InputError(f"{path}: not written, since its answer in onnxruntime is {difference:.2g} voxel off")
    return difference


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to itself what the exporters say of their own parts; what comes of them is checked."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _example(spec: InputSpec, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    noise = torch.rand(2, 1, spec.channels, *shape, generator=torch.Generator().manual_seed(0))
    return noise[0], noise[1]


def _short(error: Exception) -> str:
    return " ".join(str(error.__cause__ or error).split())[:200]
