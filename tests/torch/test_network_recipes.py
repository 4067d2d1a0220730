"""The recipes for networks in examples/: they run as planned, on made-up data."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
EXAMPLES = str(Path(__file__).parents[2] / "examples")


@pytest.mark.medium
def test_the_recipe_for_mnist_trains_within_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """examples/mnist_cnn.py makes the steps it plans, for one record added or removed, and scores their average."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    recipe = importlib.import_module("mnist_cnn")
    monkeypatch.setattr(recipe, "STEPS", 3)
    monkeypatch.setattr(recipe, "BATCH", 16)
    x, y = torch.randn(64, 1, 28, 28, generator=torch.Generator().manual_seed(0)), torch.arange(64) % 10
    run = recipe.train(x, y, seed=0)
    assert (run.steps_made, run.steps_left) == (3, 0)
    assert run.guarantee.neighbours == "add_remove"
    assert run.guarantee.epsilon <= recipe.EPSILON
    assert run.guarantee.delta == recipe.DELTA
    weights, average = (list(model.parameters()) for model in (run.model, run.averaged()))
    assert any(not torch.equal(a, b) for a, b in zip(weights, average, strict=True))
    assert 0 <= recipe.accuracy(run.averaged(), x, y) <= 1
