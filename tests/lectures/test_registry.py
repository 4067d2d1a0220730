from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable

import pytest

from privet.errors import InvalidParameter
from privet.lectures import Check, Finding, all_checks, all_claims, check, check_for


def test_every_claim_has_a_check() -> None:
    """Each of the 117 claims has exactly one check."""
    assert [claim.id for claim in all_claims()] == sorted(all_checks(), key=int)


@pytest.mark.medium
@pytest.mark.parametrize("known", all_checks().values(), ids=all_checks())
def test_no_check_is_vacuous(known: Check, finding: Callable[[str], Finding]) -> None:
    """A check accepts what is printed and refuses its mutant, or refuses what is printed and accepts the corrected one.

    Where it refuses or confines a claim, the claim's erratum says what is wrong.
    """
    found, mutated = finding(known.id), known.mutated()
    assert found.accepted != mutated.accepted, f"{found.sentence} / mutant: {mutated.sentence}"
    assert found.numbers
    assert found.sentence.endswith(".")
    assert re.search(r"\d|equal", known.close(found)), "how close it comes is a number"
    claim = next(claim for claim in all_claims() if claim.id == known.id)
    assert found.accepted or claim.erratum, "what fails needs an erratum"


def near(known: Check) -> bool:
    """Whether a mutant changes each number by no more than a factor of 2, or by a half."""
    printed = inspect.signature(known.function).parameters
    pairs = [(float(printed[name].default), value) for name, value in known.mutant.items()]
    return all(abs(value - was) <= 0.5 or 0.5 * was <= value <= 2.0 * was for was, value in pairs)


def test_mutants_are_as_near_to_the_claim_as_they_can_be() -> None:
    """A constant halved or doubled turns the verdict, or an exponent off by a half; thirteen say why not, on the page.

    Where what is printed is false and the mutant is what is meant, there is an erratum.
    """
    why = {known.id: known.far_because for known in all_checks().values() if known.far_because}
    assert list(why) == [known.id for known in all_checks().values() if not near(known)]
    assert Counter(reason.split()[0] for reason in why.values()) == {"no": 5, "what": 4, "the": 4}
    claims = {claim.id: claim for claim in all_claims()}
    assert [id for id, reason in why.items() if "printed is false" in reason and not claims[id].erratum] == []


def test_the_pages_say_how_loose_a_claim_is(finding: Callable[[str], Finding]) -> None:
    """Where no near mutant turns the verdict because the claim is loose, it says so with a number."""
    for known in all_checks().values():
        if "loose" in known.far_because:
            assert re.search(r"loose.*\d", known.close(finding(known.id))), known.id


def test_checks_say_what_they_do() -> None:
    """The method of each check is one sentence, and each says what it varies and, in numbers, how close it comes."""
    assert [known.id for known in all_checks().values() if not known.varies or known.varies.endswith(".")] == []
    assert [known.id for known in all_checks().values() if not known.method.endswith(".")] == []


@pytest.mark.slow
@pytest.mark.parametrize("known", all_checks().values(), ids=all_checks())
def test_checks_are_deterministic(known: Check) -> None:
    """A check finds the same each time, so that its JSON is stable."""
    assert known() == known()


@pytest.mark.slow
@pytest.mark.parametrize("id", [id for id, known in all_checks().items() if known.longer])
def test_long_simulations_agree_with_short_ones(id: str) -> None:
    """What the quick form accepts or refuses, the long one does, too."""
    assert check_for(id)(full=True).verdict == check_for(id)().verdict


def test_mutants_must_change_something() -> None:
    """A mutant that names no parameter, or repeats its default, is refused; so is a check without a docstring."""

    def function(constant: float = 1.0) -> Finding:
        """Check nothing."""
        return Finding.judged(True, "Nothing.")

    for mutant in ({"constants": 2.0}, {"constant": 1.0}, {}):
        with pytest.raises(InvalidParameter, match="mutant"):
            check("01", mutant=mutant)(function)
    function.__doc__ = None
    with pytest.raises(InvalidParameter, match="docstring"):
        check("01", mutant={"constant": 2.0})(function)


def test_full_reaches_only_checks_that_have_a_longer_form() -> None:
    """`full` is passed where the function takes it, and ignored elsewhere."""
    seen: list[bool] = []

    def long(constant: float = 1.0, full: bool = False) -> Finding:
        """Remember."""
        seen.append(full)
        return Finding.judged(True, "It ran.")

    made = check("01", mutant={"constant": 2.0})(long)
    made()
    made(full=True)
    made.mutated()
    assert made.longer
    assert seen == [False, True, False]
    assert not check_for("01").longer
    assert check_for("01")(full=True) == check_for("01")()


def test_unknown_ids_are_refused() -> None:
    """A check is asked for by the id of a claim."""
    with pytest.raises(InvalidParameter, match="Did you mean"):
        check_for("118")
