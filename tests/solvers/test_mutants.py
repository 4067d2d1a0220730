"""Each known way to break a private descent is caught: a detector passes on the library and fails on the mutant.

Statistical detectors run from fixed seeds; their false-positive rate is below 1e-6 and their power against the
mutant named here above 0.99.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privet import Budget, glm
from privet.accounting import Gaussian, guarantee
from privet.clipping import Adaptive, Clip
from privet.losses import CustomLoss, Ridge
from privet.noise import add_gaussian
from privet.plan import Meter, Plan, gradient_plan, meter
from privet.problems import LinearProblem
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.sampling import FullBatch, Poisson
from privet.solvers import dp_svrg
from privet.solvers.gradient import PrivateGradient
from privet.sums import compiled, record_sum
from privet.sums import glm as sums

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.usefixtures("both_paths")


def private(problem: Any, steps: int, noise: float, clip: float = 1.0, **more: Any) -> PrivateGradient:
    settings: dict[str, Any] = {
        "bounding": Clip(clip=clip),
        "records": problem.records,
        "neighbours": "zero_out",
        **more,
    }
    plan = gradient_plan(noise_multiplier=noise, steps=steps, **settings)
    return PrivateGradient(problem, Meter(plan, random=fixed_seed_invalidates_guarantee(1)))


# Detectors: each raises if something is wrong.


def noise_is_as_planned() -> None:
    """Stddev of 40,000 released coordinates within 2 % of the plan's: 5.6 standard errors."""
    step = private(glm("half_squared", np.zeros((8, 1000)), np.zeros(8), row_norm=1.0), 40, 3.0)
    released = np.array([step(np.zeros(1000)) for _ in range(40)])
    assert abs(released.std() / (3.0 / 8) - 1) < 0.02


def one_record_moves_at_most_the_clip() -> None:
    """One huge record among 99 empty ones, exactly."""
    X, y = np.zeros((100, 2)), np.full(100, -1e9)
    X[0] = [0.6, 0.8]
    whole, less = (glm("half_squared", A, y, row_norm=1.0) for A in (X, X * 0))
    moved = (whole.gradient_sum(np.zeros(2), rule=Clip(clip=1.0)).value) - (
        less.gradient_sum(np.zeros(2), rule=Clip(clip=1.0)).value
    )
    assert np.linalg.norm(moved) <= 1.0


def the_divisor_is_public() -> None:
    """With hardly any noise a mean times the public divisor is the whole number of records drawn."""
    problem = glm("half_squared", np.ones((20, 1)), -np.ones(20), row_norm=1.0)
    step = private(problem, 40, 1e-6, clip=2.0, sampling=Poisson(sampling_rate=0.2))
    sizes = np.array([float(step(np.zeros(1))[0]) for _ in range(40)]) * 4
    assert np.abs(sizes - np.rint(sizes)).max() < 1e-3
    assert sizes.std() > 0.5


def drawn(steps: int) -> list[Any]:
    """The batches that reach the records of a real run."""
    problem: Any = glm("half_squared", np.ones((50, 1)), np.zeros(50), row_norm=1.0)
    seen: list[Any] = []
    original = problem.gradient_sum

    def spy(theta: Any, **kwargs: Any) -> Any:
        seen.append(set(kwargs["indices"].tolist()))
        return original(theta, **kwargs)

    problem.gradient_sum = spy
    step = private(problem, steps, 1.0, sampling=Poisson(sampling_rate=0.1))
    for _ in range(steps):
        step(np.zeros(1))
    return seen


def batches_are_poisson() -> None:
    """Inclusion counts of 50 records over 300 steps spread as binomials do (chi-square, two-sided, 1e-6)."""
    counts = np.zeros(50)
    for batch in drawn(300):
        counts[list(batch)] += 1
    spread = float(((counts - 30) ** 2).sum() / (300 * 0.1 * 0.9))
    assert 5e-7 < stats.chi2.cdf(spread, 50) < 1 - 5e-7


def batches_are_fresh() -> None:
    """Neighbouring batches share as many records as chance has it: 0.5 ± 0.7 of 50 each, over 299 pairs."""
    batches = drawn(300)
    shared = sum(len(one & two) for one, two in itertools.pairwise(batches))
    assert abs(shared - 299 * 0.5) < 5.5 * math.sqrt(299 * 0.5)


def bad_derivatives_count_as_zero() -> None:
    """A record whose derivative is NaN leaves the sum as if it were not there."""
    loss = CustomLoss(
        value=lambda z, y: np.zeros_like(np.asarray(z)),
        derivative=lambda z, y: np.where(np.asarray(y) == 7, np.nan, 1.0),
        curvature=lambda z, y: np.zeros_like(np.asarray(z)),
    )
    found = glm(loss, np.ones((3, 1)), [0.0, 7.0, 0.0], row_norm=1.0).gradient_sum(np.zeros(1), rule=Clip(clip=4.0))
    assert found.value.tolist() == [2.0]


def the_count_is_charged() -> None:
    """Gradient and count, as they are run, cost no more than one release of the plan's multiplier, exactly."""
    asked: list[float] = []
    problem = glm("half_squared", np.ones((8, 1)), np.zeros(8), row_norm=1.0)
    step = private(problem, 1, 2.0, bounding=Adaptive(clip=1.0, count_noise=1.5))

    def spy(units: Any, **kwargs: Any) -> Any:
        asked.append(kwargs["noise_stddev"])
        return add_gaussian(units, **kwargs)

    with Patch.context() as patch:
        patch.setattr(meter, "add_gaussian", spy)
        step(np.zeros(1))
    own, count = (Fraction(stddev) for stddev in asked)
    assert 1 / own**2 + 1 / (2 * count) ** 2 <= 1 / Fraction(2) ** 2


def every_release_is_charged() -> None:
    """The Gaussian releases that an SVRG run makes, priced one by one, cost no more than its guarantee."""
    problem = glm("half_squared", np.ones((50, 1)), np.zeros(50), row_norm=1.0)
    multipliers: list[float] = []
    original = Meter.noisy

    def spy(self: Meter, name: str, total: Any) -> Any:
        multipliers.append(self.noise_stddev(name) / total.clip)
        return original(self, name, total)

    with Patch.context() as patch:
        patch.setattr(Meter, "noisy", spy)
        result = dp_svrg(
            problem,
            budget=Budget(epsilon=2, delta=1e-6),
            epochs=3,
            epoch_steps=4,
            sampling=FullBatch(),
            clip=1.0,
            difference_clip=0.5,
            step_size=0.5,
        )
    assert len(multipliers) == 12
    event: Any = Gaussian(noise_multiplier=multipliers[0])
    for multiplier in multipliers[1:]:
        event = event + Gaussian(noise_multiplier=multiplier)
    spent = guarantee(event, delta=1e-6, neighbours="replace_one").epsilon
    assert spent <= result.guarantee.epsilon * (1 + 1e-9)
    assert result.guarantee.epsilon <= 2


def the_penalty_is_whole() -> None:
    """At a small clip and hardly any noise the penalty's gradient is there in full."""
    problem = glm("half_squared", np.ones((8, 1)), np.full(8, 1e6), row_norm=1.0, ridge=2.0)
    released = private(problem, 1, 1e-6, clip=0.5)(np.array([10.0]))
    assert abs(float(released[0]) - (2.0 * 10 - 0.5)) < 1e-4


# Mutants: each breaks the library in one named way.


def noise_halved(patch: Patch) -> None:
    patch.setattr(
        meter, "add_gaussian", lambda units, **k: add_gaussian(units, **{**k, "noise_stddev": k["noise_stddev"] / 2})
    )


def noise_of_a_mean_on_a_sum(patch: Patch) -> None:
    original = Meter.noise_stddev
    patch.setattr(Meter, "noise_stddev", lambda self, name, **k: original(self, name, **k) / self.plan.batch_size(name))


def clip_after_the_mean(patch: Patch) -> None:
    def summed(self: Any, theta: Any, *, rule: Any, indices: Any = None, max_records: int = 2**27) -> Any:
        X = self.table.units * self.table.step
        mean = X.T @ self.loss.derivative(X @ theta, self.labels) / len(X)
        clipped = record_sum(mean[None], rule=rule, max_records=max_records)
        return replace(clipped, units=clipped.units * len(X))

    patch.setattr(LinearProblem, "gradient_sum", summed)


def divide_by_the_realised_batch(patch: Patch) -> None:
    sizes: list[int] = []
    original, noisy = Poisson.indices, Meter.noisy

    def indices(self: Any, count: int, step: int, random: Any) -> Any:
        batch = original(self, count, step, random)
        sizes.append(max(1, len(batch)))  # type: ignore[arg-type]
        return batch

    patch.setattr(Poisson, "indices", indices)
    patch.setattr(
        Meter,
        "noisy",
        lambda self, name, total: noisy(self, name, total) * self.plan.batch_size(name) / sizes[-1],
    )


def shuffle_for_poisson(patch: Patch) -> None:
    order = np.random.default_rng(2).permutation(50)
    patch.setattr(Poisson, "indices", lambda self, count, step, random: np.sort(order[step % 10 :: 10]))


def batch_reused(patch: Patch) -> None:
    original = Poisson.indices
    patch.setattr(
        Poisson,
        "indices",
        lambda self, count, step, random: original(self, count, 0, fixed_seed_invalidates_guarantee(3)),
    )


def previous_indices_reused(patch: Patch) -> None:
    original = Poisson.indices
    last: list[Any] = []

    def indices(self: Any, count: int, step: int, random: Any) -> Any:
        if step % 2 == 0:
            last[:] = [original(self, count, step, random)]
        return last[0]

    patch.setattr(Poisson, "indices", indices)


def nan_passes(patch: Patch) -> None:
    def bounded(a: Any, inverse: Any, rule: Any, clip_units: int, x_step: float, a_step: float) -> int:
        cap = np.floor(clip_units * inverse)
        a /= a_step
        np.rint(a, out=a)
        np.minimum(a, cap, out=a)
        np.maximum(a, -cap, out=a)
        return 0

    patch.setattr(sums, "_bounded", bounded)
    _compiled(patch, bound=lambda a, inverse, clip, step: bounded(a, inverse, None, clip, 0.0, step))


def cap_forgotten(patch: Patch) -> None:
    def bounded(a: Any, inverse: Any, rule: Any, clip_units: int, x_step: float, a_step: float) -> int:
        np.copyto(a, np.rint(np.nan_to_num(a) / a_step))
        return 0

    patch.setattr(sums, "_bounded", bounded)
    _compiled(patch, bound=lambda a, inverse, clip, step: bounded(a, inverse, None, clip, 0.0, step))


def _compiled(patch: Patch, **broken: Any) -> None:
    """Break the compiled functions too, where they are in use."""

    def kernels_for(*what: Any) -> Any:
        found = compiled.kernels_for(*what)
        return None if found is None else found._replace(**broken)

    patch.setattr("privet.sums.blocks.kernels_for", kernels_for)


def count_uncharged(patch: Patch) -> None:
    patch.setattr(Adaptive, "gradient_multiplier", lambda self, noise: noise)


def snapshots_uncharged(patch: Patch) -> None:
    original = Plan.event.fget  # type: ignore[attr-defined]  # a property

    def forgetful(plan: Any) -> Any:
        paid = tuple(release for release in plan.releases if release.name != "snapshots")
        return original(replace(plan, releases=paid))

    patch.setattr(Plan, "event", property(forgetful))


def ridge_inside_the_clip(patch: Patch) -> None:
    def summed(self: Any, theta: Any, *, rule: Any, indices: Any = None, max_records: int = 2**27) -> Any:
        X = self.table.units * self.table.step
        rows = X * np.asarray(self.loss.derivative(X @ theta, self.labels))[:, None] + self.ridge.alpha * theta
        return record_sum(rows, rule=rule, max_records=max_records)

    patch.setattr(LinearProblem, "gradient_sum", summed)
    patch.setattr(Ridge, "gradient", lambda self, theta: np.zeros_like(theta))


CASES: list[tuple[Any, Any]] = [
    (noise_halved, noise_is_as_planned),
    (noise_of_a_mean_on_a_sum, noise_is_as_planned),
    (clip_after_the_mean, one_record_moves_at_most_the_clip),
    (cap_forgotten, one_record_moves_at_most_the_clip),
    (divide_by_the_realised_batch, the_divisor_is_public),
    (shuffle_for_poisson, batches_are_poisson),
    (batch_reused, batches_are_poisson),
    (batch_reused, batches_are_fresh),
    (previous_indices_reused, batches_are_fresh),
    (nan_passes, bad_derivatives_count_as_zero),
    (count_uncharged, the_count_is_charged),
    (snapshots_uncharged, every_release_is_charged),
    (ridge_inside_the_clip, the_penalty_is_whole),
]


@pytest.mark.medium
@pytest.mark.parametrize("detector", list(dict.fromkeys(d for _, d in CASES)), ids=lambda d: str(d.__name__))
def test_detectors_pass_on_the_library(detector: Callable[[], None]) -> None:
    """No detector cries wolf: false-positive rates below 1e-6, or exact."""
    detector()


@pytest.mark.medium
@pytest.mark.parametrize(("mutant", "detector"), CASES, ids=lambda f: f.__name__)
def test_mutants_are_caught(mutant: Callable[[Patch], None], detector: Callable[[], None], monkeypatch: Patch) -> None:
    """Each mutant makes its detector fail (docs/footguns.md, 8, 21, 22, 23, 25, 35, 36, 37, 40)."""
    mutant(monkeypatch)
    with pytest.raises((AssertionError, RuntimeWarning)):
        detector()
