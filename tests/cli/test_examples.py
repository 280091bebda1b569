"""The examples of a verb's help are ones that it takes."""

import shlex

import hydra
import pytest
from omegaconf import OmegaConf

from regnet.cli.examples import EXAMPLES
from regnet.cli.main import VERBS, whole_parser
from regnet.config import config_dir

from .command import regnet


def words(line: str) -> list[str]:
    """What the command gets of a line."""
    name, *rest = shlex.split(line.split(" > ")[0])
    assert name == "regnet"
    return rest


def test_every_verb_has_examples() -> None:
    assert list(EXAMPLES) == list(VERBS)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "train"])
def test_the_examples_end_the_help_line_by_line(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert regnet(verb, "--help") == 0
    assert capsys.readouterr().out.endswith("\n".join(["examples:", *(f"  {line}" for line in EXAMPLES[verb])]) + "\n")


def test_the_examples_are_parsed() -> None:
    parser = whole_parser()
    for verb in VERBS:
        for line in EXAMPLES[verb]:
            assert words(line)[0] == verb
            if verb != "train":
                assert parser.parse_args(words(line)).verb == verb


@pytest.mark.filterwarnings("ignore::DeprecationWarning:hydra.*")  # Hydra's own use of the standard library
def test_the_examples_of_training_are_in_hydras_help_and_compose() -> None:
    help_text = OmegaConf.load(config_dir() / "train.yaml").hydra.help.header
    assert [line.strip() for line in help_text.split("examples:\n")[1].splitlines()] == list(EXAMPLES["train"])
    with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
        for line in EXAMPLES["train"]:
            settings = [word for word in words(line)[1:] if "=" in word]
            if "-m" in words(line):
                settings = [word.split(",")[0] for word in settings]
            hydra.compose("train", settings)
