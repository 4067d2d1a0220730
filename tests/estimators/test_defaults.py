"""Settings by public facts: what grows with the signal, and where it ends."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn import linear_model

from privet.errors import SmallEffectiveSample
from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)
from privet.estimators.defaults import LITTLE, Task, solver_for
from privet.estimators.outline import Size, outlined
from privet.estimators.sampling import range_rate, sample_tail
from privet.ledger import Account
from privet.losses import LogisticLoss, Loss, MultinomialLoss, SquaredLoss
from privet.privacy import Budget
from privet.solvers import FixedHessian

_LOSSES: dict[Task, Loss] = {
    "binary": LogisticLoss(labels="zero_one"),
    "several": MultinomialLoss(classes=3),
    "regression": SquaredLoss(factor=1.0),
}


def settings(task: Task, each: float) -> FixedHessian:
    """The default solver for ten columns, each with so large an effective sample."""
    found = solver_for("auto", task, loss=_LOSSES[task], columns=10, effective=10 * each)
    assert isinstance(found, FixedHessian)
    return found


@pytest.mark.parametrize("task", _LOSSES)
def test_more_signal_clips_less_and_takes_no_fewer_steps(task: Task) -> None:
    """The clip and the number of steps never fall as the effective sample grows."""
    found = [settings(task, each) for each in np.logspace(-3, 9, 60)]
    assert all(a.clip <= b.clip and a.steps <= b.steps for a, b in itertools.pairwise(found))
    slope = _LOSSES[task].lipschitz()
    assert slope is None or found[-1].clip == slope


def test_hardly_any_signal_learns_a_constant() -> None:
    """Without signal, the features' curvature is taken for more than any noise can show, so only a constant moves."""
    few, enough = (settings("binary", each) for each in (LITTLE / 10, LITTLE))
    assert few.floor == pytest.approx(100 * enough.floor)


@pytest.mark.medium
def test_a_tiny_budget_says_that_the_model_is_a_constant_and_is_one() -> None:
    """At a tiny epsilon the fit warns, on public facts, and nearly always predicts the majority class (fixed seeds)."""
    rng = np.random.default_rng(5)
    X, y = rng.uniform(-1, 1, size=(6_000, 90)), rng.uniform(size=6_000) < 0.1
    scores = []
    for seed in range(8):
        model = LogisticRegression(
            epsilon=0.01, bounds=(-1, 1), classes=[False, True], neighbours="zero_out", random_state=seed
        )
        with pytest.warns(SmallEffectiveSample, match="a column") as warned:
            scores.append(model.fit(X, y).score(X, y))
        assert warned[0].filename == __file__  # points at who called fit, not into the library
    assert np.median(scores) > 0.88


@pytest.mark.medium
@pytest.mark.parametrize("d", [3, 10])
def test_a_huge_epsilon_finds_the_plain_coefficients_by_default(d: int) -> None:
    """At epsilon 1e6, with defaults, coefficients agree with scikit-learn's to 1e-3 of the largest."""
    rng = np.random.default_rng(d)
    X, w = rng.uniform(-1, 1, size=(5_000, d)), rng.normal(size=d) * 2
    labels = rng.uniform(size=5_000) < 1 / (1 + np.exp(-X @ w - 0.3))
    private = LogisticRegression(epsilon=1e6, bounds=(-1, 1), classes=[False, True]).fit(X, labels)
    plain = linear_model.LogisticRegression(C=1e9, max_iter=1_000, tol=1e-8).fit(X, labels)
    assert np.abs(private.coef_ - plain.coef_).max() < 1e-3 * np.abs(plain.coef_).max()
    three = np.argmax(X @ rng.normal(size=(d, 3)) + rng.gumbel(size=(5_000, 3)), axis=1)
    among = LogisticRegression(epsilon=1e6, bounds=(-1, 1), classes=[0, 1, 2]).fit(X, three)
    known = linear_model.LogisticRegression(C=1e9, max_iter=1_000, tol=1e-8).fit(X, three)
    centred = [model.coef_ - model.coef_.mean(axis=0) for model in (among, known)]
    assert np.abs(centred[0] - centred[1]).max() < 1e-3 * np.abs(centred[1]).max()
    target = X @ w + 0.5 + rng.normal(size=5_000) * 0.5
    line = LinearRegression(epsilon=1e6, bounds=(-1, 1), target_range=(-15, 15)).fit(X, target)
    truth = linear_model.LinearRegression().fit(X, target)
    assert np.abs(line.coef_ - truth.coef_).max() < 1e-3 * np.abs(truth.coef_).max()


@pytest.mark.parametrize("declared", [False, True])
def test_ranges_that_would_be_noise_are_warned_of_before_anything_is_spent(declared: bool) -> None:
    """Few records, four columns, epsilon 1: learnt ranges were octaves of noise, in silence; on public facts.

    On what was: R² of -17 to -27, and no word. Now only the constant is learnt, which is said. With ranges declared
    there is nothing to warn of.
    """
    X = np.random.default_rng(0).uniform(-1, 1, size=(300 if declared else 170, 4))
    known: Any = {"bounds": (-1, 1), "target_range": (-2, 2)} if declared else {}
    model = LinearRegression(epsilon=1, **known)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, X[:, 0])
        LinearRegression(epsilon=1).fit(np.tile(X, (20, 1)), np.tile(X[:, 0], 20))  # enough records
    assert [kind.category for kind in told] == ([] if declared else [SmallEffectiveSample])
    assert declared or "the model is a constant" in str(told[0].message)


@pytest.mark.parametrize("model", [LinearRegression, LogisticRegression])
def test_where_there_is_plenty_ranges_are_wide_and_two_rounds_whiten(model: Any) -> None:
    """From 1,000 effective records a column on, with or without a sample; below, ranges are what most are in."""
    for records, plenty in ((3_000, False), (100_000, True), (3_000_000, True)):
        found = outlined(model(epsilon=1.0, delta=1e-7), Size(records=records, columns=5))
        assert found.ranges is not None
        assert (found.ranges.beyond > 0) == plenty
        assert found.target is None or (found.target.beyond > 0) == plenty
        assert not plenty or (found.whitener is not None and len(found.whitener.shares) == 2)
        assert (found.rate < 1) == (records > 1e6)


@pytest.mark.medium
@pytest.mark.parametrize("known", [{}, {"bounds": (-6, 6), "bounds_exact": True, "target_range": (-8, 8)}])
def test_nearly_collinear_columns_are_told_apart(known: dict[str, Any]) -> None:
    """Three columns that agree to a hundredth, with the signal in what they differ by: R² as without privacy.

    With one round of whitening and ranges that cut off half a per cent at either end it was .55, and .38 of declared
    ranges; scikit-learn has .766. Fixed seeds.
    """
    rng = np.random.default_rng(0)
    differ = rng.standard_normal((150_000, 3))
    X = rng.standard_normal((len(differ), 1)) + 0.01 * differ
    y = differ @ [1.5, -1.5, 0.0] * 0.85 + rng.standard_normal(len(X))
    model = LinearRegression(1.0, 1e-7, random_state=1, **known).fit(X, y)
    best = linear_model.LinearRegression().fit(X, y).score(X, y)
    assert model.score(X, y) > best - 0.005


@pytest.mark.parametrize("seen", [1.0, 4_999.0, 5_001.0, 1e4, 1e9])
def test_a_sample_for_ranges_stands_out_as_far_as_is_wanted(seen: float) -> None:
    """All records, or a sample of at least the solver's rate that stands out by 2,500 standard deviations."""
    assert range_rate(1.0, seen) == 1
    rate = range_rate(0.05, seen)
    assert (rate == 1) == (seen < 5_000)
    assert rate >= 0.05
    assert rate == 1 or rate * seen >= 2_500 * (1 - 1e-12)
    assert rate == 1 or 0.003 - 1e-12 <= sample_tail(rate * seen) < 0.005


def test_ranges_of_a_tall_table_are_learnt_from_a_quarter_of_it() -> None:
    """Norms and moments from a twentieth; declared ranges from that, too; with fewer records, all from all."""
    size = Size(records=2_000_000, columns=20)
    found = outlined(LogisticRegression(1.0, 1e-8, classes=[0, 1]), size)
    assert 0.05 < found.rate < 0.06
    assert 0.2 < found.ranging < 0.3
    declared = outlined(LogisticRegression(1.0, 1e-8, classes=[0, 1], bounds=(-4, 4)), size)
    assert declared.ranging == declared.rate == found.rate
    fewer = outlined(LogisticRegression(1.0, 1e-8, classes=[0, 1]), Size(records=100_000, columns=20))
    assert fewer.ranging == fewer.rate == 1


@pytest.mark.parametrize("known", [{"solver": "gradient"}, {"bounds_exact": True}, {}])
def test_a_classifier_that_learns_no_range_is_planned_however_small_epsilon_is(known: dict[str, Any]) -> None:
    """Its share for probabilities was asked for where there is none, and refused."""
    plan = LogisticRegression(1e-5, 1e-8, bounds=(0, 1), classes=[0, 1], **known).plan(records=1_000, columns=3)
    assert "calibration" not in plan.names


@pytest.mark.parametrize("records", [30, 300, 3_000])
def test_only_regressors_and_classifiers_draw_constants(records: int) -> None:
    """With few records at epsilon 1; beside an account neither do they, as it composes sums alone exactly.

    Least squares make no draws inside a range of [−1, 1], to which somebody has scaled them, or one said to be exact.
    Two classes need fewer records than several for a descent of their own; of many classes nothing is drawn.
    """
    known: dict[str, Any] = {"epsilon": 1.0, "bounds": (0, 9)}
    numbers: dict[str, Any] = {**known, "target_range": (0, 9)}
    account = Account(Budget(epsilon=9, delta=1e-3), neighbours="replace_one")

    def draws(model: Any) -> bool:
        plan = model.plan(records=records, columns=3)
        return any(release.mechanism is not None for release in plan.releases)

    for drawing in (HuberRegressor, QuantileRegressor, PoissonRegressor):
        assert draws(drawing(**numbers))
        assert not draws(drawing(**numbers, account=account))
    for line in (LinearRegression, Ridge):
        assert draws(line(**numbers)) == (records < 3_000)
        assert draws(line(**known)) == (records < 3_000)
        assert not draws(line(**numbers, bounds_exact=True))
        assert not draws(line(**numbers, account=account))
        assert not draws(line(**known, target_range=(-1, 1)))
    for classifier in (LogisticRegression, LinearSVC):
        assert draws(classifier(**known, classes=[0, 1])) == (records < 3_000)
        assert draws(classifier(**known, classes=[0, 1, 2]))
        assert not draws(classifier(**known, classes=list(range(9))))
        assert not draws(classifier(**known, classes=[0, 1, 2], class_weight={0: 2.0}))
        assert not any(draws(classifier(**known, classes=classes, account=account)) for classes in ([0, 1], [0, 1, 2]))


def test_waves_are_asked_of_wide_tables_of_several_classes() -> None:
    """Of 784 columns whose ranges are learnt and ten classes, where a Hessian drowns in noise; by public facts."""

    def names(epsilon: float, columns: int, classes: int, high: float = 255.0) -> tuple[str, ...]:
        model = LogisticRegression(epsilon, 1e-5, bounds=(0, high), classes=list(range(classes)))
        return model.plan(records=60_000, columns=columns).names

    assert "waves" in names(0.1, 784, 10)
    for others in ((0.1, 784, 2), (0.01, 784, 10), (1.0, 784, 10), (0.1, 100, 10)):
        assert "waves" not in names(*others)
    assert "waves" not in names(0.1, 784, 10, high=1.0)
