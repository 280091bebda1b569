"""``regnet export``: a trained network for others."""

import argparse
from pathlib import Path
from typing import Any

from regnet.cli.options import add_overwrite, find_trusted
from regnet.cli.output import check_suffix, outputs
from regnet.errors import InputError
from regnet.inference.card import card
from regnet.inference.export import describe_model, write_onnx, write_torch
from regnet.inference.load import load_model
from regnet.inference.manifest import sha256
from regnet.io.model_file import SUFFIX, write_model
from regnet.io.weights import find_weights

_SUFFIXES = {"regnet": SUFFIX, "onnx": ".onnx", "torch": ".pt2"}


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "export",
        help="write a trained network to hand on",
        description="Write a model file that `regnet register --model` takes: the (averaged) weights, the input "
        "contract and the validation, without optimiser, paths and names; and beside it a model card to be completed. "
        "Or the network alone for other programs: from two prepared images of one size, moving and fixed, the "
        "displacement in voxels of the fixed grid, which points into the moving image.",
    )
    parser.add_argument("model", type=Path, metavar="RUN|CKPT", help="folder of a run, checkpoint or model file")
    parser.add_argument("--out", type=Path, required=True, help="m.safetensors (with m.md); m.onnx or m.pt2")
    parser.add_argument("--to", choices=tuple(_SUFFIXES), default="regnet", help="default: regnet's model file")
    parser.add_argument(
        "--shape", type=int, nargs="+", metavar="N", help="of --to onnx and torch: size of the images, voxels per axis"
    )
    parser.add_argument("--trust", action="append", default=[], metavar="PACKAGE", help="allow this package's networks")
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    check_suffix(args.out, [_SUFFIXES[args.to]], f"--to {args.to}")
    if (args.shape is None) != (args.to == "regnet"):
        raise InputError("--shape is for --to onnx and --to torch, which need it: a program takes one size of images")
    find_trusted(args.trust)
    source = find_weights(args.model)
    loaded = load_model(source, trust=args.trust)  # so that nothing is handed on that cannot be loaded
    about_it = args.out.with_suffix(".md")
    files = [args.out, about_it] if args.to == "regnet" else [args.out]
    with outputs(files, args.overwrite, [source]):
        if args.to == "onnx":
            difference = write_onnx(loaded, args.shape, args.out, args.overwrite)
            print(f"onnxruntime gives the same displacement within {difference:.1g} voxels")
        elif args.to == "torch":
            write_torch(loaded, args.shape, args.out, args.overwrite)
        else:
            weights, about = describe_model(source)
            write_model(args.out, weights, about, args.overwrite)
            about_it.write_text(card(about, weights, sha256(args.out)), encoding="utf-8")
            print(f"card: {about_it}, to be completed")
    print(f"model: {args.out} (sha256 {sha256(args.out)[:16]})")
    return 0
