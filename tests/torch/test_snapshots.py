"""SVRG: snapshots and differences are planned and charged, and each example's difference is clipped as one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.torch.zoo import distance, losses, made  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

from privet import Budget  # noqa: E402
from privet.clipping import Adaptive, Clip  # noqa: E402
from privet.errors import InvalidParameter  # noqa: E402
from privet.ledger import Account  # noqa: E402
from privet.noise import banded_square_root  # noqa: E402
from privet.randomness import fixed_seed_invalidates_guarantee  # noqa: E402
from privet.sampling import FullBatch, Poisson  # noqa: E402
from privet.torch import AdamBC, ClippedGradients, Phase, PrivateTraining, Snapshots  # noqa: E402

CROSS = nn.CrossEntropyLoss(reduction="none")
ROUNDS = Snapshots(every=4, difference_clip=0.25, noise=3.0)


def rows(count: int = 60) -> tuple[Any, Any]:
    x = torch.randn(count, 3, generator=torch.Generator().manual_seed(1))
    return x, (x[:, 0] > 0).long()


def started(data: Any = None, model: Any = None, optimizer: Any = None, **changes: Any) -> PrivateTraining:
    torch.manual_seed(0)
    model = nn.Linear(3, 2) if model is None else model
    asked: dict[str, Any] = {"loss": CROSS, "epsilon": 4.0, "delta": 1e-6, "steps": 8, "batch_size": 20}
    asked |= {"snapshots": ROUNDS} | changes
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.0)
    return PrivateTraining(model, optimizer, rows() if data is None else data, **asked)


def written(run: PrivateTraining) -> Any:
    return torch.cat([p.grad.reshape(-1) for p in run.model.parameters()]).double()  # type: ignore[union-attr]


def one_by_one(model: Any, batch: Any, weights: list[Any], clip: float) -> list[Any]:
    """Σ of clipped differences of gradients, one example after the other."""
    parameters = list(model.parameters())
    here = [p.detach().clone() for p in parameters]
    total = [torch.zeros_like(p, dtype=torch.float64) for p in parameters]
    for i in range(len(batch[0])):
        pair = []
        for values in (here, weights):
            with torch.no_grad():
                for p, value in zip(parameters, values, strict=True):
                    p.copy_(value)
            alone = losses(model, tuple(t[i : i + 1] for t in batch)).sum()
            found = torch.autograd.grad(alone, parameters, allow_unused=True)
            pair.append([torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)])
        gaps = [(a - b).double() for a, b in zip(*pair, strict=True)]
        norm = math.sqrt(sum(float(gap.square().sum()) for gap in gaps))
        for sum_, gap in zip(total, gaps, strict=True):
            sum_ += gap * min(1.0, clip / max(norm, 1e-30))
    with torch.no_grad():
        for p, value in zip(parameters, here, strict=True):
            p.copy_(value)
    return total


@pytest.mark.parametrize("clip", [0.3, 1e6])
@pytest.mark.parametrize("name", ["linear", "conv2d", "tied weights", "lstm", "weight norm", "unused layer", "einsum"])
def test_differences_are_those_of_a_loop(name: str, clip: float) -> None:
    """Each example's gradient here less that at the snapshot, clipped as one; the weights are put back."""
    model, batch = made(name, 6)
    weights = [p.detach() + 0.3 * torch.randn_like(p) for p in model.parameters()]
    before = [p.detach().clone() for p in model.parameters()]
    expected = one_by_one(model, batch, weights, clip)
    found = ClippedGradients(model, losses, micro_batch=4).sum(batch, Clip(clip=clip), anchor=weights)
    assert distance(found.gradients, expected) < 2e-5
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_without_noise_and_with_whole_batches_it_is_gradient_descent() -> None:
    """Snapshot plus difference, over all examples and next to no noise, is the gradient where the weights are now."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    settings: dict[str, Any] = {"snapshots": Snapshots(every=4, difference_clip=1e3), "clip": 1e3, "batch_size": 60}
    run = started(None, model, torch.optim.SGD(model.parameters(), lr=0.5), sampling=FullBatch(), **settings)
    run._private._add_noise = lambda name, total, stddev: None  # type: ignore[method-assign]
    x, y = rows()
    for batch in run:
        expected = torch.autograd.grad(CROSS(model(x), y).mean(), list(model.parameters()))
        run.step(batch)
        assert float((written(run) - torch.cat([g.reshape(-1) for g in expected])).norm()) < 1e-5


class Readable:
    """Rows, one of which may be anything at all."""

    def __init__(self, odd: Any) -> None:
        self.x, self.y = rows()
        self.odd = odd

    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> Any:
        if index == 7 and isinstance(self.odd, Exception):
            raise self.odd
        return (self.x[index], self.y[index]) if index != 7 else self.odd


def test_a_run_replayed_on_a_neighbour_moves_no_release_by_more_than_its_clip() -> None:
    """Same batches, noise and path of weights: one example, zeroed out, moves snapshots by at most 1, differences ¼."""

    def releases(odd: Any) -> list[Any]:
        model = nn.Linear(3, 2)
        settings = {"example": (torch.zeros(3), torch.tensor(0)), "sampling": Poisson(sampling_rate=0.5)}
        run = started(Readable(odd), model, random=fixed_seed_invalidates_guarantee(11), **settings)
        found, snapshot, path = [], torch.zeros(8), torch.Generator().manual_seed(5)
        for batch in run:
            first = run.steps_made % 4 == 1
            run.step(batch)
            found.append((written(run) * 60) if first else (written(run) - snapshot) * 20)
            snapshot = written(run) if first else snapshot
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(3 * torch.randn(p.shape, generator=path))
        return found

    empty, label = releases(ValueError("unreadable")), torch.tensor(1)
    odd = [(torch.tensor([9e3, -1.0, 2.0]), label), (torch.tensor([0.2, 0.1, 0.0]), label)]
    odd += [(torch.full((3,), v), label) for v in (math.nan, math.inf, 3e38)] + [(torch.ones(5), label)]
    odd += [(torch.ones(3), torch.tensor(77))]
    for place, neighbour in enumerate(odd):
        moved = [float((a - b).norm()) for a, b in zip(releases(neighbour), empty, strict=True)]
        bounds = [1.0, 0.25, 0.25, 0.25] * 2
        assert all(move <= bound * (1 + 1e-3) for move, bound in zip(moved, bounds, strict=True))
        if not place:  # both clips are reached
            assert max(moved[0::4]) > 0.99
            assert max(moved[1:4] + moved[5:]) > 0.249
        if place in (2, 3, 5, 6):
            assert max(moved) < 1e-3


def test_every_release_is_planned_and_charged() -> None:
    """Two rounds of a snapshot on all examples and three sampled differences; the meter makes those, and no more."""
    account = Account(Budget(epsilon=9.0, delta=1e-6), neighbours="zero_out", filter="renyi")
    run = started(account=account)
    names = [(r.name, r.times, type(r.sampling).__name__) for r in run.plan.releases]
    assert names == [("snapshots", 1, "FullBatch"), ("differences", 3, "Poisson")] * 2
    noise = {r.name: r.noise_multiplier for r in run.plan.releases}
    assert noise["snapshots"] == pytest.approx(3 * noise["differences"])
    assert [charge.event for charge in account.charges] == [run.plan.event]
    for batch in run:
        run.step(batch)
        assert 0 < run.epsilon_spent <= run.plan.guarantee().epsilon <= 4.0
    assert run._private.meter.finish() == ("snapshots", *["differences"] * 3) * 2


def test_the_noise_of_a_step_is_that_of_both_releases() -> None:
    """What AdamBC is told is the root of both variances."""
    model = nn.Linear(3, 2)
    optimizer = AdamBC(model.parameters(), lr=1e-3)
    run, seen = started(None, model, optimizer), []
    for batch in run:
        run.step(batch)
        seen.append(optimizer.noise_stddev)
    one = run.plan["snapshots"].noise_stddev("zero_out") / 60
    other = run.plan["differences"].noise_stddev("zero_out") / 20
    assert seen == pytest.approx([one, *[math.hypot(one, other)] * 3] * 2)


def test_it_descends() -> None:
    """On two thousand easy examples the loss falls below a third; the seed is fixed."""
    data = rows(2000)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 2))
    asked: dict[str, Any] = {"steps": 40, "batch_size": 100, "random": fixed_seed_invalidates_guarantee(1)}
    rounds = Snapshots(every=10, difference_clip=0.3, noise=4.0)
    run = started(data, model, torch.optim.SGD(model.parameters(), lr=1.0), snapshots=rounds, **asked)
    before = float(CROSS(model(data[0]), data[1]).mean().detach())
    for batch in run:
        run.step(batch)
    assert float(CROSS(model.eval()(data[0]), data[1]).mean().detach()) < before / 3


def test_a_resumed_run_waits_for_its_next_snapshot(tmp_path: Path) -> None:
    """No snapshot is in a checkpoint: until the next one, steps are gradients clipped as differences are."""
    run = started(journal=tmp_path / "steps")
    for batch in run:
        run.step(batch)
        if run.steps_made == 2:
            run.save(tmp_path / "last.pt")
            break
    again = PrivateTraining.resume(
        tmp_path / "last.pt", run.model, run.optimizer, rows(), loss=CROSS, journal=tmp_path / "steps"
    )
    assert again.steps_made == 2
    assert again._private._anchor.of("differences") is None
    for batch in again:
        again.step(batch)
    assert again._private._anchor.of("differences") is not None
    assert again._private.meter.finish() == ("snapshots", *["differences"] * 3) * 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": 10}, "Use steps=12"),
        ({"clip": Adaptive(clip=1.0, count_noise=5.0)}, "a clip that is fixed"),
        ({"phases": [Phase(), Phase()]}, "at most one"),
        ({"correlation": banded_square_root(4)}, "at most one"),
        ({"data": DataLoader(torch.utils.data.TensorDataset(*rows()), batch_size=20), "batch_size": None}, "neither"),
    ],
    ids=["no whole rounds", "adaptive", "phases", "correlated", "a loader"],
)
def test_what_has_no_meaning_with_snapshots_is_refused(changes: dict[str, Any], words: str) -> None:
    """Before an example is read, with what to do."""
    with pytest.raises(InvalidParameter, match=words):
        started(**changes)
    for wrong in ({"every": 1}, {"difference_clip": 0.0}, {"noise": 0.0}):
        with pytest.raises(InvalidParameter):
            Snapshots(**{"every": 4, "difference_clip": 1.0} | wrong)
