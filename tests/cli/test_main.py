"""The entry of the command line."""

import errno
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import regnet as package
from regnet.cli import main as module
from regnet.cli.main import VERBS
from regnet.cli.output import outputs
from regnet.io import atomic_path

from .command import refused, regnet


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert regnet("--version") == 0
    assert capsys.readouterr().out == f"regnet {package.__version__}\n"


def test_without_a_verb_it_lists_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert regnet() == 2
    text = capsys.readouterr().out
    for verb in ("train", "register", "apply", "evaluate", "info"):
        assert verb in text


def test_an_unknown_verb_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "regster" in refused(capsys, "regster")


def test_a_wrong_option_names_the_help_of_its_verb(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("info", "--bogus"), ("apply", "--out", "x", "--bogus", "\x1b[31m"), ("apply", "--threads", "two")):
        line = refused(capsys, *words)
        assert line.endswith(f"(see regnet {words[0]} --help)") and line.isprintable()


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "train"])
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert regnet(verb, "--help") == 0
    assert f"usage: regnet {verb}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a\n  b"), "regnet: error: a b\n"),
        (OSError(errno.ENOSPC, "No space left on device", "x.nii"), "regnet: error: x.nii: No space left on device\n"),
        (MemoryError(), "regnet: error: out of memory\n"),
        (
            RuntimeError("regnet's compiled operators are missing"),
            "regnet: error: regnet's compiled operators are missing\n",
        ),
    ],
)
def test_what_the_user_can_mend_is_told_in_one_line(
    error: Exception, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: object) -> int:
        raise error

    monkeypatch.setattr(module, "_module", lambda verb: SimpleNamespace(add_parser=_add_info, run=run))
    assert regnet("info") == 2
    assert capsys.readouterr().err == line
    monkeypatch.setenv("REGNET_TRACEBACK", "1")
    with pytest.raises(type(error)):
        regnet("info")


def _add_info(subparsers: object) -> None:
    subparsers.add_parser("info")  # type: ignore[attr-defined]


def test_a_fault_of_ours_is_one_line_that_says_how_to_see_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: object) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr(module, "_module", lambda verb: SimpleNamespace(add_parser=_add_info, run=run))
    assert regnet("info") == 1
    assert capsys.readouterr().err == "regnet: error: RuntimeError: a bug (REGNET_TRACEBACK=1 shows where)\n"
    monkeypatch.setenv("REGNET_TRACEBACK", "1")
    with pytest.raises(RuntimeError, match="a bug"):
        regnet("info")


def test_info_names_the_compiled_core(capsys: pytest.CaptureFixture[str]) -> None:
    assert regnet("info") == 0
    text = capsys.readouterr().out
    assert "compiled core" in text
    assert "cpu: native" in text
    assert "CUDA kernels" in text and "GPU" in text
    assert "torch" in text


def test_registering_loads_no_training_framework() -> None:
    code = (
        "import sys; import regnet.cli.main as m; m._parser({'register': m._module('register')});"
        "print([n for n in ('lightning', 'hydra', 'wandb', 'matplotlib') if n in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_ctrl_c_is_one_line_also_while_a_verb_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(_: str) -> SimpleNamespace:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_module", load)
    assert regnet("info") == 130
    assert capsys.readouterr().err == "regnet: interrupted\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_removes_what_is_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def run(_: object) -> int:
        with outputs([tmp_path / "a.txt", tmp_path / "b.txt"], False):
            (tmp_path / "a.txt").write_text("whole")
            with atomic_path(tmp_path / "b.txt") as temporary:
                temporary.write_text("half")
                signal.raise_signal(number)
        return 0

    before = signal.getsignal(number)
    monkeypatch.setattr(module, "_module", lambda verb: SimpleNamespace(add_parser=_add_info, run=run))
    assert regnet("info") == 143
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(number) is before
