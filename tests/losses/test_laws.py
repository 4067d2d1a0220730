"""Laws that every loss obeys; a new loss is one line in CASES."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from privet.errors import InvalidParameter
from privet.losses import (
    AbsoluteLoss,
    CappedPoissonLoss,
    CustomLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    Loss,
    MultinomialLoss,
    PoissonLoss,
    QuantileLoss,
    SmoothedHingeLoss,
    SmoothedQuantileLoss,
    SquaredLoss,
)

Floats = NDArray[np.float64]


def _logcosh(z: ArrayLike, y: ArrayLike) -> Floats:
    r = np.abs(np.asarray(z, dtype=np.float64) - np.asarray(y))
    return np.asarray(r + np.log1p(np.exp(-2 * np.minimum(r, 400))) - math.log(2), dtype=np.float64)


def _tanh(z: ArrayLike, y: ArrayLike) -> Floats:
    return np.asarray(np.tanh(np.asarray(z, dtype=np.float64) - np.asarray(y)))


def _sech2(z: ArrayLike, y: ArrayLike) -> Floats:
    return np.asarray(1 - _tanh(z, y) ** 2)


When = Literal["always", "bounded", "never"]
"""For which predictions a constant exists: all, bounded ones, none."""


@dataclass(frozen=True, kw_only=True)
class Case:
    loss: Loss
    good: tuple[float, ...]
    """Admissible labels, the extreme ones among them."""
    bad: tuple[float, ...]
    """Labels that are not."""
    kinks: Callable[[float], tuple[float, ...]] = lambda y: ()
    """Where value, derivative or curvature is not differentiable, by label."""
    lipschitz: When = "always"
    smooth: When = "always"
    tight: bool = True
    """Whether the constants are reached or approached for bounded predictions too, and not only for all."""


NONFINITE = (math.nan, math.inf, -math.inf)
LOGCOSH = CustomLoss(
    value=_logcosh, derivative=_tanh, curvature=_sech2, lipschitz_constant=1.0, smoothness_constant=1.0, convex=True
)
CASES: dict[str, Case] = {
    "squared": Case(
        loss=SquaredLoss(factor=2, label_bound=3.0), good=(-3.0, 0.5, 3.0), bad=(3.01, *NONFINITE), lipschitz="bounded"
    ),
    "half squared": Case(
        loss=SquaredLoss(factor=1, label_bound=3.0), good=(-3.0, 0.5, 3.0), bad=(-3.01, *NONFINITE), lipschitz="bounded"
    ),
    "squared, any label": Case(loss=SquaredLoss(), good=(-1e6, 0.0, 1e6), bad=NONFINITE, lipschitz="never"),
    "logistic 01": Case(loss=LogisticLoss(labels="zero_one"), good=(0, 1), bad=(-1, 2, 0.5, *NONFINITE)),
    "logistic ±1": Case(loss=LogisticLoss(labels="plus_minus_one"), good=(-1, 1), bad=(0, 2, 0.5, *NONFINITE)),
    "hinge": Case(loss=HingeLoss(), good=(-1, 1), bad=(0, 2, *NONFINITE), kinks=lambda y: (y,), smooth="never"),
    "smoothed hinge": Case(
        loss=SmoothedHingeLoss(width=0.5), good=(-1, 1), bad=(0, *NONFINITE), kinks=lambda y: (y, 0.5 * y)
    ),
    "wide smoothed hinge": Case(
        loss=SmoothedHingeLoss(width=4.0), good=(-1, 1), bad=(0, *NONFINITE), kinks=lambda y: (y, -3.0 * y)
    ),
    "huber": Case(
        loss=HuberLoss(threshold=1.5), good=(-20.0, 0.5, 20.0), bad=NONFINITE, kinks=lambda y: (y - 1.5, y + 1.5)
    ),
    "absolute": Case(loss=AbsoluteLoss(), good=(-20.0, 0.5, 20.0), bad=NONFINITE, kinks=lambda y: (y,), smooth="never"),
    "quantile": Case(
        loss=QuantileLoss(level=0.9), good=(-20.0, 0.5, 20.0), bad=NONFINITE, kinks=lambda y: (y,), smooth="never"
    ),
    "low quantile": Case(
        loss=QuantileLoss(level=0.25), good=(-20.0, 0.5, 20.0), bad=NONFINITE, kinks=lambda y: (y,), smooth="never"
    ),
    "smoothed quantile": Case(
        loss=SmoothedQuantileLoss(level=0.9, width=0.5),
        good=(-20.0, 0.5, 20.0),
        bad=NONFINITE,
        kinks=lambda y: (y - 0.25, y + 0.25),
    ),
    "capped poisson": Case(
        loss=CappedPoissonLoss(max_rate=8.0, unit=0.5),
        good=(0.0, math.log(8.0), 8.0),
        bad=(-1, 8.01, *NONFINITE),
        kinks=lambda y: (math.log(8.0),),
    ),
    "poisson": Case(
        loss=PoissonLoss(largest_count=10),
        good=(0, 1, 10),
        bad=(-1, 2.5, 11, *NONFINITE),
        lipschitz="bounded",
        smooth="bounded",
    ),
    "poisson, any count": Case(
        loss=PoissonLoss(), good=(0, 1, 1e6), bad=(-1, 2.5, *NONFINITE), lipschitz="never", smooth="bounded"
    ),
    "multinomial, 2 classes": Case(loss=MultinomialLoss(classes=2), good=(0, 1), bad=(-1, 2, 0.5, *NONFINITE)),
    "multinomial, 4 classes": Case(
        loss=MultinomialLoss(classes=4), good=(0, 1, 2, 3), bad=(-1, 4, 0.5, *NONFINITE), tight=False
    ),
    "multinomial, 11 classes": Case(
        loss=MultinomialLoss(classes=11), good=(0, 10), bad=(-1, 11, *NONFINITE), tight=False
    ),
    "custom": Case(loss=LOGCOSH, good=(-20.0, 0.5, 20.0), bad=NONFINITE),
}


def corners(outputs: int, low: float, high: float) -> Floats:
    """All vectors of two numbers, or if there are too many, those with at most two high entries."""
    every = np.array(list(itertools.product([False, True], repeat=outputs)))
    return np.where(every if outputs <= 4 else every[every.sum(axis=1) <= 2], high, low)


def predictions(case: Case, seed: int, count: int, bound: float) -> tuple[Floats, Floats]:
    """`count` predictions within ±bound for each label, with 0, the corners and the label itself; and the labels."""
    rng, outputs = np.random.default_rng(seed), case.loss.outputs
    extreme = corners(outputs, -bound, bound)
    z = rng.uniform(-bound, bound, (len(case.good), count, outputs))
    z[:, 0] = 0.0
    z[:, 1] = np.clip(case.good, -bound, bound)[:, np.newaxis]
    z[:, 2 : 2 + len(extreme)] = extreme
    y = np.repeat(np.asarray(case.good, dtype=np.float64), count)
    flat = z.reshape(-1, outputs)
    return (flat[:, 0] if outputs == 1 else flat), y


def dot(a: ArrayLike, b: ArrayLike) -> Floats:
    """Inner product of each record's row, also where a row is one number."""
    product = np.asarray(a, dtype=np.float64) * np.asarray(b, dtype=np.float64)
    return np.asarray(product.reshape(len(product), -1).sum(axis=1))


def norm(a: ArrayLike) -> Floats:
    """Length of each record's row."""
    return np.asarray(np.sqrt(dot(a, a)))


each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def slopes(function: Callable[[Floats], Floats], z: Floats, step: float = 0.01) -> Floats:
    """Central differences of order 8 of a function of each record's z: one column a coordinate of z."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    columns = [np.ones_like(z)] if z.ndim == 1 else [np.broadcast_to(e, z.shape) for e in np.eye(z.shape[1])]
    found = []
    for e in columns:
        steps = [w * (function(z + k * step * e) - function(z - k * step * e)) for k, w in weights.items()]
        found.append(np.sum(steps, axis=0) / step)
    return np.asarray(found[0] if z.ndim == 1 else np.stack(found, axis=-1))


def away_from_kinks(case: Case, z: Floats, y: Floats) -> NDArray[np.bool_]:
    """Records whose z is so far from a kink that differences do not see it."""
    if z.ndim > 1:
        return np.ones(len(y), dtype=np.bool_)
    return np.array([all(abs(a - k) > 0.1 for k in case.kinks(b)) for a, b in zip(z, y, strict=True)])


@each
def test_derivative_is_that_of_the_value(case: Case) -> None:
    """Away from kinks, differences of order 8 of the value give the derivative to ten digits."""
    z, y = predictions(case, 1, 300, 4.0)
    y = np.clip(y, -50.0, 50.0)  # differences of larger losses have fewer digits
    far = away_from_kinks(case, z, y)
    assert far.mean() > 0.7
    expected = slopes(lambda at: np.asarray(case.loss.value(at, y), dtype=np.float64), z)
    np.testing.assert_allclose(case.loss.derivative(z, y)[far], expected[far], rtol=1e-10, atol=2e-10)


@each
def test_curvature_is_that_of_the_derivative(case: Case) -> None:
    """Away from kinks, differences of the derivative give the curvature; with several outputs, a matrix below it."""
    z, y = predictions(case, 2, 300, 4.0)
    y = np.clip(y, -50.0, 50.0)
    far = away_from_kinks(case, z, y)
    expected = slopes(lambda at: np.asarray(case.loss.derivative(at, y), dtype=np.float64), z)
    curvature = case.loss.curvature(z, y)
    assert curvature.shape == y.shape
    if z.ndim == 1:
        np.testing.assert_allclose(curvature[far], expected[far], rtol=1e-10, atol=2e-10)
    else:
        largest = np.linalg.eigvalsh(expected)[:, -1]
        assert np.all(largest <= curvature + 1e-11)
        if case.loss.outputs == 2:
            np.testing.assert_allclose(largest, curvature, rtol=1e-9, atol=1e-11)


@pytest.mark.medium
@each
@given(data=st.data())
def test_subgradient_inequality_and_convexity(case: Case, data: st.DataObject) -> None:
    """Everywhere, kinks included: the tangent is below the loss, and the loss below the chord."""
    loss = case.loss
    y = np.array([data.draw(st.sampled_from(case.good))])
    numbers = st.one_of(st.floats(-30, 30), st.sampled_from([0.0, *case.kinks(float(y[0]))]))
    shape = (1,) if loss.outputs == 1 else (1, loss.outputs)
    a, b = (np.array([data.draw(numbers) for _ in range(loss.outputs)]).reshape(shape) for _ in range(2))
    part = data.draw(st.floats(0, 1))
    at_a, at_b = loss.value(a, y), loss.value(b, y)
    scale = 1e-13 * (1 + np.abs(at_a) + np.abs(at_b) + norm(loss.derivative(a, y)) * norm(b - a))
    assert loss.convex
    assert np.all(at_a + dot(loss.derivative(a, y), b - a) <= at_b + scale)
    assert np.all(loss.value(part * a + (1 - part) * b, y) <= part * at_a + (1 - part) * at_b + scale)


def declared(when: When, bound: float) -> bool:
    """Whether a constant ought to exist for predictions within that bound."""
    return when == "always" or (when == "bounded" and math.isfinite(bound))


@each
@pytest.mark.parametrize("bound", [0.0, 0.5, 3.0, math.inf])
def test_lipschitz_constant_holds_and_is_tight(case: Case, bound: float) -> None:
    """No derivative on a dense grid exceeds the constant; where it is called tight, some derivative comes near."""
    constant = case.loss.lipschitz(bound)
    assert (constant is not None) == declared(case.lipschitz, bound)
    if constant is not None:
        z, y = predictions(case, 3, 4000, min(bound, 700.0))
        largest = float(norm(case.loss.derivative(z, y)).max())
        assert largest <= constant * (1 + 1e-15)
        if case.tight or math.isinf(bound):
            assert largest >= constant * (1 - 1e-12)


@each
@pytest.mark.parametrize("bound", [0.5, 3.0, math.inf])
def test_smoothness_constant_holds_and_is_tight(case: Case, bound: float) -> None:
    """No slope of the derivative, between points near or far, exceeds the constant; and some curvature comes near."""
    constant = case.loss.smoothness(bound)
    assert (constant is not None) == declared(case.smooth, bound)
    if constant is not None:
        z, y = predictions(case, 4, 4000, min(bound, 50.0))
        other, _ = predictions(case, 5, 4000, min(bound, 50.0))
        moved = norm(case.loss.derivative(z, y) - case.loss.derivative(other, y))
        assert np.all(moved <= constant * norm(z - other) + 1e-12 * (1 + norm(z)) + 1e-15 * np.abs(y))
        largest = float(case.loss.curvature(z, y).max())
        assert largest <= constant * (1 + 1e-15)
        if math.isinf(bound) or (case.tight and bound >= 3.0):
            assert largest >= constant * (1 - 1e-12)


@each
def test_larger_domains_have_larger_constants(case: Case) -> None:
    """Both constants grow with the bound on the predictions, or stay."""
    for constant in (case.loss.lipschitz, case.loss.smoothness):
        values = [math.inf if value is None else value for value in map(constant, [0.0, 0.1, 1.0, 10.0, 1e3, math.inf])]
        assert values == sorted(values)


@each
@pytest.mark.parametrize("bound", [-1.0, math.nan, "1", None, True])
def test_a_bound_that_is_none_is_refused(case: Case, bound: float) -> None:
    """A negative, missing or unreadable bound on the predictions is an error, not a constant."""
    for constant in (case.loss.lipschitz, case.loss.smoothness):
        with pytest.raises(InvalidParameter, match="prediction_bound"):
            constant(bound)


@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_predictions_are_harmless(case: Case, dtype: type) -> None:
    """At |z| up to the largest float nothing warns, nothing is NaN, and the Lipschitz constant still holds."""
    most = float(np.finfo(dtype).max)
    scales = [s for s in (1e4, 1e30, 1e150, 1e300, most) if s <= most]
    outputs = case.loss.outputs
    signs = np.concatenate([corners(outputs, a, b) for a, b in ((-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0), (1.0, -1.0))])
    for scale, label in itertools.product(scales, case.good):
        wide: NDArray[np.floating[Any]] = (scale * signs).astype(dtype)
        z = wide[:, 0] if outputs == 1 else wide
        y = np.full(len(signs), label)
        for method in (case.loss.value, case.loss.derivative, case.loss.curvature):
            assert not np.isnan(method(z, y)).any()
        assert np.all(case.loss.value(z, y) > -np.inf)
        assert np.all(case.loss.curvature(z, y) >= 0.0)
        if case.lipschitz == "always":
            limit = case.loss.lipschitz()
            assert limit is not None
            assert np.all(norm(case.loss.derivative(z, y)) <= limit * (1 + 1e-6))


@each
def test_bad_values_never_raise_or_warn(case: Case) -> None:
    """NaN, infinite predictions and labels outside the declared set go through silently, record by record."""
    strange = [0.0, -1.5, 1e300, *NONFINITE]
    z, y = (a.ravel() for a in np.meshgrid(strange, [*case.good, *case.bad, 1e300]))
    wide = z if case.loss.outputs == 1 else np.stack([z] + [np.zeros_like(z)] * (case.loss.outputs - 1), axis=1)
    for method in (case.loss.value, case.loss.derivative, case.loss.curvature):
        if isinstance(case.loss, CustomLoss):
            continue  # the caller's own functions
        together = method(wide, y)
        alone = [method(wide[i : i + 1], y[i : i + 1])[0] for i in range(len(y))]
        np.testing.assert_array_equal(together, alone)


@each
def test_labels_outside_the_declared_set_are_masked(case: Case) -> None:
    """`admissible` is true on the declared labels and false on all others, in every numeric type that can hold them."""
    mask = case.loss.admissible(np.array([*case.good, *case.bad], dtype=np.float64))
    assert mask.dtype == np.bool_
    assert mask.tolist() == [True] * len(case.good) + [False] * len(case.bad)
    whole = [y for y in (*case.good, *case.bad) if math.isfinite(y) and y == int(y) and abs(y) < 100]
    expected = [y in case.good for y in whole]
    for dtype in (np.int8, np.int64, np.float32):
        assert case.loss.admissible(np.array(whole, dtype=dtype)).tolist() == expected


@each
def test_text_labels_are_refused_without_being_quoted(case: Case) -> None:
    """Labels of a type that is no number are an error which names the type and no label."""
    for y in (np.array(["Jane Doe"]), np.array(["Jane Doe"], dtype=object)):
        with pytest.raises(InvalidParameter) as caught:
            case.loss.admissible(y)
        assert "Jane" not in str(caught.value)
        if not isinstance(case.loss, CustomLoss):
            with pytest.raises(InvalidParameter) as caught:
                case.loss.value(np.zeros((1, case.loss.outputs)), y)
            assert "Jane" not in str(caught.value)


@each
def test_precision_and_shape_are_those_of_the_predictions(case: Case) -> None:
    """float32 stays float32, all else becomes float64, whatever the labels are; results have one entry a record."""
    if isinstance(case.loss, CustomLoss):
        return  # the caller's own functions
    z, y = predictions(case, 6, 100, 2.0)
    for dtype, result in ((np.float32, np.float32), (np.float64, np.float64), (np.int32, np.float64)):
        for label_type in (np.float64, np.float32, np.int64):
            at, label = z.astype(dtype), y.astype(label_type)
            assert case.loss.value(at, label).dtype == result
            assert case.loss.derivative(at, label).dtype == result
            assert case.loss.curvature(at, label).dtype == result
            assert case.loss.value(at, label).shape == case.loss.curvature(at, label).shape == y.shape
            assert case.loss.derivative(at, label).shape == z.shape
    exact = case.loss.derivative(z.astype(np.float32).astype(np.float64), y)
    scale = 1e-6 * (1.0 + np.abs(y).max())
    np.testing.assert_allclose(case.loss.derivative(z.astype(np.float32), y), exact, rtol=1e-5, atol=scale)


@pytest.mark.medium
@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_record_does_not_feel_its_neighbours(case: Case, dtype: type) -> None:
    """Bit for bit, a record's result depends neither on its place, nor on block size, stride or memory order."""
    wide, labels = predictions(case, 8, 257, 20.0)
    z: NDArray[np.floating[Any]] = wide.astype(dtype)
    y: NDArray[np.floating[Any]] = labels.astype(dtype)
    for method in (case.loss.value, case.loss.derivative, case.loss.curvature):
        together = method(z, y)
        for block in (1, 7, 64):
            pieces = [method(z[i : i + block], y[i : i + block]) for i in range(0, len(y), block)]
            assert np.concatenate(pieces).tobytes() == together.tobytes()
        assert np.ascontiguousarray(method(z[::-1], y[::-1])[::-1]).tobytes() == together.tobytes()
        spread = np.repeat(z, 3, axis=0)[::3]
        assert np.ascontiguousarray(method(spread, np.repeat(y, 3)[::3])).tobytes() == together.tobytes()
        assert np.ascontiguousarray(method(np.asfortranarray(z), y)).tobytes() == together.tobytes()


@each
def test_arguments_are_left_alone(case: Case) -> None:
    """No method writes into its arguments."""
    z, y = predictions(case, 7, 100, 2.0)
    z.setflags(write=False)
    y.setflags(write=False)
    for method in (case.loss.value, case.loss.derivative, case.loss.curvature):
        method(z, y)
    case.loss.admissible(y)


@each
def test_losses_are_values(case: Case) -> None:
    """A loss is frozen, hashable and equal to itself."""
    assert len({case.loss, case.loss}) == 1
    with pytest.raises((AttributeError, TypeError)):
        case.loss.convex = False  # type: ignore[misc]  # which is the point
