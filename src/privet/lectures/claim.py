"""What the lectures claim, as values: 117 claims in five lectures, in our own words, and what a check can find."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal, Self, get_args

from privet.errors import InvalidParameter

Kind = Literal["definition", "algorithm", "calibration", "bound", "lemma", "exercise", "example", "remark"]
"""What sort of statement a claim is."""

Verdict = Literal["holds", "holds_within", "fails"]
"""What a check can find: true as printed, true in a range that the sentence names, false as printed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lecture:
    """One of the five lectures. `neighbours` is the relation it has in mind, `releases` what its algorithm shows.

    Examples
    --------
    >>> [lecture.key for lecture in all_lectures()]
    ['wu', 'brown_glm', 'brown_dpgd', 'razaviyayn', 'nikolov']
    """

    key: str
    author: str
    title: str
    neighbours: str
    releases: str

    def __str__(self) -> str:
        return f"{self.author}: {self.title}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One claim of a lecture. Whether it is true is not written here: a `Check` finds that out.

    `statement` says what is meant, `formula` what is printed where that can be computed with, `realised_by` which
    names of privet carry it out, `erratum` what is wrong in print and what is right, if anything is.

    Examples
    --------
    >>> claim = look_up("48")
    >>> print(claim.formula)
    sigma = 2 L sqrt(T ln(1/delta)) / (n epsilon)
    >>> claim.erratum
    'The factor sqrt(2) is missing: 2 L sqrt(2 T ln(1/delta)) / (n epsilon), as in Lemma 1.1, is meant.'
    """

    id: str
    lecture: Lecture
    place: str
    kind: Kind
    statement: str
    formula: str
    realised_by: tuple[str, ...]
    erratum: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidParameter(f"""Expected one of {", ".join(get_args(Kind))}, got {self.kind!r}: claim {self.id}
                is none of them. Mend claims.toml.""")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What a check found, then and there: a verdict, a sentence with its numbers, and the numbers by name.

    Examples
    --------
    >>> found = Finding.judged(2.0 < 3.0, "The excess 2 is below the bound 3.", excess=2.0, bound=3.0)
    >>> found.verdict, found.accepted, found.numbers
    ('holds', True, {'excess': 2.0, 'bound': 3.0})
    """

    verdict: Verdict
    sentence: str
    numbers: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.verdict not in get_args(Verdict):
            raise InvalidParameter(f"""Expected one of {", ".join(get_args(Verdict))}, got {self.verdict!r}: nobody
                could read it. Use Finding.judged.""")
        if any(math.isnan(value) for value in self.numbers.values()):
            raise InvalidParameter(f"""Expected numbers, got NaN among {", ".join(self.numbers)}: a check that computes
                nothing finds nothing. Mend the check.""")

    @classmethod
    def judged(
        cls,
        holds: bool,
        sentence: str,
        *,
        within: bool = False,
        table: Mapping[str, float] = MappingProxyType({}),
        **numbers: float,
    ) -> Self:
        """Return "holds" or "fails"; with `within`, "holds_within" in place of "holds". `table` are more numbers.

        Examples
        --------
        >>> Finding.judged(True, "True for epsilon up to 7.97.", within=True, frontier=7.97).verdict
        'holds_within'
        """
        verdict: Verdict = "fails" if not holds else "holds_within" if within else "holds"
        every = {name: float(number) for name, number in (numbers | dict(table)).items()}
        return cls(verdict=verdict, sentence=" ".join(sentence.split()), numbers=every)

    @property
    def accepted(self) -> bool:
        """Whether the claim is true, at least in the range that the sentence names."""
        return self.verdict != "fails"


@cache
def all_lectures() -> tuple[Lecture, ...]:
    """Return the five lectures.

    Examples
    --------
    >>> print(all_lectures()[0])
    Steven Wu: Lecture 13, Private Gradient Descent (after Smith and Ullman)
    """
    return tuple(Lecture(**row) for row in _table()["lecture"])


@cache
def all_claims() -> tuple[Claim, ...]:
    """Return the claims of all lectures, in the order of their ids.

    Examples
    --------
    >>> len(all_claims()), all_claims()[-1].id
    (117, '117')
    """
    lectures = {lecture.key: lecture for lecture in all_lectures()}
    return tuple(
        Claim(**row | {"lecture": lectures[row["lecture"]], "realised_by": tuple(row["realised_by"])})
        for row in _table()["claim"]
    )


def look_up(word: str) -> Claim:
    """Return the claim of that id, with or without leading zeros; an unknown one is answered by the nearest.

    Examples
    --------
    >>> look_up("9").place
    'Algorithm 2'
    >>> look_up("171")
    Traceback (most recent call last):
        ...
    privet.errors.InvalidParameter: Expected the id of a claim, 01 to 117, or the key of a lecture, got '171': there \
is no such claim. Did you mean 117 (Plugging in), 71 (Recap, post-processing) or 17 (After Lemma 1.2)?
    """
    known = {claim.id: claim for claim in all_claims()}
    plain = str(word).strip().lstrip("#").lstrip("0").rjust(2, "0")
    if plain in known:
        return known[plain]
    raise InvalidParameter(f"""Expected the id of a claim, {all_claims()[0].id} to {all_claims()[-1].id}, or the key of
        a lecture, got {word!r}: there is no such claim. {_suggestion(str(word))}""")


def select(words: Iterable[str]) -> tuple[Claim, ...]:
    """Return the claims that ids and keys of lectures name, each once and in order; all of them for no words.

    Examples
    --------
    >>> [claim.id for claim in select(["24", "9"])], len(select(["wu"])), len(select([]))
    (['09', '24'], 35, 117)
    """
    keys = {lecture.key for lecture in all_lectures()}
    asked = list(words)
    chosen = {claim.id for claim in all_claims() if claim.lecture.key in asked or not asked}
    chosen |= {look_up(word).id for word in asked if word not in keys}
    return tuple(claim for claim in all_claims() if claim.id in chosen)


def _suggestion(word: str) -> str:
    """Say which claims are nearest: by id, by place, or by lecture."""
    names = {claim.id: f"{claim.id} ({claim.place})" for claim in all_claims()}
    names |= {claim.place.lower(): f"{claim.id} ({claim.place})" for claim in reversed(all_claims())}
    names |= {lecture.key: f"{lecture.key} (all of {lecture.author})" for lecture in all_lectures()}
    names |= {lecture.author.lower(): names[lecture.key] for lecture in reversed(all_lectures())}
    near = [names[name] for name in get_close_matches(word.lower(), names, n=3, cutoff=0.5)]
    if word.strip().isdecimal():
        near = [names[all_claims()[min(max(int(word), 1), len(all_claims())) - 1].id], *near[:2]]
    near = list(dict.fromkeys(near))
    if not near:
        return "Use `privet lectures list` to see them all."
    last = f"{', '.join(near[:-1])} or {near[-1]}" if near[1:] else near[0]
    return f"Did you mean {last}?"


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(resources.files("privet.lectures").joinpath("claims.toml").read_text(encoding="utf-8"))
