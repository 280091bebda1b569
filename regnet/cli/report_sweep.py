"""``regnet report sweep``."""

import shlex
from pathlib import Path

from regnet.config import config_dir
from regnet.io import atomic_path


def is_sweep(folder: Path) -> bool:
    """Whether a folder is that of a sweep."""
    from regnet.sweeps import read_sweep

    return bool(read_sweep(folder))


def run(folder: Path, out: Path | None) -> int:
    """Write the page of a sweep and its best trial as an experiment file, and print where they are."""
    from regnet.report.sweep import write_sweep_page
    from regnet.sweeps import read_sweep
    from regnet.sweeps.experiment import experiment

    page, file = out or folder / "index.html", folder / "experiment" / "best.yaml"
    command = f"regnet train --config-dir {shlex.quote(str(folder))} experiment=best"
    first = write_sweep_page(folder, page, command)
    words = [*read_sweep(folder)["fixed"], *first.words()]
    cost, value = next(iter(first.costs.items()))
    comment = f"trial {first.number} of {folder.resolve().name}: {cost} {value:.4f}"
    text = experiment(words, lambda key: (config_dir() / key).is_dir(), comment)
    with atomic_path(file, overwrite=True) as temporary:
        temporary.write_text(text, encoding="utf-8")
    print(f"{comment}: {folder / str(first.number)}")
    print(f"{page}\n{file}")
    return 0
