"""``regnet register``: one pair of images in, moved image and transform out."""

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from regnet import metrics
from regnet.cli.options import add_background, add_overwrite, add_threads, find_trusted, foreground_of, set_threads
from regnet.cli.output import outputs
from regnet.cli.progress import progress
from regnet.cli.register_cohort import run_cohort
from regnet.cli.register_files import files_to_write, wants_inverse, write_files
from regnet.data.prepare import check_same_grid
from regnet.data.reader import read_channels
from regnet.errors import InputError
from regnet.inference import LoadedModel, Result, check_device, find, load_model, shipped_model
from regnet.inference.engine import ENGINES
from regnet.inference.initial import INITS
from regnet.inference.preflight import degrees_of
from regnet.inference.shipped import takes
from regnet.io import Image, check_image, read_labels, read_transform
from regnet.spatial import Affine

# The inverse is tried on so many voxels.
_TRIED = 100_000
# Deformations drawn for the uncertainty: the deviation of so many is known to a sixth of itself, a component.
_DRAWS = 20
_MOST_STEPS = 1_000_000


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "register",
        help="register a moving image to a fixed one",
        description="Register a moving image to a fixed one: with a trained network, by optimising this pair, or both. "
        "The two may have any shapes, spacings and orientations.",
    )
    parser.add_argument(
        "--moving", type=Path, nargs="+", help="image to deform: .nii, .nii.gz, .mgz, .png, .tif; several are channels"
    )
    parser.add_argument("--fixed", type=Path, nargs="+", help="image to deform it to; its grid is the outputs'")
    parser.add_argument(
        "--model",
        help="run folder, checkpoint or model file of a trained network, or none; default: for volumes of one channel "
        "the network that comes with regnet, for brains, else none",
    )
    parser.add_argument(
        "--refine",
        type=int,
        default=0,
        metavar="N",
        help="optimise this pair for N steps after the network (0: none; 100 is a good number)",
    )
    parser.add_argument(
        "--lambda",
        type=float,
        dest="regularity",
        metavar="WEIGHT",
        help="how much smoothness weighs, for a network trained to be told (model=conditional_velocity); default: the "
        "middle of its range",
    )
    parser.add_argument(
        "--finetune",
        type=int,
        default=0,
        metavar="N",
        help="train a copy of the network on this pair for N steps before it is asked",
    )
    parser.add_argument(
        "--smoothness",
        type=float,
        default=0.5,
        metavar="L",
        help="weight of the smoothness in --refine and --finetune: more is smoother and less alike; default: 0.5",
    )
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="stop --refine, and --finetune, after S seconds each; default: never"
    )
    parser.add_argument(
        "--init",
        choices=INITS,
        default="auto",
        help="what comes before the deformation: nothing, the centres of the fields of view, the centres of mass and "
        "principal axes, or a rigid or affine alignment; auto (default): none where the headers overlap and a network "
        "was trained on images that lie over each other, else affine",
    )
    parser.add_argument(
        "--initial-transform",
        type=Path,
        metavar="FILE",
        help="affine map to start from, fixed -> moving: ITK's .mat, .txt, .tfm, .h5, FSL's .mat, FreeSurfer's "
        ".lta; --init rigid or affine improves it, otherwise it stays",
    )
    parser.add_argument("--fixed-mask", type=Path, help="on the fixed image's voxels; what is 0 does not count")
    parser.add_argument("--moving-mask", type=Path, help="the same for the moving image")
    files = parser.add_argument_group("outputs (at least one)")
    files.add_argument(
        "--prefix",
        metavar="P",
        help="ANTs' files: P0GenericAffine.mat, P1Warp.nii.gz and P1InverseWarp.nii.gz (both on the fixed grid, "
        "without the affine map) and PWarped.nii.gz",
    )
    files.add_argument("--moved", type=Path, help="the moving image on the fixed grid, interpolated once")
    files.add_argument(
        "--warp",
        type=Path,
        help="the whole map, affine and all, as a displacement field of ITK and ANTs: on the fixed grid, pointing from "
        "fixed to moving, LPS mm; it resamples images moving -> fixed, and carries points fixed -> moving",
    )
    files.add_argument("--inverse-warp", type=Path, help="the same in the other direction, on the moving grid")
    files.add_argument(
        "--composite",
        type=Path,
        metavar="X.h5",
        help="the whole map in its parts as ITK's composite; XInverse.h5 is the other direction",
    )
    files.add_argument("--moving-labels", type=Path, help="label map of the moving image, for --moved-labels")
    files.add_argument("--moved-labels", type=Path, help="the moving labels on the fixed grid, by nearest neighbour")
    files.add_argument(
        "--jacobian",
        type=Path,
        help="determinant of the deformation's Jacobian on the fixed grid, without the affine map: below 1 where the "
        "moving structure was enlarged",
    )
    files.add_argument("--total", action="store_true", help="--jacobian of the whole map, with the affine one")
    files.add_argument(
        "--uncertainty",
        type=Path,
        help="standard deviation of the deformation, mm, before any refinement, for a network that draws from a "
        f"distribution (model=probabilistic_velocity): of {_DRAWS} draws",
    )
    files.add_argument("--figure", type=Path, help="PNG of fixed, moving, moved image and warped grid")
    many = parser.add_argument_group(
        "many pairs, in place of --moving and --fixed",
        "Output options are names in --out then, with {id}, {fixed} and {moving} for the pair; without any, "
        "{id}_moved.nii.gz, {id}_warp.nii.gz and, where the table has labels, {id}_moved_labels.nii.gz are written. "
        "What is done is not done again. Pairs that fail are listed at the end; the status is 3 then.",
    )
    source = many.add_mutually_exclusive_group()
    source.add_argument("--pairs", type=Path, metavar="TABLE", help="table of pairs (CSV)")
    source.add_argument("--dataset", type=Path, metavar="JSON", help="NAME_dataset.json of Learn2Reg")
    many.add_argument(
        "--split", help="only these rows; of a dataset registration_val (default), registration_test, ..."
    )
    many.add_argument("--out", type=Path, metavar="DIR", help="folder for the outputs and manifests/ID.json")
    many.add_argument("--jobs", type=int, default=1, help="pairs at a time; default: 1")
    many.add_argument("--shard", metavar="I/N", help="only every N-th pair, from the I-th (0 to N - 1) on")
    many.add_argument("--engine", choices=ENGINES, default="local", help="ray: on a Ray cluster, $RAY_ADDRESS or here")
    many.add_argument("--format", choices=("learn2reg",), help="a submission: displacements by their names, and a zip")
    parser.set_defaults(displacement=None)
    add_background(parser)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda:0; default: auto")
    add_threads(parser)
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the affine stage's samples, and of draws; default: 0"
    )
    parser.add_argument("--trust", action="append", default=[], metavar="PACKAGE", help="allow this package's networks")
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    find_trusted(args.trust)
    if args.pairs is not None or args.dataset is not None:
        return run_cohort(args, run, _check_options)
    began = time.perf_counter()
    files = _check_options(args)
    set_threads(args.threads)
    _seed(args.seed)
    device = choose_device(args.device)
    inputs = [*args.moving, *args.fixed, args.moving_labels, args.initial_transform, args.moving_mask, args.fixed_mask]
    with outputs(list(files.values()), args.overwrite, inputs):
        moving, fixed = check_image(read_channels(args.moving)), check_image(read_channels(args.fixed))
        labels = None if args.moving_labels is None else read_labels(args.moving_labels)
        if labels is not None:
            check_same_grid(labels, moving.grid, moving.name)
        model = _model(args, fixed)
        with progress("registering", args.refine + args.finetune) as tell:
            result = find(
                moving,
                fixed,
                model,
                args.refine,
                finetune=args.finetune,
                seconds=args.seconds,
                smoothness=args.smoothness,
                init=args.init,
                initial_transform=_start(args.initial_transform, moving, fixed),
                moving_mask=args.moving_mask,
                fixed_mask=args.fixed_mask,
                device=device,
                seed=args.seed,
                regularity=args.regularity,
                draws=_DRAWS if "uncertainty" in files else 0,
                progress=lambda done, _, loss: tell(done, f"loss {loss:.4f}"),
            )
        write_files(files, result, moving, fixed, labels, args.background, args.total)
    print("model: none" if model is None else f"model: {model.path} (sha256 {model.sha256[:16]})")
    _summary(result, fixed, files, time.perf_counter() - began)
    return 0


def _model(args: argparse.Namespace, fixed: Image) -> LoadedModel | None:
    """The network that is asked for, or the one that comes with regnet where it can be asked."""
    if args.model == "none" or (args.model is None and not takes(fixed)):
        return None
    return load_model(args.model or shipped_model(), trust=args.trust)


def _start(path: Path | None, moving: Image, fixed: Image) -> Affine | None:
    """The affine map of a file."""
    if path is None:
        return None
    transform = read_transform(path, moving=moving, fixed=fixed)
    if not isinstance(transform, Affine):
        raise InputError(f"{path}: holds a deformation; an affine map is needed to start from")
    if transform.ndim != fixed.grid.ndim:
        raise InputError(f"{path}: is {transform.ndim}-D, but {fixed.name} is {fixed.grid.ndim}-D")
    return transform


def choose_device(name: str) -> torch.device:
    """The device that ``name`` means; ``auto`` is the processor, for which the operators are compiled.

    Raises:
        InputError: there is no such device here.
    """
    try:
        return check_device("cpu" if name == "auto" else name)
    except ValueError as error:
        raise InputError(f"--device {name}: no such device here; use auto, cpu or cuda:0") from error


def _check_options(args: argparse.Namespace) -> dict[str, Path]:
    """The files to write, by option; refuses what cannot work before any of the work."""
    if not args.moving or not args.fixed:
        raise InputError("give --moving and --fixed, or --pairs and --out")
    files = files_to_write(args)
    for option in ("refine", "finetune"):
        if not 0 <= getattr(args, option) <= _MOST_STEPS:
            raise InputError(f"--{option} {getattr(args, option)}: the number of steps is from 0 to {_MOST_STEPS:,}")
    if args.finetune and args.model == "none":
        raise InputError("--finetune trains a copy of a network: --model none leaves nothing to train")
    if not 0 <= args.smoothness < math.inf:
        raise InputError(f"--smoothness {args.smoothness:g}: give a number, 0 or more")
    if args.seconds is not None and not 0 < args.seconds < math.inf:
        raise InputError(f"--seconds {args.seconds:g}: give a number above 0")
    nothing = args.model == "none" and args.refine == 0 and args.initial_transform is None
    if nothing and args.init in ("auto", "none"):
        raise InputError(
            "--model none: nothing to register with: give --model RUN (a trained network) or no --model (regnet's "
            "own), --refine 100 (optimises this pair), --init affine (an affine map alone), or some of them"
        )
    if args.initial_transform is not None and args.init in ("centre", "moments"):
        raise InputError(f"--initial-transform leaves nothing for --init {args.init} to do: use none, rigid or affine")
    if (args.moving_labels is None) != (args.moved_labels is None):
        raise InputError("--moving-labels and --moved-labels belong together: give both or neither")
    if args.total and args.jacobian is None:
        raise InputError("--total is about --jacobian: give that too")
    return files


def _seed(seed: int) -> None:
    try:
        torch.manual_seed(seed)
    except (ValueError, RuntimeError) as error:
        raise InputError(f"--seed {seed}: does not fit into 64 bits") from error


def _summary(result: Result, fixed: Image, files: dict[str, Path], seconds: float) -> None:
    console = Console()
    console.print(f"registered in {seconds:.1f} s")
    matrix = result.affine.matrix[:-1, :-1]
    if not torch.equal(result.affine.matrix, torch.eye(len(matrix) + 1, dtype=torch.float64)):
        console.print(f"affine: turned by {degrees_of(matrix):.1f} degrees, volumes x {float(torch.det(matrix)):.3f}")
    for line in _deformation_lines(result, fixed, files):
        console.print(line, soft_wrap=True)
    for name, path in files.items():
        console.print(f"{name.replace('_', ' ')}: {path}", soft_wrap=True, highlight=False)


def _deformation_lines(result: Result, fixed: Image, files: dict[str, Path]) -> Iterator[str]:
    """How large the deformation is, whether it folds, and how well its inverse inverts it."""
    flow, foreground = result.forward.flow[None], foreground_of(fixed)
    if not bool(flow.any()):
        yield "affine only: no deformation was asked for (--refine 100), so fields without the affine map move nothing"
        return
    length = metrics.displacement_statistics(flow, fixed.grid.spacing, foreground)
    yield f"deformation in the fixed foreground: mean {length['mean']:.2f} mm, most {length['max']:.2f} mm"
    yield f"folded voxels there: {100 * metrics.folding_fraction(flow, foreground):.4f} %"
    if wants_inverse(files):
        yield from _inverse_lines(result, fixed)


def _inverse_lines(result: Result, fixed: Image) -> Iterator[str]:
    """How well the inverse of the deformation inverts it, in the fixed foreground."""
    inverted, foreground = result.inverted, foreground_of(fixed)[0] > 0
    folds = foreground & ~inverted.found & ~inverted.leaves
    leaves = foreground & inverted.leaves
    missed = inverted.residual[foreground & ~folds & ~leaves]
    if len(missed):
        yield f"forward after inverse ends {missed.mean():.3f} mm (most {missed.max():.3f}) from where it began"
    if bool(folds.any()):
        most = float(inverted.residual[folds].max())
        yield f"no inverse at {int(folds.sum())} voxels, where the map folds: most {most:.2f} mm off"
    if bool(leaves.any()):
        yield f"the inverse leaves the fixed grid at {int(leaves.sum())} voxels, where programs differ"
    voxels = foreground[0].nonzero().double()
    points = fixed.grid.to_world(voxels[:: max(1, len(voxels) // _TRIED)])
    away = (result.inverse.map_points(result.transform.map_points(points)) - points).norm(dim=-1)
    yield f"inverse after forward, that is between its voxels: {away.mean():.3f} mm (most {away.max():.3f})"
