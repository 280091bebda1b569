"""Whatever the bytes of a file, its reader gives an answer or one line. ``tests/io/fuzz.py`` looks further."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .fuzz import READERS, check, draw_edits, seeds, spoil

CASES = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def sound(folder):
    return seeds(folder)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=CASES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(draw=st.randoms(use_true_random=False))
def test_a_spoiled_file_gives_an_answer_or_one_line(folder, sound, name, draw):
    path = folder / f"spoiled_{name}"
    path.write_bytes(spoil(sound[name], name, draw_edits(draw)))
    for read in READERS[name]:
        check(read, path)
