"""Two runs do not write one name at the same time."""

import subprocess
import sys
from pathlib import Path

import pytest

from regnet.errors import InputError
from regnet.io import claimed
from regnet.io.atomic import temporaries

_HOLD = """
import pathlib, sys
from regnet.io.claim import claimed
from regnet.io.atomic import atomic_path
path = pathlib.Path(sys.argv[1])
with claimed(path), atomic_path(path) as temporary:
    temporary.write_bytes(b"half")
    print("held", flush=True)
    input()
"""


def test_a_name_that_another_process_holds_is_refused_and_free_again_when_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "new/out.nii.gz"
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another run is writing it"), claimed(path):
            pass
        other.kill()
    assert [left.read_bytes() for left in temporaries(path)] == [b"half"]
    others = path.with_name(".0123456789ab.another.nii.gz")
    others.touch()
    with claimed(path):
        path.write_text("done")
    assert sorted(tmp_path.rglob("*")) == [path.parent, others, path]


def test_folders_made_for_a_name_go_again_if_nothing_was_written(tmp_path: Path) -> None:
    with claimed(tmp_path / "a/b/out.txt"):
        assert (tmp_path / "a/b").is_dir()
    assert not list(tmp_path.iterdir())
