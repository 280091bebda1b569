"""``regnet register``: one pair of images in, moved image and transform out."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from regnet import metrics, ops
from regnet.cli.options import add_background, add_overwrite, add_threads, background_of, foreground_of, set_threads
from regnet.cli.output import check_suffix, outputs
from regnet.data.prepare import check_same_grid
from regnet.errors import InputError
from regnet.inference import check_device, load_model, register
from regnet.io import Image, check_image, read_image, read_labels, write_image, write_transform
from regnet.io.displacement import SUFFIXES as FIELD_SUFFIXES
from regnet.io.image import SUFFIXES as IMAGE_SUFFIXES
from regnet.spatial import Displacement, resample

# What can be written, and what the file's name may end with.
_SUFFIXES = {
    "moved": IMAGE_SUFFIXES,
    "moved_labels": IMAGE_SUFFIXES,
    "jacobian": IMAGE_SUFFIXES,
    "warp": FIELD_SUFFIXES,
    "inverse_warp": FIELD_SUFFIXES,
    "figure": (".png",),
}


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "register",
        help="register a moving image to a fixed one",
        description="Register a moving image to a fixed one: with a trained network, by optimising this pair, or both. "
        "The two may have any shapes, spacings and orientations.",
    )
    parser.add_argument("--moving", type=Path, required=True, help="image to deform: .nii, .nii.gz, .mgz, .png, .tif")
    parser.add_argument("--fixed", type=Path, required=True, help="image to deform it to; its grid is the outputs'")
    parser.add_argument("--model", default="none", help="run folder or checkpoint of a trained network; default: none")
    parser.add_argument(
        "--refine",
        type=int,
        default=0,
        metavar="N",
        help="optimise this pair for N steps after the network (0: none; 100 is a good number)",
    )
    files = parser.add_argument_group("outputs (at least one)")
    files.add_argument("--moved", type=Path, help="the moving image on the fixed grid, interpolated once")
    files.add_argument(
        "--warp",
        type=Path,
        help="displacement field as ITK and ANTs use it: on the fixed grid, pointing from fixed to moving, LPS mm; "
        "it resamples images moving -> fixed, and carries points fixed -> moving",
    )
    files.add_argument("--inverse-warp", type=Path, help="the same in the other direction, on the moving grid")
    files.add_argument("--moving-labels", type=Path, help="label map of the moving image, for --moved-labels")
    files.add_argument("--moved-labels", type=Path, help="the moving labels on the fixed grid, by nearest neighbour")
    files.add_argument(
        "--jacobian",
        type=Path,
        help="determinant of the map's Jacobian on the fixed grid: below 1 where the moving structure was enlarged",
    )
    files.add_argument("--figure", type=Path, help="PNG of fixed, moving, moved image and warped grid")
    add_background(parser)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda:0; default: auto")
    add_threads(parser)
    parser.add_argument("--seed", type=int, default=0, help="seed of torch's random numbers; default: 0")
    parser.add_argument("--trust", action="append", default=[], metavar="PACKAGE", help="allow this package's networks")
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    began = time.perf_counter()
    written = _check_options(args)
    set_threads(args.threads)
    _seed(args.seed)
    device = choose_device(args.device)
    with outputs(list(written.values()), args.overwrite, [args.moving, args.fixed, args.moving_labels]):
        moving, fixed = check_image(read_image(args.moving)), check_image(read_image(args.fixed))
        labels = None if args.moving_labels is None else read_labels(args.moving_labels)
        if labels is not None:
            check_same_grid(labels, moving.grid, moving.name)
        if args.trust:
            sys.path.append(os.getcwd())  # a trusted package is found from where the user stands, as in training
        model = None if args.model == "none" else load_model(args.model, trust=args.trust)
        with _progress_bar() as bar:
            task = bar.add_task("refining", total=args.refine, loss="", visible=args.refine > 0)
            transform = register(
                moving,
                fixed,
                model,
                args.refine,
                device=device,
                progress=lambda done, _, loss: bar.update(task, completed=done, loss=f"loss {loss:.4f}"),
            )
        _write(args, moving, fixed, labels, transform)
    _summary(transform, fixed, written, time.perf_counter() - began)
    return 0


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
    written = {name: getattr(args, name) for name in _SUFFIXES if getattr(args, name) is not None}
    if not written:
        raise InputError(f"nothing to write: give at least one of {', '.join(map(_option, _SUFFIXES))}")
    if args.refine < 0:
        raise InputError(f"--refine {args.refine}: the number of steps cannot be negative")
    if args.model == "none" and args.refine == 0:
        raise InputError("nothing to register with: give --model, --refine, or both")
    if (args.moving_labels is None) != (args.moved_labels is None):
        raise InputError("--moving-labels and --moved-labels belong together: give both or neither")
    for name, path in written.items():
        check_suffix(path, _SUFFIXES[name], _option(name))
    return written


def _seed(seed: int) -> None:
    try:
        torch.manual_seed(seed)
    except (ValueError, RuntimeError) as error:
        raise InputError(f"--seed {seed}: does not fit into 64 bits") from error


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _write(
    args: argparse.Namespace, moving: Image, fixed: Image, labels: Image | None, transform: Displacement
) -> None:
    moved = None
    background = background_of(moving, args.background)
    if args.moved is not None or args.figure is not None:
        moved = transform.apply(moving.data[None], moving.grid, background=background)[0]
    if args.moved is not None and moved is not None:
        write_image(args.moved, moved, fixed)
    if args.warp is not None:
        write_transform(args.warp, transform, fixed)
    if args.inverse_warp is not None:
        write_transform(args.inverse_warp, transform.inverse().on(moving.grid), moving)
    if args.moved_labels is not None and labels is not None:
        moved_labels = transform.apply_labels(labels.data[None], labels.grid)[0]
        write_image(args.moved_labels, moved_labels, fixed, dtype=labels.stored_dtype)
    if args.jacobian is not None:
        write_image(args.jacobian, ops.jacobian_determinant(transform.flow[None])[0], fixed)
    if args.figure is not None and moved is not None:
        # Drawing needs matplotlib, which takes longer to load than a small registration.
        from regnet.report import four_panels

        there = resample(moving.data[None], moving.grid, fixed.grid, background=background)[0]
        four_panels(fixed.data, there, moved, transform.flow, args.figure, fixed.grid)


def _progress_bar() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _summary(transform: Displacement, fixed: Image, written: dict[str, Path], seconds: float) -> None:
    flow, foreground = transform.flow[None], foreground_of(fixed)
    length = metrics.displacement_statistics(flow, fixed.grid.spacing, foreground)
    folding = metrics.folding_fraction(flow, foreground)
    console = Console()
    console.print(f"registered in {seconds:.1f} s")
    console.print(f"displacement in the fixed foreground: mean {length['mean']:.2f} mm, most {length['max']:.2f} mm")
    console.print(f"folded voxels there: {100 * folding:.4f} %")
    for name, path in written.items():
        console.print(f"{name.replace('_', ' ')}: {path}", soft_wrap=True, highlight=False)
