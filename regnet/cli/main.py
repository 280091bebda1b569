"""Entry of the ``regnet`` command: finds the verb, loads only that verb's module, and turns mistakes into one line."""

import argparse
import importlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import NoReturn

from regnet import __version__
from regnet.cli.examples import add_examples
from regnet.errors import InputError, one_line
from regnet.memory import keep_freed

VERBS = {
    "train": "train a registration network",
    "register": "register a moving image to a fixed one",
    "apply": "carry an image or label map along a transform",
    "convert": "write a transform for another tool",
    "compose": "make one transform of several",
    "invert": "invert a transform and say how exactly",
    "jacobian": "map how a transform changes volumes",
    "evaluate": "measure transforms of a table of pairs",
    "report": "make a page of results",
    "data": "check the files of a study",
    "export": "write a trained network to hand on",
    "info": "say what is installed and which compiled core runs",
    "doctor": "look for what commonly goes wrong, and say what cures it",
    "completion": "print the completion of these commands for a shell",
}
FAULT = 1
MISTAKE = 2
INTERRUPTED = 130
TERMINATED = 143
_ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # no SIGHUP on Windows


class _Parser(argparse.ArgumentParser):
    """An argument parser that complains in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(MISTAKE, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: the words after ``regnet``; default: those of this process.

    Returns:
        Exit status: 0; 2 for a mistake of the user's; 1 for anything else that went wrong. Either was told in one line
        on stderr. With ``REGNET_TRACEBACK=1`` the exception is raised instead.
    """
    if argv is None:
        keep_freed()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        # Only the verb that is asked for is imported: `regnet info` should not wait for a training framework.
        modules = {verb: _module(verb) for verb in VERBS if words and verb == words[0]}
        parser = _parser(modules)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numpy's arithmetic: what comes of it is checked
            warnings.filterwarnings("default", "[^ ]+ of the voxels have no inverse", RuntimeWarning)  # of ops.invert
            warnings.showwarning = _show_warning
            return _dispatch(parser, modules, words)
    except KeyboardInterrupt:
        print("regnet: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("REGNET_TRACEBACK"):
            raise
        if _is_mendable(error):
            print(f"regnet: error: {_one_line(error)}", file=sys.stderr)
            return MISTAKE
        where = "REGNET_TRACEBACK=1 shows where"
        print(f"regnet: error: {type(error).__name__}: {_one_line(error)} ({where})", file=sys.stderr)
        return FAULT


@contextmanager
def _tidy_end() -> Iterator[None]:
    """Let a request to end, or the end of the terminal, unwind as Ctrl-C does, so that half-written files go."""

    def end(*_: object) -> NoReturn:
        raise SystemExit(TERMINATED)

    try:
        before = {number: signal.signal(number, end) for number in _ENDS}
    except ValueError:  # not the main thread: whoever runs it decides
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _dispatch(parser: argparse.ArgumentParser, modules: dict[str, ModuleType], words: list[str]) -> int:
    if words[:1] == ["train"]:
        # All that follows belongs to Hydra, options included; and Lightning has its own way to end.
        return int(modules["train"].run(argparse.Namespace(overrides=words[1:])))
    arguments, unknown = parser.parse_known_args(words)
    if arguments.verb is None:
        parser.print_help()
        return MISTAKE
    if unknown:
        raise InputError(f"unrecognized arguments: {' '.join(unknown)} (see regnet {arguments.verb} --help)")
    with _tidy_end():
        return int(modules[arguments.verb].run(arguments))


def whole_parser() -> argparse.ArgumentParser:
    """The parser of all verbs with all their options; `main` loads only the verb that is asked for."""
    return _parser({verb: _module(verb) for verb in VERBS})


def _module(verb: str) -> ModuleType:
    return importlib.import_module(f"regnet.cli.{verb}")


def _parser(modules: dict[str, ModuleType]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="regnet",
        description="Train deformable registration networks and run them on medical images.",
    )
    parser.add_argument("--version", action="version", version=f"regnet {__version__}")
    subparsers = parser.add_subparsers(dest="verb", metavar="VERB")
    for verb, text in VERBS.items():
        if verb in modules:
            modules[verb].add_parser(subparsers)
            add_examples(subparsers.choices[verb], verb)
        else:
            subparsers.add_parser(verb, help=text, add_help=False)
    return parser


def _is_mendable(error: BaseException) -> bool:
    """Whether the user can do something about it: all else is a fault of ours, but for two RuntimeErrors."""
    known = ("regnet's compiled operators", "can't allocate memory")
    return isinstance(error, ValueError | OSError | MemoryError) or any(text in str(error) for text in known)


def _one_line(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    if isinstance(error, OSError) and error.strerror:
        return one_line(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    return one_line(error) or type(error).__name__


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    print(f"regnet: warning: {one_line(message)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
