"""Events of dp_accounting and histories of Opacus, by stand-ins of the same names and attributes."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from privet.accounting import (
    DiscreteLaplace,
    Event,
    Gaussian,
    KaryResponse,
    Laplace,
    NegativeBinomialTrials,
    PoissonTrials,
    Pure,
    ZeroConcentrated,
    epsilon,
    from_dp_accounting,
    from_opacus,
    truncated_poisson,
)
from privet.accounting.foreign_events import RELATIONS
from privet.errors import InvalidParameter, PrivetError


def event(kind: str, **fields: Any) -> Any:
    """An object whose class has that name, with these attributes, as dp_accounting's frozen classes do."""
    return type(kind, (SimpleNamespace,), {})(**fields)


NOISE = event("GaussianDpEvent", noise_multiplier=1.5)
G = Gaussian(noise_multiplier=1.5)
SAME: list[tuple[Any, Event]] = [
    (NOISE, G),
    (event("LaplaceDpEvent", noise_multiplier=2.0), Laplace(scale=2.0)),
    (event("NoOpDpEvent"), Pure(epsilon=0.0)),
    (event("NonPrivateDpEvent"), Gaussian(noise_multiplier=0.0)),
    (event("ZCDpEvent", rho=0.5, xi=0.0), ZeroConcentrated(rho=0.5)),
    (event("SelfComposedDpEvent", event=NOISE, count=7), G * 7),
    (event("SelfComposedDpEvent", event=NOISE, count=0), Pure(epsilon=0.0)),
    (event("ComposedDpEvent", events=[NOISE, event("NoOpDpEvent")]), G + Pure(epsilon=0.0)),
    (event("PoissonSampledDpEvent", sampling_probability=0.01, event=NOISE), G.poisson(rate=0.01)),
    (
        event("SampledWithoutReplacementDpEvent", source_dataset_size=100, sample_size=10, event=NOISE),
        G.without_replacement(batch=10, records=100),
    ),
    (event("DiscreteLaplaceDpEvent", noise_parameter=0.125, sensitivity=2), DiscreteLaplace(scale=4.0, clip=2)),
    (event("RepeatAndSelectDpEvent", event=NOISE, mean=4.0, shape=math.inf), PoissonTrials(event=G, mean=4.0)),
    (
        event("RepeatAndSelectDpEvent", event=NOISE, mean=4.0, shape=1.0),
        NegativeBinomialTrials(event=G, shape=1.0, stop=0.25),
    ),
    (
        event(
            "TruncatedSubsampledGaussianDpEvent",
            dataset_size=1000,
            sampling_probability=0.01,
            truncated_batch_size=30,
            noise_multiplier=1.5,
        ),
        truncated_poisson(G, rate=0.01, batch=30, records=1000),
    ),
]


@pytest.mark.parametrize(("theirs", "ours"), SAME, ids=lambda e: type(e).__name__)
def test_what_ran_is_the_same(theirs: Any, ours: Event) -> None:
    """Each kind of DpEvent becomes the event with the same numbers."""
    assert from_dp_accounting(theirs) == ours


def test_responses_keep_their_odds() -> None:
    """A uniform answer with probability p, of k: odds of 1 + k(1 − p)/p, rounded up."""
    found = from_dp_accounting(event("RandomizedResponseDpEvent", noise_parameter=0.5, num_buckets=4))
    assert isinstance(found, KaryResponse)
    assert found.answers == 4
    assert math.log(5) <= found.epsilon <= math.log(5) * (1 + 1e-14)
    revealed = from_dp_accounting(event("RandomizedResponseDpEvent", noise_parameter=0, num_buckets=4))
    assert epsilon(revealed, delta=1e-5, neighbours="replace_one") == math.inf
    assert from_dp_accounting(event("RandomizedResponseDpEvent", noise_parameter=1, num_buckets=4)).epsilon < 1e-15  # type: ignore[attr-defined]


def test_numbers_are_rounded_to_where_they_cost_more() -> None:
    """Discrete Laplace noise of parameter 1/3 is kept with a scale of at most 3 clips."""
    found = from_dp_accounting(event("DiscreteLaplaceDpEvent", noise_parameter=0.1, sensitivity=3))
    assert isinstance(found, DiscreteLaplace)
    assert Fraction(found.scale) * 3 * Fraction(0.1) <= 1


@pytest.mark.parametrize(
    "theirs",
    [
        event("SampledWithReplacementDpEvent", source_dataset_size=100, sample_size=10, event=NOISE),
        event("MixtureOfGaussiansDpEvent", standard_deviation=1.0, sensitivities=[1.0], sampling_probs=[1.0]),
        event("UnsupportedDpEvent"),
        event("ZCDpEvent", rho=0.5, xi=0.1),
        event("RepeatAndSelectDpEvent", event=NOISE, mean=4.0, shape=0.5),
        event("RandomizedResponseDpEvent", noise_parameter=1.5, num_buckets=4),
        event("DiscreteLaplaceDpEvent", noise_parameter=-1.0, sensitivity=3),
        event("ComposedDpEvent", events=[NOISE, event("UnsupportedDpEvent")]),
        G,
    ],
    ids=lambda e: type(e).__name__,
)
def test_what_has_no_meaning_here_is_refused(theirs: Any) -> None:
    """Not dropped, not guessed: also deep inside another event."""
    with pytest.raises(InvalidParameter, match=r"Expected .*, got .*: .*\. .*"):
        from_dp_accounting(theirs)


def test_relations_have_a_name_here() -> None:
    """dp_accounting's three relations are privet's three."""
    assert set(RELATIONS.values()) == {"add_remove", "zero_out", "replace_one"}


def test_an_opacus_history_is_a_run() -> None:
    """A list of (noise, rate, steps), or an accountant that has one; nothing, or something else, is refused."""
    run = G.poisson(rate=0.01) * 10
    assert from_opacus([(1.5, 0.01, 10)]) == run
    assert from_opacus(SimpleNamespace(history=[(1.5, 0.01, 10), (1.5, 0.01, 10)])) == run + run
    for bad in ([], [(1.5, 0.01)], 7, SimpleNamespace(history=[])):
        with pytest.raises(PrivetError, match="history"):
            from_opacus(bad)
