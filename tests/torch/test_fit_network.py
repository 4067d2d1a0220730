"""One call: it trains as the loop does, measures public data only, and prints what is public only."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from privet import Budget  # noqa: E402
from privet.errors import InvalidParameter  # noqa: E402
from privet.ledger import Account  # noqa: E402
from privet.randomness import fixed_seed_invalidates_guarantee  # noqa: E402
from privet.torch import fit  # noqa: E402

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
