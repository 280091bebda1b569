"""Surface distances against a brute-force search and SimpleITK's Hausdorff distance."""

import itertools
import math

import numpy as np
import pytest
import SimpleITK as sitk
import torch

from regnet.metrics import average_surface_distance, hd95, surface_distances


def _blobs(seed: int, *shape: int) -> torch.Tensor:
    """Smooth random labels 0 to 2."""
    noise = torch.rand(1, 1, *shape, generator=torch.Generator().manual_seed(seed))
    pool = torch.nn.functional.avg_pool2d if len(shape) == 2 else torch.nn.functional.avg_pool3d
    smooth = pool(noise, 5, 1, 2, count_include_pad=False)[0, 0]
    return (smooth > smooth.quantile(0.5)).long() + (smooth > smooth.quantile(0.8)).long()


def _cell_area(inside: set[tuple[int, ...]]) -> float:
    """Surface in a unit cell, from what its corners look like: by the list of test_cell.py."""
    joined = {
        corner: {o for o in inside if sum(abs(p - q) for p, q in zip(corner, o, strict=True)) == 1} for corner in inside
    }
    area, left = 0.0, set(inside)
    while left:
        part = {left.pop()}
        while more := {o for corner in part for o in joined[corner]} - part:
            part |= more
        left -= part
        degrees = sorted(len(joined[corner]) for corner in part)
        area += {
            (0,): 3**0.5 / 8,
            (1, 1): 2**0.5 / 2,
            (1, 1, 2): 0.5 + 3 * 3**0.5 / 8,
            (2, 2, 2, 2): 1,
            (1, 1, 1, 3): 3 * 3**0.5 / 4,
            (1, 1, 2, 2): 2**0.5 / 2 + 3**0.5 / 2,
        }[tuple(degrees)]
    return area


def _slow_surface(inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells with inner and outer corners, and their areas; a slice is a slab of height 1."""
    ndim = inside.ndim
    inside = np.pad(inside, 1)
    cells, areas = [], []
    for start in itertools.product(*(range(n - 1) for n in inside.shape)):
        box = inside[tuple(slice(i, i + 2) for i in start)]
        cube = box if ndim == 3 else np.stack([box, box])
        if cube.any() and not cube.all():
            rarer = cube if cube.sum() <= 4 else ~cube
            cells.append(start)
            areas.append(_cell_area({tuple(map(int, c)) for c in np.argwhere(rarer)}))
    return np.array(cells), np.array(areas)


def _slow(a: np.ndarray, b: np.ndarray, size: float) -> dict[str, float]:
    """Every cell of one surface against every one of the other."""
    (one, area_one), (two, area_two) = _slow_surface(a), _slow_surface(b)
    distances = np.linalg.norm((one[:, None] - two[None]) * size, axis=-1)
    hd95, weighted = 0.0, 0.0
    for nearest, area in ((distances.min(1), area_one), (distances.min(0), area_two)):
        order = np.argsort(nearest)
        reached = np.cumsum(area[order]) / area.sum()
        hd95 = max(hd95, nearest[order][np.argmax(reached >= 0.95 - 1e-12)])
        weighted += nearest @ area
    return {"hd95": hd95, "assd": weighted / (area_one.sum() + area_two.sum())}


@pytest.mark.parametrize(("shape", "size"), [((24, 17), 1.0), ((13, 12, 15), 1.0), ((9, 13, 10), 1.7)])
@pytest.mark.parametrize("seed", range(3))
def test_distances_are_what_an_exhaustive_search_finds(shape: tuple[int, ...], size: float, seed: int) -> None:
    a, b = _blobs(seed, *shape), _blobs(seed + 100, *shape)
    found = surface_distances(a, b, size)
    assert found.keys() == {1, 2}
    for label, value in found.items():
        assert value == pytest.approx(_slow(a.numpy() == label, b.numpy() == label, size))
        assert hd95(a, b, size)[label] == value["hd95"]
        assert average_surface_distance(a, b, size)[label] == value["assd"]


def test_unequal_spacings_stretch_distances_and_areas() -> None:
    # Two plates one voxel thick, 5 voxels of 2 mm apart, then 4 of 0.5 mm: each has a face nearer by a voxel.
    a, b = torch.zeros(2, 12, 11, 13, dtype=torch.int16)
    a[2], b[7] = 1, 1
    assert surface_distances(a, b, (2.0, 1.0, 0.5))[1] == pytest.approx({"hd95": 10, "assd": 9})
    assert surface_distances(a[:, :, 0], b[:, :, 0], (2.0, 3.0))[1] == pytest.approx({"hd95": 10, "assd": 9})
    a, b = torch.zeros(2, 12, 11, 13, dtype=torch.int16)
    a[:, :, 3], b[:, :, 7] = 4, 4
    assert surface_distances(a, b, (2.0, 1.0, 0.5))[4] == pytest.approx({"hd95": 2, "assd": 1.75})


def test_the_two_directions_count_by_their_surfaces() -> None:
    # b is a and a second square far away: from a to b all 0; from b to a half is 0 and half is at 20
    a, b = torch.zeros(2, 40, 9, dtype=torch.int64)
    a[2:6, 2:6], b[2:6, 2:6], b[22:26, 2:6] = 1, 1, 1
    # The nearest of a's cells is 16 to 20 away from those of the second square, a third of all surface.
    found = surface_distances(a, b)[1]
    assert 16 / 3 < found["assd"] < 20 / 3
    assert 16 <= found["hd95"] <= 20


def test_hd95_of_two_shifted_boxes_is_the_shift_and_at_most_simpleitk_s_hausdorff_distance() -> None:
    a, b = torch.zeros(2, 30, 12, 14, dtype=torch.uint8)
    a[4:14, 3:9, 4:10], b[11:21, 3:9, 4:10] = 3, 3
    assert hd95(a, b, (2.0, 1.0, 1.0)) == {3: 14.0}
    images = [sitk.GetImageFromArray(box.numpy()) for box in (a, b)]
    for image in images:
        image.SetSpacing((1.0, 1.0, 2.0))
    measure = sitk.HausdorffDistanceImageFilter()
    measure.Execute(*images)
    assert measure.GetHausdorffDistance() == pytest.approx(14)


def test_hd95_passes_over_the_worst_twentieth() -> None:
    a, b = torch.zeros(2, 100, 40, dtype=torch.int32)
    a[:, :20], b[:, :20] = 1, 1
    b[50, :24] = 1  # a spike of 4 voxels: its sides and tip are 4 % of the contour
    assert hd95(a, b) == {1: 0.0}


def test_hd95_of_equal_maps_is_zero_up_to_the_faces_of_the_grid() -> None:
    full = torch.full((5, 4, 6), 2, dtype=torch.int64)
    assert hd95(full, full) == {2: 0.0}


def test_hd95_of_a_label_missing_from_either_map_is_nan() -> None:
    a, b = torch.tensor([[1, 1], [0, 2]]), torch.tensor([[1, 1], [3, 0]])
    found = hd95(a, b)
    assert found[1] == 0 and math.isnan(found[2]) and math.isnan(found[3])
    assert math.isnan(hd95(a, b, labels=[9])[9])
    assert hd95(torch.zeros_like(a), torch.zeros_like(a)) == {}


def test_label_maps_and_spacings_that_do_not_fit_are_refused() -> None:
    a = torch.ones(4, 5, dtype=torch.int64)
    with pytest.raises(ValueError, match="one shape"):
        hd95(a, a.T)
    with pytest.raises(ValueError, match="spacing must be"):
        hd95(a, a, (1.0, 2.0, 3.0))


def test_a_spacing_may_be_any_number_and_a_label_only_an_integer() -> None:
    a = torch.zeros(6, 5, 4, dtype=torch.int64)
    a[2:4, 1:4, 1:3] = 1
    b = a.roll(1, 0)
    for spacing in (2, np.float32(2), np.int64(2), torch.tensor(2.0), torch.full((3,), 2.0), np.full(3, 2)):
        assert hd95(a, b, spacing) == {1: 2.0}
    with pytest.raises(ValueError, match="labels must be integers"):
        hd95(a, b, labels=[1.5])
