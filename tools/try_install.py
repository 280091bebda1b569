"""Try an installed regnet: where it comes from, how long it takes to import, and the first things a user does.

Usage: ``python -I tools/try_install.py FOLDER``, with the Python it is installed for; it writes to ``FOLDER``.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

# Seconds that `import regnet` and what a registration needs may take after `import torch`.
MOST = 0.3
IMPORTS = {"regnet": "import regnet", "regnet.ops and models": "import regnet.ops, regnet.models"}
TIMED = "import time, torch; began = time.perf_counter(); {}; print(time.perf_counter() - began)"


def main() -> int:
    """Run all steps; exit status 0, or an exception that says which step failed."""
    folder = Path(sys.argv[1])
    folder.mkdir()

    import regnet
    from regnet.data import sample_path

    print(f"regnet {regnet.__version__} in {Path(regnet.__file__).parent}")
    for name, code in IMPORTS.items():
        print(f"import {name} after torch: {seconds(code):.3f} s")
    assert seconds(IMPORTS["regnet"]) <= MOST

    moving, fixed = sample_path("colin27_t1"), sample_path("mni152_t1")
    warp, run = folder / "warp.nii.gz", folder / "run"
    regnet_command("info")
    regnet_command("register", "--moving", moving, "--fixed", fixed, "--refine", 3, "--warp", warp)
    regnet_command("train", "experiment=smoke", f"hydra.run.dir={run}")
    assert warp.stat().st_size > 0
    assert (run / "checkpoints" / "best.ckpt").stat().st_size > 0
    return 0


def seconds(code: str) -> float:
    """The median of seven processes."""
    words = [sys.executable, "-I", "-c", TIMED.format(code)]
    return statistics.median(float(subprocess.run(words, check=True, capture_output=True).stdout) for _ in range(7))


def regnet_command(*words: object) -> None:
    """The installed command, beside this Python."""
    command = [str(Path(sys.executable).parent / "regnet"), *map(str, words)]
    print("$", *command[1:], flush=True)
    began = time.perf_counter()
    subprocess.run(command, check=True)
    print(f"({time.perf_counter() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
