"""People: however many rows one has, one clip bounds them together, and they come and go together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from privet.clipping import Clip  # noqa: E402
from privet.errors import InvalidParameter  # noqa: E402
from privet.plan import gradient_plan  # noqa: E402
from privet.randomness import fixed_seed_invalidates_guarantee  # noqa: E402
from privet.torch import Augment, PrivateGradient, PrivateTraining  # noqa: E402
from privet.torch.people_batches import PeopleExamples  # noqa: E402

CROSS = nn.CrossEntropyLoss(reduction="none")
NAN = float("nan")
WHO = ["ann", "bob", "ann", None, "cy", "bob", "bob", "dee"]


class Listed:
    def __init__(self, examples: list[Any]) -> None:
        self.examples = examples

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.examples[index], Exception):
            raise self.examples[index]
        return self.examples[index]


def losses(model: Any, batch: Any) -> Any:
    return CROSS(model(batch[0]), batch[1])


def rows() -> tuple[Any, Any]:
    return 3 * torch.sin(torch.arange(24.0)).reshape(8, 3), torch.tensor([0, 1, 1, 0, 1, 0, 0, 1])


def people(examples: list[Any], who: list[Any]) -> PeopleExamples:
    found = PeopleExamples(Listed(examples), groups=who)
    found.of_two((torch.zeros(3), torch.tensor(0)))
    return found


def written(parts: Any, augment: Augment | None = None) -> tuple[Any, Any]:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    plan = gradient_plan(
        bounding=Clip(clip=0.3), noise_multiplier=1e-7, steps=1, records=4, neighbours="zero_out", unit="person"
    )
    random = fixed_seed_invalidates_guarantee(1)
    private = PrivateGradient(model, losses, plan, augment=augment, random=random)
    private.prove((torch.zeros(2, 3), torch.zeros(2, dtype=torch.long)))
    private.draw(4)
    private.write(parts)
    return model, 4 * torch.cat([p.grad.reshape(-1) for p in model.parameters()])  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["tensors", "listed", "copies"])
def test_the_sum_is_of_clipped_means_of_people(kind: str) -> None:
    """Mean gradient of a person's rows, clipped, added up; rows of nobody are not read."""
    x, y = rows()
    found = PeopleExamples((x, y), groups=WHO) if kind != "listed" else people(list(zip(x, y, strict=True)), WHO)
    augment = Augment(change=lambda batch: batch, copies=2) if kind == "copies" else None
    model, sums = written(found.read(None), augment)
    total = torch.zeros(8)
    for mine in ([0, 2], [1, 5, 6], [4], [7]):
        loss = CROSS(model(x[mine]), y[mine]).mean()
        g = torch.cat([v.reshape(-1) for v in torch.autograd.grad(loss, list(model.parameters()))])
        total += g * min(1.0, 0.3 / float(g.norm()))
    assert float((sums - total).norm() / total.norm()) < 1e-4


ODD: list[Any] = [
    (torch.full((3,), NAN), torch.tensor(0)),
    (torch.tensor([80.0, -5.0, 2.0]), torch.tensor(1)),
    (torch.ones(3), torch.tensor(55)),
    (torch.ones(7), torch.tensor(1)),
    (torch.ones(3, dtype=torch.float64), torch.tensor(1)),
    {"x": 1},
    ValueError("unreadable"),
]


@pytest.mark.parametrize("odd", range(len(ODD)))
@pytest.mark.parametrize("all_rows", [False, True])
def test_a_person_moves_the_sum_by_at_most_one_clip(odd: int, all_rows: bool) -> None:
    """With any rows of one person odd, or all of them, against that person's absence; noise and batch are the same."""
    x, y = rows()
    examples: list[Any] = list(zip(x, y, strict=True))
    for place in [1, 5, 6] if all_rows else [5]:
        examples[place] = ODD[odd]
    absent = [i for i, who in enumerate(WHO) if who != "bob"]
    others = people([examples[i] for i in absent], [WHO[i] for i in absent])
    moved = written(people(examples, WHO).read(None))[1] - written(others.read(None))[1]
    assert float(moved.norm()) <= 0.3 * (1 + 1e-4)


def test_a_person_is_in_one_part_only() -> None:
    """Where a batch cannot be put together, people are taken one by one, never row by row."""

    def collate(examples: list[Any]) -> Any:
        if any(int(label) == 9 for _, label in examples):
            raise ValueError
        return torch.stack([x for x, _ in examples]), torch.stack([y for _, y in examples])

    x, y = rows()
    y[5] = 9
    found = PeopleExamples(TensorDataset(x, y), groups=WHO, collate=collate).read(None)
    assert sorted(int(part.sizes.sum()) for part in found) == [1, 1, 2]  # type: ignore[attr-defined]
    halves = PeopleExamples((x, y), groups=WHO).read(None)[0].halves()
    assert [half.count for half in halves] == [2, 2]
    assert [len(half.batch[0]) for half in halves] == [5, 2]


def run_of(**changes: Any) -> PrivateTraining:
    x = torch.sin(torch.arange(900.0)).reshape(300, 3)
    model = nn.Linear(3, 2)
    asked: dict[str, Any] = {"loss": CROSS, "epsilon": 2.0, "delta": 1e-6, "steps": 3, "batch_size": 20}
    asked["groups"] = [i // 3 for i in range(300)]
    data = changes.pop("data", TensorDataset(x, (x[:, 0] > 0).long()))
    return PrivateTraining(model, torch.optim.SGD(model.parameters(), lr=0.1), data, **(asked | changes))


def test_a_run_of_people_promises_something_about_people(tmp_path: Path) -> None:
    """The plan counts people, the guarantee is user-level, and a checkpoint of people is not resumed with rows."""
    run = run_of(journal=tmp_path / "steps")
    assert (run.plan.records, run.plan.unit) == (100, "person")
    assert run.plan["gradients"].sampling.batch_size(100) == 20.0
    for batch in run:
        run.step(batch)
    assert "user-level" in run.guarantee.details
    assert "mean over all rows" in run.guarantee.details
    run.save(tmp_path / "last.pt")
    model = nn.Linear(3, 2)
    data = (torch.zeros(100, 3), torch.zeros(100, dtype=torch.long))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    again: dict[str, Any] = {"loss": CROSS, "journal": tmp_path / "steps"}
    with pytest.raises(InvalidParameter, match="rows in place of people"):
        PrivateTraining.resume(tmp_path / "last.pt", model, optimizer, data, **again)


def test_labels_that_do_not_fit_are_refused() -> None:
    """One label for each example, and no loader, which would scatter a person over a pass."""
    with pytest.raises(InvalidParameter, match="one label"):
        run_of(groups=[1, 2, 3])
    with pytest.raises(InvalidParameter, match="DataLoader"):
        run_of(data=DataLoader(TensorDataset(torch.zeros(300, 3)), batch_size=10))
