"""Runs in several threads: each is what it is alone; two on one model are refused."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from privet.clipping import Clip  # noqa: E402
from privet.errors import InvalidParameter  # noqa: E402
from privet.randomness import fixed_seed_invalidates_guarantee  # noqa: E402
from privet.torch import ClippedGradients, PrivateTraining  # noqa: E402

CROSS = nn.CrossEntropyLoss(reduction="none")


def trained(seed: int) -> Any:
    """The weights of a small run, whose chance is its own."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(100, 6, generator=generator)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) / 3)
    asked: dict[str, Any] = {"loss": CROSS, "epsilon": 4, "delta": 1e-6, "steps": 20, "batch_size": 30}
    optimizer, random = torch.optim.SGD(model.parameters(), lr=0.2), fixed_seed_invalidates_guarantee(seed)
    run = PrivateTraining(model, optimizer, (x, (x[:, 0] > 0).long()), random=random, **asked)
    for batch in run:
        run.step(batch)
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def side_by_side(jobs: list[Any]) -> list[Any]:
    """What each job returns or raises, all of them begun together in threads of their own."""
    found: list[Any] = [None] * len(jobs)
    begin = threading.Barrier(len(jobs))

    def work(place: int) -> None:
        begin.wait()
        try:
            found[place] = jobs[place]()
        except Exception as error:  # noqa: BLE001  # to be looked at
            found[place] = error

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.medium
def test_runs_in_threads_are_what_they_are_alone() -> None:
    """Three runs at once end with the weights that each has by itself, bit by bit."""
    expected = [trained(seed) for seed in range(3)]
    found = side_by_side([lambda seed=seed: trained(seed) for seed in range(3)])
    assert [bool(torch.equal(a, b)) for a, b in zip(found, expected, strict=True)] == [True] * 3


def test_models_with_chance_are_tried_in_turn() -> None:
    """The trial compares losses under one seed; another thread's draws between them would look like mixed examples."""

    def made() -> nn.Module:  # here, as first weights are drawn by the same generator
        return nn.Sequential(nn.Linear(6, 64), nn.Dropout(0.5), nn.Linear(64, 64), nn.Dropout(0.5), nn.Linear(64, 2))

    def tried(dropping: nn.Module) -> str:
        engine = ClippedGradients(dropping, lambda model, batch: CROSS(model(batch[0]), batch[1]))
        for _ in range(5):
            engine.prove((torch.zeros(2, 6), torch.zeros(2, dtype=torch.long)))
        return engine.way

    assert side_by_side([partial(tried, made()) for _ in range(3)]) == ["book-keeping"] * 3


def test_two_threads_on_one_model_are_refused() -> None:
    """The second is told so while the first computes; the first is not disturbed."""
    inside, leave = threading.Event(), threading.Event()

    class Slow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.wait = nn.Linear(3, 2), False

        def forward(self, x: Any) -> Any:
            if self.wait:
                inside.set()
                leave.wait(20)
            return self.linear(x)

    model, batch = Slow(), (torch.randn(4, 3), torch.arange(4) % 2)
    first, second = (ClippedGradients(model, lambda m, b: CROSS(m(b[0]), b[1])) for _ in range(2))
    alone = first.sum(batch, Clip(clip=0.5)).gradients
    second.prove(batch)
    model.wait, found = True, []
    thread = threading.Thread(target=lambda: found.append(first.sum(batch, Clip(clip=0.5)).gradients))
    thread.start()
    assert inside.wait(20)
    with pytest.raises(InvalidParameter, match="one thread for each model"):
        second.sum(batch, Clip(clip=0.5))
    leave.set()
    thread.join()
    assert all(torch.equal(a, b) for a, b in zip(found[0], alone, strict=True))
