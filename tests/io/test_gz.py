"""What ISA-L compresses, everyone reads."""

import gzip
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from regnet.io import gz


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
