"""Compressed files by ISA-L: any reader takes them, and no file is left that looks whole and is not."""

import gzip
import zlib
from pathlib import Path

import nibabel as nib
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


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz", "a.mgz"])
def test_python_and_nibabel_read_what_was_written_and_it_is_the_same_each_time(tmp_path: Path, name: str) -> None:
    data = np.random.default_rng(0).standard_normal((17, 5, 9)).astype(np.float32)
    kind = nib.MGHImage if name.endswith("mgz") else nib.Nifti1Image
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        gz.save(kind(data, np.diag([2.0, 3.0, 4.0, 1.0])), tmp_path / folder / name)
    np.testing.assert_array_equal(np.asarray(nib.load(tmp_path / "one" / name).dataobj), data)
    content = (tmp_path / "one" / name).read_bytes()
    assert content == (tmp_path / "two" / name).read_bytes()
    if name != "a.nii":
        stored = data.byteswap() if name == "a.mgz" else data  # MGH is big-endian
        assert stored.tobytes(order="F") in gzip.decompress(content)
