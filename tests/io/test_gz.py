"""Compressed files by ISA-L: any reader takes them, and no file is left that looks whole and is not."""

import gzip
import zlib

import numpy as np
import pytest

from regnet.io import gz


def test_what_was_written_in_parts_is_unpacked_by_others_and_no_larger_than_zlibs(tmp_path):
    numbers = np.random.default_rng(0).normal(0, 1000, 400_000).astype(np.int16)
    parts = [numbers.tobytes(), b"", np.zeros(100_000, np.float32).tobytes()]
    with gz.writer(tmp_path / "a.nii.gz") as file:
        for part in parts:
            assert file.write(part) == len(part)
    packed = (tmp_path / "a.nii.gz").read_bytes()
    assert gzip.decompress(packed) == b"".join(parts)
    assert len(packed) < 1.1 * len(zlib.compress(b"".join(parts), 1))


@pytest.mark.parametrize("name", ["a.gz", "a.nii"])
def test_going_on_at_a_later_place_writes_zeros(tmp_path, name):
    with gz.writer(tmp_path / name) as file:
        file.write(b"ab")
        assert file.seek(5) == 5
        file.write(b"c")
    data = (tmp_path / name).read_bytes()
    assert (gzip.decompress(data) if name.endswith("gz") else data) == b"ab\0\0\0c"


def test_the_same_numbers_make_the_same_file(tmp_path):
    for name in ("a.gz", "b.gz"):
        with gz.writer(tmp_path / name) as file:
            file.write(b"regnet" * 1000)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
