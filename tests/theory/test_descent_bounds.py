from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.errors import InvalidParameter
from privet.theory import (
    average_iterate_bound,
    estimated_gradient_bound,
    exact_noise,
    gradient_descent_bound,
    last_iterate_bound,
    linear_decay_bound,
    nikolov_bound,
    rank_bound,
    second_moment,
)

counts = st.integers(1, 10**6)
sizes = st.floats(1e-3, 1e3)
noises = st.floats(0.0, 1e3)

# Values named as in the project's reference table (mpmath, 30 digits, rounded to 15).
NOISE_100 = 0.0746126326963188  # sigma_exact_1: G = 1, n = 1000, T = 100, epsilon = 1, delta = 1e-5


def noise(steps: int) -> float:
    """The exact noise for G = 1, n = 1000, epsilon = 1, delta = 1e-5."""
    return exact_noise(epsilon=1.0, delta=1e-5, steps=steps, sensitivity=2 / 1000)


def test_bounds_meet_the_reference_table() -> None:
    """thm2.1_bound, excess_bound_opt_eta, shamir_zhang and rank_bound of the reference table."""
    assert gradient_descent_bound(steps=400, distance=2, lipschitz=3).value == pytest.approx(0.3, rel=1e-12)
    assert noise(100) == pytest.approx(NOISE_100, rel=1e-9)
    average = average_iterate_bound(steps=100, distance=1, lipschitz=1, d=10, noise_stddev=noise(100))
    assert average.value == pytest.approx(0.102745824712188, rel=1e-9)
    last = last_iterate_bound(steps=1000, diameter=2, lipschitz=1, d=1, noise_stddev=0.0)
    assert last.value == pytest.approx(1.12675182083889, rel=1e-12)
    rank = rank_bound(steps=100, seminorm=2, lipschitz=1, rank=5, noise_stddev=noise(100))
    assert rank.value == pytest.approx(0.20276441746908, rel=1e-9)


def test_claims_section_3_1_holds_as_written() -> None:
    """R G √(1/T + 4d/(nμ)²), at most √2 of its floor at T = ⌈n²μ²/(4d)⌉: 0.0334 over 0.0236 (section 3.2)."""
    mu = 0.268051123211294  # mu_exact_1_1e-5
    floor = 2 * math.sqrt(10) / (1000 * mu)
    assert floor == pytest.approx(0.0235945861541918, rel=1e-12)  # floor_bound
    steps = math.ceil(1000**2 * mu**2 / 40)
    found = average_iterate_bound(steps=steps, distance=1, lipschitz=1, d=10, noise_stddev=noise(steps)).value
    assert found == pytest.approx(0.0334, abs=5e-5)
    assert found == pytest.approx(math.sqrt(1 / steps + floor**2), rel=1e-9)
    assert found <= math.sqrt(2) * floor * (1 + 1e-9)


def test_nikolov_is_the_average_bound_with_an_intercept() -> None:
    """R √(d+1) √(1/T + 4(d+1)/(nμ)²) of section 3.7, and smaller with the sharper constant of the ball."""
    n, d, steps, mu = 1000, 9, 500, 0.268051123211294
    sigma = exact_noise(epsilon=1.0, delta=1e-5, steps=steps, sensitivity=2 * math.sqrt(d + 1) / n)
    found = nikolov_bound(steps=steps, radius=2.0, d=d, noise_stddev=sigma)
    by_hand = 2.0 * math.sqrt(d + 1) * math.sqrt(1 / steps + 4 * (d + 1) / (n * mu) ** 2)
    assert found.value == pytest.approx(by_hand, rel=1e-9)
    assert nikolov_bound(steps=steps, radius=2.0, d=d, noise_stddev=sigma, lipschitz=3.0).value < found.value


@given(counts, sizes, sizes, counts, noises)
def test_the_default_step_size_is_the_best(steps: int, distance: float, lipschitz: float, d: int, sigma: float) -> None:
    """No other constant step size has a smaller bound, and the best one's formula agrees with lemma 2.7."""
    known = {"steps": steps, "distance": distance, "lipschitz": lipschitz, "d": d, "noise_stddev": sigma}
    best = average_iterate_bound(**known).value  # type: ignore[arg-type]
    moment = second_moment(steps=steps, lipschitz=lipschitz, d=d, noise_stddev=sigma)
    eta = distance / math.sqrt(steps * moment)
    assert average_iterate_bound(**known, step_size=eta).value == pytest.approx(best, rel=1e-9)  # type: ignore[arg-type]
    for factor in (0.1, 0.9, 1.1, 10.0):
        assert average_iterate_bound(**known, step_size=eta * factor).value >= best * (1 - 1e-12)  # type: ignore[arg-type]


@given(counts, sizes, sizes, counts, noises)
def test_bounds_are_monotone(steps: int, distance: float, lipschitz: float, d: int, sigma: float) -> None:
    """Bounds rise with distance, gradient, dimension and noise, and fall with steps at fixed noise."""

    def at(steps: int, distance: float, lipschitz: float, d: int, sigma: float) -> tuple[float, float, float]:
        return (
            average_iterate_bound(steps=steps, distance=distance, lipschitz=lipschitz, d=d, noise_stddev=sigma).value,
            rank_bound(steps=steps, seminorm=distance, lipschitz=lipschitz, rank=d, noise_stddev=sigma).value,
            last_iterate_bound(steps=steps, diameter=distance, lipschitz=lipschitz, d=d, noise_stddev=sigma).value,
        )

    here = np.array(at(steps, distance, lipschitz, d, sigma))
    more = [
        at(steps, 2 * distance, lipschitz, d, sigma),
        at(steps, distance, 2 * lipschitz, d, sigma),
        at(steps, distance, lipschitz, 2 * d, sigma),
        at(steps, distance, lipschitz, d, 2 * sigma),
    ]
    assert (np.array(more) >= here * (1 - 1e-12)).all()
    assert (np.array(at(steps + 1, distance, lipschitz, d, sigma)) <= here * (1 + 1e-12)).all()


@given(counts, sizes, sizes, counts, noises)
def test_last_iterate_is_never_above_trivial_nor_below_linear_decay(
    steps: int, diameter: float, lipschitz: float, d: int, sigma: float
) -> None:
    """Shamir and Zhang's bound is capped at G D, and uncapped is at least four times the one of linear decay."""
    known = {"steps": steps, "lipschitz": lipschitz, "d": d, "noise_stddev": sigma}
    slow = last_iterate_bound(**known, diameter=diameter).value  # type: ignore[arg-type]
    assert slow <= lipschitz * diameter * (1 + 1e-12)
    fast = linear_decay_bound(**known, distance=diameter).value  # type: ignore[arg-type]
    assert slow >= min(4.0 * fast, lipschitz * diameter) * (1 - 1e-12)


def test_last_iterate_takes_any_scale() -> None:
    """(D²/c + cB²)(2 + ln T)/√T is smallest at c = D/B."""
    known = {"steps": 10**6, "diameter": 2.0, "lipschitz": 1.0, "d": 3, "noise_stddev": 1.0}
    best = last_iterate_bound(**known).value  # type: ignore[arg-type]
    assert last_iterate_bound(**known, step_scale=1.0).value == pytest.approx(best)  # type: ignore[arg-type]
    assert last_iterate_bound(**known, step_scale=2.0).value > best  # type: ignore[arg-type]


def test_one_unused_gradient_carries_no_noise() -> None:
    """With T − 1 noisy gradients the bound is smaller, and at T = 1 it is that of the start."""
    known = {"distance": 2.0, "lipschitz": 3.0, "d": 7, "noise_stddev": 1.0}
    plain = average_iterate_bound(steps=5, **known)  # type: ignore[arg-type]
    sharper = average_iterate_bound(steps=5, noisy_steps=4, **known)  # type: ignore[arg-type]
    assert sharper.value == pytest.approx(2.0 * math.sqrt((9 + 7 * 4 / 5) / 5), rel=1e-12)
    assert sharper.value < plain.value
    assert average_iterate_bound(steps=1, noisy_steps=0, **known).value == pytest.approx(6.0)  # type: ignore[arg-type]
    assert linear_decay_bound(steps=5, **known).value == sharper.value  # type: ignore[arg-type]


def test_every_bound_names_its_claims_and_assumptions() -> None:
    """A bound says which claim of the lectures it is, and the rank bound that it must not be projected."""
    bounds = [
        estimated_gradient_bound(steps=4, distance=1, second_moment=1),
        gradient_descent_bound(steps=4, distance=1, lipschitz=1),
        average_iterate_bound(steps=4, distance=1, lipschitz=1, d=1, noise_stddev=0),
        last_iterate_bound(steps=10**9, diameter=1, lipschitz=1, d=1, noise_stddev=0),
        rank_bound(steps=4, seminorm=1, lipschitz=1, rank=1, noise_stddev=0),
        nikolov_bound(steps=4, radius=1, d=1, noise_stddev=0),
    ]
    assert all("claim" in found.theorem and found.assumptions for found in bounds)
    assert any("no projection" in assumption for assumption in bounds[4].assumptions)


@pytest.mark.parametrize("change", [{"steps": 0}, {"distance": 0.0}, {"lipschitz": -1.0}, {"d": 0}, {"step_size": 0.0}])
def test_nonsense_is_refused(change: dict[str, float]) -> None:
    """Each argument outside its range raises."""
    known = {"steps": 4, "distance": 1.0, "lipschitz": 1.0, "d": 2, "noise_stddev": 0.1} | change
    with pytest.raises(InvalidParameter):
        average_iterate_bound(**known)  # type: ignore[arg-type]
