from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from privet import glm
from privet.arrays import Vector
from privet.errors import InvalidParameter
from privet.losses import LogisticLoss, MultinomialLoss
from privet.noise import add_gaussian
from privet.plan import Meter, Plan, meter
from privet.problems import LinearProblem
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers.recalibration import CALIBRATION, Recalibration

COLUMNS, ROWS = 3, 20_000
SHRINK = 1 / math.hypot(6.0, 1.0)  # rows of norm at most 6 beside a constant of 1
TRUTH = np.array([1.0, -0.5, 0.25, 0.4])  # logits a standard deviation, and the intercept


def records(classes: int = 2, *, people: bool = False, truth: Vector = TRUTH) -> LinearProblem:
    """White rows and labels of a known model; with people, everybody has two rows."""
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.normal(size=(ROWS, COLUMNS)), np.ones(ROWS)])
    scores = rows @ (truth if classes == 2 else several(truth))
    if classes == 2:
        labels = (rng.random(ROWS) < 1 / (1 + np.exp(-scores))).astype(float)
    else:
        labels = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1).astype(float)
    loss: Any = LogisticLoss(labels="zero_one") if classes == 2 else MultinomialLoss(classes=classes)
    groups = np.arange(ROWS) // 2 if people else None
    problem: Any = glm(loss, rows * SHRINK, labels, row_norm=1.0, groups=groups)
    return problem  # type: ignore[no-any-return]


def several(truth: Vector) -> Vector:
    return np.column_stack([truth, -truth, np.roll(truth, 1)])


def metered(found: Recalibration, problem: Any, *, noise: float) -> Meter:
    releases = found.releases(noise_multiplier=noise)
    plan = Plan(releases=releases, records=problem.records, neighbours="zero_out", unit=problem.unit)
    return Meter(plan, random=fixed_seed_invalidates_guarantee(1))


def run(found: Recalibration, problem: Any, theta: Vector, *, noise: float = 1e-3) -> Vector:
    """θ recalibrated, in logits a standard deviation."""
    counter = metered(found, problem, noise=noise)
    better = found.run(problem, theta / SHRINK, SHRINK, counter)
    counter.finish()
    return better * SHRINK


@pytest.mark.medium
@pytest.mark.parametrize("people", [False, True])
@pytest.mark.parametrize(("too", "off"), [(4.0, 1.0), (0.2, -2.0), (1.0, 0.0)])
def test_slope_and_intercept_come_back(too: float, off: float, people: bool) -> None:
    """Noise off, no score cut: of a score that is too sure or too shy, the fit of two numbers, to 3 %.

    The fit itself is away from the truth by its standard error: 0.02 here, and the test allows four of those.
    """
    wrong = TRUTH * [too, too, too, 1] + [0, 0, 0, off]
    right = run(Recalibration(several=False, long=8.0, steps=20), records(people=people), wrong)
    np.testing.assert_allclose(right, TRUTH, atol=0.08)
    assert np.linalg.norm(right[:-1]) == pytest.approx(np.linalg.norm(TRUTH[:-1]), rel=0.03)


@pytest.mark.medium
@pytest.mark.parametrize(("cut", "off"), [(1.0, 0.03), (4.0, 0.003)])
@pytest.mark.parametrize("too", [4.0, 1.0, 0.25])
def test_the_temperature_comes_back(too: float, cut: float, off: float) -> None:
    """Noise off: of several classes, the factor at which the loss is least, slopes and intercepts alike.

    To 3 %; where less is cut of a record's slope of the loss, to 0.3 %.
    """
    problem, theta = records(3), several(TRUTH)
    right = run(Recalibration(several=True, steps=20, cut=cut), problem, too * theta)
    rows = problem.table.units * (problem.table.step / SHRINK)
    labels = problem.labels

    def loss(factor: Vector) -> float:
        z = (rows[:, :-1] @ theta[:-1] + theta[-1]) * factor[0]
        return float(problem.loss.value(z, labels).mean())

    best = float(minimize(loss, [1.0]).x[0])
    np.testing.assert_allclose(right, best * theta, rtol=off)


def test_records_that_weigh_less_get_the_same_factor() -> None:
    """Under "add_remove", beside a guess three times too high; steps were as if each weighed one."""
    problem, theta = records(3), several(TRUTH)
    for too in (4.0, 0.25):
        found = Recalibration(several=True, steps=20)
        plan = Plan(
            releases=found.releases(noise_multiplier=1e-3), records=3 * problem.records, neighbours="add_remove"
        )
        meter = Meter(plan, random=fixed_seed_invalidates_guarantee(1))
        right = found.run(problem, too * theta / SHRINK, SHRINK, meter, weight=1 / 3) * SHRINK
        meter.finish()
        np.testing.assert_allclose(right, theta, rtol=0.05, atol=0.03)


@pytest.mark.medium
def test_the_factor_stays_near_1_where_it_is_all_noise() -> None:
    """Noise of ten times what all records add up to: it was doubled or halved at every step."""
    problem, theta = records(3), several(TRUTH)
    for _ in range(5):
        right = run(Recalibration(several=True), problem, theta, noise=1e5)
        np.testing.assert_allclose(right, theta, rtol=0.01)


def test_few_steps_do_most_of_the_way() -> None:
    """With the five steps of the default, a score that is three times too sure is within 15 % of the truth."""
    right = run(Recalibration(several=False, long=8.0), records(), TRUTH * [3, 3, 3, 1])
    assert np.linalg.norm(right[:-1]) == pytest.approx(np.linalg.norm(TRUTH[:-1]), rel=0.15)


def left_of_noise() -> float:
    """What is left on average of the slope of a score that labels have nothing to do with, in sizes of its noise."""
    few = 2_000
    rng = np.random.default_rng(6)
    rows = np.column_stack([rng.normal(size=(few, COLUMNS)), np.ones(few)]) * SHRINK
    problem: Any = glm(LogisticLoss(labels="zero_one"), rows, rng.integers(0, 2, few).astype(float), row_norm=1.0)
    found = Recalibration(several=False)
    release = found.releases(noise_multiplier=50.0)[0]
    # divided by the curvature at 0 of the logistic loss, for a score of standard deviation 1; of four steps
    noise = release.noise_stddev("zero_out") / few * math.hypot(1.4, 1.0) / 0.7 / 0.25 / math.sqrt(4)
    left = []
    for seed in range(60):
        plan = Plan(releases=(release,), records=few, neighbours="zero_out")
        counter = Meter(plan, random=fixed_seed_invalidates_guarantee(seed))
        left.append(float(np.linalg.norm(found.run(problem, TRUTH / SHRINK, SHRINK, counter)[:-1] * SHRINK)))
    return float(np.mean(left)) / noise


@pytest.mark.medium
def test_a_slope_of_noise_is_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the slope of a score that says nothing, less than a quarter of its noise is left on average over 60 seeds.

    Mutant: no shrinking but of slopes below 0, which leaves twice as much or more.
    """
    shrunk = left_of_noise()
    assert shrunk < 0.25
    monkeypatch.setattr(np.linalg, "inv", np.zeros_like)  # no doubt about any slope
    assert left_of_noise() > max(0.25, 2 * shrunk)


@pytest.mark.parametrize("classes", [2, 3])
def test_its_noise_is_what_was_planned(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps together cost what one release of the multiplier costs, in fractions; and so much is drawn.

    Mutant: noise for one step on each of the five, in tests/estimators/test_transcripts.py.
    """
    asked: list[tuple[float, int]] = []

    def spy(units: Any, **named: Any) -> Any:
        asked.append((named["noise_stddev"], np.size(units)))
        return add_gaussian(units, **named)

    monkeypatch.setattr(meter, "add_gaussian", spy)
    found = Recalibration(several=classes > 2)
    run(found, records(classes), TRUTH if classes == 2 else several(TRUTH), noise=7.0)
    clip = found.releases(noise_multiplier=7.0)[0].bound.clip  # type: ignore[union-attr]
    spent = sum((Fraction(clip) / Fraction(stddev)) ** 2 for stddev, _ in asked)
    assert len(asked) == found.steps
    assert {size for _, size in asked} == {2 if classes == 2 else 1}
    assert spent <= Fraction(1, 49)
    assert spent == pytest.approx(1 / 49, rel=1e-12)


def test_a_plan_with_another_clip_is_refused() -> None:
    """Several classes' slopes are cut to far less than two classes' gradients: neither runs on the other's plan."""
    two, more = Recalibration(several=False), Recalibration(several=True)
    counter = metered(two, records(3), noise=5.0)
    with pytest.raises(InvalidParameter, match="Expected 2 numbers"):
        more.run(records(3), several(TRUTH) / SHRINK, SHRINK, counter)


def test_nothing_to_calibrate_is_harmless() -> None:
    """Coefficients of 0, or far too large, and no record but one: finite numbers come out, and nothing is raised."""
    one: Any = glm(LogisticLoss(labels="zero_one"), np.array([[0.1, 0.2]]), np.array([1.0]), row_norm=1.0)
    for theta in (np.zeros(2), np.array([1e30, -1e30]), np.array([1e-30, 0.0])):
        found = Recalibration(several=False)
        for noise in (0.01, 100.0):
            assert np.isfinite(found.run(one, theta, 0.2, metered(found, one, noise=noise))).all()
    assert CALIBRATION in metered(found, one, noise=1.0).plan


@pytest.mark.medium
def test_a_rare_class_is_found_out_by_five_steps() -> None:
    """One of 200, a slope a third of what is right, noise of 20 records: slope and mean within 15 % of the truth.

    On average over twenty fixed seeds, of which one slope has a standard deviation of 14 %. Newton steps on scores
    about 0, as there were before, left slopes a third too small on average, and by half in the worst.
    """
    rng, many = np.random.default_rng(3), 60_000
    rows = np.column_stack([rng.normal(size=(many, COLUMNS)), np.ones(many)])
    truth = np.array([1.5, -0.8, 0.6, -7.0])
    labels = (rng.random(many) < 1 / (1 + np.exp(-rows @ truth))).astype(float)
    problem: Any = glm(LogisticLoss(labels="zero_one"), rows * SHRINK, labels, row_norm=1.0)
    assert 0.004 < labels.mean() < 0.007
    found, left = Recalibration(several=False), []
    for seed in range(20):
        plan = Plan(releases=found.releases(noise_multiplier=20.0), records=many, neighbours="zero_out")
        counter = Meter(plan, random=fixed_seed_invalidates_guarantee(seed))
        shy = truth * [1 / 3, 1 / 3, 1 / 3, 0.75]
        better = found.run(problem, shy / SHRINK, SHRINK, counter) * SHRINK
        mean = (1 / (1 + np.exp(-rows @ better))).mean()
        left.append([np.linalg.norm(better[:-1]) / np.linalg.norm(truth[:-1]), mean])
    slopes, means = np.array(left).T
    assert slopes.mean() == pytest.approx(1.0, abs=0.15)
    assert slopes.min() > 0.6
    assert means.mean() == pytest.approx(labels.mean(), rel=0.15)
