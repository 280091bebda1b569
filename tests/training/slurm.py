"""A SLURM of one process."""

from pathlib import Path


def fake_slurm(folder: Path, monkeypatch) -> Path:
    """Make this process a job; the file that comes back is where ``scontrol`` writes down what it is told."""
    told = folder / "told"
    script = folder / "bin" / "scontrol"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\necho "$@" >> {told}\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=":")
    names = {
        "JOB_ID": 7,
        "NTASKS": 1,
        "NTASKS_PER_NODE": 1,
        "JOB_NAME": "train",
        "PROCID": 0,
        "LOCALID": 0,
        "NODEID": 0,
    }
    for name, value in names.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    return told
