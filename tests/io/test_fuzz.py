"""Whatever the bytes of a file, its reader gives an answer or one line; found once at length, now a little every time.

``REGNET_FUZZ=100000 pytest tests/io/test_fuzz.py`` looks further.
"""

import os
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from regnet.errors import InputError

from .fuzz import EDITS, READERS, seeds, spoil

CASES = int(os.environ.get("REGNET_FUZZ", "40"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def sound(folder):
    return seeds(folder)


@pytest.mark.parametrize("name", READERS)
@settings(
    max_examples=CASES,
    deadline=None,
    derandomize=CASES < 1000,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(edits=EDITS)
def test_a_spoiled_file_gives_an_answer_or_one_line(folder, sound, name, edits):
    path = folder / f"spoiled_{name}"
    path.write_bytes(spoil(sound[name], name, edits))
    for read in READERS[name]:
        check(read, path)


def check(read, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of files that say less than they should
        warnings.simplefilter("ignore", ResourceWarning)  # nibabel leaves .mgh open when it fails
        try:
            read(path)
        except InputError as error:
            assert str(path) in str(error)
            assert "\n" not in str(error)
