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
