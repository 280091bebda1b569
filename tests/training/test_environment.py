"""What a run keeps of where it was made."""

from pathlib import Path

import torch

from regnet import __version__
from regnet.training.environment import read_environment, write_environment


def test_the_environment_comes_back_and_names_versions_and_the_command(tmp_path: Path) -> None:
    assert read_environment(tmp_path) == {}
    write_environment(tmp_path)
    found = read_environment(tmp_path)
    assert (found["regnet"], found["torch"]) == (__version__, str(torch.__version__))
    assert found["command"] and found["machine"]
    (tmp_path / "environment.json").write_text("[", encoding="utf-8")
    assert read_environment(tmp_path) == {}
