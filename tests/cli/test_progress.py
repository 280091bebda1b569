"""What is told of long work where no terminal is."""

import time

import pytest

from regnet.cli import progress as module
from regnet.cli.progress import progress


def test_off_a_terminal_a_line_now_and_then_says_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_EVERY", 0.02)
    with progress("registering", 8) as tell:
        tell(1, "")
        tell(2, "1 failed")
        time.sleep(0.2)
    with progress("writing x.h5"):
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("registering: 2 of 8, 1 failed, 0 s, about ") for line in lines)
    assert "writing x.h5, 0 s" in lines


def test_what_is_short_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("registering", 8) as tell:
        tell(8, "")
    assert capsys.readouterr().err == ""
