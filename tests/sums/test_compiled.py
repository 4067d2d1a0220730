from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from privet import glm
from privet.clipping import Adaptive, Automatic, Bounding, Clip, Declared
from privet.losses import MultinomialLoss, loss_named
from privet.sums import compiled, glm_sum, scalar_sum
from privet.sums.compiled import Kernels
from privet.sums.glm import _bounded
from privet.sums.table import Table

PLAIN = Kernels(compiled._predict, compiled._bound, compiled._weigh)
RULES: list[Bounding] = [
    Clip(clip=0.3),
    Declared(lipschitz=1.0),
    Automatic(clip=1.0),
    Adaptive(clip=0.2, count_noise=3.0),
]


@pytest.fixture
def fresh() -> Iterator[None]:
    """`kernels` forgets what it found, before and after."""
    compiled.kernels.cache_clear()
    yield
    compiled.kernels.cache_clear()


def there() -> Kernels:
    pytest.importorskip("numba")
    found = compiled.kernels()
    assert found is not None
    return found


def in_turn(monkeypatch: pytest.MonkeyPatch, action: Any) -> tuple[Any, Any]:
    """What `action` gives by NumPy alone, and compiled."""
    there()
    monkeypatch.setattr(compiled, "_WORTH_CALLING", 2**62)
    plain = action()
    monkeypatch.setattr(compiled, "_WORTH_CALLING", 0)
    return plain, action()


def whole(rows: int, columns: int, outputs: int, size: int = 2**14) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(rows + 100 * columns)
    x = rng.integers(-size, size, (rows, columns), endpoint=True)
    return x, rng.integers(-(2**30), 2**30, (outputs, columns)), rng.integers(-(2**25), 2**25, (outputs, rows))


@pytest.mark.parametrize("made", ["plain", "compiled"])
@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (1, 1), (3, 7), (4, 8), (5, 33), (7, 64), (9, 2)])
@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_both_passes_are_sums_in_whole_numbers(made: str, rows: int, columns: int, outputs: int) -> None:
    """As Python it is, and compiled: every remainder of rows and columns, several outputs, to the last unit."""
    kernels = PLAIN if made == "plain" else there()
    x, theta, a = whole(rows, columns, outputs)
    z, total = np.full((rows, outputs), np.nan), np.full((outputs, columns), 5, dtype=np.int64)
    kernels.predict(x.astype(np.int16), theta.astype(np.float64), z)
    kernels.weigh(x.astype(np.int16), a.astype(np.float64), total)
    exact = x.astype(object)
    assert z.tolist() == (exact @ theta.T.astype(object)).tolist()
    assert total.tolist() == (a.astype(object) @ exact + 5).tolist()


@pytest.mark.parametrize("rows", [4095, 4096, 4097, 8192, 12_345])
def test_sums_at_the_edge_of_floats_are_exact(rows: int) -> None:
    """Shares of 2^41 units all of one sign, or with odd last bits: a sum beyond 2^53 goes by way of integers."""
    kernels = there()
    x = np.full((rows, 1), 2**14, dtype=np.int16)
    for weight in (2.0**27, 2.0**27 - 1):
        total = np.zeros((1, 1), dtype=np.int64)
        kernels.weigh(x, np.full((1, rows), weight), total)
        assert int(total[0, 0]) == rows * 2**14 * int(weight)
    x[:], total = 1, np.zeros((1, 1), dtype=np.int64)
    kernels.weigh(x, np.full((1, rows), 2.0**41 - 1), total)
    assert int(total[0, 0]) == rows * (2**41 - 1)


def test_predictions_at_the_edge_of_floats_are_exact() -> None:
    """The largest row with the largest coefficients that rounding leaves, ± the smallest: no bit is lost."""
    kernels = there()
    for columns in (1, 2, 16, 100, 333):
        side = int(2**15 / columns**0.5) - 1
        x = np.full((6, columns), side, dtype=np.int64)
        x[1::2, ::2] *= -1
        x[2, :] = np.arange(columns) % 2
        theta = np.full((1, columns), int(2**36 / columns**0.5), dtype=np.int64)
        theta[0, ::3] -= 1
        z = np.empty((6, 1))
        kernels.predict(x.astype(np.int16), theta.astype(np.float64), z)
        assert z[:, 0].astype(np.int64).tolist() == (x @ theta[0]).tolist()


def test_the_bound_is_that_of_numpy_bit_for_bit() -> None:
    """Ordinary, huge, tiny and broken derivatives, halves to round, empty rows, caps of every size."""
    kernels = there()
    rng = np.random.default_rng(3)
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324, 0.5, 1.5, 2.5, -0.5]
    a = np.concatenate([odd, rng.normal(size=5000) * 10.0 ** rng.integers(-12, 12, 5000)])
    inverse = np.concatenate([rng.random(a.size - 9), [0.0] * 9]) * 2.0 ** -rng.integers(0, 15, a.size)
    for clip_units, a_step in ((2**41, 2.0**-27), (2**40 + 12345, 1.0), (2**20, 2.0**-300), (3, 2.0**300)):
        found, wanted = a.copy(), a.copy()
        kernels.bound(found, inverse, float(clip_units), a_step)
        with np.errstate(all="ignore"):
            _bounded(wanted, inverse, Clip(clip=1.0), clip_units, 1.0, a_step)
        assert found.astype(object).tolist() == wanted.astype(object).tolist()
        assert (np.abs(found) <= clip_units * inverse).all()
        assert (found == np.rint(found)).all()


@pytest.mark.medium
@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("loss", ["logistic", "squared", "huber", "absolute", "hinge", "poisson"])
def test_every_loss_and_rule_gives_the_bits_of_numpy(
    loss: str, rule: Bounding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients, counts, differences, slopes and losses agree to the unit, for all records and for a batch."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(9000, 13)) * (rng.random((9000, 13)) < 0.7)
    X[17], X[40, 3] = 0.0, np.nan
    p = glm(loss_named(loss), X, (rng.random(9000) < 0.4).astype(float), row_norm=2.0)
    theta, other = rng.normal(size=(2, 13))
    batch = np.sort(rng.choice(9000, 4321, replace=False))

    def everything() -> list[Any]:
        sums = [p.gradient_sum(t, rule=rule, indices=i) for t in (theta, 1e6 * theta, 0 * theta) for i in (None, batch)]
        sums.append(p.difference_sum(theta, other, rule=rule, indices=batch))
        sums.append(p.slope_sum(theta, other, clip=0.1))
        sums.append(p.loss_sum(theta, clip=2.0))
        return [(s.units.tolist(), s.within, s.step) for s in sums]

    plain, fast = in_turn(monkeypatch, everything)
    assert fast == plain


@pytest.mark.parametrize("classes", [2, 3, 16, 17])
def test_several_outputs_give_the_bits_of_numpy(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Multinomial gradients agree to the unit, beyond the outputs that are compiled for as well."""
    rng = np.random.default_rng(classes)
    p = glm(MultinomialLoss(classes=classes), rng.normal(size=(5000, 9)), rng.integers(0, classes, 5000), row_norm=1.0)
    theta = rng.normal(size=(9, classes)) * 3
    for rule in RULES:
        plain, fast = in_turn(monkeypatch, lambda rule=rule: p.gradient_sum(theta, rule=rule))
        assert (fast.units == plain.units).all()
        assert fast.within == plain.within


def test_broken_functions_are_refused() -> None:
    """Rows left out, a column lost, a cap or a bad value let through, sums in single precision: the first test sees."""

    def short(x: Any, *rest: Any) -> None:
        PLAIN.weigh(x[:-1], rest[0][:, :-1].copy(), rest[1])

    def single(x: Any, theta: Any, z: Any) -> None:
        z[:] = x.astype(np.float32) @ theta.T.astype(np.float32)

    def blind(a: Any, inverse: Any, clip_units: float, a_step: float) -> None:
        np.copyto(a, np.rint(np.where(np.isfinite(a), a, 0.0) / a_step))

    def passing(a: Any, inverse: Any, clip_units: float, a_step: float) -> None:
        cap = np.floor(clip_units * inverse)
        np.copyto(a, np.clip(np.rint(a / a_step), -cap, cap))

    def narrow(x: Any, theta: Any, z: Any) -> None:
        PLAIN.predict(x, np.where(np.arange(theta.shape[1]) == theta.shape[1] - 1, 0.0, theta), z)

    assert compiled._right(PLAIN)
    for broken in ({"weigh": short}, {"predict": single}, {"bound": blind}, {"bound": passing}, {"predict": narrow}):
        assert not compiled._right(PLAIN._replace(**broken))


@pytest.mark.usefixtures("fresh")
def test_a_compiler_that_fails_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """No place to keep compiled code: compiled each time. No compiler, or a wrong one: NumPy, and no word of it."""
    asked: list[bool] = []

    def unkept(kept: bool) -> Kernels:
        asked.append(kept)
        if kept:
            raise RuntimeError("cannot cache function: no locator available")
        return PLAIN

    monkeypatch.setattr(compiled, "_compiled", unkept)
    assert compiled.kernels() is PLAIN
    assert asked == [True, False]

    def absent(kept: bool) -> Kernels:
        raise ImportError("Numba needs another NumPy")

    def wrong(kept: bool) -> Kernels:
        return PLAIN._replace(predict=lambda x, theta, z: None)

    p = glm("logistic", np.random.default_rng(0).normal(size=(300, 4)), np.ones(300), row_norm=1.0)
    monkeypatch.setattr(compiled, "_WORTH_LOADING", 0)
    monkeypatch.setattr(compiled, "_WORTH_CALLING", 2**62)
    expected = p.gradient_sum(np.ones(4), rule=Clip(clip=1.0)).units.tolist()
    monkeypatch.setattr(compiled, "_WORTH_CALLING", 0)
    for failing in (absent, wrong):
        compiled.kernels.cache_clear()
        monkeypatch.setattr(compiled, "_compiled", failing)
        assert compiled.kernels() is None
        assert p.gradient_sum(np.ones(4), rule=Clip(clip=1.0)).units.tolist() == expected


@pytest.mark.usefixtures("fresh")
def test_only_many_values_of_16_bits_call_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few values never do; once it is there, fewer are enough; CSR and many outputs are left to SciPy and BLAS."""
    monkeypatch.setattr(compiled, "_compiled", lambda kept: PLAIN)
    rows = np.zeros((2, 2), dtype=np.int16)
    assert compiled.kernels_for(rows, 2**24 - 1) is None
    assert compiled.kernels_for(rows, 2**24) is PLAIN
    assert compiled.kernels_for(rows, 2**16) is PLAIN
    assert compiled.kernels_for(rows, 2**16 - 1) is None
    assert compiled.kernels_for(rows.astype(np.float64), 2**30) is None
    assert compiled.kernels_for(rows, 2**30, 17) is None


@pytest.mark.medium
@pytest.mark.parametrize("blocked", [False, True])
def test_small_fits_never_load_the_compiler_and_large_ones_do_without(blocked: bool) -> None:
    """`import privet` and a small sum leave Numba alone; where it is missing, a large sum is NumPy's."""
    code = f"""
import sys
if {blocked}: sys.modules["numba"] = None
import numpy as np
from privet import glm
from privet.clipping import Clip
from privet.sums import compiled
p = glm("logistic", np.ones((5000, 8)), np.ones(5000), row_norm=1.0)
total = p.gradient_sum(np.zeros(8), rule=Clip(clip=1.0))
assert sys.modules.get("numba") is None
if {blocked}:
    compiled._WORTH_LOADING = compiled._WORTH_CALLING = 0
    assert (p.gradient_sum(np.zeros(8), rule=Clip(clip=1.0)).units == total.units).all()
    assert compiled.kernels() is None
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_a_derivative_may_keep_or_return_what_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions and labels that a loss returns as its derivative are not written to."""
    rng = np.random.default_rng(5)
    p = glm("squared", rng.normal(size=(500, 3)), rng.normal(size=500), row_norm=1.0)
    labels = p.labels.copy()
    for derivative in (lambda z, y: z, lambda z, y: y):
        plain, fast = in_turn(
            monkeypatch, lambda d=derivative: glm_sum(d, p.table, p.labels, np.ones(3), rule=Clip(clip=0.1))
        )
        assert (plain.units == fast.units).all()
        plain, fast = in_turn(monkeypatch, lambda d=derivative: scalar_sum(d, p.table, p.labels, np.ones(3), clip=0.1))
        assert (plain.units == fast.units).all()
    assert (p.labels == labels).all()


def test_a_table_in_any_memory_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read-only, in Fortran order, every second row, at an odd address: the rows are what they are."""
    rng = np.random.default_rng(6)
    p = glm("logistic", rng.normal(size=(300, 5)), (rng.random(300) < 0.5).astype(float), row_norm=1.0)
    units = p.table.units
    frozen, apart = units.copy(), np.repeat(units, 2, axis=0)
    frozen.flags.writeable = False
    odd = np.empty(units.nbytes + 1, dtype=np.uint8)[1:].view(np.int16).reshape(units.shape)
    odd[:] = units
    slopes = p.loss.derivative
    found = []
    for form in (units, frozen, np.asfortranarray(units), apart[::2], odd):
        table = Table(form, p.table.inverse_norms, step=p.table.step, row_norm=1.0)
        sums = in_turn(monkeypatch, lambda t=table: glm_sum(slopes, t, p.labels, np.ones(5), rule=Clip(clip=0.3)))
        found += [total.units.tolist() for total in sums]
    assert all(total == found[0] for total in found)


def test_numbers_of_a_long_block_are_added_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of 16,384 compiled rows holds sums beyond 2^53: added in floats, one record could move them too far."""
    rows = 2**15
    problem = glm("logistic", np.ones((rows, 2)) / 2, np.zeros(rows), row_norm=1.0)
    values = np.random.default_rng(0).uniform(0.9, 1.3, rows)

    def action() -> int:
        found = scalar_sum(lambda z, y: y, problem.table, values, np.zeros(2), clip=1.37, max_records=rows)
        return int(found.units)

    plain, fast = in_turn(monkeypatch, action)
    assert plain == fast
