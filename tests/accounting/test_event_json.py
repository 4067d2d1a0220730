"""Events go to JSON and back unchanged, and anything else is refused with a remedy."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.accounting.event_json import from_json, to_json
from privet.accounting.events import (
    Approximate,
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Repeated,
    ZeroConcentrated,
)
from privet.errors import EventFormat
from privet.privacy import Neighbours

amounts = st.floats(min_value=0, max_value=1e308) | st.integers(0, 10**30)
rates = st.floats(min_value=0, max_value=1, exclude_min=True)
counts = st.integers(1, 10**18)
leaves: st.SearchStrategy[Event] = st.one_of(
    amounts.map(lambda value: Gaussian(noise_multiplier=value)),
    amounts.map(lambda value: Laplace(scale=value)),
    amounts.map(lambda value: RandomizedResponse(epsilon=value)),
    amounts.map(lambda value: Pure(epsilon=value)),
    st.builds(lambda e, d: Approximate(epsilon=e, delta=d), amounts, st.floats(0, 1, exclude_max=True)),
    amounts.map(lambda value: ExponentialMechanism(epsilon=value)),
    amounts.map(lambda value: ZeroConcentrated(rho=value)),
)


def _fixed_size(event: Event, a: int, b: int) -> Event:
    return event.without_replacement(batch=min(a, b), records=max(a, b))


def _larger(events: st.SearchStrategy[Event]) -> st.SearchStrategy[Event]:
    return st.one_of(
        st.builds(lambda event, rate: event.poisson(rate=rate), events, rates),
        st.builds(_fixed_size, events, counts, counts),
        st.builds(lambda event, count: event * count, events, counts),
        st.lists(events, min_size=1, max_size=4).map(lambda parts: Composed(parts=tuple(parts))),
    )


def _related(event: Event, neighbours: Neighbours) -> Event:
    return event.under(neighbours) * 2 + event


trees = st.recursive(leaves, _larger, max_leaves=12)
trees |= st.builds(_related, trees, st.sampled_from(get_args(Neighbours)))


@given(trees)
def test_round_trip_is_unchanged(event: Event) -> None:
    """Any tree of events reads back equal, with the same types of numbers, and is written the same again."""
    text = to_json(event)
    again = from_json(text)
    assert again == event
    assert repr(again) == repr(event)
    assert to_json(again) == text


@given(trees)
def test_the_text_is_strict_json(event: Event) -> None:
    """Any JSON reader can read the text, in any layout."""
    document = json.loads(to_json(event))
    assert document["privet_event"] == 1
    assert from_json(json.dumps(document, indent=2, sort_keys=True)) == event


def test_the_format_is_frozen() -> None:
    """Version 1 is written exactly like this for ever: stored ledgers and certificates depend on it."""
    run = (
        Gaussian(noise_multiplier=1.1).poisson(rate=0.1) * 3
        + Laplace(scale=2.0).without_replacement(batch=5, records=9)
        + RandomizedResponse(epsilon=1.0)
        + Pure(epsilon=1.0)
        + Approximate(epsilon=1.0, delta=1e-9)
        + ExponentialMechanism(epsilon=0.5)
        + ZeroConcentrated(rho=0.25)
    )
    assert to_json(run) == (
        '{"privet_event": 1, "event": {"kind": "composed", "parts": ['
        '{"kind": "repeated", "count": 3, "event": {"kind": "poisson_sampled", "rate": 0.1, '
        '"event": {"kind": "gaussian", "noise_multiplier": 1.1}}}, '
        '{"kind": "fixed_size_sampled", "batch": 5, "records": 9, "event": {"kind": "laplace", "scale": 2.0}}, '
        '{"kind": "randomized_response", "epsilon": 1.0}, {"kind": "pure", "epsilon": 1.0}, '
        '{"kind": "approximate", "epsilon": 1.0, "delta": 1e-09}, '
        '{"kind": "exponential_mechanism", "epsilon": 0.5}, {"kind": "zero_concentrated", "rho": 0.25}]}}'
    )


def test_the_relation_an_event_was_made_for_is_kept() -> None:
    """`.under` is a kind of its own, written like this for ever; a relation that is none is refused."""
    text = (
        '{"privet_event": 1, "event": {"kind": "under", "neighbours": "replace_one", '
        '"event": {"kind": "gaussian", "noise_multiplier": 20.0}}}'
    )
    made = Gaussian(noise_multiplier=20.0).under("replace_one")
    assert to_json(made) == text
    assert from_json(text) == made
    for bad in ("swap_one", 1, None, ["replace_one"]):
        with pytest.raises(EventFormat, match="neighbours"):
            from_json(text.replace('"replace_one"', json.dumps(bad)))
    with pytest.raises(EventFormat, match="made for 'replace_one'"):
        from_json(
            text.replace('{"kind": "under"', '{"kind": "under", "neighbours": "zero_out", "event": {"kind": "under"')
            + "}"
        )


def test_numpy_numbers_become_plain_numbers() -> None:
    """Numbers computed by NumPy are written like any other and read back equal."""
    noise: Any = np.float32(1.1)
    count: Any = np.int64(7)
    run = Gaussian(noise_multiplier=noise).poisson(rate=np.float64(0.3)) * count
    assert from_json(to_json(run)) == run


def test_numbers_that_no_float_equals_are_kept_where_they_cost_more() -> None:
    """A fraction is kept as the next float on the costly side, so that what is written is what is accounted for."""
    third: Any = Fraction(1, 3)
    run = Gaussian(noise_multiplier=third).poisson(rate=third)
    assert from_json(to_json(run)) == run
    assert Fraction(run.event.noise_multiplier) <= third <= Fraction(run.rate)  # type: ignore[attr-defined]  # both are
    half = Gaussian(noise_multiplier=1.0).poisson(rate=Fraction(1, 2))  # type: ignore[arg-type]  # on purpose
    assert from_json(to_json(half)) == half


def test_events_of_strangers_are_refused() -> None:
    """An event class that the format does not name is refused on writing, not written as something else."""

    class Secret(Gaussian):
        pass

    with pytest.raises(EventFormat, match=r"Secret.*Describe it by Pure"):
        to_json(Secret(noise_multiplier=1.0))


G = '{"kind": "gaussian", "noise_multiplier": 1.0}'
BAD = {
    "nothing": ("", "Expected JSON"),
    "not JSON": ("epsilon = 1", "Expected JSON.*to_json"),
    "cut short": (f'{{"privet_event": 1, "event": {G}', "Expected JSON"),
    "a bare event": (G, "privet_event"),
    "a list": (f"[{G}]", "got a list"),
    "later version": (f'{{"privet_event": 2, "event": {G}, "more": 1}}', "version 2.*Install a later privet"),
    "version zero": (f'{{"privet_event": 0, "event": {G}}}', "got 0"),
    "version a truth value": (f'{{"privet_event": true, "event": {G}}}', "got True"),
    "version a text": (f'{{"privet_event": "1", "event": {G}}}', "got '1'"),
    "no event": ('{"privet_event": 1}', "missing 'event'"),
    "extra field in the file": (f'{{"privet_event": 1, "event": {G}, "delta": 1e-5}}', "unknown 'delta'"),
}
BAD_EVENTS = {
    "null": ("null", "at event, got null"),
    "a text": ('"gaussian"', "got a text"),
    "no kind": ('{"noise_multiplier": 1.0}', "'kind' at event"),
    "unknown kind": ('{"kind": "gausian", "noise_multiplier": 1.0}', "got 'gausian'.*Correct the kind"),
    "kind a list": ('{"kind": [], "noise_multiplier": 1.0}', r"got \[\]"),
    "missing field": ('{"kind": "gaussian"}', "missing 'noise_multiplier'"),
    "unknown field": ('{"kind": "gaussian", "noise_multiplier": 1.0, "rate": 0.1}', "unknown 'rate'"),
    "misspelt field": ('{"kind": "gaussian", "sigma": 1.0}', "missing 'noise_multiplier'; unknown 'sigma'"),
    "field twice": ('{"kind": "gaussian", "noise_multiplier": 1.0, "noise_multiplier": 9.0}', "twice"),
    "negative noise": ('{"kind": "gaussian", "noise_multiplier": -1.0}', "At event .gaussian.: .*got -1.0"),
    "NaN": ('{"kind": "gaussian", "noise_multiplier": NaN}', "got NaN"),
    "infinity": ('{"kind": "gaussian", "noise_multiplier": -Infinity}', "got -Infinity"),
    "overflowing float": ('{"kind": "gaussian", "noise_multiplier": 1e999}', "got inf"),
    "overflowing whole number": ('{"kind": "gaussian", "noise_multiplier": 1' + 400 * "0" + "}", "fit a float"),
    "absurdly long number": ('{"kind": "gaussian", "noise_multiplier": 1' + 5000 * "0" + "}", "Expected JSON"),
    "number as text": ('{"kind": "gaussian", "noise_multiplier": "1.0"}', "got '1.0'"),
    "truth value": ('{"kind": "gaussian", "noise_multiplier": true}', "got True"),
    "fractional steps": (f'{{"kind": "repeated", "count": 1.5, "event": {G}}}', "got 1.5"),
    "zero steps": (f'{{"kind": "repeated", "count": 0, "event": {G}}}', "got 0"),
    "rate above 1": (f'{{"kind": "poisson_sampled", "rate": 2, "event": {G}}}', "got 2"),
    "batch above records": (f'{{"kind": "fixed_size_sampled", "batch": 5, "records": 4, "event": {G}}}', "5 of 4"),
    "no parts": ('{"kind": "composed", "parts": []}', "at least one event"),
    "parts not a list": (f'{{"kind": "composed", "parts": {G}}}', "list of events at event.parts"),
    "deep inside": (
        f'{{"kind": "composed", "parts": [{G}, {{"kind": "repeated", "count": 2, "event": {{"kind": "x"}}}}]}}',
        r"at event\.parts\[1\]\.event",
    ),
}
BAD |= {name: (f'{{"privet_event": 1, "event": {event}}}', message) for name, (event, message) in BAD_EVENTS.items()}


@pytest.mark.parametrize("name", BAD)
def test_bad_text_is_refused_with_a_remedy(name: str) -> None:
    """Malformed, unknown, missing, surplus, doubled or later: an EventFormat that says what, where and what to do."""
    text, message = BAD[name]
    with pytest.raises(EventFormat, match=message):
        from_json(text)


def test_text_only() -> None:
    """Bytes and dictionaries are not text."""
    with pytest.raises(EventFormat, match="got dict"):
        from_json({"privet_event": 1})  # type: ignore[arg-type]  # on purpose


def test_bottomless_nesting_is_refused() -> None:
    """A tree too deep to follow is refused like any other bad text, both ways."""
    with pytest.raises(EventFormat, match="nested deeper"):
        from_json('{"privet_event": 1, "event": ' + 200_000 * '{"kind": "repeated", "count": 1, "event": ')
    event: Event = Gaussian(noise_multiplier=1.0)
    for _ in range(20_000):
        event = Repeated(event=event, count=1)
    with pytest.raises(EventFormat, match="nested deeper"):
        to_json(event)
