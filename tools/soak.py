"""Train on thousands of tiny batches and say whether memory grows: ``python tools/soak.py [FOLDER] [BATCHES]``.

Everything that a default run does is on: validation, panels, checkpoints, timing and two loggers. Status 1 if the
memory that the process holds in the last tenth of the batches is more than 5 % above that in the second tenth.
"""

import csv
import sys
import tempfile
from pathlib import Path
from statistics import median

from regnet.cli.main import main
from regnet.memory import keep_freed

_EPOCH = 500
_ALLOWED = 0.05


def soak(folder: Path, batches: int) -> float:
    """Train, print the memory, and return by how much it grew."""
    words = [
        "experiment=smoke", "callbacks=quiet", "data.shape=16", f"data.pairs={_EPOCH}", "data.validation_pairs=2",
        f"trainer.max_epochs={max(1, batches // _EPOCH)}", f"hydra.run.dir={folder}",
    ]  # fmt: skip
    if main(["train", *words]):
        raise SystemExit("training failed")
    (table,) = (folder / "csv").rglob("metrics.csv")
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    held = [float(row["memory/GiB"]) for row in rows if row["memory/GiB"]]
    tenth = max(1, len(held) // 10)
    before, after = median(held[tenth : 2 * tenth]), median(held[-tenth:])
    growth = after / before - 1
    print(f"{batches} batches: {before:.3f} GiB in the second tenth, {after:.3f} GiB in the last: {growth:+.1%}")
    return growth


if __name__ == "__main__":
    keep_freed()
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="soak_"))
    sys.exit(soak(where, int(sys.argv[2]) if len(sys.argv) > 2 else 10_000) > _ALLOWED)
