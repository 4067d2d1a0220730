"""One call: it trains as the loop does, measures public data only, and prints what is public only."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from privet import Budget  # noqa: E402
from privet.errors import InvalidParameter  # noqa: E402
from privet.ledger import Account  # noqa: E402
from privet.noise import banded_square_root  # noqa: E402
from privet.randomness import fixed_seed_invalidates_guarantee  # noqa: E402
from privet.sampling import Cyclic, CyclicPoisson  # noqa: E402
from privet.torch import Augment, LatticeNoise, Phase, PrivateTraining, Snapshots, fit  # noqa: E402
from privet.torch.training_settings import RESUMED, TrainingSettings  # noqa: E402

CROSS = nn.CrossEntropyLoss(reduction="none")


def rows(count: int, seed: int) -> tuple[Any, Any]:
    x = torch.randn(count, 3, generator=torch.Generator().manual_seed(seed))
    return x, (x[:, 0] > 0).long()


def fitted(**changes: Any) -> Any:
    torch.manual_seed(0)
    asked: dict[str, Any] = {"loss": CROSS, "epsilon": 3, "delta": 1e-6, "epochs": 2, "batch_size": 50}
    model = changes.pop("model", None) or nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.1))
    return fit(model, rows(300, 1), **(asked | changes))


def test_metrics_are_means_over_public_examples() -> None:
    """Loss and accuracy after each epoch, in evaluation mode, of the examples that were called public."""
    public = rows(1500, 2)
    found = fitted(validation=public, random=fixed_seed_invalidates_guarantee(1))
    assert len(found.history) == 2
    assert found.model.training
    scores = found.model.eval()(public[0]).detach()
    assert found.history[-1]["loss"] == pytest.approx(float(CROSS(scores, public[1]).mean()), rel=1e-5)
    right = float((scores.argmax(1) == public[1]).double().mean())
    assert found.history[-1]["accuracy"] == pytest.approx(right)
    assert "accuracy" in str(found)


def test_the_private_examples_are_no_validation() -> None:
    """Metrics of private examples would be released without noise."""
    private = rows(100, 1)
    with pytest.raises(InvalidParameter, match="public"):
        fit(nn.Linear(3, 2), private, loss=CROSS, epsilon=1, delta=1e-6, steps=1, batch_size=10, validation=private)


def test_metrics_of_one_s_own_and_an_average_are_taken() -> None:
    """With ema the model returned, and measured, is the average; the one passed goes on being trained."""
    model = nn.Linear(3, 2)
    ones = {"one": lambda model, batch: torch.ones(len(batch[0]))}
    found = fitted(model=model, ema=0.9, validation=rows(10, 3), metrics=ones)
    assert found.history[-1] == {"one": 1.0}
    assert found.model is not model
    assert fitted(model=model).model is model
    assert fitted().history == ()


def test_targets_that_are_no_classes_have_no_accuracy() -> None:
    """A regression is measured by its loss alone."""
    x = rows(200, 1)[0]
    squares = nn.MSELoss(reduction="none")
    data, public = (x[:100], x[:100, 0]), (x[100:], x[100:, 0])

    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 1)

        def forward(self, x: Any) -> Any:
            return self.linear(x).squeeze(1)

    found = fit(Flat(), data, loss=squares, epsilon=1, delta=1e-6, steps=2, batch_size=10, validation=public)
    assert list(found.history[-1]) == ["loss"]


def test_an_account_is_charged() -> None:
    """One call is one charge, of the whole plan."""
    account = Account(Budget(epsilon=8, delta=1e-6), neighbours="zero_out", filter="renyi")
    found = fitted(account=account, epochs=1)
    assert [charge.event for charge in account.charges] == [found.plan.event]


def test_nothing_is_printed_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal there is no line."""
    fitted(epochs=1)
    assert capsys.readouterr() == ("", "")


def test_all_options_of_a_run_are_taken() -> None:
    """The options that are passed on are those of PrivateTraining, and what is taken anew is what resume takes."""
    named = list(inspect.signature(PrivateTraining).parameters)[3:]
    assert sorted(TrainingSettings.__annotations__) == sorted(named)
    resumed = list(inspect.signature(PrivateTraining.resume).parameters)[4:]
    assert sorted([*RESUMED, "journal"]) == sorted(resumed)
    with pytest.raises(TypeError, match="epsilom"):
        fitted(epsilom=3)


OPTIONS: dict[str, dict[str, Any]] = {
    "phases": {"phases": [Phase(noise=2.0), Phase(clip=0.5)]},
    "people": {"groups": [i // 2 for i in range(300)]},
    "copies": {"augment": Augment(change=lambda batch: batch, copies=2)},
    "exact noise": {"noise": LatticeNoise},
    "correlated, in turn": {"sampling": Cyclic(batch=50), "correlation": banded_square_root(3)},
    "correlated, sampled": {
        "sampling": CyclicPoisson(sampling_rate=0.5, groups=3),
        "correlation": banded_square_root(3),
    },
    "snapshots": {"snapshots": Snapshots(every=3, difference_clip=0.5)},
    "add_remove": {"records": 280},
}


@pytest.mark.parametrize("option", OPTIONS)
def test_options_reach_the_plan(option: str) -> None:
    """What is asked for in one call is what the loop would plan, and the budget is met."""
    asked = {"epochs": None, "steps": 6} | OPTIONS[option]
    found = fitted(**asked)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.1))
    common: dict[str, Any] = {"loss": CROSS, "epsilon": 3, "delta": 1e-6, "batch_size": 50}
    run = PrivateTraining(model, torch.optim.Adam(model.parameters()), rows(300, 1), **(common | asked))
    assert found.plan == run.plan
    assert found.guarantee.epsilon <= 3


class Stopped(Exception):
    """As if the machine went down."""


@pytest.mark.parametrize("option", ["plain", "correlated, in turn", "snapshots"])
def test_the_same_call_goes_on_after_a_crash(option: str, tmp_path: Path) -> None:
    """Every step that ran is counted, the history is kept, and the charge is made once; a third call is over."""
    terms: dict[str, Any] = {"neighbours": "zero_out"}
    terms |= {"filter": "renyi"} if option != "correlated, in turn" else {}
    account = Account(Budget(epsilon=9.0, delta=1e-6), **terms)
    asked: dict[str, Any] = {"journal": tmp_path / "run.steps", "checkpoint": tmp_path / "last.pt", "account": account}
    asked |= {"validation": rows(20, 5), "epochs": None, "steps": 18} | OPTIONS.get(option, {})
    calls = []

    def measure(model: Any, batch: Any) -> Any:
        calls.append(0)
        if len(calls) == 2:
            raise Stopped
        return torch.ones(len(batch[0]))

    with pytest.raises(Stopped):
        fitted(**asked, metrics={"one": measure})
    assert (tmp_path / "run.steps").read_bytes().splitlines()[1] == b"." * 12
    found = fitted(**asked, metrics={"one": measure})
    assert (tmp_path / "run.steps").read_bytes().splitlines()[1] == b"." * 18
    assert found.history == ({"one": 1.0}, {"one": 1.0})  # of epochs 1 and 3; the second was lost
    assert [charge.event for charge in account.charges] == [found.plan.event]
    again = fitted(**asked, metrics={"one": measure})
    assert again.history == found.history
    assert all(torch.equal(a, b) for a, b in zip(again.model.parameters(), found.model.parameters(), strict=True))
    with pytest.raises(InvalidParameter, match="settings of the run"):
        fitted(**asked | {"epsilon": 4.0})


def test_an_account_that_was_not_kept_is_charged_again(tmp_path: Path) -> None:
    """Two runs of one plan, resumed with an empty account, are two charges."""
    for name in ("a", "b"):
        fitted(journal=tmp_path / name, checkpoint=tmp_path / f"{name}.pt", epochs=1)
    account = Account(Budget(epsilon=9.0, delta=1e-6), neighbours="zero_out", filter="renyi")
    for name in ("a", "b", "a"):
        fitted(journal=tmp_path / name, checkpoint=tmp_path / f"{name}.pt", epochs=1, account=account)
    assert [charge.label for charge in account.charges] == ["fit, a", "fit, b"]


def test_a_checkpoint_needs_a_journal(tmp_path: Path) -> None:
    """Without it steps that are lost would be made again, uncounted."""
    with pytest.raises(InvalidParameter, match="journal"):
        fitted(checkpoint=tmp_path / "last.pt")
