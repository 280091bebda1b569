"""What each loss term reads from outputs and batch."""

import inspect
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regnet import losses
from regnet.losses import Term
from regnet.losses.term import FieldTerm, ImageTerm

SHAPE = (8, 7, 6)
CLASSES = [each for each in vars(losses).values() if inspect.isclass(each)]
TERMS = [each for each in CLASSES if issubclass(each, Term) and each is not Term]
IMAGES = [each for each in TERMS if issubclass(each, ImageTerm)]
FUNCTIONS = {
    losses.MSE: losses.mse,
    losses.MAE: losses.mae,
    losses.Charbonnier: lambda x, y, mask: losses.charbonnier(x, y, 0.01, mask),
    losses.GemanMcClure: lambda x, y, mask: losses.geman_mcclure(x, y, 0.1, mask),
    losses.LNCC: lambda x, y, mask: losses.lncc(x, y, 9, mask),
    losses.NCC: losses.ncc,
    losses.MutualInformation: lambda x, y, mask: losses.mutual_information(x, y, 32, mask),
    losses.MIND: lambda x, y, mask: losses.mind(x, y, 2, 2, mask),
    losses.NGF: lambda x, y, mask: losses.ngf(x, y, 1.0, _batch()[1]["spacing"], mask),
}


def _batch() -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Every output and every datum that a term may read."""
    generator = torch.Generator().manual_seed(1)

    def rand(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator)

    view = torch.ones(2, 1, *SHAPE)
    view[:, :, :2] = 0
    outputs = {
        "moved": rand(2, 1, *SHAPE),
        "moved_view": view,
        "displacement": rand(2, 3, *SHAPE),
        "swapped_displacement": rand(2, 3, *SHAPE),
        "velocity": rand(2, 3, 4, 7, 3),
        "control": rand(2, 3, 6, 6, 6),
        "control_spacing": torch.tensor([3.0, 3.0, 2.0]),
        "mean": rand(2, 3, 4, 7, 3),
        "log_variance": rand(2, 3, 4, 7, 3),
    }
    batch = {
        "moving": rand(2, 1, *SHAPE),
        "fixed": rand(2, 1, *SHAPE),
        "spacing": torch.tensor([[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]]),
        "fixed_labels": torch.randint(0, 3, (2, 1, *SHAPE), generator=generator),
        "moving_labels": torch.randint(0, 3, (2, 1, *SHAPE), generator=generator),
        "flow": rand(2, 3, *SHAPE),
        "fixed_points": 5 * rand(2, 4, 3),
        "moving_points": 5 * rand(2, 4, 3),
    }
    return outputs, batch


@pytest.mark.parametrize("term", IMAGES)
def test_similarity_terms_compare_moved_and_fixed_in_the_moving_view_and_the_fixed_mask(term: type[Term]) -> None:
    outputs, batch = _batch()
    moved, fixed, view = outputs["moved"], batch["fixed"], outputs["moved_view"]
    function = FUNCTIONS[term]
    assert term()(outputs, batch) == function(moved, fixed, view)
    mask = (moved > 0.3).float()
    assert term()(outputs, {**batch, "fixed_mask": mask}) == function(moved, fixed, mask * view)
    del outputs["moved_view"]
    assert term()(outputs, {**batch, "fixed_mask": mask}) == function(moved, fixed, mask)
    assert term()(outputs, batch) == function(moved, fixed, None)


def test_terms_hand_their_settings_on() -> None:
    outputs, batch = _batch()
    x, y, view = outputs["moved"], batch["fixed"], outputs["moved_view"]
    pairs = [
        (
            losses.LNCC(window=[3, 5, 3], kernel="gaussian", squared=False),
            losses.lncc(x, y, (3, 5, 3), view, "gaussian", False),
        ),
        (losses.NCC(squared=True), losses.ncc(x, y, view, True)),
        (losses.Charbonnier(scale=0.5), losses.charbonnier(x, y, 0.5, view)),
        (losses.GemanMcClure(scale=0.5), losses.geman_mcclure(x, y, 0.5, view)),
        (losses.MIND(radius=1, dilation=1), losses.mind(x, y, 1, 1, view)),
        (losses.NGF(edge=0.5), losses.ngf(x, y, 0.5, batch["spacing"], view)),
        (
            losses.MutualInformation(bins=8, normalised=True, range_moving=[0, 2], range_fixed=[-1, 1]),
            losses.mutual_information(x, y, 8, view, (0, 2), (-1, 1), normalised=True),
        ),
        (
            losses.Diffusion(norm="l1", on="displacement"),
            losses.diffusion(outputs["displacement"], batch["spacing"], norm="l1"),
        ),
        (
            losses.Elastic(mu=2, lam=3, on="displacement"),
            losses.elastic(outputs["displacement"], batch["spacing"], mu=2, lam=3),
        ),
        (
            losses.TotalVariation(smooth=0.1, on="displacement"),
            losses.total_variation(outputs["displacement"], batch["spacing"], smooth=0.1),
        ),
        (losses.Folding(margin=0.5), losses.folding_penalty(outputs["displacement"], margin=0.5)),
        (losses.LogJacobian(floor=0.2), losses.log_jacobian(outputs["displacement"], floor=0.2)),
        (losses.KL(precision=3), losses.kl_divergence(outputs["mean"], outputs["log_variance"], 3.0)),
    ]
    for term, expected in pairs:
        assert term(outputs, batch) == expected, term


def test_regularity_terms_know_the_voxel_size_of_a_field_coarser_than_the_images() -> None:
    outputs, batch = _batch()
    size = batch["spacing"] * torch.tensor([2.0, 1.0, 2.0])
    for term, function in (
        (losses.Diffusion, losses.diffusion),
        (losses.BendingEnergy, losses.bending_energy),
        (losses.TotalVariation, losses.total_variation),
        (losses.Elastic, losses.elastic),
    ):
        assert term()(outputs, batch) == function(outputs["velocity"], size)
        assert term(on="displacement")(outputs, batch) == function(outputs["displacement"], batch["spacing"])
        assert term(on="velocity")(outputs, batch) == term()(outputs, batch)
        without = {name: value for name, value in outputs.items() if name != "velocity"}
        assert term()(without, batch) == term(on="displacement")(outputs, batch)
        assert term(units="voxels")(outputs, batch) == function(outputs["velocity"])
        assert term()(outputs, {"fixed": batch["fixed"]}) == function(outputs["velocity"])


def test_roughness_of_control_points_is_that_of_the_field_they_make() -> None:
    outputs, batch = _batch()
    control, size = outputs["control"], batch["spacing"]
    for term, function in (
        (losses.Diffusion, losses.spline_diffusion),
        (losses.BendingEnergy, losses.spline_bending_energy),
    ):
        assert term(on="control")(outputs, batch) == function(control, SHAPE, [3.0, 3.0, 2.0], size)
        assert term(on="control", units="voxels")(outputs, batch) == function(control, SHAPE, [3.0, 3.0, 2.0])


def test_consistency_terms_compare_the_answers_to_the_pair_and_to_the_pair_exchanged() -> None:
    outputs, batch = _batch()
    both = outputs["displacement"], outputs["swapped_displacement"], batch["spacing"]
    assert losses.InverseConsistency()(outputs, batch) == losses.inverse_consistency(*both)
    assert losses.GradICON()(outputs, batch) == losses.gradicon(*both)


def test_label_terms_warp_the_moving_labels_by_the_displacement() -> None:
    outputs, batch = _batch()
    maps = batch["moving_labels"], batch["fixed_labels"], outputs["displacement"]
    assert losses.SoftDice()(outputs, batch) == losses.warped_dice(*maps)
    assert losses.SoftDice(labels=[2], denominator="sums")(outputs, batch) == losses.warped_dice(
        *maps, [2], None, "sums"
    )
    assert losses.CrossEntropy(smooth=0.1)(outputs, batch) == losses.warped_cross_entropy(*maps, smooth=0.1)
    mask = torch.zeros(2, 1, *SHAPE)
    mask[..., :4] = 1
    masked = losses.SoftDice()(outputs, {**batch, "fixed_mask": mask})
    assert masked == losses.warped_dice(*maps, mask=mask) != losses.warped_dice(*maps)


def test_landmarks_are_measured_in_mm_and_may_have_weights() -> None:
    outputs, batch = _batch()
    points = outputs["displacement"], batch["moving_points"], batch["fixed_points"], batch["spacing"]
    assert losses.Landmarks()(outputs, batch) == losses.landmark_distance(*points)
    weight = torch.tensor([[1.0, 0.0, 2.0, 0.0]])
    assert losses.Landmarks()(outputs, {**batch, "points_weight": weight}) == losses.landmark_distance(*points, weight)


@pytest.mark.parametrize("term", [each for each in TERMS if each not in IMAGES])
def test_a_term_without_what_it_reads_says_what_it_needs(term: type[Term]) -> None:
    outputs, batch = _batch()
    with pytest.raises(ValueError, match=f"{term.__name__}.*(no '\\w+' output, only moved|needs '\\w+' in the batch)"):
        term()({"moved": outputs["moved"]}, {"fixed": batch["fixed"], "spacing": batch["spacing"]})


@pytest.mark.parametrize("term", TERMS)
def test_a_term_refuses_settings_that_it_does_not_know(term: type[Term]) -> None:
    with pytest.raises(ValueError, match=f"{term.__name__}: on must be one of"):
        term(on="elsewhere")
    with pytest.raises(ValueError, match="level is a number of halvings"):
        term(level=-1)
    with pytest.raises(TypeError):
        term(nonsense=1)
    if issubclass(term, FieldTerm):
        with pytest.raises(ValueError, match="units must be mm or voxels"):
            term(units="inches")


@pytest.mark.parametrize("term", TERMS)
def test_a_term_tells_its_whole_signature_and_keeps_every_setting(term: type[Term]) -> None:
    told = inspect.signature(term).parameters
    assert {"weight", "on", "level", "both_directions"} <= told.keys()
    made = term(weight=2)
    assert made.weight == 2.0
    for name, parameter in told.items():
        if name not in ("weight", "on"):
            assert getattr(made, name) == parameter.default
    assert str(made).startswith(f"{term.__name__}(weight=2.0, on='{term.choices[0]}'")


def test_levels_of_points_and_control_points_are_refused() -> None:
    for term, on in ((losses.Landmarks, "points"), (losses.BendingEnergy, "control")):
        with pytest.raises(ValueError, match="0 for points and control"):
            term(on=on, level=1)


def test_a_term_of_the_user_hands_the_common_settings_on() -> None:
    class Brightest(ImageTerm):
        def __init__(self, power: float = 2.0, **common: object) -> None:
            super().__init__(**common)
            self.power = power

        def forward(self, outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
            moved, fixed, _ = self.images(outputs, batch)
            return (moved.amax() - fixed.amax()).abs() ** self.power

    assert list(inspect.signature(Brightest).parameters)[-1] == "power"
    made = Brightest(power=1.0, level=1)
    assert made.level == 1 and "power=1.0" in str(made)


def test_every_loss_that_is_offered_is_run_here_on_the_processor() -> None:
    # 3b-5: of others, one offered regulariser raises NameError, and one similarity runs on a GPU alone
    here = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))
    assert not [name for name in losses.__all__ if not re.search(rf"\b{name}\b", here)]
