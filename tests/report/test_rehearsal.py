"""A rehearsal forecasts, on public rows, what an epsilon costs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from privet.errors import FixedSeed, InvalidParameter
from privet.estimators import LinearRegression, LogisticRegression
from privet.report import rehearse

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, size=(1_200, 3))


@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")  # 400 records at 0.05
def test_scores_rise_with_epsilon_and_records() -> None:
    """More budget, or more records, is a better forecast; both stay above the constant guess (fixed seeds)."""
    y = X @ [3.0, -2.0, 1.0] > 0.4
    model = LogisticRegression(bounds=(-1, 1), classes=[False, True], random_state=1)
    few = rehearse(model, X, y, records=400, epsilons=[0.05, 5], runs=3)
    many = rehearse(model, X, y, records=20_000, epsilons=[0.05], runs=3)
    assert np.mean(few.scores[5]) > np.mean(few.scores[0.05]) + 0.05
    assert np.mean(many.scores[0.05]) > np.mean(few.scores[0.05]) + 0.05
    assert np.mean(few.scores[5]) > few.floor


def test_a_number_is_scored_by_r_squared_and_the_table_is_printed() -> None:
    """Regressors work too; the constant guess is the mean, which scores about 0."""
    y = X @ [3.0, -2.0, 1.0]
    found = rehearse(LinearRegression(bounds=(-1, 1), target_range=(-6, 6)), X, y, records=5_000, epsilons=[8], runs=1)
    assert found.scores[8.0][0] > 0.9
    assert abs(found.floor) < 0.05
    assert "A constant guess scores" in str(found)
    assert "99.9 %" not in str(
        rehearse(LinearRegression(target_range=(-6, 6)), X, y, records=900, epsilons=[1], runs=1)
    )


@pytest.mark.parametrize("bad", [{"records": 0}, {"records": 10, "runs": 0}])
def test_nothing_to_rehearse_is_refused(bad: dict[str, Any]) -> None:
    """Without rows, records or runs there is no forecast."""
    with pytest.raises(InvalidParameter, match="public rows"):
        rehearse(LinearRegression(), X, X[:, 0], **bad)


def test_a_seed_is_no_matter_on_public_rows() -> None:
    """A rehearsal does not warn of a fixed seed, which a fit of private rows does."""
    model = LogisticRegression(bounds=(-1, 1), classes=[False, True], random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FixedSeed)
        rehearse(model, X, X[:, 0] > 0, records=500, epsilons=[5.0], runs=1)
        with pytest.raises(FixedSeed):
            model.fit(X, X[:, 0] > 0)


def test_a_seeded_model_is_tried_with_other_noise_each_time() -> None:
    """With a `random_state` a rehearsal repeats itself, but its runs do not repeat each other's noise."""
    y = X @ [3.0, -2.0, 1.0] > 0.4
    seeds: list[int] = []

    class Seen(LogisticRegression):
        def fit(self, X: Any, y: Any = None, **given: Any) -> Any:
            seeds.append(self.random_state)
            return super().fit(X, y, **given)

    model = Seen(bounds=(-1, 1), classes=[False, True], random_state=1)
    first, again = (rehearse(model, X, y, records=900, epsilons=[1, 2], runs=3).scores for _ in range(2))
    assert first == again
    assert len(set(seeds)) == 6
    assert seeds[:6] == seeds[6:]
