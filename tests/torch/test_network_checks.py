"""Refused on public facts: hooks that would see single examples, weights that a forward pass writes behind autograd."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn.modules import module as everything  # noqa: E402

from privet.clipping import Clip  # noqa: E402
from privet.errors import InvalidParameter  # noqa: E402
from privet.torch import ClippedGradients, PrivateTraining  # noqa: E402

CROSS = nn.CrossEntropyLoss(reduction="none")


def losses(model: Any, batch: Any) -> Any:
    return CROSS(model(batch[0]), batch[1])


def started(model: Any, x: Any = None, optimizer: Any = None) -> PrivateTraining:
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(1)) if x is None else x
    asked: dict[str, Any] = {"loss": CROSS, "epsilon": 2, "delta": 1e-6, "steps": 4, "batch_size": 40}
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    return PrivateTraining(model, optimizer, (x, torch.arange(40) % 2), **asked)


def network() -> Any:
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


HOOKS: dict[str, Any] = {
    "of a module": lambda m, seen: m[2].register_full_backward_hook(lambda mod, given, got: seen.append(got)),
    "before a module": lambda m, seen: m[1].register_full_backward_pre_hook(lambda mod, got: seen.append(got)),
    "of a parameter": lambda m, seen: m[0].weight.register_hook(seen.append),
    "after a gradient": lambda m, seen: m[0].bias.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad)),
    "of all modules": lambda m, seen: everything.register_module_full_backward_hook(
        lambda mod, given, got: seen.append(got)
    ),
}


@pytest.mark.parametrize("hook", HOOKS)
def test_backward_hooks_are_refused_before_they_see_an_example(hook: str) -> None:
    """At set-up, and at the next step if they come later; without them the run goes on."""
    seen: list[Any] = []
    model = network()
    handle = HOOKS[hook](model, seen)
    with pytest.raises(InvalidParameter, match="no backward hooks"):
        started(model)
    handle.remove()
    run = started(model)
    run.step(next(iter(run)))
    handle = HOOKS[hook](model, seen)
    batch = next(iter(run))
    with pytest.raises(InvalidParameter, match="no backward hooks"):
        run.step(batch)
    assert seen == []
    handle.remove()
    run.step(batch)


def test_forward_hooks_are_part_of_the_model() -> None:
    """They run with it, and are tried and clipped as all of it is."""
    model, batch = network(), (torch.randn(5, 3), torch.arange(5) % 2)
    total = ClippedGradients(model, losses).sum(batch, Clip(clip=1e6)).gradients
    handle = model.register_forward_hook(lambda module, given, out: 0 * out)
    other = ClippedGradients(model, losses).sum(batch, Clip(clip=1e6)).gradients
    handle.remove()
    assert float(total[0].norm()) > 0
    assert float(other[0].norm()) == 0


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_sparse_tables_have_the_gradients_of_dense_ones(kind: Any) -> None:
    """What is summed is dense, as noise is; an optimiser that wants sparse gradients is refused."""
    sums = []
    words = torch.randint(7, (6, 3), generator=torch.Generator().manual_seed(2))
    for sparse in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(kind(7, 4, sparse=sparse), nn.Flatten(), nn.Linear(12 if kind is nn.Embedding else 4, 2))
        engine = ClippedGradients(model, losses)
        sums.append(engine.sum((words, torch.arange(6) % 2), Clip(clip=0.3)).gradients)
        assert engine.way == "book-keeping"
    for dense, other in zip(*sums, strict=True):
        torch.testing.assert_close(other, dense)
    words = torch.randint(7, (40, 3))
    run = started(model, words)
    for batch in run:
        run.step(batch)
    with pytest.raises(InvalidParameter, match="SparseAdam"):
        started(model, words, torch.optim.SparseAdam(model.parameters()))


class Writing(nn.Module):
    """Moves its weight towards large inputs, where autograd does not look; made-up examples are not so large."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        far = x.detach().abs().amax(1, keepdim=True) > 1e3
        self.linear.weight.data += torch.where(far, x.detach(), 0.0).mean(0)
        return self.linear(x)


def test_weights_written_behind_autograd_are_noticed_and_put_back() -> None:
    """What the trial on made-up examples did not show is seen when the values are compared: at sums 1, 2, 4, 8, …"""
    model = Writing()
    x = torch.randn(40, 3)
    x[:, 0] = 1e4
    engine = ClippedGradients(model, losses)
    engine.prove((x, torch.arange(40) % 2))
    before = model.linear.weight.detach().clone()
    with pytest.raises(InvalidParameter, match=r"'linear\.weight', which"):
        engine.sum((x, torch.arange(40) % 2), Clip(clip=1.0))
    assert torch.equal(model.linear.weight, before)
