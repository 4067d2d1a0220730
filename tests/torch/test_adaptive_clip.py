"""The count of adaptive clipping: one example moves it by a half, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.torch.test_private_gradient import CROSS, ODD, Records, losses, planned, rows, small  # noqa: E402

from privet.clipping import Adaptive  # noqa: E402
from privet.torch import Augment, ClippedGradients, Examples, PrivateGradient  # noqa: E402
from privet.torch.people_batches import PeopleExamples  # noqa: E402

RULE = Adaptive(clip=0.8, count_noise=2.0)


def within(examples: list[Any], **settings: Any) -> int:
    """What a step counts, in halves."""
    private = PrivateGradient(small(), losses, planned(RULE), **settings)
    private.prove(rows(2))
    groups = settings.pop("groups", None)
    read = Examples(Records(examples)) if groups is None else PeopleExamples(Records(examples), groups=groups)
    return private._sum(read.read(None), RULE)[1]


@pytest.mark.parametrize(
    "settings",
    [{}, {"micro_batch": 2}, {"augment": Augment(change=lambda b: b, copies=2)}],
    ids=["plain", "micro", "copies"],
)
def test_one_example_moves_the_count_by_a_half(settings: dict[str, Any]) -> None:
    """Left out or put in, anything at all moves it by at most one half; replaced, by one; within adds, beyond takes."""
    x, y = rows(7)
    others = list(zip(x, y, strict=True))
    without = within(others, **settings)
    moves = [within([*others[:3], odd, *others[3:]], **settings) - without for odd in ODD]
    assert set(moves) <= {-1, 0, 1}
    assert max(moves) - min(moves) <= 2
    small_one, large_one = (x[0] * 1e-3, y[0]), (torch.tensor([40.0, -2.0, 5.0]), torch.tensor(1))
    assert within([*others, small_one], **settings) == without + (1 if norm(small_one) <= 0.8 else -1)
    assert within([*others, large_one], **settings) == without + (1 if norm(large_one) <= 0.8 else -1)
    assert within([(x[0], torch.tensor(99))], **settings) == 0


def norm(example: Any) -> float:
    model = small()
    loss = CROSS(model(example[0][None]), example[1][None]).sum()
    found = torch.autograd.grad(loss, list(model.parameters()))
    return float(torch.cat([g.reshape(-1) for g in found]).norm())


def test_a_person_moves_the_count_by_a_half() -> None:
    """However many rows somebody has, they are one in the count."""
    x, y = rows(8)
    model = small()
    engine = ClippedGradients(model, losses)
    sizes = torch.tensor([1, 5, 2])
    whole = engine.sum((x, y), RULE, sizes=sizes).within
    rest = engine.sum((torch.cat([x[:1], x[6:]]), torch.cat([y[:1], y[6:]])), RULE, sizes=sizes[[0, 2]]).within
    assert abs(whole - rest) == 1
