"""Sums over people: one person's whole share is bounded, in exact arithmetic, however many rows it has."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from privet import glm
from privet.clipping import Adaptive, Automatic, Bounding, Clip, Declared, LatticeSum, lattice_step
from privet.errors import InvalidParameter
from privet.losses import AppendOne, MultinomialLoss
from privet.problems import GroupedProblem
from privet.sums import person_means as room
from privet.sums.person_means import People, people_sum, row_weights

RULES: list[Bounding] = [
    Clip(clip=1.0),
    Clip(clip=0.07),
    Declared(lipschitz=0.3),
    Automatic(clip=0.9, stability=0.05),
    Adaptive(clip=0.6, count_noise=5.0),
]
Row = tuple[list[float], float]
Person = list[Row]
EMPTY: Row = ([math.nan, 0.0], 0.0)


def rows_of(count: int, seed: int) -> Person:
    """So many rows, nearly all in one direction so that their sum is long, with a few that are broken or huge."""
    rng = np.random.default_rng(seed)
    rows: Person = [([0.6 + 0.05 * rng.normal(), 0.75 + 0.05 * rng.normal()], 1.0) for _ in range(count)]
    strange: Person = [([math.nan, 1.0], 1.0), ([1e300, -1e300], 0.0), ([0.0, 0.0], 1.0), ([0.3, 0.1], math.nan)]
    return [strange[i % 4] if i % 7 == 5 else row for i, row in enumerate(rows)]


PEOPLE: list[Person] = [rows_of(count, count) for count in (1, 2, 3, 50)]
OTHERS: list[Person] = [[(x, 1 - y) for x, y in rows_of(count, 9 * count)] for count in (1, 2, 3, 50)]
THETA = np.array([-2.0, 3.0])


def problem(people: list[Person], loss: Any = "logistic", form: Any = np.asarray) -> GroupedProblem:
    rows = [(x, y, label) for label, person in enumerate(people) for x, y in person]
    X = np.array([x for x, _, _ in rows], dtype=np.float64).reshape(-1, 2)
    return glm(loss, form(X), [y for _, y, _ in rows], row_norm=1.0, groups=[label for *_, label in rows])


SUMS: dict[str, Callable[[GroupedProblem, Bounding], LatticeSum]] = {
    "gradient": lambda p, rule: p.gradient_sum(THETA, rule=rule, max_records=8),
    "difference": lambda p, rule: p.difference_sum(THETA, -THETA, rule=rule, max_records=8),
    "slope": lambda p, rule: p.slope_sum(THETA, np.ones(2), clip=rule.clip, max_records=8),
    "loss": lambda p, rule: p.loss_sum(THETA, clip=rule.clip, centre=0.1, max_records=8),
    "moment": lambda p, rule: p.moment_sum(),
}


def distance(one: LatticeSum, other: LatticeSum) -> Fraction:
    """The squared l2 distance of two sums ÷ clip², exactly."""
    assert one.step == other.step
    assert one.clip == other.clip
    square = sum(int(v) ** 2 for v in np.ravel(one.units - other.units))
    return square * Fraction(one.step) ** 2 / Fraction(one.clip) ** 2


def worst(summed: Callable[[list[Person]], LatticeSum], clips: dict[str, int]) -> Fraction:
    """Over all neighbours under each relation: the largest squared move ÷ what is allowed; counts are checked too."""
    whole, found = summed(PEOPLE), Fraction(0)
    for i, person in enumerate(PEOPLE):
        left = [*PEOPLE[:i], *PEOPLE[i + 1 :]]
        tables = [("add_remove", left), ("zero_out", [*PEOPLE[:i], [EMPTY] * len(person), *PEOPLE[i + 1 :]])]
        tables += [("replace_one", [*PEOPLE[:i], other, *PEOPLE[i + 1 :]]) for other in (*OTHERS, [EMPTY])]
        for relation, table in tables:
            other = summed(table)
            found = max(found, distance(whole, other) / clips[relation] ** 2)
            assert abs(whole.within - other.within) <= clips[relation]
    return found


CLIPS = {"add_remove": 1, "zero_out": 1, "replace_one": 2}


@pytest.mark.medium
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.describe())
@pytest.mark.parametrize("what", SUMS)
def test_one_person_moves_a_sum_by_the_clip(what: str, rule: Bounding) -> None:
    """People of 1, 2, 3 and 50 rows, each emptied, removed, or exchanged for another: exact distances in fractions."""
    for form in (np.asarray, sparse.csr_matrix):

        def summed(table: list[Person], form: Any = form) -> LatticeSum:
            return SUMS[what](problem(table, form=form), rule)

        assert worst(summed, CLIPS) <= 1


@pytest.mark.medium
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.describe())
def test_one_person_moves_a_sum_of_several_outputs_by_the_clip(rule: Bounding) -> None:
    """The same for a multinomial loss, whose share is a matrix."""
    theta = np.array([[-2.0, 1.0, 0.5], [3.0, 0.0, -1.0]])
    for form in (np.asarray, sparse.csr_matrix):

        def summed(table: list[Person], form: Any = form) -> LatticeSum:
            return problem(table, MultinomialLoss(classes=3), form).gradient_sum(theta, rule=rule, max_records=8)

        assert worst(summed, CLIPS) <= 1


def test_the_brute_force_sees_a_clip_of_rows() -> None:
    """Mutants: rows bounded one by one and added, and moments without weights, move the sum by 40 times the clip."""

    def rows_alone(table: list[Person]) -> GroupedProblem:
        return problem([[row] for person in table for row in person])

    def added(table: list[Person]) -> LatticeSum:
        return replace(rows_alone(table).gradient_sum(THETA, rule=Clip(clip=0.07), max_records=500), within=0)

    assert worst(added, CLIPS) > 40**2 / 4
    assert worst(lambda table: rows_alone(table).moment_sum(), CLIPS) > 20**2 / 4
    honest = worst(lambda table: SUMS["gradient"](problem(table), Clip(clip=0.07)), CLIPS)
    assert 0.99 < honest <= 1  # the promise is not only kept but attained


ENTRY = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e300, math.nan, math.inf]), st.floats(-2, 2))
ROW = st.tuples(st.lists(ENTRY, min_size=2, max_size=2), st.sampled_from([0.0, 1.0, -1.0, 0.3, 1e300, math.nan]))


@pytest.mark.medium
@given(
    people=st.lists(st.lists(ROW, min_size=1, max_size=5), min_size=1, max_size=4),
    rule=st.sampled_from(RULES),
    loss=st.sampled_from(["logistic", "squared", "absolute"]),
    theta=st.lists(st.sampled_from([0.0, 1.0, -3.0, 1e10, 1e-300]), min_size=2, max_size=2),
)
@settings(max_examples=60, deadline=None)
def test_any_person_alone_is_within_the_clip(people: list[Person], rule: Bounding, loss: str, theta: Any) -> None:
    """Whatever the rows: a table of one person has a sum of at most the clip, and removing a person moves that much."""
    whole = problem(people, loss).gradient_sum(np.array(theta), rule=rule, max_records=8)
    for i, person in enumerate(people):
        alone = problem([person], loss).gradient_sum(np.array(theta), rule=rule, max_records=8)
        left = [*people[:i], *people[i + 1 :]]
        rest = problem(left, loss).gradient_sum(np.array(theta), rule=rule, max_records=8) if left else None
        assert sum(int(v) ** 2 for v in alone.units) * Fraction(alone.step) ** 2 <= Fraction(alone.clip) ** 2
        if rest is not None:
            assert (whole.units - rest.units).tolist() == alone.units.tolist()  # the others do not feel it


def crowd(sizes: list[int], columns: int, outputs: int = 1) -> tuple[Any, NDArray[Any], NDArray[Any], Any]:
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(labels), columns)) / math.sqrt(columns)
    y = rng.integers(max(2, outputs), size=len(labels)).astype(np.float64)
    order = rng.permutation(len(labels))
    loss = "logistic" if outputs == 1 else MultinomialLoss(classes=outputs)
    return loss, X[order], y[order], labels[order]


@pytest.mark.medium
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_neither_order_nor_blocks_nor_threads_change_a_bit(
    outputs: int, form: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person of 700 rows among others, in blocks of 64 or more, any order of rows, one thread or three."""
    sizes = [1, 700, 2, 3, 1, 64, 50, 129, 1, 5]
    loss, X, y, labels = crowd(sizes, 5, outputs)
    theta = np.random.default_rng(0).normal(size=(5,) if outputs == 1 else (5, outputs))
    rule = Clip(clip=0.05)

    def summed(order: Any, threads: int | None = None) -> LatticeSum:
        made: GroupedProblem = glm(loss, form(X[order]), y[order], row_norm=1.0, groups=labels[order])
        if threads is None:
            return made.gradient_sum(theta, rule=rule)
        return people_sum(made.loss.derivative, made._people, theta, rule=rule, threads=threads)

    same = np.arange(len(y))
    first = summed(same)
    several = summed(same, threads=1)
    for _ in range(3):
        shuffled = np.random.default_rng(7).permutation(len(y))
        assert (summed(shuffled).units == first.units).all()
        monkeypatch.setattr(room, "block_rows", lambda columns: 64)
        assert (summed(shuffled).units == first.units).all()
        assert (summed(same, threads=3).units == several.units).all()
        assert summed(same, threads=3).within == several.within


def test_people_with_one_row_are_records_to_the_last_bit() -> None:
    """With all labels distinct, every sum is that of the plain problem, bit for bit, batches of people included."""
    _, X, y, _ = crowd([1] * 300, 4)
    labels = np.random.default_rng(1).permutation(300)
    plain, grouped = glm("logistic", X, y, row_norm=1.0), glm("logistic", X, y, row_norm=1.0, groups=labels)
    theta, chosen = np.array([1.0, -2.0, 0.5, 3.0]), np.array([2, 3, 40, 299])
    pairs: list[tuple[LatticeSum, LatticeSum]] = [(plain.moment_sum(), grouped.moment_sum())]
    for rule, indices in itertools.product(RULES, (None, chosen)):
        for p in (plain, grouped):
            assert p.records == 300
        pairs.append(tuple(p.gradient_sum(theta, rule=rule, indices=indices) for p in (plain, grouped)))  # type: ignore[arg-type]
        pairs.append(tuple(p.difference_sum(theta, -theta, rule=rule, indices=indices) for p in (plain, grouped)))  # type: ignore[arg-type]
        pairs.append(tuple(p.slope_sum(theta, theta, clip=0.3, indices=indices) for p in (plain, grouped)))  # type: ignore[arg-type]
    pairs.append(tuple(p.loss_sum(theta, clip=0.3) for p in (plain, grouped)))  # type: ignore[arg-type]
    for one, other in pairs:
        assert (one.units == other.units).all()
        assert (one.step, one.clip, one.within) == (other.step, other.clip, other.within)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_share_is_the_mean_over_the_rows(form: Any) -> None:
    """Nothing clipped: the sum is Σ over people of the mean row gradient, in fractions to two units a person."""
    loss, X, y, labels = crowd([1, 2, 3, 50, 300], 3)
    made = glm(loss, form(X), y, row_norm=1.0, groups=labels)
    theta = np.array([0.5, -1.0, 2.0])
    found = made.gradient_sum(theta, rule=Clip(clip=4.0), max_records=5)
    step = Fraction(lattice_step(4.0, max_records=5))
    plain = glm(loss, X, y, row_norm=1.0)
    exact = [Fraction(0)] * 3
    for label in range(5):
        rows = np.flatnonzero(labels == label)
        units = [
            plain.gradient_sum(theta, rule=Clip(clip=4.0), indices=rows[[i]], max_records=5).units
            for i in range(len(rows))
        ]
        exact = [e + Fraction(int(sum(int(u[j]) for u in units)), len(rows)) for j, e in enumerate(exact)]
    assert all(abs(int(unit) - e) <= 2 * 5 for unit, e in zip(found.units, exact, strict=True))
    assert found.step == step


def test_moments_are_means_and_a_batch_is_people() -> None:
    """Σ of the means of x xᵀ, to the rounding of rows; and indices choose people with all their rows."""
    loss, X, y, labels = crowd([1, 2, 3, 50], 3)
    X = X / np.maximum(1.0, 1.001 * np.linalg.norm(X, axis=1))[:, None]
    made = glm(loss, X, y, row_norm=1.0, groups=labels)
    truth = sum(X[labels == k].T @ X[labels == k] / np.sum(labels == k) for k in range(4))
    assert np.abs(made.moment_sum().value - truth).max() < 4e-3
    whole = made.gradient_sum(np.ones(3), rule=Clip(clip=0.2), max_records=4).units
    parts = [
        made.gradient_sum(np.ones(3), rule=Clip(clip=0.2), indices=np.array(c), max_records=4).units
        for c in ([0, 2], [1, 3])
    ]
    assert (parts[0] + parts[1]).tolist() == whole.tolist()
    rest = glm(loss, X[labels != 3], y[labels != 3], row_norm=1.0, groups=labels[labels != 3])
    without = rest.gradient_sum(np.ones(3), rule=Clip(clip=0.2), max_records=4).units
    first = made.gradient_sum(np.ones(3), rule=Clip(clip=0.2), indices=np.arange(3), max_records=4).units
    assert first.tolist() == without.tolist()
    nobody = made.gradient_sum(np.ones(3), rule=Clip(clip=0.2), indices=np.array([], dtype=np.int64), max_records=4)
    assert nobody.units.tolist() == [0, 0, 0]


def test_rows_that_count_for_nothing_do_not_dilute() -> None:
    """A person's mean is over the rows that are not empty, and rows without a label are left out."""
    good: Person = [([0.6, 0.3], 1.0), ([0.1, -0.2], 0.0)]
    rule = Clip(clip=4.0)
    plain = problem([good, good]).gradient_sum(THETA, rule=rule, max_records=8)
    diluted = problem([[*good, EMPTY, EMPTY], [EMPTY, *good]]).gradient_sum(THETA, rule=rule, max_records=8)
    assert plain.units.tolist() == diluted.units.tolist()
    X, y = [x for x, _ in good] * 2 + [[0.9, 0.0]], [y for _, y in good] * 2 + [1.0]
    unlabelled = glm("logistic", X, y, row_norm=1.0, groups=["a", "a", "b", "b", None])
    assert unlabelled.records == 2
    assert unlabelled.gradient_sum(THETA, rule=rule, max_records=8).units.tolist() == plain.units.tolist()
    silent = problem([[EMPTY, EMPTY], good])
    assert silent.records == 2
    assert silent.gradient_sum(THETA, rule=Adaptive(clip=4.0, count_noise=5.0), max_records=8).within == 1


def test_windows_keep_every_sum_exact() -> None:
    """A block's rows of one person stay within 2^53, all of them within 2^61; up to 2^20 rows one may reach a clip."""
    counts = np.array([0, 1, 2, 100, 128, 129, 4096, 4097, 2**20, 2**20 + 1, 2**40])
    for count, window in zip(counts.tolist(), room._windows(counts).tolist(), strict=True):
        assert window * min(count, 4096) <= 2**53
        assert window * count <= 2**61
        assert 1 <= window <= 2**46
        assert window >= 2**41 or count > 2**20


@given(counts=st.lists(st.one_of(st.integers(1, 5000), st.integers(1, 2**40)), min_size=1, max_size=20))
def test_weights_of_a_person_have_squares_of_at_most_1(counts: list[int]) -> None:
    """m · w² ≤ 1 − 2^-51 in fractions, so that a row times its weight may be rounded up once; 1 for m = 1."""
    person = object.__new__(People)
    person.counts, person.starts = np.array(counts), np.arange(len(counts) + 1)
    for count, weight in zip(counts, row_weights(person).tolist(), strict=True):
        room_left = Fraction(1) if count == 1 else Fraction(1) - Fraction(1, 2**51)
        assert count * Fraction(weight) ** 2 <= room_left
        assert count * weight**2 > 1 - 2.0**-40


def test_more_people_than_the_lattice_was_made_for_are_refused() -> None:
    """The limit counts people, not rows, and says so without a count."""
    loss, X, y, labels = crowd([3, 3, 3], 2)
    made = glm(loss, X, y, row_norm=1.0, groups=labels)
    assert made.gradient_sum(np.zeros(2), rule=Clip(clip=1.0), max_records=3).units.shape == (2,)
    with pytest.raises(InvalidParameter, match="at most 2 records in one sum: more"):
        made.gradient_sum(np.zeros(2), rule=Clip(clip=1.0), max_records=2)


def test_scalars_are_means_over_the_rows() -> None:
    """Nothing cut: the losses' sum is Σ over people of the mean loss; a mean that is too large is cut to the clip."""
    X, y, groups = [[0.0], [0.0], [0.0]], [1.0, 3.0, 2.0], ["a", "a", "b"]
    made = glm("half_squared", X, y, row_norm=1.0, groups=groups, features=AppendOne())
    assert float(made.loss_sum(np.zeros(2), clip=9.0).value) == (0.5 + 4.5) / 2 + 2.0
    assert float(made.loss_sum(np.zeros(2), clip=2.25).value) == 2.25 + 2.0
