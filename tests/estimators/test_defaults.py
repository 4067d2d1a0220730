"""Settings by public facts: what grows with the signal, and where it ends."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn import linear_model

from privet.errors import SmallEffectiveSample
from privet.estimators import LinearRegression, LogisticRegression
from privet.estimators.defaults import LITTLE, Task, solver_for
from privet.losses import LogisticLoss, Loss, MultinomialLoss, SquaredLoss
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
    target = X @ w + 0.5 + rng.normal(size=5_000) * 0.5
    line = LinearRegression(epsilon=1e6, bounds=(-1, 1), target_range=(-15, 15)).fit(X, target)
    truth = linear_model.LinearRegression().fit(X, target)
    assert np.abs(line.coef_ - truth.coef_).max() < 1e-3 * np.abs(truth.coef_).max()
