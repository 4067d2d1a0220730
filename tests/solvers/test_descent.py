from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from privet import Budget, box, dp_gd, dp_sgd, follow, glm, l2_ball, noisy_gradient_descent
from privet.clipping import Clip
from privet.errors import Interrupted, InvalidParameter
from privet.geometry import whole_space
from privet.noise import banded_square_root
from privet.plan import gradient_plan
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import FullBatch, Poisson
from privet.solvers import (
    Adam,
    GradientStep,
    dp_svrg,
    fixed_hessian_descent,
    zeroth_order_descent,
)
from privet.solvers.descent import descend
from privet.solvers.plain_descent import projected_gradient_descent

BUDGET = Budget(epsilon=2, delta=1e-6)


def problem(**more: Any) -> Any:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3)) / 3
    return glm("logistic", X, X[:, 0] > 0, row_norm=1.0, **more)


PLAN: Any = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=5.0, steps=6, records=300, neighbours="replace_one")
SOLVERS: dict[str, Any] = {
    "noisy": lambda p, **k: noisy_gradient_descent(p, budget=BUDGET, steps=6, radius=1.0, **k),
    "gd": lambda p, **k: dp_gd(p, budget=BUDGET, steps=6, clip=1.0, **k),
    "sgd": lambda p, **k: dp_sgd(p, budget=BUDGET, steps=6, clip=1.0, sampling=Poisson(sampling_rate=0.2), **k),
    "correlated": lambda p, **k: dp_sgd(
        p, budget=BUDGET, steps=6, clip=1.0, sampling=FullBatch(), correlation=banded_square_root(3), **k
    ),
    "follow": lambda p, **k: follow(PLAN, p, delta=1e-6, update=GradientStep(step_size=1.0), **k),
    "svrg": lambda p, **k: dp_svrg(
        p,
        budget=BUDGET,
        epochs=2,
        epoch_steps=3,
        sampling=FullBatch(),
        clip=1.0,
        difference_clip=0.5,
        step_size=0.5,
        **k,
    ),
    "zeroth": lambda p, **k: zeroth_order_descent(p, budget=BUDGET, steps=6, clip=1.0, step_size=0.5, **k),
    "hessian": lambda p, **k: fixed_hessian_descent(p, budget=BUDGET, steps=6, clip=1.0, **k),
}


def walk(release: Any, steps: int = 5) -> Any:
    return descend(
        lambda w: np.ones(1),
        start=np.zeros(1),
        steps=steps,
        update=GradientStep(step_size=1.0),
        domain=whole_space(),
        release=release,
    )


def test_each_release_is_what_it_says() -> None:
    """w_t = −t here: the mean of all six points, the last, all, the mean of the last half."""
    assert walk("average").released.tolist() == [-2.5]
    assert walk("last").released.tolist() == [-5.0]
    assert walk("tail_average").released.tolist() == [-4.0]
    every = walk("all")
    assert every.points.ravel().tolist() == [0, -1, -2, -3, -4, -5]
    assert every.released.tolist() == [-5.0]
    assert walk("last").points is None
    assert walk("tail_average", steps=4).released.tolist() == [-3.0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_result_meets_its_budget_and_says_so(solver: str) -> None:
    """Guarantee within the budget, plan and shape as asked; a fixed seed invalidates it in the same breath."""
    result = SOLVERS[solver](problem())
    assert result.coef.shape == (3,)
    assert np.isfinite(result.coef).all()
    assert result.guarantee.invalidated == ""
    if solver != "follow":
        assert 1.99 < result.guarantee.epsilon <= 2
    assert result.guarantee.epsilon == result.plan.guarantee(delta=1e-6).epsilon
    seeded = SOLVERS[solver](problem(), random=fixed_seed_invalidates_guarantee(1))
    assert math.isinf(seeded.guarantee.epsilon)
    assert "NOT PRIVATE" in str(seeded.guarantee)
    again = SOLVERS[solver](problem(), random=fixed_seed_invalidates_guarantee(1))
    assert (seeded.coef == again.coef).all()
    assert (seeded.coef != result.coef).any()


@pytest.mark.medium
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("release", ["average", "last", "all", "tail_average"])
def test_every_release_has_one_price_and_stays_in_the_domain(solver: str, release: Any) -> None:
    """What is not shown is post-processing: the event does not depend on the release."""
    domain = box(low=[-0.25] * 3, high=[0.25] * 3)
    result = SOLVERS[solver](problem(domain=domain), release=release, random=fixed_seed_invalidates_guarantee(2))
    assert (
        result.plan.event
        == SOLVERS[solver](problem(domain=domain), random=fixed_seed_invalidates_guarantee(3)).plan.event
    )
    assert domain.contains(result.coef, tolerance=1e-12)
    assert (result.iterates is not None) == (release == "all")
    if release == "all":
        assert len(result.iterates) == 7
        assert (result.iterates[-1] == result.coef).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_bad_requests_are_refused_before_any_record_is_read(solver: str) -> None:
    """A start outside the set, of another shape or not finite, unknown releases, 'best': errors on public facts."""
    p = problem(domain=l2_ball(radius=1.0))
    p.gradient_sum = p.difference_sum = p.slope_sum = None
    for start in ([2.0, 0.0, 0.0], [0.0, 0.0], [np.nan, 0.0, 0.0], [[0.0, 0.0, 0.0]]):
        with pytest.raises(InvalidParameter, match="start"):
            SOLVERS[solver](p, start=np.array(start))
    for release in ("best", "mean", None):
        with pytest.raises(InvalidParameter, match=r"release|choose_best"):
            SOLVERS[solver](p, release=release)


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "follow"])
def test_add_remove_needs_a_public_guess_of_the_number_of_records(solver: str) -> None:
    """Rates, divisors and steps are never computed from a private number of records (docs/footguns.md, 24, 33)."""
    with pytest.raises(InvalidParameter, match="records"):
        SOLVERS[solver](problem(), neighbours="add_remove")
    result = SOLVERS[solver](problem(), neighbours="add_remove", records=1000)
    assert result.plan.records == 1000
    assert result.guarantee.neighbours == "add_remove"
    with pytest.raises(InvalidParameter, match="plan for 300 records"):
        SOLVERS[solver](problem(), records=299)
    with pytest.raises(InvalidParameter, match="neighbours"):
        SOLVERS[solver](problem(), neighbours="shuffle")


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "follow"])
def test_every_config_scalar_is_the_same_with_and_without_a_record(solver: str) -> None:
    """Record-replay on D and D less a record: the plans are equal, noise and divisor included.

    See docs/footguns.md, 24.
    """
    p = problem()
    less = glm("logistic", p.table.units[1:] * p.table.step, p.labels[1:], row_norm=1.0)
    plans = [SOLVERS[solver](q, neighbours="add_remove", records=300).plan for q in (p, less)]
    assert plans[0] == plans[1]
    for name in plans[0].names:
        assert plans[0].batch_size(name) == plans[1].batch_size(name)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("at", [1, 4])
def test_ctrl_c_leaves_a_partial_result_charged_in_full(solver: str, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted carries what was reached; its guarantee is that of the whole plan, never less.

    See docs/footguns.md, 37.
    """
    whole = SOLVERS[solver](problem())
    p = problem()
    calls = 0

    def breaks(name: str) -> None:
        original = getattr(p, name)

        def stops(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == at:
                raise KeyboardInterrupt
            return original(*args, **kwargs)

        setattr(p, name, stops)

    for name in ("gradient_sum", "difference_sum", "slope_sum"):
        breaks(name)
    with pytest.raises(Interrupted) as stopped:
        SOLVERS[solver](p, release="all")
    partial = stopped.value.partial
    assert len(partial.iterates) == at  # the start, and one for each step that was finished
    assert partial.guarantee.epsilon == pytest.approx(whole.guarantee.epsilon, rel=1e-9)
    assert partial.plan.event == whole.plan.event
    assert isinstance(stopped.value, KeyboardInterrupt)


def test_ctrl_c_from_a_sampler_is_charged_too() -> None:
    """An interrupt while a batch is drawn ends the same way."""

    class Breaking(Poisson):
        def indices(self, count: int, step: int, random: Any) -> Any:
            if step == 3:
                raise KeyboardInterrupt
            return super().indices(count, step, random)

    with pytest.raises(Interrupted) as stopped:
        dp_sgd(problem(), budget=BUDGET, steps=9, clip=1.0, sampling=Breaking(sampling_rate=0.2), release="all")
    assert len(stopped.value.partial.iterates) == 4
    assert 1.99 < stopped.value.partial.guarantee.epsilon <= 2


@pytest.mark.parametrize("steps", [0, -1, 2.5, True, None, "3"])
def test_runs_without_steps_are_refused(steps: Any) -> None:
    """T = 0 and what is no whole number of steps is refused by every solver."""
    for run in (
        lambda: projected_gradient_descent(problem(), steps=steps),
        lambda: dp_gd(problem(), budget=BUDGET, steps=steps, clip=1.0),
        lambda: noisy_gradient_descent(problem(), budget=BUDGET, radius=1.0, steps=0 if steps is None else steps),
        lambda: fixed_hessian_descent(problem(), budget=BUDGET, steps=steps, clip=1.0),
        lambda: zeroth_order_descent(problem(), budget=BUDGET, steps=steps, clip=1.0, step_size=1.0),
    ):
        with pytest.raises(InvalidParameter, match="steps"):
            run()


@pytest.mark.parametrize("step_size", [0.0, -1.0, math.nan, math.inf])
def test_step_sizes_that_do_not_descend_are_refused(step_size: float) -> None:
    """η ≤ 0 is refused by every solver."""
    for run in (
        lambda: projected_gradient_descent(problem(), steps=2, step_size=step_size),
        lambda: dp_gd(problem(), budget=BUDGET, steps=2, clip=1.0, step_size=step_size),
        lambda: noisy_gradient_descent(problem(), budget=BUDGET, radius=1.0, steps=2, step_size=step_size),
        lambda: fixed_hessian_descent(problem(), budget=BUDGET, steps=2, clip=1.0, step_size=step_size),
        lambda: zeroth_order_descent(problem(), budget=BUDGET, steps=2, clip=1.0, step_size=step_size),
    ):
        with pytest.raises(InvalidParameter, match="step_size"):
            run()


def test_a_descent_that_diverges_says_so() -> None:
    """Coefficients that are no longer finite end the run with advice; the message quotes nothing private."""
    p = glm("half_squared", np.ones((5, 1)), np.ones(5), row_norm=1.0)
    with pytest.raises(InvalidParameter, match="stay finite"):
        projected_gradient_descent(p, steps=5000, step_size=1e3)


def test_results_show_released_values_only() -> None:
    """A result has coefficients, guarantee, plan, bound, iterates: no losses, counts or indices.

    See docs/footguns.md, 36, 43.
    """
    result = SOLVERS["sgd"](problem())
    assert set(type(result).__slots__) == {"coef", "guarantee", "plan", "bound", "iterates"}
    assert "ε = 2, δ = 1e-06" in repr(result)
    with pytest.raises(InvalidParameter, match=r"either clip=... or bounding=..."):
        dp_gd(problem(), budget=BUDGET, steps=2)


def independent_loop(p: Any, steps: int, eta: float, clip: float, domain: Any, ridge: float) -> Any:
    """Bounded descent again, in int64 and nothing else of the library but loss and projection."""
    X = p.table.units.astype(np.int64)
    n = len(X)
    bits = min(41, 61 - (n - 1).bit_length())
    step = 2.0 ** (math.ceil(math.log2(clip)) - bits)
    clip_units = math.floor(clip / step)
    lengths = np.sqrt((X * X).sum(axis=1).astype(float))
    cap = np.where(lengths > 0, np.floor(clip_units * ((1 - 2.0**-50) / np.where(lengths > 0, lengths, 1))), 0)
    theta, points = np.zeros(X.shape[1]), [np.zeros(X.shape[1])]
    for _ in range(steps):
        size = np.linalg.norm(theta)
        theta_step = 2.0 ** (math.frexp(size)[1] - 36) if size else 1.0
        z = (X @ np.trunc(theta / theta_step).astype(np.int64)).astype(float) * (theta_step * p.table.step)
        a = np.rint(p.loss.derivative(z, p.labels) / (step / p.table.step))
        a = np.minimum(np.maximum(a, -cap), cap).astype(np.int64)
        gradient = (a @ X).astype(float) * step / n + ridge * theta
        theta = domain.project(theta - eta * gradient)
        points.append(theta)
    return np.array(points)


@pytest.mark.parametrize("loss", ["logistic", "squared", "absolute"])
@pytest.mark.parametrize("clip", [0.3, 1.0, 1e3])
def test_without_noise_it_is_bit_for_bit_an_independent_loop(loss: str, clip: float) -> None:
    """Bounded descent equals an obvious loop in NumPy integers, in every bit of every point."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 5)) / 2
    X[7] = 0
    domain = l2_ball(radius=0.8)
    p = glm(loss, X, (X @ rng.normal(size=5) > 0).astype(float), row_norm=1.0, domain=domain, ridge=0.1)
    found = projected_gradient_descent(p, steps=25, step_size=0.7, bounding=Clip(clip=clip), release="all")
    assert (found.points == independent_loop(p, 25, 0.7, clip, domain, 0.1)).all()
    if clip == 1e3:
        plain = projected_gradient_descent(p, steps=25, step_size=0.7, release="all")
        if loss != "absolute":  # whose sign may turn on the last bit
            assert found.points == pytest.approx(plain.points, abs=1e-6)  # slopes are whole multiples of 8e-6


def test_plain_descent_is_the_lectures() -> None:
    """w − η ∇L and projection, no rounding of coefficients, any update rule; it carries no guarantee."""
    p = glm("half_squared", [[1.0], [1.0]], [0.0, 1.0], row_norm=1.0, domain=l2_ball(radius=0.25))
    path = projected_gradient_descent(p, steps=3, step_size=0.1, release="all")
    assert path.points is not None
    assert path.points.ravel() == pytest.approx([0, 0.05, 0.095, 0.1355])
    far = projected_gradient_descent(p, steps=300, step_size=0.1, release="last")
    assert far.released == pytest.approx([0.25])
    assert not hasattr(far, "guarantee")
    adam = projected_gradient_descent(p, steps=300, update=Adam(step_size=0.05), release="last")
    assert adam.released == pytest.approx([0.25], abs=0.01)
