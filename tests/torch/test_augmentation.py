"""Augmentation: an example's copies are averaged, then clipped as one."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from privet.clipping import Clip  # noqa: E402
from privet.errors import InvalidParameter  # noqa: E402
from privet.plan import gradient_plan  # noqa: E402
from privet.randomness import fixed_seed_invalidates_guarantee  # noqa: E402
from privet.torch import Augment, PrivateGradient, PrivateTraining  # noqa: E402

CROSS = nn.CrossEntropyLoss(reduction="none")
NAN = float("nan")


def losses(model: Any, batch: Any) -> Any:
    return CROSS(model(batch[0]), batch[1])


def shifted(batch: Any) -> Any:
    """Copies 0, 1, 2 of each example are shifted by as much."""
    return batch[0] + (torch.arange(len(batch[0])) % 3)[:, None], batch[1]


def written(augment: Augment | None, batch: Any, clip: float = 0.4) -> Any:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    plan = gradient_plan(bounding=Clip(clip=clip), noise_multiplier=1e-7, steps=1, records=4, neighbours="zero_out")
    random = fixed_seed_invalidates_guarantee(1)
    private = PrivateGradient(model, losses, plan, augment=augment, random=random)
    private.prove((torch.zeros(2, 3), torch.zeros(2, dtype=torch.long)))
    private.draw(4)
    private.write(batch)
    return model, 4 * torch.cat([p.grad.reshape(-1) for p in model.parameters()])  # type: ignore[union-attr]


def rows() -> tuple[Any, Any]:
    return torch.sin(torch.arange(12.0)).reshape(4, 3) * 3, torch.tensor([0, 1, 1, 0])


def test_copies_are_averaged_before_the_clip() -> None:
    """The sum is that of a loop: mean gradient of an example's copies, shortened to the clip, added up."""
    x, y = rows()
    model, found = written(Augment(change=shifted, copies=3), (x, y))
    total = torch.zeros(8)
    for i in range(4):
        loss = torch.stack([CROSS(model(x[i : i + 1] + k), y[i : i + 1]).sum() for k in range(3)]).mean()
        g = torch.cat([v.reshape(-1) for v in torch.autograd.grad(loss, list(model.parameters()))])
        total += g * min(1.0, 0.4 / float(g.norm()))
    assert float((found - total).norm() / total.norm()) < 1e-4


def test_an_example_of_bad_copies_moves_the_sum_by_at_most_one_clip() -> None:
    """NaN in one copy or a huge example: one clip at most, and others stay as they are."""
    x, y = rows()
    kept = [0, 1, 3]
    for odd in (NAN, 1e30, 50.0):
        changed = x.clone()
        changed[2] = odd
        augment = Augment(change=shifted, copies=3)
        moved = written(augment, (changed, y))[1] - written(augment, (x[kept], y[kept]))[1]
        assert float(moved.norm()) <= 0.4 * (1 + 1e-4)


def test_an_augmentation_that_fails_on_data_costs_the_guilty_only() -> None:
    """One that raises, or drops examples, for what is in one of them leaves out that one; nothing is raised."""
    x, y = rows()

    def picky(batch: Any) -> Any:
        if bool((batch[0] > 20).any()):
            raise ValueError("too large")
        keep = ~batch[0].isnan().any(1)
        return batch[0][keep], batch[1][keep]

    augment = Augment(change=picky, copies=3)
    expected = written(augment, (x[[0, 1, 3]], y[[0, 1, 3]]))[1]
    for odd in (NAN, 50.0):
        changed = x.clone()
        changed[2] = odd
        assert torch.allclose(written(augment, (changed, y))[1], expected, atol=1e-5)


def test_an_augmentation_that_adds_or_drops_examples_is_refused() -> None:
    """Whose a copy is must be known; told at set-up, before an example is read."""
    with pytest.raises(InvalidParameter, match="as many examples"):
        written(Augment(change=lambda batch: (batch[0][:3], batch[1][:3]), copies=2), rows())
    with pytest.raises(InvalidParameter, match="copies"):
        Augment(change=shifted, copies=0)


def test_a_run_with_copies_has_the_same_plan_and_names_what_it_assumes() -> None:
    """Copies cost no privacy; that each is made from its own example alone is assumed."""
    x = torch.randn(100, 3)
    data = (x, (x[:, 0] > 0).long())
    runs = []
    for augment in (
        None,
        Augment(change=lambda batch: (batch[0] + 0.1 * torch.randn_like(batch[0]), batch[1]), copies=4),
    ):
        model = nn.Linear(3, 2)
        asked: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6, "steps": 3, "batch_size": 20, "augment": augment}
        run = PrivateTraining(model, torch.optim.SGD(model.parameters(), lr=0.1), data, loss=CROSS, **asked)
        for batch in run:
            run.step(batch)
        runs.append(run)
    assert runs[0].plan == runs[1].plan
    assert "augmentation" in runs[1].guarantee.details
    assert "augmentation" not in runs[0].guarantee.details
