"""The words of a privacy statement: one vocabulary, one sensitivity factor, a sentence that can be withdrawn."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, get_args

import pytest

from privet.errors import InvalidParameter
from privet.privacy import (
    Budget,
    Guarantee,
    Neighbours,
    Unit,
    Words,
    check_delta,
    check_epsilon,
    sensitivity_factor,
    words,
)

RELATIONS: tuple[Neighbours, ...] = get_args(Neighbours)
UNITS: tuple[Unit, ...] = get_args(Unit)


def stated(**changed: Any) -> Guarantee:
    known: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "neighbours": "replace_one",
        "accountant": "closed",
        "theorem": "Balle and Wang 2018",
        "lower": 1.0,
        "sampling": "no sampling",
    }
    return Guarantee(**(known | changed))


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_has_words_for_every_unit(relation: Neighbours) -> None:
    """What is said of people is said of records with other words, and nothing of people speaks of a record."""
    record, person = (words(relation, unit) for unit in UNITS)
    for field in fields(Words):
        assert "record" not in getattr(person, field.name)
        assert "person" not in getattr(record, field.name)
    assert "{}" in record.found
    assert "{}" in person.found
    assert record.change in stated(neighbours=relation).details
    assert stated(neighbours=relation, unit="person").details.startswith("The release is user-level (1, 1e-06)-")


def test_only_a_replaced_record_moves_a_sum_by_two_clips() -> None:
    """The triangle inequality, by brute force over the two ends of a clip."""
    moves = {
        "replace_one": max(abs(a - b) for a in (-1, 1) for b in (-1, 1)),
        "zero_out": max(abs(a - 0) for a in (-1, 1)),
        "add_remove": max(abs(a) for a in (-1, 1)),
    }
    assert {relation: sensitivity_factor(relation) for relation in RELATIONS} == moves
    unknown: Any = "swap"
    with pytest.raises(InvalidParameter, match="one of 'replace_one', 'zero_out', 'add_remove', got 'swap'"):
        sensitivity_factor(unknown)


def test_an_invalidated_guarantee_promises_nothing_and_says_what_would_have_held() -> None:
    """Its epsilon is infinite, and the sentence begins with the reason."""
    kept = stated()
    withdrawn = kept.invalidate("fixed seed")
    assert kept.invalidated == ""
    assert math.isinf(withdrawn.epsilon)
    assert withdrawn.details == f"NOT PRIVATE: fixed seed. Otherwise it would read: {kept.details}"
    assert str(withdrawn) == "NOT PRIVATE: fixed seed; .details for all of it"


@pytest.mark.parametrize("value", [True, "1", math.nan, math.inf, -1.0, None])
def test_what_is_no_epsilon_or_delta_is_refused(value: Any) -> None:
    """Booleans, texts, infinities and what is out of range make neither."""
    with pytest.raises(InvalidParameter, match="Expected epsilon to be a finite number of at least 0"):
        check_epsilon(value)
    with pytest.raises(InvalidParameter, match=r"Expected delta in \(0, 1\)"):
        check_delta(value)


def test_budgets_are_ordered_as_pairs() -> None:
    """Two budgets may be incomparable."""
    tight, loose, other = (Budget(epsilon=e, delta=d) for e, d in ((1, 1e-6), (2, 1e-5), (0.5, 1e-4)))
    assert tight <= loose
    assert not tight <= other
    assert not other <= tight


def test_a_guarantee_prints_as_one_line_that_never_understates() -> None:
    """Epsilon and delta are rounded up, the relation and what ran are named, and all of it is in `details`."""
    promise = stated(epsilon=1.0000001, delta=1.00000001e-6, releases="43 releases of Gaussian noise")
    line = "ε = 1.00001, δ = 1.00001e-06, replace one, 43 releases of Gaussian noise; .details for all of it"
    assert str(promise) == line
    assert "replace one person," in str(stated(unit="person"))
    assert "no sampling" in str(stated(neighbours="zero_out"))
    assert str(stated(epsilon=math.inf)).startswith("promises nothing at δ = 1e-06")
    for said in ("Balle and Wang 2018", "the number of records public", "It assumes: one thing"):
        assert said in stated(assumptions=("one thing",)).details


def test_a_guarantee_in_a_notebook_is_escaped_text() -> None:
    """Assumptions may quote names of users' code: none of it becomes HTML."""
    shown = stated(assumptions=("<script>alert(1)</script>",), releases="<b>noise</b>")._repr_html_()
    assert "<script" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "NOT PRIVATE" in stated().invalidate("fixed seed")._repr_html_()
