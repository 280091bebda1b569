"""What is said of a registration, in words."""

import torch

from regnet.report import remarks
from regnet.spatial import Grid

GRID = Grid((4, 5, 6), torch.diag(torch.tensor([2.0, 2.0, 3.0, 1.0], dtype=torch.float64)))


def test_folds_are_counted_where_they_are() -> None:
    determinant, mask = torch.ones(4, 5, 6), torch.zeros(4, 5, 6, dtype=torch.bool)
    mask[1:, 1:] = True
    assert remarks.folds(determinant, mask, GRID).kind == "good"
    determinant[0, :3, :4] = 0
    told = remarks.folds(determinant, mask, GRID)
    assert (told.kind, told.text) == ("note", "12 voxels fold, all outside the mask.")
    determinant[2, 3, 1] = -1
    told = remarks.folds(determinant, mask, GRID)
    assert told.kind == "warning"
    assert told.text == "13 voxels fold, 1 of them inside the mask (1.4 % of it), the first at (4, 6, 3) mm."
    determinant[0] = 1
    assert remarks.folds(determinant, mask, GRID).text.startswith("1 voxel folds, inside the mask")


def test_worse_than_before_is_a_warning_but_not_what_another_contrast_explains() -> None:
    better = remarks.change({"dice": 0.5, "lncc": 0.3, "nmi": 1.1}, {"dice": 0.7, "lncc": 0.6, "nmi": 1.2})
    assert [each.kind for each in better] == ["good", "good"] and "rose from 0.500 to 0.700" in better[0].text
    worse = remarks.change({"dice": 0.7, "lncc": 0.6, "nmi": 1.2}, {"dice": 0.5, "lncc": 0.3, "nmi": 1.1})
    assert [each.kind for each in worse] == ["warning", "warning"]
    other = remarks.change({"lncc": 0.3, "nmi": 1.1}, {"lncc": 0.2, "nmi": 1.3})
    assert [each.kind for each in other] == ["note"] and "mutual information rose" in other[0].text


def test_what_is_lost_of_the_mask_and_maps_that_do_nothing_are_told() -> None:
    mask = torch.ones(10, 10, dtype=torch.bool)
    view = mask.clone()
    assert remarks.coverage(view, mask) == []
    view[:3] = False
    assert remarks.coverage(view, mask)[0].text.startswith("30 % of the mask lies outside")
    still, missed = remarks.movement(
        {"displacement_mean_mm": 0.01, "inverse_mean_mm": 3.0, "inverse_max_mm": 9.0}, spacing=1.0
    )
    assert still.kind == "note" and "hardly moves" in still.text
    assert missed.kind == "warning" and "3 mm from where it began, 9 mm at most" in missed.text
