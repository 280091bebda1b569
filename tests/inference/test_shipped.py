"""The network that comes with regnet, as it is shipped."""

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch

from regnet.cli.main import main
from regnet.data import sample_path
from regnet.inference import Result, find, initial, load_model, shipped_model
from regnet.inference.shipped import RECIPE
from regnet.io import Image, read_image, read_labels, write_image
from regnet.io.model_file import read_model
from regnet.metrics import dice, jacobian_statistics
from regnet.models import describe
from tests.inference.heads import centred, head
from tests.test_configs import compose


def test_its_file_is_small_and_says_what_its_recipe_says(tmp_path: Path) -> None:
    assert shipped_model().stat().st_size <= 2_000_000
    weights, about = read_model(shipped_model())
    recipe = compose(tmp_path, f"experiment={RECIPE}")
    assert about["model"] == describe(recipe["model"])
    spec = load_model(shipped_model()).spec.to_dict()
    assert {name: spec[name] for name in recipe["data"]["spec"] if name != "_target_"} == {
        name: value for name, value in recipe["data"]["spec"].items() if name != "_target_"
    }
    assert all(value.isfinite().all() for value in weights.values())


@pytest.fixture(autouse=True)
def _unwarned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what takes most of the time, and is tested elsewhere."""
    monkeypatch.setattr(initial, "warn_of_orientation", lambda *_: None)


@pytest.fixture
def sample() -> dict[str, Any]:
    """The sample brains, their tissue, and the affine map between them."""
    names = {"moving": "colin27_t1", "fixed": "mni152_t1"}
    images = {role: read_image(sample_path(name)) for role, name in names.items()}
    labels = {f"{role}_labels": read_labels(sample_path(name.replace("t1", "tissue"))) for role, name in names.items()}
    return {**images, **labels, "affine": find(images["moving"], images["fixed"], init="affine").affine}


def _overlap(found: Result, sample: dict[str, Any]) -> float:
    moving, fixed = sample["moving_labels"], sample["fixed_labels"]
    moved = found.transform.apply_labels(moving.data[None], moving.grid, fixed.grid)
    return fmean(dice(moved[0, 0].long(), fixed.data[0].long(), [1, 2]).values())


def test_it_brings_tissue_of_another_contrast_together_and_without_folds(sample: dict[str, Any]) -> None:
    fixed = sample["fixed"]
    data = torch.where(fixed.data > 0, float(fixed.data.max()) + 1 - fixed.data, 0)  # white matter is dark
    fixed = Image(data, fixed.grid)
    start = {"init": "none", "initial_transform": sample["affine"]}
    found = find(sample["moving"], fixed, shipped_model(), **start)
    still = find(sample["moving"], fixed, **start)
    assert _overlap(found, sample) > _overlap(still, sample) + 0.03
    (inside,) = jacobian_statistics(found.forward.flow[None], (fixed.data > 0)[None])
    assert inside["folding"] <= 1e-4


def test_the_command_takes_it_for_volumes_unless_told_and_for_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for shape, more, told in (
        ((24, 26, 22), [], str(shipped_model())),
        ((24, 26, 22), ["--model", "none", "--refine", "1"], "model: none"),
        ((24, 26), ["--refine", "1"], "model: none"),
    ):
        image = head(centred(shape), 9)
        for name in ("moving", "fixed"):
            write_image(tmp_path / f"{name}.nii.gz", image.data, image)
        words = ["register", "--moving", "moving.nii.gz", "--fixed", "fixed.nii.gz", "--init", "none", *more]
        words = [str(tmp_path / word) if word.endswith(".gz") else word for word in words]
        assert main([*words, "--moved", str(tmp_path / "moved.nii.gz"), "--overwrite"]) == 0
        # A long path may be broken into lines.
        assert told.replace(" ", "") in "".join(capsys.readouterr().out.split())
