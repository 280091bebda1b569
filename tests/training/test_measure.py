"""Laws of the logged numbers."""

import pytest
import torch

from regnet.training.measure import MEASURES, check_names, measure

REGULAR = {"folding": 0.0, "ndv": 0.0, "sdlogj": 0.0}


def _batch():
    fixed = torch.zeros(2, 1, 12, 10)
    fixed[:, :, 4:8, 2:8] = 1
    labels = fixed.long()
    flow = torch.tensor([1.0, 0.0]).view(1, 2, 1, 1).expand(2, 2, 12, 10)
    spacing = torch.tensor([[2.0, 1.0], [3.0, 1.0]])
    return {
        "fixed": fixed,
        "fixed_labels": labels,
        "moving_labels": labels.roll(1, 2),
        "flow": flow,
        "spacing": spacing,
    }


def test_the_true_field_has_full_overlap_and_no_error():
    batch = _batch()
    values = measure({"displacement": batch["flow"]}, batch)
    assert values == {**REGULAR, "epe": 0.0, "dice": 1.0}


def test_no_field_leaves_the_displacement_as_error_in_mm_and_the_overlap_as_it_was():
    values = measure({"displacement": torch.zeros(2, 2, 12, 10)}, _batch())
    assert values == pytest.approx({**REGULAR, "epe": 2.5, "dice": 0.75})


def test_what_is_not_known_is_not_told():
    batch = {name: value for name, value in _batch().items() if name in ("fixed", "spacing")}
    assert measure({"displacement": torch.zeros(2, 2, 12, 10)}, batch) == REGULAR


def test_a_pair_whose_true_field_nobody_knows_has_no_error():
    batch = _batch()
    batch["flow"] = batch["flow"].clone()
    batch["flow"][1] = torch.nan
    still = {"displacement": torch.zeros(2, 2, 12, 10)}
    assert measure(still, batch)["epe"] == pytest.approx(2.0)
    batch["flow"][0, 0, 0, 0] = torch.nan
    assert "epe" not in measure(still, batch)


def test_landmarks_give_their_mean_distance_in_mm_and_pairs_without_any_say_nothing():
    batch = _batch()
    points = torch.tensor([[3.0, 4.0], [8.0, 2.0]]).expand(2, 2, 2).clone()
    batch["fixed_points"], batch["moving_points"] = points, points + torch.tensor([1.0, 0.0])
    still = {"displacement": torch.zeros(2, 2, 12, 10)}
    assert measure(still, batch)["tre"] == pytest.approx(2.5)
    batch["fixed_points"][1] = torch.nan  # collate pads with it
    assert measure(still, batch)["tre"] == pytest.approx(2.0)
    batch["fixed_points"][0] = torch.nan
    assert "tre" not in measure(still, batch)


def test_a_loss_term_cannot_be_called_as_any_figure_that_may_be_logged():
    batch = _batch()
    batch["fixed_points"] = batch["moving_points"] = torch.ones(2, 3, 2)
    assert set(measure({"displacement": torch.zeros(2, 2, 12, 10)}, batch)) == set(MEASURES)
    for name in (*MEASURES, "loss", "lr", "weighted/similarity"):
        with pytest.raises(ValueError, match=rf"loss\.terms\.{name}: a loss term cannot be called so"):
            check_names(["similarity", name])
    check_names(["similarity", "overlap", "folds", "losses"])
