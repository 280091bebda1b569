"""``regnet completion``: prints what a shell needs to complete verbs, options and files."""

import argparse
from collections.abc import Iterator
from typing import Any

import shtab

DESCRIPTION = """Print the completion of regnet's commands for a shell.

examples:
  regnet completion bash > ~/.local/share/bash-completion/completions/regnet
  regnet completion zsh > ~/.zfunc/_regnet     # a folder of your fpath
"""


def add_parser(subparsers: Any) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "completion",
        help="print the completion of these commands for a shell",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from regnet.cli.main import whole_parser  # main loads the verbs, not the other way round

    parser = whole_parser()
    for action in _options(parser):
        if action.nargs != 0 and not action.choices:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab's own way to say so
    print(shtab.complete(parser, args.shell))
    return 0


def _options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options of all verbs."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from _options(verb)
        else:
            yield action
