import numpy as np
import pytest
import torch

from regnet.data.sample import sample_names, sample_path
from regnet.io.image import read_image, read_labels
from regnet.spatial.resample import resample_labels


def test_the_sample_is_small_and_comes_with_its_notice():
    folder = sample_path("colin27_t1").parent
    assert sum(file.stat().st_size for file in folder.iterdir()) < 2_000_000
    notice = (folder / "NOTICE").read_text(encoding="utf-8")
    assert "Montreal Neurological Institute" in notice and "all copies" in notice
    for name in sample_names():
        assert name in notice


def test_an_unknown_sample_is_named_with_those_there_are():
    with pytest.raises(ValueError, match=r"no sample image 'colin'.*mni152_t1"):
        sample_path("colin")


@pytest.mark.parametrize(
    ("brain", "shape", "first"),
    # first centres of the 1 mm images (-90, -125, -71) and (-98, -134, -72), half a millimetre further in
    [("colin27", (90, 108, 90), (-89.5, -124.5, -70.5)), ("mni152", (98, 116, 94), (-97.5, -133.5, -71.5))],
)
def test_the_brains_lie_where_their_originals_do(brain, shape, first):
    for kind in ("t1", "tissue"):
        image = read_image(sample_path(f"{brain}_{kind}"))
        assert image.grid.shape == shape
        np.testing.assert_allclose(
            image.grid.affine, [[2, 0, 0, first[0]], [0, 2, 0, first[1]], [0, 0, 2, first[2]], [0, 0, 0, 1]]
        )


def test_unregistered_tissues_overlap_as_the_protocol_says():
    moving, fixed = (read_labels(sample_path(f"{brain}_tissue")) for brain in ("colin27", "mni152"))
    moved = resample_labels(moving.data[None], moving.grid, fixed.grid)[0]
    for label, expected in ((1, 0.659), (2, 0.700)):
        a, b = moved == label, fixed.data == label
        assert abs(float(2 * (a & b).sum() / (a.sum() + b.sum())) - expected) < 0.005
    assert sorted(torch.unique(moving.data).tolist()) == [0, 1, 2]
