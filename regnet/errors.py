"""What goes wrong because of what the user gave us."""


class InputError(ValueError):
    """A user's mistake: a file, table, checkpoint or option that cannot be used.

    The message is one line that names the file (or option) and the reason. The command line prints it as
    ``regnet: error: <message>`` and exits with status 2.
    """


def one_line(text: object) -> str:
    """A message as one line that a terminal shows as it is: control characters in names are spelt out."""
    words = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in words)


def reason(error: BaseException | Warning | str) -> str:
    """Why one of many things failed, in a line: with the kind of the error unless it is one that a user mends."""
    text = one_line(error)
    expected = isinstance(error, ValueError | OSError | MemoryError | Warning | str)
    return text if expected and text else f"{type(error).__name__}: {text}"
