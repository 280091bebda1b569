"""The memory of a step: in closed form, and from crops."""

import contextlib
import re
from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import _len_torch_dispatch_stack

from regnet.losses import MSE, Diffusion, Objective
from regnet.models import build
from regnet.training.callbacks import Cost
from regnet.training.estimate import Held, crop_widths, estimate, state_tensors
from tests.models.configured import configured

from . import tiny


def test_what_is_held_at_once_is_counted_and_what_is_freed_is_not() -> None:
    with Held() as counter:
        a = torch.zeros(1000)
        b = a + 1
        del a
        c = b.view(10, 100).exp()
        c.add_(1)
    assert counter.most == 3 * 4000 - 4000 and counter.now == 8000
    del b, c
    assert counter.now == 0


def test_a_step_holds_what_its_layers_keep() -> None:
    # y = w x is kept by nothing, exp(y) by itself; going back, the cotangent of each and the two products.
    weight = torch.nn.Parameter(torch.ones(()))
    n = 16 * 16 * 16 * 4

    def loss(batch):
        return (weight * batch["fixed"]).exp().sum()

    def bytes_of(shape):
        return estimate(loss, {"fixed": torch.ones(1, 1, *shape)}, [weight]).bytes

    assert bytes_of((32, 16, 16)) == pytest.approx(2 * bytes_of((16, 16, 16)), rel=1e-3)
    assert 2 * n <= bytes_of((16, 16, 16)) <= 4 * n


@pytest.mark.parametrize("name", ["unet_velocity", "pyramid", "unet_spline", "symmetric_velocity"])
def test_crops_tell_the_memory_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regnet.training.estimate._LEAST", 32**3)
    torch.manual_seed(0)
    model = build(configured(name, 3))
    objective = Objective({"similarity": MSE(), "smoothness": Diffusion(on="displacement")})

    def loss(batch):
        return objective(model(batch["moving"], batch["fixed"]), batch)[0]

    batch = dict(zip(("moving", "fixed"), torch.rand(2, 1, 1, 35, 33, 70), strict=True))
    parameters = list(model.parameters())
    told = estimate(loss, batch, parameters)
    with Held() as counter:
        torch.autograd.grad(loss(batch), parameters)
    assert told.bytes == pytest.approx(counter.most, rel=0.2)
    assert told.seconds > 0


@pytest.mark.parametrize(
    ("shape", "widths"),
    [((160, 192, 224), (16, 48)), ((30, 40, 100), (32, 96)), ((70, 20, 48), (16, 48)), ((70, 20, 9), (9, 9)),
     ((192, 160), (80, 160)), ((1000, 300), (32, 96))],
)  # fmt: skip
def test_crops_are_of_full_levels_or_the_whole(shape, widths) -> None:
    assert crop_widths(shape) == widths
    assert widths[1] == shape[-1] or widths[1] * torch.Size(shape[:-1]).numel() >= 40**3


@pytest.mark.parametrize(
    ("optimizer", "count"),
    [(partial(torch.optim.Adam, lr=1e-3), 2), (partial(torch.optim.SGD, lr=1e-3), 0),
     (partial(torch.optim.SGD, lr=1e-3, momentum=0.9), 1), (partial(torch.optim.AdamW, lr=1e-3, amsgrad=True), 3)],
)  # fmt: skip
def test_an_optimiser_keeps_so_many_tensors_a_weight(optimizer, count: int) -> None:
    assert state_tensors(optimizer) == count


@tiny.quiet
def test_the_cost_is_told_before_and_after_and_changes_no_weight(tmp_path, capsys) -> None:
    weights = []
    for number, callbacks in enumerate(([], [Cost(steps=2)])):
        one = tiny.module()
        trainer = tiny.trainer(tmp_path / str(number), 2, callbacks=callbacks, enable_checkpointing=False)
        trainer.fit(one, tiny.loader(), tiny.loader())
        weights.append(torch.cat([parameter.detach().flatten() for parameter in one.parameters()]))
    assert torch.equal(*weights)
    told = capsys.readouterr().out
    before = re.findall(r"^a step will take (\d+ MiB and .* s)$", told, re.MULTILINE)
    after = re.findall(r"^a step takes \d+ MiB and .* s \(estimated: (.*)\)$", told, re.MULTILINE)
    assert before == after and len(after) == 1


@tiny.quiet
def test_what_is_counted_in_the_first_step_is_what_was_estimated(tmp_path) -> None:
    # Of so small an image the crop is the whole: what is left are the optimiser and what Lightning logs.
    cost, one = Cost(steps=1), tiny.module()
    tiny.trainer(tmp_path, 1, callbacks=[cost], enable_checkpointing=False).fit(one, tiny.loader(), tiny.loader())
    batch = next(iter(tiny.loader()))
    parameters = list(one.parameters())
    weights = sum(4 * parameter.numel() for parameter in parameters)
    told = estimate(lambda part: one.judge(part, 0)[1], batch, parameters).bytes + 2 * weights
    assert told == pytest.approx(cost._held.most, rel=0.25)


@tiny.quiet
def test_a_first_step_that_fails_is_counted_no_longer(tmp_path) -> None:
    def fail(*_):
        raise KeyboardInterrupt

    one = tiny.module()
    one.on_before_optimizer_step = fail
    with contextlib.suppress(KeyboardInterrupt, SystemExit):
        tiny.trainer(tmp_path, 1, callbacks=[Cost()], enable_checkpointing=False).fit(one, tiny.loader(), tiny.loader())
    assert _len_torch_dispatch_stack() == 0
