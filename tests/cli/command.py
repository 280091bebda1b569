"""The command line, run in this process, and the files it is tried on."""

from pathlib import Path
from unittest import mock

import pytest

from regnet.cli import progress
from regnet.cli.main import main
from regnet.io import write_image
from tests.inference.heads import centred, head, label_map, shift


def regnet(*words: object) -> int:
    """Run ``regnet`` with these words and return its exit status."""
    try:
        with mock.patch.object(progress, "_EVERY", 3600.0):  # what is told does not depend on how fast this machine is
            return main([str(word) for word in words])
    except SystemExit as stop:  # argparse leaves this way
        return int(stop.code or 0)


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """Run ``regnet``, expect exit status 2 and one line on stderr, and return that line."""
    capsys.readouterr()
    assert regnet(*words) == 2
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if line.strip()]
    assert len(lines) == 1, captured.err
    assert "error: " in lines[0]
    assert "Traceback" not in captured.err
    return lines[0]


def write_pair(folder: Path) -> tuple[Path, Path, Path]:
    """A moving image, a fixed one on another, oblique grid, and the moving labels; the head lies 1.5 mm apart."""
    grid, other = centred((26, 32, 22)), centred((24, 30, 25), (1.2, 1.1, 1.0), turn=8)
    there = shift(1.5, 0.0, 0.0)
    moving, fixed, labels = folder / "moving.nii.gz", folder / "fixed.nii.gz", folder / "labels.nii.gz"
    image = head(other, 9, there)
    write_image(moving, image.data, image)
    write_image(fixed, head(grid, 9).data, grid)
    write_image(labels, label_map(other, 9, there).data, other)
    return moving, fixed, labels
