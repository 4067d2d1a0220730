"""Events describe what ran: an algebra of immutable values that refuses what promises nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privet.accounting as names
from privet.accounting import (
    Approximate,
    Composed,
    Event,
    ExponentialMechanism,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
    RandomizedResponse,
    Repeated,
    Under,
    ZeroConcentrated,
    bounds,
    epsilon,
    from_json,
    guarantee,
    random_trials,
    to_json,
)
from privet.accounting.events import relations
from privet.accounting.pairs.dominating import leaves
from privet.errors import InvalidParameter, NoProvenBound, PrivetError
from privet.privacy import Neighbours

BASE: list[Event] = [
    Gaussian(noise_multiplier=1.5),
    Laplace(scale=2.0),
    RandomizedResponse(epsilon=0.5),
    Pure(epsilon=0.25),
    Approximate(epsilon=0.25, delta=1e-7),
    ExponentialMechanism(epsilon=0.5),
    ZeroConcentrated(rho=0.125),
]
EVENTS: list[Event] = [
    *BASE,
    *(event.poisson(rate=0.25) for event in BASE),
    *(event.without_replacement(batch=3, records=8) for event in BASE),
    *(event * 7 for event in BASE),
    BASE[0] + BASE[1],
    (BASE[0] + BASE[1]) * 3 + BASE[2].poisson(rate=0.5),
    (BASE[0] * 2).poisson(rate=0.5),
    *(event.under("replace_one") for event in BASE),
    BASE[0].poisson(rate=0.5).under("zero_out") * 3,
    (BASE[0] + BASE[1] * 2).under("add_remove"),
]


def events() -> st.SearchStrategy[Event]:
    """Trees of sums and repetitions over the seven kinds of release."""
    return st.recursive(
        st.sampled_from(BASE),
        lambda inner: st.one_of(
            st.builds(lambda a, b: a + b, inner, inner), st.builds(lambda a, k: a * k, inner, st.integers(1, 50))
        ),
        max_leaves=6,
    )


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_repr_is_the_code_that_writes_the_event(event: Event) -> None:
    """Pasting an event's repr gives an equal event."""
    assert eval(repr(event), vars(names).copy()) == event


@given(events())
def test_repr_of_any_tree_describes_the_same_run(event: Event) -> None:
    """Pasting the repr of a nested tree gives the same releases the same number of times, in the same order."""
    assert leaves(eval(repr(event), vars(names).copy())) == leaves(event)


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_events_are_values(event: Event) -> None:
    """Equal events have equal hashes and can be found in a set; unlike events differ."""
    twin = eval(repr(event), vars(names).copy())
    assert hash(twin) == hash(event)
    assert {event, twin} == {event}
    assert sum(event == other for other in EVENTS) == 1


def test_number_types_do_not_matter() -> None:
    """An event built from NumPy numbers or from whole numbers equals the one built from plain floats."""
    assert Gaussian(noise_multiplier=np.float64(2)) == Gaussian(noise_multiplier=2)
    assert hash(Gaussian(noise_multiplier=2.0)) == hash(Gaussian(noise_multiplier=2))
    assert Gaussian(noise_multiplier=1.0) * np.int64(3) == Gaussian(noise_multiplier=1.0) * 3  # type: ignore[operator]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_events_never_change(event: Event) -> None:
    """No field of an event can be set and none can be added."""
    fields = [name for kind in type(event).__mro__ for name in getattr(kind, "__slots__", ())]
    assert fields
    for name in fields:
        with pytest.raises(FrozenInstanceError):
            setattr(event, name, 1)
    with pytest.raises((AttributeError, TypeError)):
        event.note = "free"  # type: ignore[attr-defined]


def test_addition_is_associative_and_keeps_the_order() -> None:
    """Sums are flat, so (a + b) + c is a + (b + c), and the parts stay in the order in which they ran."""
    a, b, c = BASE[:3]
    assert (a + b) + c == a + (b + c) == Composed(parts=(a, b, c))
    assert a + b != b + a


def test_counts_multiply_and_add() -> None:
    """Repetition may be written on either side, nests by multiplication, and like parts are gathered."""
    a, b = BASE[:2]
    assert 3 * a == a * 3 == Repeated(event=a, count=3)
    assert leaves((a * 3) * 4) == [(a, 12)]
    assert leaves(a * 2 + b + a * 3) == [(a, 5), (b, 1)]
    assert leaves((a * 2 + b) * 10**9) == [(a, 2 * 10**9), (b, 10**9)]


def test_sampling_wraps_the_event() -> None:
    """`.poisson` and `.without_replacement` are the two sampling events, not new meanings."""
    a = BASE[0]
    assert a.poisson(rate=0.5) == PoissonSampled(event=a, rate=0.5)
    assert a.without_replacement(batch=2, records=9) == FixedSizeSampled(event=a, batch=2, records=9)
    assert leaves(a.poisson(rate=0.5) * 3) == [(a.poisson(rate=0.5), 3)]


def test_deep_trees_are_read_without_recursion() -> None:
    """A run that was built step by step, ten thousand times, is still counted."""
    run: Event = BASE[0]
    for _ in range(10_000):
        run = Repeated(event=run, count=1)
    assert leaves(run) == [(BASE[0], 1)]


BAD_REALS: list[Any] = [-1.0, -1e-300, math.nan, math.inf, -math.inf, True, False, "1", None, 1j, [1.0]]
MAKERS: dict[str, Callable[[Any], Event]] = {
    "noise_multiplier": lambda x: Gaussian(noise_multiplier=x),
    "scale": lambda x: Laplace(scale=x),
    "epsilon of RandomizedResponse": lambda x: RandomizedResponse(epsilon=x),
    "epsilon of Pure": lambda x: Pure(epsilon=x),
    "epsilon of Approximate": lambda x: Approximate(epsilon=x, delta=0.0),
    "delta": lambda x: Approximate(epsilon=1.0, delta=x),
    "epsilon of ExponentialMechanism": lambda x: ExponentialMechanism(epsilon=x),
    "rho": lambda x: ZeroConcentrated(rho=x),
    "rate": lambda x: BASE[0].poisson(rate=x),
}
BAD_COUNTS: list[Any] = [0, -1, 1.5, 2.0, math.nan, math.inf, True, False, "3", None]
COUNTERS: dict[str, Callable[[Any], Event]] = {
    "count": lambda k: BASE[0] * k,
    "batch": lambda k: BASE[0].without_replacement(batch=k, records=10),
    "records": lambda k: BASE[0].without_replacement(batch=1, records=k),
}
OTHERS: list[tuple[Callable[[], Event], str]] = [
    (lambda: BASE[0].poisson(rate=0.0), "rate"),
    (lambda: BASE[0].poisson(rate=1.0000001), "rate"),
    (lambda: BASE[0].poisson(rate=2), "rate"),
    (lambda: Approximate(epsilon=1.0, delta=1.0), "delta"),
    (lambda: Approximate(epsilon=1.0, delta=1.5), "delta"),
    (lambda: BASE[0].without_replacement(batch=11, records=10), "batch"),
    (lambda: Composed(parts=()), "parts"),
    (lambda: Composed(parts=[BASE[0]]), "parts"),  # type: ignore[arg-type]
    (lambda: Composed(parts=("Gaussian",)), "event"),  # type: ignore[arg-type]
    (lambda: Repeated(event=1.0, count=2), "event"),  # type: ignore[arg-type]
    (lambda: PoissonSampled(event=None, rate=0.5), "event"),  # type: ignore[arg-type]
    (lambda: FixedSizeSampled(event="x", batch=1, records=2), "event"),  # type: ignore[arg-type]
]


def refused(make: Callable[[], Event], names_: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        make()
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, PrivetError)
    text = str(caught.value)
    assert text.startswith("Expected ")
    assert ", got " in text
    assert names_ in text
    # expected and got, then what it breaks, then what to do: a second sentence after the colon's
    assert ": " in text
    assert text.rstrip(".").count(". ") >= 1
    assert text.endswith(".")


@pytest.mark.parametrize("bad", BAD_REALS, ids=repr)
@pytest.mark.parametrize("name", MAKERS)
def test_numbers_that_promise_nothing_are_refused_at_once(name: str, bad: Any) -> None:
    """Negative, NaN, infinite, boolean and non-numeric parameters never become an event."""
    refused(lambda: MAKERS[name](bad), name.split(" ", 1)[0])


@pytest.mark.parametrize("bad", BAD_COUNTS, ids=repr)
@pytest.mark.parametrize("name", COUNTERS)
def test_counts_are_whole_and_positive(name: str, bad: Any) -> None:
    """Fractional, zero, negative and boolean counts are refused, also when they look whole."""
    refused(lambda: COUNTERS[name](bad), name)


@pytest.mark.parametrize(("make", "name"), OTHERS)
def test_impossible_combinations_are_refused_at_once(make: Callable[[], Event], name: str) -> None:
    """Rates outside (0, 1], deltas of 1, batches beyond the data and parts that are no events are refused."""
    refused(make, name)


def test_adding_what_is_no_event_is_a_type_error() -> None:
    """`event + 1` is a TypeError, as for any Python value."""
    with pytest.raises(TypeError):
        BASE[0] + 1  # type: ignore[operator]


def test_one_part_is_made_for_one_relation() -> None:
    """An event made for one relation cannot be wrapped for another, however deep; and sampling it is refused."""
    made = BASE[0].under("replace_one")
    assert made.under("replace_one") * 2 + made
    for run in (made, made * 3, BASE[1] + made, random_trials(made, mean=2)):
        refused(lambda run=run: run.under("zero_out"), "'replace_one'")  # type: ignore[misc]  # bound now
        refused(lambda run=run: run.poisson(rate=0.5), "'replace_one'")  # type: ignore[misc]
        refused(lambda run=run: run.without_replacement(batch=1, records=2), "'replace_one'")  # type: ignore[misc]
    refused(lambda: BASE[0].under("swap"), "neighbours")  # type: ignore[arg-type]
    refused(lambda: Under(event=1.0, neighbours="zero_out"), "event")  # type: ignore[arg-type]


def test_relations_are_those_of_all_parts() -> None:
    """`relations` looks everywhere in a tree, and finds nothing where no part was made for one."""
    a, b = BASE[0].under("zero_out"), BASE[1].poisson(rate=0.5).under("add_remove")
    assert relations(BASE[0] * 3 + BASE[1].poisson(rate=0.5)) == frozenset()
    assert relations(a * 2 + random_trials(b * 3, mean=2)) == {"zero_out", "add_remove"}


def test_a_histogram_of_one_relation_is_not_priced_under_another() -> None:
    """√2 apart when a record is replaced, 1 when one joins: the multiplier of the first would say 0.397, not 0.575."""
    stddev = 10 / math.sqrt(2)  # of each count; one record adds 1 to one of them
    replaced, joined = Gaussian(noise_multiplier=stddev * 2 / math.sqrt(2)), Gaussian(noise_multiplier=stddev)
    assert round(epsilon(replaced, delta=1e-6, neighbours="add_remove"), 3) == 0.397
    assert round(epsilon(joined.under("add_remove"), delta=1e-6, neighbours="add_remove"), 3) == 0.575
    with pytest.raises(InvalidParameter, match="another sensitivity"):
        epsilon(replaced.under("replace_one"), delta=1e-6, neighbours="add_remove")


def test_the_edges_of_the_allowed_are_allowed() -> None:
    """No noise, a rate of 1, a full batch and a delta of 0 describe real runs."""
    assert Gaussian(noise_multiplier=0.0).poisson(rate=1.0)
    assert Gaussian(noise_multiplier=0).poisson(rate=1)
    assert BASE[0].without_replacement(batch=10, records=10)
    assert Approximate(epsilon=0.0, delta=0.0)


@pytest.mark.parametrize("neighbours", ["add_remove", "zero_out", "replace_one"])
def test_several_gaussians_on_one_batch_are_one_gaussian(neighbours: Neighbours) -> None:
    """A gradient and a count of the same batch cost the Gaussian with 1/σ² = Σ 1/σ_i², not two batches."""
    gradient, count = Gaussian(noise_multiplier=3.0), Gaussian(noise_multiplier=4.0)
    together, one = gradient + count, Gaussian(noise_multiplier=12 / 5)
    thrice = Gaussian(noise_multiplier=3.0) * 9
    for several, single in ((together, one), (thrice, Gaussian(noise_multiplier=1.0)), (together + count, None)):
        joint = several.poisson(rate=0.1) * 20
        if single is not None:
            found = bounds(joint, delta=1e-6, neighbours=neighbours)
            expected = bounds(single.poisson(rate=0.1) * 20, delta=1e-6, neighbours=neighbours)
            assert found.upper == pytest.approx(expected.upper, rel=1e-9)
            assert found.upper >= expected.upper * (1 - 1e-12)
            assert found.lower == pytest.approx(expected.lower, rel=1e-9)
        assert from_json(to_json(joint)) == joint
    text = guarantee(together.poisson(rate=0.1) * 20, delta=1e-6, neighbours=neighbours).details
    assert "noise multiplier 3" in text
    assert "noise multiplier 4" in text
    assert "clipped before summation" in text


def test_several_gaussians_on_a_batch_of_fixed_size_are_one_gaussian() -> None:
    """As above, without replacement; all records in the batch, it is no sampling at all."""
    together, one = Gaussian(noise_multiplier=3.0) + Gaussian(noise_multiplier=4.0), Gaussian(noise_multiplier=12 / 5)
    for batch in (10, 100):
        found, expected = (
            epsilon(event.without_replacement(batch=batch, records=100), delta=1e-6, neighbours="replace_one")
            for event in (together, one)
        )
        assert found == pytest.approx(expected, rel=1e-9)
    with pytest.raises(NoProvenBound):
        epsilon((together + Laplace(scale=1.0)).poisson(rate=0.1), delta=1e-6, neighbours="add_remove")
    leak = (together + Gaussian(noise_multiplier=0)).poisson(rate=0.1)
    assert epsilon(leak, delta=1e-6, neighbours="zero_out") == math.inf
