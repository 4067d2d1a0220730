"""Models that would keep something of examples, or become others after they were tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from privet.clipping import Clip  # noqa: E402
from privet.errors import InvalidParameter  # noqa: E402
from privet.torch import ClippedGradients, LossOf, PrivateTraining, fit  # noqa: E402


class Model(nn.Module):
    """A linear layer, and what `act` does with the module and the input before."""

    def __init__(self, act: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.layer, self.act = nn.Linear(4, 1), act
        self.code = nn.Parameter(torch.zeros(4), requires_grad=False)
        self.register_buffer("sums", torch.zeros(4))

    def forward(self, x: Any) -> Any:
        changed = self.act(self, x)
        return self.layer(x if changed is None else changed).squeeze(1)


def losses(model: nn.Module, batch: Any) -> Any:
    return model(batch[0])


def code_in_place(model: Any, x: Any) -> None:
    with torch.no_grad():
        model.code.lerp_(x.mean(0), 0.1)


def code_as_data(model: Any, x: Any) -> None:
    model.code.data.lerp_(x.mean(0), 0.1)


def statistics(model: Any, x: Any) -> None:
    nn.functional.batch_norm(x, model.sums, torch.ones(4), training=True)


def keep(model: Any, x: Any) -> None:
    model.last = [x.detach()]


@pytest.mark.parametrize("act", [code_in_place, code_as_data, statistics, keep])
def test_a_model_that_remembers_examples_is_refused(act: Any) -> None:
    """A frozen parameter or an attribute that a forward pass fills from examples is refused, and left as it was."""
    model = Model(act)
    with pytest.raises(InvalidParameter, match=r"'code'|'last'|'sums'"):
        ClippedGradients(model, losses).prove((torch.zeros(2, 4),))
    assert torch.equal(model.code, torch.zeros(4))
    assert torch.equal(model.sums, torch.zeros(4))


def test_tables_that_are_renormalised_where_they_are_looked_up_are_refused() -> None:
    """An embedding with max_norm would tell, without noise, which words were there."""
    model = nn.Sequential(nn.Embedding(20, 4, max_norm=100.0), nn.Flatten(), nn.Linear(8, 1))
    with pytest.raises(InvalidParameter, match=r"'0\.weight'"):
        ClippedGradients(model, lambda model, batch: model(batch[0]).squeeze(1)).prove((torch.zeros(2, 2).long(),))


def test_what_is_computed_anew_from_shapes_alone_may_be_kept() -> None:
    """An attribute that does not depend on examples, such as a table of positions, is no memory of them."""

    def positions(model: Any, x: Any) -> Any:
        model.positions = torch.arange(x.shape[1])
        return x + model.positions

    engine = ClippedGradients(Model(positions), losses)
    engine.prove((torch.zeros(2, 4),))
    assert engine.way == "book-keeping"


def test_a_buffer_that_begins_to_remember_is_refused() -> None:
    """What a model writes after it was tried is noticed at the step, before anything is released."""

    def later(model: Any, x: Any) -> None:
        if model.begun:
            model.sums += x.sum(0)

    model: Any = Model(later)
    model.begun = False
    engine, batch = ClippedGradients(model, losses), (torch.ones(3, 4),)
    engine.sum(batch, Clip(clip=1.0))
    model.begun = True
    with pytest.raises(InvalidParameter, match="'sums'"):
        engine.sum(batch, Clip(clip=1.0))


def test_a_model_in_another_mode_is_tried_anew() -> None:
    """One that mixes examples in training mode only is refused there, though it was set up in evaluation mode."""
    model = Model(lambda model, x: x - x.mean(0) if model.training else x).eval()
    engine, batch = ClippedGradients(model, losses), (torch.randn(5, 4),)
    engine.sum(batch, Clip(clip=1.0))
    model.train()
    with pytest.raises(InvalidParameter, match="mixes examples"):
        engine.sum(batch, Clip(clip=1.0))


def test_a_model_that_mixes_large_batches_only_is_refused() -> None:
    """Examples are tried in a small batch and in a large one."""
    model = Model(lambda model, x: x - x.mean(0) if len(x) > 16 else x)
    with pytest.raises(InvalidParameter, match="mixes examples"):
        ClippedGradients(model, losses).prove((torch.zeros(2, 4),))


def test_measuring_leaves_every_layer_in_its_mode() -> None:
    """A layer frozen in evaluation mode stays so when public data are measured."""
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2))
    model[0].eval().requires_grad_(False)
    x, y = torch.randn(60, 4), torch.randint(2, (60,))
    loss = nn.CrossEntropyLoss(reduction="none")
    fit(model, (x[:40], y[:40]), loss=loss, epsilon=5, delta=1e-6, steps=12, batch_size=10, validation=(x[40:], y[40:]))
    assert model.training
    assert not model[0].training


def test_a_class_that_is_ignored_adds_nothing() -> None:
    """Examples of the class that the loss leaves out have no gradient, in the closed form as in a loop."""
    engine = ClippedGradients(nn.Linear(4, 9), LossOf(nn.CrossEntropyLoss(reduction="none", ignore_index=5)))
    found = engine.sum((torch.randn(3, 4), torch.tensor([5, 5, 5])), Clip(clip=1.0))
    assert not any(gradient.any() for gradient in found.gradients)


def test_a_failed_trial_quotes_no_example() -> None:
    """What is no tensor is not made up but read: an error about it is not passed on."""
    data = [{"x": torch.zeros(4), "text": "Ann has asthma"}] * 20
    model = nn.Linear(4, 1)

    def by_text(model: nn.Module, batch: Any) -> Any:
        return model(batch["x"]).squeeze(1) * torch.tensor([{"": 1.0}[text] for text in batch["text"]])

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(InvalidParameter, match="KeyError") as caught:
        PrivateTraining(model, optimizer, data, per_example=by_text, epsilon=1, delta=1e-6, steps=2, batch_size=5)
    assert "Ann" not in str(caught.value)
