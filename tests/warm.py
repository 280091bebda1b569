"""Commands without their start-up: one process has imported everything, and forks another for each command.

``python warm.py SOCKET`` is that process. It ends with its standard input. `Warm` starts it, and puts a ``regnet`` into
a folder for ``PATH`` that hands its words, folder, environment, and streams over.
"""

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Any

# As `python -m regnet`, or `python -c`: the first word says which.
CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({socket!r})
    said = json.dumps({{"words": ["regnet", *sys.argv[1:]], "cwd": os.getcwd(), "environment": dict(os.environ)}})
    socket.send_fds(server, [said.encode()], [0, 1, 2])
    sys.exit(int(server.recv(16) or 1))
"""


class Warm:
    """A process that forks one for each command, as a context."""

    def __init__(self) -> None:
        self._scratch = tempfile.TemporaryDirectory()
        self.bin = Path(self._scratch.name) / "bin"
        self.bin.mkdir()
        self._address = str(Path(self._scratch.name) / "socket")
        client = self.bin / "regnet"
        client.write_text(CLIENT.format(python=sys.executable, socket=self._address), encoding="utf-8")
        client.chmod(0o755)

    def __enter__(self) -> "Warm":
        words = [sys.executable, __file__, self._address]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None and self._process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.communicate()  # closes its standard input
        self._scratch.cleanup()

    def python(self, code: str, folder: Path, output: IO[str]) -> int:
        """Run ``code`` as ``python -c`` does, in ``folder``, and return the exit status."""
        with socket.socket(socket.AF_UNIX) as server, open(os.devnull) as nothing:
            server.connect(self._address)
            said = {"words": ["-c", code], "cwd": str(folder), "environment": dict(os.environ)}
            streams = [nothing.fileno(), output.fileno(), output.fileno()]
            socket.send_fds(server, [json.dumps(said).encode()], streams)
            return int(server.recv(16) or 1)


def serve(address: str) -> int:
    """Fork for one command after the other, until standard input ends; in the forked process, its exit status."""
    from regnet.cli.main import whole_parser

    whole_parser()  # imports every verb
    import regnet.inference
    import regnet.training.experiment  # noqa: F401

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if listener not in ready:
                return 0
            client, _ = listener.accept()
            with client:
                text, streams, *_ = socket.recv_fds(client, 2**20, 3)
                process = os.fork()
                if not process:
                    break
                for stream in streams:
                    os.close(stream)
                _, ended = os.waitpid(process, 0)
                client.sendall(str(os.waitstatus_to_exitcode(ended) % 256).encode())
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    return become(**json.loads(text))


def become(words: list[str], cwd: str, environment: dict[str, str]) -> int:
    """Be the process that ``words`` ask for."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    if words[0] == "-c":
        sys.argv, sys.path[0] = ["-c"], ""
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
        return 0
    from regnet.cli.main import main

    entry: Any = find_spec("regnet.__main__")
    sys.modules["__main__"].__spec__ = entry  # Lightning starts further processes so
    sys.argv, sys.path[0] = [entry.origin, *words[1:]], cwd
    return main()


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1]))
