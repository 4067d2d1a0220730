from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from privet import glm
from privet.clipping import Adaptive, Automatic, Bounding, Clip, Declared, LatticeSum
from privet.errors import InvalidParameter
from privet.losses import LogisticLoss, Loss, MultinomialLoss, SquaredLoss, loss_named
from privet.sums import blocks, bounded_table
from privet.sums import glm as room
from privet.sums.glm import glm_sum, gram_sum, rounded, scalar_sum, scores

pytestmark = pytest.mark.usefixtures("both_paths")

RULES: list[Bounding] = [
    Clip(clip=1.0),
    Clip(clip=0.7),
    Clip(clip=1e-30),
    Declared(lipschitz=0.3),
    Automatic(clip=0.9, stability=0.05),
    Adaptive(clip=0.6, count_noise=5.0),
]
SPECIAL = [0.0, 1.0, -1.0, 0.6, 0.8, 1e-300, 1e300, math.nan, math.inf]
ENTRY = st.one_of(st.sampled_from(SPECIAL), st.floats(-2, 2))
RECORD = st.tuples(st.lists(ENTRY, min_size=2, max_size=2), st.sampled_from([0.0, 1.0, -1.0, 0.3, 1e300, math.nan]))
THETA = st.lists(st.one_of(st.sampled_from([0.0, 1.0, 1e-300, 1e10]), st.floats(-5, 5)), min_size=2, max_size=2)


def problem(records: list[Any], loss: Loss) -> Any:
    X = np.array([x for x, _ in records], dtype=np.float64).reshape(-1, 2)
    return glm(loss, X, np.array([y for _, y in records], dtype=np.float64), row_norm=1.0)


def square(units: Any) -> int:
    return sum(int(v) ** 2 for v in np.ravel(units))


def moved_at_most(one: LatticeSum, other: LatticeSum, clips: int, count: int = 0) -> None:
    """‖one − other‖ ≤ clips × clip, and the counts at most `clips` apart, in exact arithmetic."""
    assert one.step == other.step
    assert (
        square(np.asarray(one.units) - np.asarray(other.units)) * Fraction(one.step) ** 2
        <= (clips * Fraction(one.clip)) ** 2
    )
    assert abs(one.within - other.within) <= clips


def check_neighbours(records: list[Any], other: Any, summed: Callable[[list[Any]], LatticeSum]) -> None:
    """Every neighbour of the records under each relation, by brute force."""
    whole = summed(records)
    for i in range(len(records)):
        rest = [*records[:i], *records[i + 1 :]]
        empty = ([0.0, 0.0], 0.0)
        moved_at_most(whole, summed(rest), 1)  # add_remove
        moved_at_most(whole, summed([*records[:i], empty, *records[i + 1 :]]), 1)  # zero_out
        moved_at_most(whole, summed([*records[:i], other, *records[i + 1 :]]), 2)  # replace_one


@settings(max_examples=60)
@given(
    st.lists(RECORD, min_size=1, max_size=3),
    RECORD,
    THETA,
    st.sampled_from(RULES),
    st.sampled_from(["logistic", "squared", "absolute", "hinge"]),
)
def test_one_record_moves_a_gradient_sum_by_at_most_the_clip(
    records: list[Any], other: Any, theta: list[float], rule: Bounding, loss: str
) -> None:
    """For every rule × neighbours × n = 1, 2, 3, in exact arithmetic; the count included."""
    check_neighbours(
        records, other, lambda rows: problem(rows, loss_named(loss)).gradient_sum(np.array(theta), rule=rule)
    )


@pytest.mark.medium
@settings(max_examples=25)
@given(st.lists(RECORD, min_size=1, max_size=3), RECORD, THETA, THETA, st.sampled_from(RULES))
def test_one_record_moves_a_difference_sum_by_at_most_the_clip(
    records: list[Any], other: Any, theta: list[float], anchor: list[float], rule: Bounding
) -> None:
    """The difference of two gradients is bounded as one vector, by the clip and not by two."""
    check_neighbours(
        records,
        other,
        lambda rows: problem(rows, SquaredLoss()).difference_sum(np.array(theta), np.array(anchor), rule=rule),
    )


@pytest.mark.medium
@settings(max_examples=25)
@given(st.lists(RECORD, min_size=1, max_size=3), RECORD, THETA, THETA, st.sampled_from([1.0, 0.3, 1e-20, 1e20]))
def test_one_record_moves_a_scalar_sum_by_at_most_the_clip(
    records: list[Any], other: Any, theta: list[float], direction: list[float], clip: float
) -> None:
    """Losses and slopes, cut to ±clip, move a sum by no more than that."""
    check_neighbours(records, other, lambda rows: problem(rows, SquaredLoss()).loss_sum(np.array(theta), clip=clip))
    check_neighbours(
        records,
        other,
        lambda rows: problem(rows, SquaredLoss()).slope_sum(np.array(theta), np.array(direction), clip=clip),
    )


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.lists(ENTRY, min_size=2, max_size=2), st.integers(-1, 3)), min_size=1, max_size=3),
    st.tuples(st.lists(ENTRY, min_size=2, max_size=2), st.integers(0, 2)),
    st.lists(st.floats(-50, 50), min_size=6, max_size=6),
    st.sampled_from(RULES),
)
def test_one_record_moves_a_multinomial_sum_by_at_most_the_clip(
    records: list[Any], other: Any, theta: list[float], rule: Bounding
) -> None:
    """With K outputs the gradient is a matrix, bounded in Frobenius norm."""
    loss = MultinomialLoss(classes=3)
    coefficients = np.array(theta).reshape(2, 3)
    check_neighbours(records, other, lambda rows: problem(rows, loss).gradient_sum(coefficients, rule=rule))


@settings(max_examples=40)
@given(st.lists(RECORD, min_size=1, max_size=3), RECORD)
def test_one_record_moves_a_gram_matrix_by_at_most_its_squared_norm(records: list[Any], other: Any) -> None:
    """‖xxᵀ‖_F = ‖x‖² ≤ row_norm², exactly; and as (diagonal, √2 × triangle) it is the same vector."""
    check_neighbours(records, other, lambda rows: gram_sum(problem(rows, SquaredLoss()).table))


@pytest.mark.medium
@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("row_norm", [1.0, 0.77, math.sqrt(2), 1e-100, 1e100])
def test_records_on_the_boundary_are_within_the_clip(rule: Bounding, row_norm: float) -> None:
    """Rows of exactly row_norm with derivatives of exactly clip ÷ norm, an ulp less, an ulp more, and huge."""
    rng = np.random.default_rng(3)
    rows = np.vstack([np.eye(3), rng.normal(size=(40, 3))])
    rows *= row_norm / np.linalg.norm(rows, axis=1, keepdims=True)
    table = bounded_table(rows, row_norm=row_norm)
    edge = rule.clip / row_norm
    for a in (edge, math.nextafter(edge, 0), math.nextafter(edge, math.inf), -edge * 3, 1e300, 1e-300):
        for i in range(len(rows)):
            total = glm_sum(
                lambda z, y, a=a: np.full_like(z, a),
                table,
                np.zeros(len(rows)),
                np.ones(3),
                rule=rule,
                indices=np.array([i]),
                max_records=1,
            )
            assert square(total.units) * Fraction(total.step) ** 2 <= Fraction(rule.clip) ** 2
            if abs(a) > 2 * edge and not isinstance(rule, Automatic):  # clipped, not lost: to 2^-24 of the clip
                assert square(total.units) * Fraction(total.step) ** 2 >= Fraction(rule.clip) ** 2 * (1 - 2.0**-24)


def slow_sum(loss: Loss, table: Any, labels: Any, theta: Any, clip: float, max_records: int) -> list[int]:
    """The oracle: record by record in whole numbers and fractions, by the rounding rules of docs/proofs/sums.md."""
    bits = min(41, 61 - (max_records - 1).bit_length())
    exponent = math.ceil(math.log2(clip))
    step = Fraction(2) ** (exponent - bits)
    clip_units = math.floor(Fraction(clip) / step)
    size = math.sqrt(sum(float(t) ** 2 for t in theta))
    theta_step = Fraction(2) ** (math.frexp(size)[1] - 36) if size else Fraction(1)
    coefficients = [math.trunc(Fraction(float(t)) / theta_step) for t in theta]
    total = [0] * len(coefficients)
    units = table.units.toarray() if table.is_sparse else table.units
    for row, label in zip(units, labels, strict=True):
        x = [int(v) for v in row]
        length = sum(v * v for v in x)
        if not length:
            continue
        z = sum(v * t for v, t in zip(x, coefficients, strict=True)) * Fraction(table.step) * theta_step
        a = float(loss.derivative(np.array([float(z)]), np.array([float(label)]))[0])
        wanted = round(Fraction(a) / (step / Fraction(table.step)))  # half to even
        cap = math.floor(clip_units * ((1 - 2.0**-50) / math.sqrt(length)))
        assert cap * cap * length <= clip_units**2
        assert (cap + 2) ** 2 * length > clip_units**2
        bounded = min(max(wanted, -cap), cap)
        total = [t + bounded * v for t, v in zip(total, x, strict=True)]
    return total


@pytest.mark.medium
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "hinge", "logistic"])
@pytest.mark.parametrize("clip", [1.0, 0.37, 64.0])
def test_the_sum_is_that_of_a_slow_exact_oracle(loss: str, clip: float) -> None:
    """Every unit agrees with a sum record by record in fractions."""
    rng = np.random.default_rng(4)
    chosen = LogisticLoss(labels="plus_minus_one") if loss == "logistic" else loss_named(loss)
    made = glm(chosen, rng.normal(size=(150, 5)), rng.choice([-1.0, 1.0], 150), row_norm=2.0)
    for theta in (rng.normal(size=5), np.zeros(5), 1e5 * rng.normal(size=5), np.array([0, 0, 3e-8, 0, 0])):
        found = made.gradient_sum(theta, rule=Clip(clip=clip), max_records=150)
        assert found.units.tolist() == slow_sum(chosen, made.table, made.labels, theta, clip, 150)


def test_predictions_are_exact() -> None:
    """Every ⟨x, θ⟩ is an exact float: a loss that only sees z sees the fraction, for theta of any size and width."""
    rng = np.random.default_rng(5)
    for columns, scale in itertools.product((1, 3, 1000), (1e-170, 1e-3, 1.0, 1e150)):
        table = bounded_table(rng.normal(size=(5, columns)), row_norm=1.0)
        theta = rng.normal(size=columns) * scale
        seen: list[NDArray[Any]] = []

        def derivative(z: NDArray[Any], y: NDArray[Any], seen: list[NDArray[Any]] = seen) -> NDArray[Any]:
            seen.append(z[:5].copy())
            return z

        glm_sum(derivative, table, np.zeros(5), theta, rule=Clip(clip=1.0))
        coefficients, step = room.rounded(theta)
        for z, row in zip(seen[0], table.units, strict=True):
            exact = sum(int(v) * int(t) for v, t in zip(row, coefficients, strict=True))
            assert abs(exact) < 2**53
            assert Fraction(float(z)) == exact * Fraction(table.step) * Fraction(step)
        assert np.abs(coefficients * step - theta).max() <= np.linalg.norm(theta / scale) * scale * 2.0**-35


def test_coefficients_whose_squares_vanish_stay_exact() -> None:
    """Norms whose squares underflow or overflow do not mislead the grid of theta: no sum of products reaches 2^53."""
    for theta in (np.array([1.6e-162] + [1.5e-162] * 99_999), np.full(10, 1e200), np.full(3, 5e-324)):
        coefficients, step = room.rounded(theta)
        assert sum(int(t) ** 2 for t in coefficients) < 2**73
        assert step > 0
    with pytest.raises(InvalidParameter, match="finite coefficients"):
        room.rounded(np.array([math.inf]))


def made(n: int = 700, columns: int = 7, outputs: int = 1) -> Any:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(n, columns)) * (rng.random((n, columns)) < 0.6)
    X[5], X[9, 0] = 0.0, np.inf
    y = rng.integers(0, 2, n).astype(float)
    y[11] = 7
    loss = LogisticLoss() if outputs == 1 else MultinomialLoss(classes=outputs)
    return X.astype(np.float32).astype(np.float64), y, loss


@pytest.mark.medium
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
def test_order_blocks_threads_and_form_never_change_a_bit(
    outputs: int, rule: Bounding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shuffled rows, blocks of 64 to 4096, 1 to 3 threads, CSR and float32 give the same integers."""
    X, y, loss = made(outputs=outputs)
    theta = np.random.default_rng(7).normal(size=(7, outputs) if outputs > 1 else 7)
    order = np.random.default_rng(8).permutation(len(X))

    def found(rows: Any, labels: Any, threads: int | None = None, indices: Any = None) -> tuple[list[int], int]:
        p = glm(loss, rows, labels, row_norm=1.3)
        total = glm_sum(loss.derivative, p.table, p.labels, theta, rule=rule, threads=threads, indices=indices)
        return total.units.ravel().tolist(), total.within

    expected = found(X, y)
    assert found(X[order], y[order]) == expected
    assert found(X, y, indices=order) == expected
    assert found(X.astype(np.float32), y) == expected
    assert found(sparse.csr_array(X), y, indices=order) == expected
    assert found(np.asfortranarray(X), y) == expected
    for block in (1, 64 * 7, 130 * 7, 2**19):
        monkeypatch.setattr(blocks, "_BLOCK", block)
        for threads in (1, 2, 3):
            assert found(X, y, threads) == expected
            assert found(sparse.csr_matrix(X), y, threads) == expected


def test_shares_add_up() -> None:
    """The sum over all records is the sum of the sums over each alone: no record changes another's share."""
    X, y, loss = made(n=130)
    p = glm(loss, X, y, row_norm=1.0)
    theta = np.random.default_rng(9).normal(size=7)
    whole = p.gradient_sum(theta, rule=Adaptive(clip=0.2, count_noise=1.0))
    parts = [p.gradient_sum(theta, rule=Adaptive(clip=0.2, count_noise=1.0), indices=np.array([i])) for i in range(130)]
    assert (whole.units == sum(part.units for part in parts)).all()
    assert whole.within == sum(part.within for part in parts)


def test_gram_matrices_are_exact_in_any_order_and_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Σ x xᵀ equals the sum in whole numbers, for any blocks, threads and form."""
    X, y, loss = made()
    table = glm(loss, X, y, row_norm=1.3).table
    whole = table.units.astype(object)
    expected = (whole.T @ whole).tolist()
    for block in (1, 2**19):
        monkeypatch.setattr(blocks, "_BLOCK", block)
        for form, threads in itertools.product((X, sparse.csr_array(X)), (1, 2, 3)):
            found = gram_sum(glm(loss, form, y, row_norm=1.3).table, threads=threads)
            assert found.units.tolist() == expected
    assert found.step == table.step**2


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 3e38, 1e200, -1e308, 5e-324])
def test_bad_derivatives_and_values_count_as_zero_or_the_clip(bad: float) -> None:
    """A derivative that is not finite is 0, a huge one is clipped; nothing warns, no other record moves."""
    table = bounded_table(np.full((3, 2), 0.5), row_norm=1.0)

    def derivative(z: Any, y: Any) -> Any:
        return np.where(y == 1, bad, 0.25)

    labels = np.array([0.0, 1.0, 0.0])
    for rule in RULES:
        alone = glm_sum(derivative, table, labels, np.zeros(2), rule=rule, indices=np.array([0, 2]))
        whole = glm_sum(derivative, table, labels, np.zeros(2), rule=rule)
        moved_at_most(whole, alone, 1)
        if not math.isfinite(bad):
            assert (whole.units == alone.units).all()
    numbers = scalar_sum(derivative, table, labels, np.zeros(2), clip=0.3)
    assert abs(float(numbers.value) - 0.5) <= 0.3


def test_predictions_beyond_floats_do_not_warn() -> None:
    """Predictions that overflow, or are infinity times zero, are that record's own affair, in any thread."""
    rows = np.full((5000, 2), 1e119)
    rows[::7] = 0
    rows[::5, 1] *= -1
    p = glm("squared", rows, np.zeros(5000), row_norm=2e119)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for threads in (1, 2):
            total = glm_sum(
                p.loss.derivative, p.table, p.labels, np.full(2, 1e308), rule=Clip(clip=1.0), threads=threads
            )
            assert np.isfinite(total.value).all()


@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 4096, 4097])
def test_any_number_of_records_is_summed(n: int) -> None:
    """Empty sums are zero; block edges lose and repeat nobody."""
    p = glm("half_squared", np.ones((n, 1)), -np.ones(n), row_norm=1.0)
    total = p.gradient_sum(np.zeros(1), rule=Clip(clip=4.0))
    assert total.value.tolist() == [n]
    assert p.gradient_sum(np.zeros(1), rule=Clip(clip=4.0), indices=np.empty(0, dtype=np.int64)).value.tolist() == [0.0]


def test_a_full_lattice_does_not_overflow() -> None:
    """One block of records at the clip is exact, and max_records of them fit in 63 bits."""
    p = glm("half_squared", np.ones((4096, 1)), np.full(4096, -9.0), row_norm=1.0)
    for most in (4096, 2**20, 2**20 + 1, 2**27):
        total = p.gradient_sum(np.zeros(1), rule=Clip(clip=1.0), max_records=most)
        units = 2 ** min(41, 61 - (most - 1).bit_length())
        assert int(total.units[0]) == 4096 * math.floor(units * (1 - 2.0**-50) / 2**14) * 2**14
        assert units * most <= 2**61
    with pytest.raises(InvalidParameter, match="at most 4,095 records"):
        p.gradient_sum(np.zeros(1), rule=Clip(clip=1.0), max_records=4095)


@pytest.mark.parametrize("n", [0, 1, 65, 4097])
def test_scores_are_exact_and_each_record_s_own(n: int) -> None:
    """⟨x, θ⟩ in fractions for θ as it is rounded, dense or sparse, whatever the block; alone as in company."""
    rng = np.random.default_rng(4)
    rows, theta = rng.normal(size=(n, 7)) * (rng.random((n, 7)) < 0.5), rng.normal(size=7) * 10.0 ** rng.uniform(-3, 3)
    table = bounded_table(rows, row_norm=1.5)
    found = scores(table, theta)
    assert found.tolist() == scores(bounded_table(sparse.csr_matrix(rows), row_norm=1.5), theta).tolist()
    units, step = rounded(theta)
    for i in {0, n // 2, n - 1} & set(range(n)):
        whole = sum(int(x) * int(t) for x, t in zip(table.units[i], units, strict=True))
        assert Fraction(float(found[i])) == whole * Fraction(table.step) * Fraction(step)
        assert scores(bounded_table(rows[[i]], row_norm=1.5), theta)[0] == found[i]
