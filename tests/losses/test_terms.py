"""What each loss term reads from outputs and batch."""

import pytest
import torch

from regnet.losses import LNCC, MSE, BendingEnergy, Diffusion, SoftDice, bending_energy, diffusion, lncc, mse

SHAPE = (8, 7, 6)


def _batch() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    view = torch.ones(2, 1, *SHAPE)
    view[:, :, :2] = 0
    outputs = {
        "moved": torch.rand(2, 1, *SHAPE, generator=generator),
        "moved_view": view,
        "displacement": torch.rand(2, 3, *SHAPE, generator=generator),
        "velocity": torch.rand(2, 3, 4, 7, 3, generator=generator),
    }
    batch = {
        "fixed": torch.rand(2, 1, *SHAPE, generator=generator),
        "spacing": torch.tensor([[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]]),
        "fixed_labels": torch.randint(0, 3, (2, 1, *SHAPE), generator=generator),
    }
    return outputs, batch


def test_similarity_terms_compare_moved_and_fixed_in_the_moving_image_s_view() -> None:
    outputs, batch = _batch()
    moved, view = outputs["moved"], outputs["moved_view"]
    assert LNCC(window=3)(outputs, batch) == lncc(moved, batch["fixed"], 3, view)
    assert MSE()(outputs, batch) == mse(moved, batch["fixed"], view)
    del outputs["moved_view"]
    assert LNCC(window=(3, 5, 3))(outputs, batch) == lncc(moved, batch["fixed"], (3, 5, 3))


def test_regularity_terms_know_the_voxel_size_of_a_field_coarser_than_the_images() -> None:
    outputs, batch = _batch()
    size = batch["spacing"] * torch.tensor([2.0, 1.0, 2.0])
    assert Diffusion()(outputs, batch) == diffusion(outputs["velocity"], size)
    assert BendingEnergy()(outputs, batch) == bending_energy(outputs["velocity"], size)
    assert Diffusion(on="displacement")(outputs, batch) == diffusion(outputs["displacement"], batch["spacing"])
    del batch["spacing"]
    assert Diffusion()(outputs, batch) == diffusion(outputs["velocity"])


def test_a_term_on_an_output_that_the_model_lacks_says_what_there_is() -> None:
    outputs, batch = _batch()
    del outputs["velocity"]
    with pytest.raises(ValueError, match="no 'velocity' output, only displacement, moved, moved_view"):
        Diffusion()(outputs, batch)


def test_soft_dice_is_zero_where_the_warped_labels_agree_and_has_a_gradient_in_the_field() -> None:
    labels = torch.zeros(1, 1, *SHAPE, dtype=torch.int64)
    labels[..., 2:6, 2:6, 2:5], labels[..., 3:5, 3:5, 3:4] = 4, 9
    flow = torch.zeros(1, 3, *SHAPE)
    flow[:, 0] = 1  # warp(moving)(p) = moving(p + 1): moving sits one voxel further along axis 0
    batch = {"fixed_labels": labels, "moving_labels": labels.roll(1, dims=2)}
    assert float(SoftDice()({"displacement": flow}, batch)) == pytest.approx(0, abs=1e-6)
    shifted = (flow - 0.5).requires_grad_()
    loss = SoftDice()({"displacement": shifted}, batch)
    loss.backward()
    assert loss.item() > 0.05 and shifted.grad.abs().sum() > 0
    assert float(SoftDice(labels=[9])({"displacement": flow}, batch)) == pytest.approx(0, abs=1e-6)


def test_soft_dice_without_any_label_is_zero() -> None:
    flow, labels = torch.zeros(1, 2, 4, 5, requires_grad=True), torch.zeros(1, 1, 4, 5, dtype=torch.int16)
    loss = SoftDice()({"displacement": flow}, {"fixed_labels": labels, "moving_labels": labels})
    loss.backward()
    assert loss.item() == 0


def test_soft_dice_names_the_labels_that_the_batch_lacks() -> None:
    with pytest.raises(ValueError, match="needs 'moving_labels'"):
        SoftDice()(*_batch())


@pytest.mark.parametrize("term", [LNCC, MSE, Diffusion, BendingEnergy, SoftDice])
def test_a_term_refuses_to_look_at_what_it_does_not_know(term) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=f"{term.__name__}: on must be one of"):
        term(on="elsewhere")
    assert term(weight=2).weight == 2.0
