"""What to type: the examples at the end of each verb's help."""

import argparse

# The files are those of the documents: moving.nii.gz and fixed.nii.gz, a table of pairs, a run.
EXAMPLES = {
    "train": (
        "regnet train experiment=smoke",
        "regnet train data=pairs data.pairs=pairs.csv loss=lncc_dice hydra.run.dir=run",
        "regnet train --resume run",
        "regnet train -m optimizer.lr=1e-3,1e-4 hydra.sweep.dir=grid",
    ),
    "register": (
        "regnet register --moving moving.nii.gz --fixed fixed.nii.gz --prefix out/ann_",
        "regnet register --moving moving.nii.gz --fixed fixed.nii.gz --model none --refine 100 --warp warp.nii.gz",
        "regnet register --pairs pairs.csv --out cohort --model run --shard 3/100",
    ),
    "apply": (
        "regnet apply --moving moving.nii.gz --reference fixed.nii.gz -t warp.nii.gz --out moved.nii.gz",
        "regnet apply --moving labels.nii.gz --reference fixed.nii.gz -t warp.nii.gz --interp label --out moved.nii.gz",
        "regnet apply --points landmarks.csv -t warp.nii.gz --to moving --out moved.csv",
    ),
    "convert": (
        "regnet convert warp.nii.gz --to fsl --moving moving.nii.gz --out fsl_warp.nii.gz",
        "regnet convert out.mat --from fsl --moving moving.nii.gz --fixed fixed.nii.gz --to itk --out affine.txt",
    ),
    "compose": ("regnet compose -t warp.nii.gz -t affine.mat --reference fixed.nii.gz --out whole.h5",),
    "invert": ("regnet invert warp.nii.gz --reference moving.nii.gz --out inverse.nii.gz",),
    "jacobian": (
        "regnet jacobian warp.nii.gz --out determinant.nii.gz",
        "regnet jacobian warp.nii.gz --log --out logj.nii.gz",
    ),
    "evaluate": (
        "regnet evaluate --pairs pairs.csv --transforms cohort --out measures",
        "regnet evaluate --pairs pairs.csv --transforms none --out before",
        "regnet evaluate --pairs pairs.csv --transforms cohort --out after --against before",
    ),
    "report": (
        "regnet report cohort",
        "regnet report warp.nii.gz --moving moving.nii.gz --fixed fixed.nii.gz",
        "regnet report a_1Warp.nii.gz a_0GenericAffine.mat --moving moving.nii.gz --fixed fixed.nii.gz --out a.html",
        "regnet report run",
        "regnet report logs/default/grid",
    ),
    "data": ("regnet data check pairs.csv", "regnet data check pairs.csv --out findings.json"),
    "export": (
        "regnet export run --out model.safetensors",
        "regnet export run --to onnx --shape 160 192 160 --out model.onnx",
    ),
    "info": ("regnet info",),
    "doctor": ("regnet doctor",),
    "completion": ("regnet completion bash > ~/.local/share/bash-completion/completions/regnet",),
}


class Formatter(argparse.HelpFormatter):
    """Wraps descriptions, and leaves the lines of the examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("examples:\n") else super()._fill_text(text, width, indent)


def add_examples(parser: argparse.ArgumentParser, verb: str) -> None:
    """End the help of a verb, and of its actions, with its examples."""
    parser.epilog = "\n  ".join(["examples:", *EXAMPLES[verb]])
    if parser.formatter_class is argparse.HelpFormatter:
        parser.formatter_class = Formatter
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                add_examples(inner, verb)
