"""More than 2**31 elements: offsets and counts that 32 bits do not hold. Large images are sparse files."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regnet import ops


def sparse(path: Path, elements: int) -> Tensor:
    """Zeros in a file with holes: only what is touched takes memory."""
    return torch.from_file(str(path / "zeros"), shared=True, size=elements, dtype=torch.float32)


@pytest.mark.parametrize("order", [0, 1, 3])
def test_c1_an_image_of_more_than_2_to_the_31_voxels(order: int, tmp_path: Path) -> None:
    image = sparse(tmp_path, 32769 * 65536).reshape(1, 1, 32769, 65536)
    image[..., -1, -1] = 7
    corners = torch.tensor([(0.0, 0), (0, 65535), (32768, 0), (32768, 65535)]).T[None, :, :, None]
    # cubic, mirrored about the corner: each axis has the taps 2/3 and, of the voxels beside it, none that is 7
    want = 7.0 if order < 2 else 7.0 * (2 / 3) ** 2
    got = ops.pull(image, corners, order, "dct1").flatten()
    torch.testing.assert_close(got, torch.tensor([0, 0, 0, want]))
    slope = ops.grad(image, corners - 0.25, 1, "dct1")[0, 0, :, 3, 0]
    torch.testing.assert_close(slope, torch.tensor([7 * 0.75, 7 * 0.75]))


def test_c1_strides_that_pass_2_to_the_31(tmp_path: Path) -> None:
    rows, step = 36, 2**26
    view = sparse(tmp_path, rows * step).reshape(1, 1, rows, step)[..., step - 1 :: step]
    assert view.stride()[2] * (rows - 1) > 2**31
    view.copy_(torch.randn(view.shape, generator=torch.Generator().manual_seed(0)))
    dense, coords = view.contiguous(), torch.rand(1, 2, rows, 1, generator=torch.Generator().manual_seed(1)) * 50 - 7
    line, along = view[..., 0], coords[:, :1, :, 0]
    for order in (0, 1, 2, 3, 5):
        assert torch.equal(ops.pull(view, coords, order), ops.pull(dense, coords, order))
        torch.testing.assert_close(ops.pull(line, along, order), ops.pull(line.contiguous(), along, order))
        assert torch.equal(ops.push(view, coords, (rows, 2), order), ops.push(dense, coords, (rows, 2), order))
        assert torch.equal(ops.prefilter(view, order), ops.prefilter(dense, order))
    far = sparse(tmp_path, rows * step).reshape(1, 1, rows, step)[..., ::step]
    far.copy_(coords[:, :1])
    assert torch.equal(ops.pull(line, far[..., 0], 1), ops.pull(line, along, 1))


def test_c1_a_target_of_more_than_2_to_the_31_voxels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def zeros(_: Tensor, shape: list[int]) -> Tensor:
        return sparse(tmp_path, math.prod(shape)).reshape(shape)

    monkeypatch.setattr(Tensor, "new_zeros", zeros)  # push makes its target by this
    coords = torch.tensor([32768.0, 65535.0]).reshape(1, 2, 1, 1)
    pushed = ops.push(torch.ones(1, 1, 1, 1), coords, (32769, 65536))
    assert pushed[0, 0, -1, -1] == 1 and pushed[0, 0, -1, -9:-1].sum() == 0
    with open(tmp_path / "zeros") as file:
        os.fsync(file)
        assert 512 * os.fstat(file.fileno()).st_blocks < 2**20  # nothing else was written
