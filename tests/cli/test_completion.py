"""``regnet completion`` gives a script that the shell takes and that knows the verbs."""

import shutil
import subprocess
from pathlib import Path

import pytest

from .command import refused, regnet

ASK = """
{script}
COMP_WORDS=({words}) COMP_CWORD={last}
_shtab_regnet
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completions(script: str, *words: str) -> list[str]:
    ask = ASK.format(script=script, words=" ".join(f"'{word}'" for word in words), last=len(words) - 1)
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_bash_completes_verbs_options_choices_and_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert regnet("completion", "bash") == 0
    script = capsys.readouterr().out
    assert completions(script, "regnet", "reg") == ["register"]
    assert "--moving-mask" in completions(script, "regnet", "register", "--mov")
    assert "affine" in completions(script, "regnet", "register", "--init", "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moving.nii.gz").touch()
    assert completions(script, "regnet", "register", "--moving", "mov") == ["moving.nii.gz"]


def test_another_shell_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert "dash" in refused(capsys, "completion", "dash")
