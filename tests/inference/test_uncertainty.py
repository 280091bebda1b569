"""How certain a probabilistic network is, and what a conditional one is told, in Python and by the command."""

import math
from pathlib import Path

import pytest
import torch

from regnet.data.spec import InputSpec
from regnet.inference import load_model
from regnet.inference.register import predict
from regnet.inference.uncertainty import told_at_inference, uncertainty
from regnet.io import read_image
from tests.cli.command import refused, regnet, write_pair

from .heads import centred, head
from .networks import checkpoint, write_checkpoint


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A conditional, probabilistic network of 2 mm voxels with a deviation of 0.3 of them everywhere."""
    model, content = checkpoint(InputSpec(ndim=3, spacing=2.0, margin_mm=4.0), "told")
    with torch.no_grad():
        for layer in model.network.modulations:  # type: ignore[operator,union-attr]
            layer.weight.normal_(std=1.0)
        model.head.field.convolution.weight.normal_(std=0.1)  # type: ignore[union-attr,operator]
        model.head.log_variance.convolution.weight.zero_()  # type: ignore[union-attr,operator]
        model.head.log_variance.convolution.bias.fill_(2 * math.log(0.3))  # type: ignore[union-attr,operator]
    content["hyper_parameters"]["model"]["head"]["steps"] = 0  # then the displacement is the velocity drawn
    path = tmp_path_factory.mktemp("told") / "told.ckpt"
    torch.save(content, path)
    return path


def test_the_uncertainty_is_the_deviation_of_the_deformation_in_mm_on_the_fixed_grid(told: Path) -> None:
    model = load_model(told)
    image = head(centred((20, 25, 18), (2.0, 2.0, 2.0)), 9)
    fine = head(centred((40, 50, 36), (1.0, 1.0, 1.0)), 9)
    one, again, other = (uncertainty(model, image, image, 20, seed) for seed in (-1, -1, 3))
    # Three components of 0.3 voxels of 2 mm; interpolated between its voxels it loses nothing, being all the same.
    assert float(one.mean()) == pytest.approx(0.3 * 2 * math.sqrt(3), rel=0.05)
    assert torch.equal(again, one) and not torch.equal(other, one)
    on_fine = uncertainty(model, image, fine, 20, -1)
    assert on_fine.shape == (1, 40, 50, 36) and float(on_fine.mean()) == pytest.approx(float(one.mean()), rel=0.05)


def test_the_command_writes_the_uncertainty_and_takes_a_lambda(
    told: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moving, fixed, _ = write_pair(tmp_path)
    words = ["register", "--moving", moving, "--fixed", fixed, "--init", "none", "--moved", tmp_path / "moved.nii.gz"]
    plain = write_checkpoint(tmp_path / "plain.ckpt", InputSpec(ndim=3, spacing=2.0))
    out = tmp_path / "out.nii.gz"
    for more, reason in (
        (["--model", plain, "--lambda", "0.3"], "plain.ckpt: takes no lambda"),
        (["--model", "none", "--refine", "2", "--lambda", "0.3"], "no model: takes no lambda"),
        (["--model", told, "--lambda", "1.5"], "lambda 1.5: "),
        (["--model", told, "--lambda", "nan"], "lambda nan: "),
        (["--model", plain, "--uncertainty", out], "plain.ckpt: cannot tell its uncertainty"),
        (["--model", "none", "--refine", "2", "--uncertainty", out], "no model: cannot tell its uncertainty"),
        (["--model", told, "--uncertainty", tmp_path / "out.txt"], "out.txt"),
    ):
        assert reason in refused(capsys, *words, *more)
    assert regnet(*words, "--model", told, "--lambda", "0.3", "--uncertainty", out) == 0
    assert read_image(out).data.shape == (1, 26, 32, 22)
    assert float(read_image(out).data.mean()) == pytest.approx(0.3 * 2 * math.sqrt(3), rel=0.1)


def test_a_lambda_reaches_the_network(told: Path) -> None:
    model, image = load_model(told), head(centred((12, 14, 13), 2.0), 9)
    untold, middle, most = (
        predict(model, image, image, **told_at_inference(model, weight, 0))[1].flow for weight in (None, 0.5, 1.0)
    )
    torch.testing.assert_close(untold, middle)
    assert (most - middle).abs().max() > 1e-2
