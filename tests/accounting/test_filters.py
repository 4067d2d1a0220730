from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from privet.accounting.filters import RenyiFilter, ZeroConcentratedFilter
from privet.accounting.theorems.conversions import renyi_delta, zcdp_rho, zcdp_tight_epsilon
from privet.accounting.theorems.gaussian_profile import largest_mu
from privet.errors import InvalidParameter, Overspent

Moments = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def gaussian(mu: float) -> Moments:
    return lambda t: t * (1 + t) / 2 * mu * mu


def response(epsilon: float) -> Moments:
    """Log moments of randomized response: log(p^(1+t) q^−t + q^(1+t) p^−t), p/q = e^epsilon."""
    log_p, log_q = -math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(epsilon))
    return lambda t: np.logaddexp((1 + t) * log_p - t * log_q, (1 + t) * log_q - t * log_p)


def worst_delta(start: RenyiFilter, steps: list[float], depth: int, *, choose: Callable[[float], int]) -> float:
    """Play all outcomes of randomized responses, each epsilon chosen from the loss so far; return the exact delta."""

    def play(state: RenyiFilter, loss: float, probability: float, left: int) -> float:
        if left:
            epsilon = steps[choose(loss)]
            cost = response(epsilon)
            if state.admits(cost):
                after = state.spend(cost)
                right = 1 / (1 + math.exp(-epsilon))
                return play(after, loss + epsilon, probability * right, left - 1) + play(
                    after, loss - epsilon, probability * (1 - right), left - 1
                )
        return probability * max(0.0, -math.expm1(start.epsilon - loss))

    return play(start, 0.0, 1.0, depth)


@pytest.mark.medium
@pytest.mark.parametrize("orders", [(), (4.0,), (3.0, 6.0, 12.0)])
@pytest.mark.parametrize("bold", [True, False])
@pytest.mark.parametrize("steps", [[0.1, 0.3], [0.2, 0.4]])
def test_no_adaptive_choice_exceeds_the_budget(orders: tuple[float, ...], bold: bool, steps: list[float]) -> None:
    """Exact enumeration of a game in which the next step is dear or cheap by the loss so far stays within delta."""
    start = RenyiFilter(epsilon=1.0, delta=0.05, orders=orders)
    assert start.admits(response(steps[1]))
    assert worst_delta(start, steps, 12, choose=lambda loss: int((loss > 0.4) == bold)) <= 0.05


def test_a_filter_that_forgets_is_caught() -> None:
    """Mutant: if spent never grows, the game ends at delta = 0.15 of 0.05; the true filter uses 0.039 of it."""

    class Forgetful(RenyiFilter):
        def spend(self, cost: object) -> RenyiFilter:
            return self

    forgetful = Forgetful(epsilon=1.0, delta=0.05, orders=(4.0,))
    honest = RenyiFilter(epsilon=1.0, delta=0.05, orders=(4.0,))
    assert worst_delta(forgetful, [0.4], 13, choose=lambda loss: 0) > 0.15
    assert 0.038 < worst_delta(honest, [0.4], 13, choose=lambda loss: 0) <= 0.05


@settings(deadline=None)
@given(st.floats(0.1, 10), st.floats(-12, -1).map(lambda x: 10.0**x), st.lists(st.floats(0, 0.5), max_size=30))
def test_whatever_is_admitted_keeps_the_promise(epsilon: float, delta: float, mus: list[float]) -> None:
    """After any admitted sequence, some order with its share of delta proves the budget by the plain conversion."""
    state = RenyiFilter(epsilon=epsilon, delta=delta)
    for mu in mus:
        if state.admits(gaussian(mu)):
            state = state.spend(gaussian(mu))
        else:
            with pytest.raises(Overspent, match="exceeds it at every order"):
                state.spend(gaussian(mu))
    if any(state.spent):
        assert renyi_delta(state.exponents, state.spent, epsilon=epsilon) <= delta / len(state.orders) * (1 + 1e-9)
        total = math.sqrt(2 * state.spent[0] / (state.exponents[0] * (1 + state.exponents[0])))
        assert total <= largest_mu(epsilon, delta)


def test_arrays_and_functions_price_alike_and_values_do_not_change() -> None:
    """A cost may be an array over the orders or a function; the filter asked stays as it was."""
    start = RenyiFilter(epsilon=1.0, delta=1e-5, orders=(8.0, 16.0))
    cost = gaussian(0.05)
    assert start.spend(cost) == start.spend(cost(start.exponents)) == start.spend(cost(start.exponents).tolist())
    assert start.spent == (0.0, 0.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        start.spent = (1.0, 1.0)  # type: ignore[misc]  # that it is refused is the promise


def test_an_order_without_a_moment_is_ruled_out() -> None:
    """An infinite moment closes its order for good, not the filter; at every order it closes the filter."""
    start = RenyiFilter(epsilon=1.0, delta=1e-5, orders=(16.0, 32.0))
    after = start.spend([0.1, math.inf])
    assert after.spent[1] == math.inf
    assert after.admits([0.1, 0.1])
    assert not start.admits([math.inf, math.inf])


def test_free_steps_are_always_admitted() -> None:
    """What costs nothing may run even where no order proves anything."""
    start = RenyiFilter(epsilon=0.0, delta=1e-9, orders=(2.0,))
    assert start.limits[0] < 0
    assert start.spend([0.0]) == start
    assert not start.admits([1e-12])
    assert ZeroConcentratedFilter(epsilon=0.0, delta=1e-9).spend(0.0).spent == 0.0


@settings(deadline=None, max_examples=30)
@given(st.floats(0.1, 10), st.floats(-12, -1).map(lambda x: 10.0**x), st.floats(0.001, 0.9))
def test_zcdp_filter_fills_up_to_the_tight_limit(epsilon: float, delta: float, part: float) -> None:
    """Its limit is private by the tight conversion, at least the lectures' rho, and is reached but not passed."""
    start = ZeroConcentratedFilter(epsilon=epsilon, delta=delta)
    assert zcdp_tight_epsilon(start.limit, delta=delta) <= epsilon
    assert start.limit >= zcdp_rho(epsilon, delta=delta)
    after = start.spend(part * start.limit)
    assert after.admits((1 - part) * start.limit * (1 - 1e-12))
    with pytest.raises(Overspent, match="Add noise, or stop here"):
        after.spend((1 - part) * start.limit * (1 + 1e-9))


def test_many_tiny_costs_are_not_lost_to_rounding() -> None:
    """A cost far below the last digit of what was spent still counts: the sum is rounded upwards."""
    start = ZeroConcentratedFilter(epsilon=1.0, delta=1e-5).spend(0.01)
    assert start.spend(1e-30).spent > start.spent
    vector = RenyiFilter(epsilon=1.0, delta=1e-5, orders=(32.0,)).spend([1.0])
    assert vector.spend([1e-30]).spent > vector.spent


@pytest.mark.parametrize("cost", [[-1.0, 1.0], [math.nan, 1.0], [1.0], [[1.0, 1.0]]])
def test_impossible_costs_are_refused(cost: list[float]) -> None:
    """Negative, NaN or misshapen log moments are an error, not a discount."""
    with pytest.raises(InvalidParameter, match="never negative or NaN"):
        RenyiFilter(epsilon=1.0, delta=1e-5, orders=(8.0, 16.0)).admits(cost)


def test_impossible_orders_are_refused() -> None:
    """Orders of 1 or less prove nothing."""
    with pytest.raises(InvalidParameter, match="orders above 1"):
        RenyiFilter(epsilon=1.0, delta=1e-5, orders=(1.0,))
    with pytest.raises(InvalidParameter, match="cost"):
        ZeroConcentratedFilter(epsilon=1.0, delta=1e-5, spent=-1.0)
