"""Where a target is, by draws, is hardly ever far off: the chance is computed, not tried."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from privet.accounting import ExponentialMechanism, Laplace
from privet.errors import SmallEffectiveSample
from privet.estimators import HuberRegressor, LinearRegression, QuantileRegressor, Ridge
from privet.estimators.outline import Size, outlined
from privet.privacy import Neighbours, sensitivity_factor
from privet.solvers.interval_draws import interval_scores, intervals

_ONE = 1 << 20  # units of a score that are one record


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
@pytest.mark.parametrize("ends", [(-50.0, 50.0), None])
@pytest.mark.parametrize(("rows", "epsilon"), [(300, 1.0), (3_500, 0.1)])
@pytest.mark.parametrize("middle", [0.0, 5.0, 40.0])
def test_an_empty_interval_is_drawn_less_than_twice_in_a_thousand_fits(
    neighbours: Neighbours, ends: tuple[float, float] | None, rows: int, epsilon: float, middle: float
) -> None:
    """By the law of the draw, of values of spread 1.7; it was up to one in two, for an R² of −400."""
    known: dict[str, Any] = {"target_range": ends, "bounds": (-4, 4), "neighbours": neighbours}
    if neighbours == "add_remove":
        known["records"] = rows
    for model in (HuberRegressor(epsilon, **known), QuantileRegressor(epsilon, **known)):
        anchor = outlined(model, Size(records=rows, columns=8)).anchor
        if anchor is None:  # so few that only the constant is drawn, with all of the budget, or enough for a histogram
            continue
        mechanism = anchor.reach.release(anchor.epsilons[0]).mechanism
        assert isinstance(mechanism, ExponentialMechanism)
        values = np.random.default_rng(1).standard_t(3, rows) + middle
        room = intervals(ends)
        scores, width = (
            np.array(interval_scores(values, room, len(values)), dtype=float),
            sensitivity_factor(neighbours) * _ONE,
        )
        odds = -float(mechanism.epsilon) / width * scores - room.dislike
        chances = np.exp(odds - odds.max())
        held = (values[:, None] >= room.lows) & (values[:, None] <= room.highs)
        assert chances[held.mean(axis=0) < 0.05].sum() / chances.sum() < 2e-3


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("model", [LinearRegression, Ridge, HuberRegressor])
@pytest.mark.parametrize("ends", [(-1e5, 1e5), None])
@pytest.mark.parametrize(("rows", "epsilon", "least"), [(3_500, 0.2, 0.45), (1_500, 0.1, -0.15)])
def test_a_target_close_together_far_from_0_is_found(
    model: Any, ends: tuple[float, float] | None, rows: int, epsilon: float, least: float
) -> None:
    """Of 100 ± 2, in a range ten thousand times too wide or none: with slopes, or of few records the constant alone.

    Of few records least squares had an R² of down to −10⁶ there, and below 0 also where there are enough for slopes.
    """
    for seed in range(4):
        rng = np.random.default_rng([rows, seed])
        X = rng.normal(size=(rows + 1_000, 5))
        y = 100 + X @ [1.5, -0.75, 0.75, 0, 0] + rng.normal(size=len(X))
        fitted = model(epsilon, bounds=(-5, 5), target_range=ends, random_state=seed).fit(X[:rows], y[:rows])
        assert fitted.score(X[rows:], y[rows:]) > least


@pytest.mark.parametrize(
    ("model", "ends"),
    [
        (LinearRegression(), None),
        (HuberRegressor(), None),
        (QuantileRegressor(), None),
        (QuantileRegressor(quantile=0.9), (-1e5, 1e5)),
        (LinearRegression(), (-1e5, 1e5)),
        (HuberRegressor(), (-1e5, 1e5)),
    ],
)
@pytest.mark.parametrize("epsilon", [0.08, 0.0917, 0.095])
def test_an_interval_and_a_constant_cost_no_more_than_all(model: Any, ends: Any, epsilon: float) -> None:
    """To the last bit: what they cost adds up to epsilon at most, and to nearly all of it.

    In a declared range, however wide, a median is drawn at once; a quantile far out is not, nor a mean.
    """
    found = outlined(
        clone(model).set_params(epsilon=epsilon, bounds=(-5, 5), target_range=ends), Size(records=1_500, columns=5)
    )
    mechanisms = [release.mechanism for release in found.plan.releases]
    assert found.alone is not None
    assert len(mechanisms) == (1 if ends and isinstance(model, HuberRegressor) else 2)
    spent = sum((Fraction(each.epsilon) for each in mechanisms if isinstance(each, ExponentialMechanism)), Fraction(0))
    spent += sum(2 / Fraction(each.scale) for each in mechanisms if isinstance(each, Laplace))
    assert 0.999999 * epsilon < spent <= Fraction(epsilon)


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("model", [LinearRegression, HuberRegressor, QuantileRegressor])
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0])
def test_the_widest_range_that_there_is_makes_no_prediction_infinite(model: Any, epsilon: float) -> None:
    """Ends of ±1.7·10³⁰⁸ are as far apart as no number is; predictions were NaN."""
    X = np.random.default_rng(1).normal(size=(400, 3))
    ends = (-1.7e308, 1.7e308)
    for y in (X[:, 0], 1.7e308 * np.tanh(X[:, 0])):
        for neighbours in ("replace_one", "zero_out"):
            known: dict[str, Any] = {"neighbours": neighbours, "target_range": ends, "random_state": 1}
            fitted = model(epsilon, bounds=(-5, 5), **known).fit(X, y)
            assert np.isfinite(fitted.predict(X)).all()


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("model", [LinearRegression, Ridge])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_what_is_learnt_of_a_target_is_inside_its_declared_range(model: Any, epsilon: float) -> None:
    """Also at an end of it, where a place had half of its range beyond; and where ends are huge."""
    X = np.random.default_rng(1).normal(size=(400, 3))
    for ends in ((0.0, 900.0), (1e304, 3e305)):
        for y in (np.full(400, ends[0]), ends[0] + ends[0] * np.exp(X[:, 0])):
            fitted = model(epsilon, bounds=(-5, 5), target_range=ends, random_state=1).fit(X, y)
            low, high = fitted.target_range_
            assert ends[0] <= low < high <= ends[1]


@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("model", [LinearRegression, Ridge])
def test_without_an_intercept_the_target_is_not_moved(model: Any) -> None:
    """The middle of a place would be one; a declared range about 0 has none."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 2))
    for seed in range(5):
        known: dict[str, Any] = {"target_range": (-5, 5), "fit_intercept": False, "random_state": seed}
        fitted = model(0.5, bounds=(-5, 5), neighbours="zero_out", **known).fit(X, X[:, 0])
        assert fitted.intercept_ == 0


@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("model", [LinearRegression, Ridge, HuberRegressor, QuantileRegressor])
@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e4, -1e4])
def test_a_median_is_found_where_an_interval_cannot_be_told(model: Any, unit: float) -> None:
    """Of 700 waiting times at ε = 0.1 with nothing declared; predictions were 0, as no range stood out of its noise."""
    for seed in range(5):
        rng = np.random.default_rng([seed, 7])
        X, y = rng.normal(size=(700, 3)), unit * (1 + rng.exponential(size=700))
        fitted = model(0.1, delta=1e-5, bounds=(-5, 5), random_state=seed).fit(X, y)
        assert fitted.plan_.names == ("constant",)
        assert 0.7 < float(fitted.intercept_) / float(np.median(y)) < 1.5


@pytest.mark.parametrize("columns", [2, 10])
@pytest.mark.parametrize("ends", [(0.0, 900.0), None])
def test_least_squares_have_their_target_from_histograms(columns: int, ends: tuple[float, float] | None) -> None:
    """Draws left too little for slopes, and a mean settles the constant afterwards; robust losses keep them."""
    facts: dict[str, Any] = {"delta": 1e-5, "bounds": (-5, 5), "target_range": ends}
    for model, drawn in ((LinearRegression, False), (Ridge, False), (HuberRegressor, True)):
        found = outlined(model(1.0, **facts), Size(records=331, columns=columns))
        assert (found.anchor is not None) == drawn
        assert ("target: bins" in found.plan.names) == (not drawn)


@pytest.mark.medium
@pytest.mark.parametrize("ends", [(0.0, 900.0), None])
@pytest.mark.parametrize("columns", [4, 24])
def test_grades_about_650_are_found_by_few_records(columns: int, ends: tuple[float, float] | None) -> None:
    """Of 268 records at ε = 1, 650 ± 19: octaves alone say 512 to 1,024, and of 24 columns R² was −2 on average.

    Least of 20 seeds each: −.06; without privacy 0.6 to 0.7.
    """
    for seed in range(6):
        rng = np.random.default_rng([columns, seed])
        X = rng.normal(size=(268 + 1_000, columns)) + rng.normal(size=(1_268, 1))
        y = 650 + 19 * (0.8 * X.mean(axis=1) + 0.6 * rng.normal(size=len(X)))
        fitted = LinearRegression(1.0, delta=1e-5, bounds=(-6, 6), target_range=ends, random_state=seed)
        assert fitted.fit(X[:268], y[:268]).score(X[268:], y[268:]) > -0.2


def test_a_target_that_drowns_in_its_declared_range_is_told() -> None:
    """Also where all are missing: predictions were somewhere in the range, without a word."""
    rng = np.random.default_rng(2)
    X, tight = rng.normal(size=(1_000, 3)), rng.normal(size=1_000)
    for seed in range(3):
        model = LinearRegression(1.0, delta=1e-5, bounds=(-5, 5), target_range=(-4, 4), random_state=seed)
        with pytest.warns(SmallEffectiveSample, match="got none in the target"):
            model.fit(X, np.full(1_000, np.nan))
        with warnings.catch_warnings():
            warnings.simplefilter("error", SmallEffectiveSample)
            model.fit(X, tight)


@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("model", [LinearRegression, HuberRegressor, QuantileRegressor])
def test_the_narrowest_range_that_there_is_holds_its_constant(model: Any) -> None:
    """Of two denormal ends; odds were not numbers."""
    X = np.random.default_rng(1).normal(size=(300, 3))
    for epsilon in (0.05, 1.0):
        fitted = model(epsilon, delta=1e-5, bounds=(-5, 5), target_range=(5e-324, 1e-323)).fit(X, X[:, 0])
        assert np.isfinite(fitted.predict(X)).all()
