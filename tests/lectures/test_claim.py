from __future__ import annotations

from collections import Counter
from pkgutil import resolve_name

import pytest

from privet.errors import InvalidParameter
from privet.lectures import Claim, Finding, all_claims, all_lectures, look_up, select


def test_inventory_is_complete() -> None:
    """117 claims, ids 01 to 117 in order, as many of each lecture and kind as the audit of the lectures counted."""
    assert [claim.id for claim in all_claims()] == [f"{k:02d}" for k in range(1, 118)]
    assert Counter(claim.lecture.key for claim in all_claims()) == {
        "wu": 35,
        "brown_glm": 18,
        "brown_dpgd": 11,
        "razaviyayn": 38,
        "nikolov": 15,
    }
    assert Counter(claim.kind for claim in all_claims()) == {
        "definition": 15,
        "algorithm": 14,
        "calibration": 18,
        "bound": 14,
        "lemma": 16,
        "exercise": 6,
        "example": 6,
        "remark": 28,
    }
    assert len(all_lectures()) == 5


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.id)
def test_what_realises_a_claim_exists(claim: Claim) -> None:
    """Every name under realised_by can be imported, and there is at least one."""
    assert claim.realised_by
    for name in claim.realised_by:
        assert resolve_name(name) is not None


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.id)
def test_claims_are_sentences_and_carry_no_verdict(claim: Claim) -> None:
    """Statement and erratum end like sentences, formulas do not; nothing says whether it holds."""
    assert claim.statement.endswith((".", "?"))
    assert claim.formula
    assert not claim.formula.endswith(".")
    assert not claim.erratum or claim.erratum.endswith(".")
    assert not {"verdict", "holds", "fails"} & set(dir(claim))


@pytest.mark.parametrize(("word", "id"), [("1", "01"), ("01", "01"), ("001", "01"), ("117", "117"), ("#9", "09")])
def test_ids_may_lack_zeros(word: str, id: str) -> None:
    """An id is found however many leading zeros it has."""
    assert look_up(word).id == id


@pytest.mark.parametrize(
    ("word", "near"),
    [("118", "117"), ("012a", "12"), ("lemma 1.1", "12 (Lemma 1.1)"), ("theorem 4", "49 (Theorem 4.1)"), ("wuu", "wu")],
)
def test_unknown_ids_suggest_near_ones(word: str, near: str) -> None:
    """Who mistypes an id, or names a theorem, is told the nearest claims."""
    with pytest.raises(InvalidParameter, match="Did you mean") as refused:
        look_up(word)
    assert near in str(refused.value)


@pytest.mark.parametrize("word", ["", "0", "-1", "zzzzzzzz", "1.5", "None"])
def test_nonsense_is_refused_in_one_sentence(word: str) -> None:
    """What is no id is refused, quoted, with what to do."""
    with pytest.raises(InvalidParameter, match="Expected the id of a claim") as refused:
        look_up(word)
    assert repr(word) in str(refused.value)


def test_select_takes_ids_and_lectures() -> None:
    """Ids and keys of lectures may be mixed; each claim comes once, in order; no words mean all."""
    assert [claim.id for claim in select(["117", "wu", "3"])][-1] == "117"
    assert len(select(["117", "wu", "3"])) == 36
    assert select([]) == all_claims()
    with pytest.raises(InvalidParameter, match="nikolov"):
        select(["nikolow"])


def test_findings_refuse_what_says_nothing() -> None:
    """A verdict that is none, and a number that is none, are refused."""
    with pytest.raises(InvalidParameter, match="holds_within"):
        Finding(verdict="true", sentence="It is.")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="NaN"):
        Finding.judged(True, "It is.", number=float("nan"))


def test_findings_judge() -> None:
    """Accepted means true at least in a range."""
    assert [
        Finding.judged(holds, "", within=within).verdict for holds in (True, False) for within in (True, False)
    ] == [
        "holds_within",
        "holds",
        "fails",
        "fails",
    ]
    assert [Finding.judged(holds, "").accepted for holds in (True, False)] == [True, False]
