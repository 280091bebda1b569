"""Compressed files written in blocks: any reader takes them for one stream."""

import gzip
import struct

import numpy as np
import pytest

from regnet.io.gz import GzipWriter


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
@pytest.mark.parametrize("sizes", [[0], [1], [5, 7, 11], [3_000_000, 1, 2_000_000]])
def test_what_was_written_is_unpacked(tmp_path, dtype, sizes):
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 9, n // np.dtype(dtype).itemsize + 1).astype(dtype).tobytes()[:n] for n in sizes]
    files = []
    for threads in (1, 3):
        path = tmp_path / f"{threads}.gz"
        with GzipWriter(path, np.dtype(dtype), threads) as file:
            for part in parts:
                assert file.write(part) == len(part)
            assert file.tell() == sum(sizes)
        files.append(path.read_bytes())
    assert gzip.decompress(files[0]) == b"".join(parts)
    assert files[0] == files[1]  # whoever packs
    assert struct.unpack("<I", files[0][-4:])[0] == sum(sizes)


def test_going_on_at_a_later_place_writes_zeros(tmp_path):
    with GzipWriter(tmp_path / "a.gz", np.dtype(np.uint8), 2) as file:
        file.write(b"ab")
        assert file.seek(5) == 5
        file.write(b"c")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"ab\0\0\0c"


def test_runs_are_found_in_floats_and_repetitions_in_integers(tmp_path):
    sizes = {}
    for dtype in (np.float32, np.int16):
        line = np.random.default_rng(0).normal(0, 1000, 20_000).astype(dtype)
        empty = np.zeros(100_000, dtype)
        for name, numbers in (("repeated", np.tile(line, 10)), ("empty", empty)):
            with GzipWriter(tmp_path / "a.gz", np.dtype(dtype), 1) as file:
                file.write(numbers.tobytes())
            sizes[np.dtype(dtype).name, name] = (tmp_path / "a.gz").stat().st_size / numbers.nbytes
    assert max(sizes["float32", "empty"], sizes["int16", "empty"]) < 0.01
    assert sizes["int16", "repeated"] < 1.2  # no repetition within deflate's window of 32 kB


def test_a_failure_within_leaves_no_end(tmp_path):
    with pytest.raises(KeyError), GzipWriter(tmp_path / "a.gz", np.dtype(np.uint8), 2) as file:
        file.write(b"ab")
        raise KeyError
    with pytest.raises(EOFError):
        gzip.decompress((tmp_path / "a.gz").read_bytes())
