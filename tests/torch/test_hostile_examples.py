"""Examples and models made to move a sum of clipped gradients by more than the clip."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from privet.clipping import Clip  # noqa: E402
from privet.torch import ClippedGradients, LossOf, PerLayer  # noqa: E402


def norm(gradients: Any) -> float:
    return math.sqrt(sum(float(g.double().square().sum()) for g in gradients))


def cancelling_positions(size: int) -> tuple[nn.Module, Any]:
    base = 1e6 * torch.randn(size, 1, 256)
    x = torch.cat([base, base + 3 * torch.randn(size, 1, 256)], 1)
    return nn.Linear(256, 256, bias=False), (x, torch.tensor([1.0, -1.0]).expand(size, 2))


def cancelling_words(size: int) -> tuple[nn.Module, Any]:
    base = 1e6 * torch.randn(size, 1, 64)
    weights = torch.cat([base, 10 * torch.randn(size, 1, 64) - base, torch.zeros(size, 4, 64)], 1)
    return nn.Embedding(10, 64), (torch.full((size, 6), 3), weights)


def cancelling_places(size: int) -> tuple[nn.Module, Any]:
    x = 1e6 * torch.randn(size, 64, 3, 1) + torch.randn(size, 64, 3, 4)
    return nn.Conv2d(64, 64, 3, bias=False), (x, torch.tensor([[[1.0, -1.0]]]).expand(size, 1, 1, 2))


def weighted_outputs(model: nn.Module, batch: Any) -> Any:
    x, weights = batch
    outputs = model(x)
    if outputs.dim() == 3 and weights.dim() == 2:
        weights = weights[:, :, None]
    return (outputs * weights).flatten(1).sum(1)


@pytest.mark.parametrize("make", [cancelling_positions, cancelling_words, cancelling_places])
def test_terms_that_cancel_hide_no_norm(make: Callable[[int], Any]) -> None:
    """Where the terms of a gradient cancel in float32, its share is within the clip all the same."""
    torch.manual_seed(1)
    model, batch = make(20)
    engine = ClippedGradients(model, weighted_outputs)
    shares = [norm(engine.sum(tuple(t[i : i + 1] for t in batch), Clip(clip=1.0)).gradients) for i in range(20)]
    assert max(shares) <= 1.0
    assert max(shares) > 0.5
    assert norm(engine.sum(batch, Clip(clip=1.0)).gradients) <= 20.0


@pytest.mark.parametrize("size", [1e-24, 1e-22])
def test_squares_too_small_for_float32_hide_no_norm(size: float) -> None:
    """Inputs whose squares are lost, times gradients that are large, are clipped too."""
    model = nn.Linear(784, 1, bias=False)
    engine = ClippedGradients(model, lambda model, batch: model(batch[0]).squeeze(1) * batch[1])
    batch = torch.full((1, 784), size), torch.full((1,), 1e18)
    clip = 0.01 * norm([batch[0].double() * 1e18])
    assert norm(engine.sum(batch, Clip(clip=clip)).gradients) <= clip


def test_many_small_numbers_count_beside_a_large_one() -> None:
    """Squares that are lost one by one beside a sum, but not together, are counted."""
    model = nn.Module()
    model.w = nn.Parameter(torch.zeros(1_000_000))
    engine = ClippedGradients(model, lambda model, batch: (model.w * batch[0]).sum(1))
    x = torch.full((1, 1_000_000), 0.99 * 2**-12.5)
    x[:, :16] = 1.0
    assert norm(engine.sum((x,), Clip(clip=1.0)).gradients) <= 1.0


@pytest.mark.parametrize("way", ["closed form", "one position", "positions"])
@pytest.mark.parametrize("width", [1_000, 2_048, 40_000])
def test_wide_rows_of_small_numbers_are_within_the_clip(width: int, way: str) -> None:
    """Nor are they lost beside one large number in rows of moderate width: 40,000 numbers were .02 % above the clip."""
    x = torch.full((1, width), 0.99 * 2**-12.5)
    x[:, 0] = 1.0
    if way == "closed form":
        engine = ClippedGradients(nn.Linear(width, 4), LossOf(nn.CrossEntropyLoss(reduction="none")))
        batch: Any = (x, torch.tensor([1]))
    else:
        engine = ClippedGradients(nn.Linear(width, 16), lambda model, batch: model(batch[0]).flatten(1).sum(1))
        batch = (x if way == "one position" else x[:, None].expand(1, 3, width).contiguous(),)
    assert norm(engine.sum(batch, Clip(clip=0.01)).gradients) <= 0.01
    assert (engine.way == "closed form") == (way == "closed form")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("value", [math.nan, math.inf, 3e38, 3e30, 1e-24])
def test_the_closed_form_is_within_the_clip_too(value: float, bias: bool) -> None:
    """Whatever one row holds, the closed form adds no more than the clip for it, and leaves the others as they are."""
    torch.manual_seed(0)
    engine = ClippedGradients(nn.Linear(784, 10, bias=bias), LossOf(nn.CrossEntropyLoss(reduction="none")))
    x, y = torch.randn(6, 784), torch.randint(10, (6,))
    rest = engine.sum((x[1:], y[1:]), Clip(clip=0.5)).gradients
    x[0] = value
    found = engine.sum((x, y), Clip(clip=0.5)).gradients
    assert engine.way == "closed form"
    assert norm([a - b for a, b in zip(found, rest, strict=True)]) <= 0.5 * (1 + 1e-5)
    assert norm(engine.sum((x[:0], y[:0]), Clip(clip=0.5)).gradients) == 0.0


class Expert(nn.Module):
    """One that asks a second layer, for a certain kind of example only."""

    def __init__(self) -> None:
        super().__init__()
        self.usual, self.rare = nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        found = self.usual(x)
        if bool((x[:, 0] > 50).any()):
            found = found + torch.where(x[:, :1] > 50, self.rare(x), 0.0)
        return found.squeeze(1)


def test_what_one_example_uses_changes_no_other_share() -> None:
    """With PerLayer, an example that brings a parameter into play leaves what the others add as it is."""
    torch.manual_seed(0)
    engine = ClippedGradients(Expert(), lambda model, batch: model(batch[0]))
    without = 10 * torch.randn(64, 4).clamp_(max=2)
    without[0] = math.nan
    rare = without.clone()
    rare[0] = torch.tensor([100.0, 0.0, 0.0, 0.0])
    sums = [engine.sum((x,), PerLayer(clip=1.0)).gradients for x in (without, rare)]
    assert norm([a - b for a, b in zip(*sums, strict=True)]) <= 1.0
