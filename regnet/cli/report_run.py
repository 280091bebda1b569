"""``regnet report RUN_DIR``: the page of a training run."""

import argparse
import shlex
from pathlib import Path

from omegaconf import OmegaConf

from regnet.cli.output import check_suffix, outputs
from regnet.io import atomic_path
from regnet.sweeps.trials import read_metrics
from regnet.training.environment import read_environment


def run(args: argparse.Namespace, folder: Path) -> int:
    """Write the page and print its name."""
    from regnet.report.log import read_log, read_panels
    from regnet.report.run_page import run_page  # drawing takes long to load

    out = args.out or folder / "report.html"
    check_suffix(out, (".html", ".htm"), "--out")
    with outputs([out], args.overwrite, [folder / "config.yaml"]):
        text = run_page(
            folder.resolve().name,
            read_log(folder),
            read_panels(folder),
            read_metrics(folder) or {},
            (folder / "config.yaml").read_text(encoding="utf-8"),
            read_environment(folder),
            _commands(folder),
        )
        with atomic_path(out, overwrite=True) as temporary:
            temporary.write_text(text, encoding="utf-8")
    print(out)
    return 0


def _commands(folder: Path) -> dict[str, str]:
    """How to use a run, go on with it, and make it again."""
    here = shlex.quote(str(folder))
    commands = {
        "Use it": f"regnet register --model {here} --moving M.nii.gz --fixed F.nii.gz --moved moved.nii.gz",
        "Go on with it": f"regnet train --resume {here} trainer.max_epochs=N",
    }
    path = folder / ".hydra" / "overrides.yaml"
    if path.is_file():
        words = [str(word) for word in OmegaConf.load(path) if not str(word).startswith("hydra.run.dir=")]
        commands["Make it again"] = f"{shlex.join(['regnet', 'train', *words])} hydra.run.dir=NEW"
    return commands
