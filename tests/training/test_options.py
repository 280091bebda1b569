"""What a configuration can ask of the loop besides: precision, accumulation, averages, schedules, other weights."""

from functools import partial

import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, PolynomialLR

from regnet.errors import InputError
from regnet.io import read_checkpoint
from regnet.models import build
from regnet.training.callbacks import EMA
from regnet.training.schedules import product
from regnet.training.weights import freeze, warm_start
from tests.training import tiny

pytestmark = tiny.quiet


def weights(module):
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def descent(folder, batch_size=1, lr=0.1, **arguments):
    """Weights before and after an epoch of plain gradient descent."""
    module = tiny.module()
    module.optimizer = partial(torch.optim.SGD, lr=lr)
    before = weights(module)
    trainer = tiny.trainer(folder, 1, callbacks=[], enable_checkpointing=False, **arguments)
    trainer.fit(module, datamodule=tiny.Data(batch_size))
    return before, weights(module)


def test_accumulated_batches_are_one_batch(tmp_path):
    _, one = descent(tmp_path / "one", batch_size=3)
    before, other = descent(tmp_path / "other", batch_size=1, accumulate_grad_batches=3)
    torch.testing.assert_close(other - before, one - before, rtol=1e-3, atol=1e-7)


def test_a_clipped_gradient_moves_the_weights_no_further(tmp_path):
    before, after = descent(tmp_path, batch_size=3, lr=1.0, gradient_clip_val=1e-4)
    assert (after - before).norm() == pytest.approx(1e-4, rel=1e-2)


def test_half_precision_learns_and_keeps_the_field_in_single(tmp_path):
    module = tiny.module(lr=3e-3)
    seen = []
    module.model.network.register_forward_hook(lambda _, __, features: seen.append(features.dtype))
    module.model.register_forward_hook(lambda _, __, outputs: seen.append(outputs["displacement"].dtype))
    losses = []
    trainer = tiny.trainer(tmp_path, 6, precision="bf16-mixed", num_sanity_val_steps=0)
    module.on_train_epoch_start = lambda: losses.append(trainer.callback_metrics.get("val/loss"))
    trainer.fit(module, tiny.loader(), tiny.loader())
    assert set(seen) == {torch.bfloat16, torch.float32} and seen[0] == torch.bfloat16
    assert trainer.callback_metrics["val/loss"] < losses[1]


def test_averaged_weights_are_validated_and_saved_and_given_back(tmp_path):
    trainer = tiny.trainer(tmp_path, 2, num_sanity_val_steps=0)
    module, decay = tiny.module(lr=1e-2), 0.5
    trainer.callbacks.insert(0, EMA(decay=decay))
    after = []
    module.on_train_batch_end = lambda *_: after.append(weights(module))
    validated = []
    module.on_validation_batch_start = lambda *_: validated.append(weights(module))
    trainer.fit(module, tiny.loader(), tiny.loader())
    expected = after[0]
    for one in after[1:]:
        expected = decay * expected + (1 - decay) * one
    torch.testing.assert_close(validated[-1], expected)
    content = read_checkpoint(tmp_path / "checkpoints" / "last.ckpt")
    saved = torch.cat([content["state_dict"][name].flatten() for name, _ in module.named_parameters()])
    torch.testing.assert_close(saved, expected)
    going_on = torch.cat([content["current_model_state"][name].flatten() for name, _ in module.named_parameters()])
    assert torch.equal(going_on, after[-1])
    tested = []
    module.on_test_batch_start = lambda *_: tested.append(weights(module))
    trainer.test(module, tiny.loader(), ckpt_path=tmp_path / "checkpoints" / "last.ckpt", verbose=False)
    torch.testing.assert_close(tested[0], expected)


def rates(make, epochs):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule, found = make(optimizer), []
    for _ in range(epochs):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return torch.tensor(found)


def test_a_warm_up_multiplies_what_follows_it():
    n, epoch = 10, torch.arange(10.0)
    warm, cosine = partial(LinearLR, start_factor=0.1, total_iters=4), partial(CosineAnnealingLR, T_max=n)
    expected = (0.1 + 0.9 * (epoch / 4).clamp(max=1)) * (1 + torch.cos(torch.pi * epoch / n)) / 2
    torch.testing.assert_close(rates(lambda o: product(o, {"warm": warm, "cosine": cosine}), n), expected)
    poly = rates(partial(PolynomialLR, total_iters=n, power=0.9), n)
    torch.testing.assert_close(poly, (1 - epoch / n) ** 0.9)


def test_a_run_that_no_longer_improves_ends_and_a_resumed_one_remembers(tmp_path):
    def fit(epochs, resume=None):
        trainer = tiny.trainer(tmp_path, epochs, num_sanity_val_steps=0)
        stop = EarlyStopping("val/loss", patience=3, min_delta=10.0, check_on_train_epoch_end=True, verbose=False)
        trainer.callbacks.insert(0, stop)
        trainer.fit(tiny.module(), datamodule=tiny.Data(), ckpt_path=resume)
        return trainer.current_epoch

    assert fit(2) == 2
    assert fit(20, resume=tmp_path / "checkpoints" / "last.ckpt") == 4


def test_a_warm_start_takes_what_fits_and_says_what_is_new(tmp_path, caplog):
    donor = tiny.module()
    tiny.trainer(tmp_path, 1).fit(donor, tiny.loader(), tiny.loader())
    torch.manual_seed(1)
    model = build(tiny.MODEL)
    warm_start(model, tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), donor.model.parameters(), strict=True))
    assert "init_from" not in caplog.text
    wider = build({**tiny.MODEL, "network": {**tiny.MODEL["network"], "encoder": [4, 6]}})
    warm_start(wider, tmp_path / "checkpoints" / "best.ckpt")
    name = "network.down.0.0.weight"
    assert torch.equal(wider.state_dict()[name], donor.model.state_dict()[name])
    assert "new are network.down.1.0.bias" in caplog.text
    with pytest.raises(InputError, match=r"none of its .* weights fits"):
        warm_start(torch.nn.Linear(2, 2), tmp_path)


def test_what_is_frozen_stays_and_the_optimiser_holds_the_rest(tmp_path):
    module = tiny.module(lr=1e-2)
    freeze(module.model, ["network.*"])
    before = {name: value.clone() for name, value in module.named_parameters()}
    trainer = tiny.trainer(tmp_path, 1)
    trainer.fit(module, tiny.loader(), tiny.loader())
    for name, value in module.named_parameters():
        assert torch.equal(value, before[name]) == name.startswith("model.network"), name
    held = {id(one) for group in trainer.optimizers[0].param_groups for one in group["params"]}
    assert held == {id(value) for name, value in module.named_parameters() if name.startswith("model.head")}
    with pytest.raises(InputError, match=r"no parameter matches 'network.encodr\*': did you mean 'network."):
        freeze(module.model, ["network.encodr*"])
    with pytest.raises(InputError, match="no parameter is left to train"):
        freeze(module.model, ["*"])
