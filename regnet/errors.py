"""What goes wrong because of what the user gave us."""


class InputError(ValueError):
    """A user's mistake: a file, table, checkpoint or option that cannot be used.

    The message is one line that names the file (or option) and the reason. The command line prints it as
    ``regnet: error: <message>`` and exits with status 2.
    """
