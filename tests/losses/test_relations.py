"""How the losses relate to each other and to the lectures, and which parameters they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from privet.errors import InvalidParameter
from privet.losses import (
    AbsoluteLoss,
    CustomLoss,
    HingeLoss,
    HuberLoss,
    Loss,
    PoissonLoss,
    QuantileLoss,
    SmoothedHingeLoss,
    SquaredLoss,
)

Z = np.linspace(-4, 4, 161)


def test_factor_of_the_squared_loss_is_explicit() -> None:
    """Factor 2 is (z − y)² with derivative 2(z − y), factor 1 is half of it, and the constants follow."""
    full, half = SquaredLoss(factor=2, label_bound=1.5), SquaredLoss(factor=1, label_bound=1.5)
    np.testing.assert_array_equal(full.value(Z, 1.0), (Z - 1.0) ** 2)
    np.testing.assert_array_equal(full.derivative(Z, 1.0), 2 * (Z - 1.0))
    np.testing.assert_array_equal(half.value(Z, 1.0), full.value(Z, 1.0) / 2)
    assert full.lipschitz(4.0) == 2 * (4.0 + 1.5)
    assert half.lipschitz(4.0) == 4.0 + 1.5


def test_huber_is_the_squared_loss_with_a_clipped_derivative() -> None:
    """Clipping the derivative of ½ (z − y)² gives Huber's; a large threshold gives back the squared loss."""
    slope = SquaredLoss(factor=1).derivative(Z, 0.25)
    np.testing.assert_array_equal(HuberLoss(threshold=0.5).derivative(Z, 0.25), np.clip(slope, -0.5, 0.5))
    np.testing.assert_array_equal(HuberLoss(threshold=99).value(Z, 0.25), SquaredLoss(factor=1).value(Z, 0.25))


def test_level_one_half_is_half_the_absolute_loss() -> None:
    """Twice the quantile loss of level ½ is |z − y|, derivative included."""
    half, median = QuantileLoss(level=0.5), AbsoluteLoss()
    np.testing.assert_array_equal(2 * half.value(Z, 0.3), median.value(Z, 0.3))
    np.testing.assert_array_equal(2 * half.derivative(Z, 0.3), median.derivative(Z, 0.3))


def test_quantile_loss_is_minimised_by_the_quantile() -> None:
    """Over a sample the mean loss is least at the sample quantile of that level."""
    sample = np.random.default_rng(0).normal(size=1001)
    for level in (0.1, 0.5, 0.9):
        grid = np.sort(sample)
        mean = [float(np.mean(QuantileLoss(level=level).value(np.full(1001, z), sample))) for z in grid]
        assert int(np.argmin(mean)) == round(level * 1000)


def test_smoothed_hinge_lies_just_below_the_hinge() -> None:
    """The smoothed hinge is at most the hinge, and less by at most half its width."""
    sharp = HingeLoss().value(Z, 1)
    for width in (1e-6, 0.5, 3.0):
        smooth = SmoothedHingeLoss(width=width).value(Z, 1)
        assert np.all(smooth <= sharp + 1e-15)
        assert np.all(smooth >= sharp - width / 2 - 1e-15)


def test_poisson_loss_is_least_at_the_logarithm_of_the_count() -> None:
    """The derivative vanishes where the mean e^z is the count."""
    counts = np.array([1, 2, 7, 1000])
    np.testing.assert_allclose(PoissonLoss().derivative(np.log(counts), counts), 0.0, atol=1e-12)
    assert PoissonLoss(largest_count=5).lipschitz(1.0) == pytest.approx(5 - math.exp(-1))
    assert PoissonLoss(largest_count=5).lipschitz(3.0) == pytest.approx(math.exp(3))
    assert PoissonLoss(largest_count=5).lipschitz(1e4) is None


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "1", None, True, 1j])
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("factor", lambda v: SquaredLoss(factor=v)),
        ("label_bound", lambda v: SquaredLoss(label_bound=v if v is not None else -1)),
        ("width", lambda v: SmoothedHingeLoss(width=v)),
        ("threshold", lambda v: HuberLoss(threshold=v)),
        ("level", lambda v: QuantileLoss(level=v)),
        ("largest_count", lambda v: PoissonLoss(largest_count=v if v is not None else -1)),
    ],
)
def test_parameters_that_define_no_loss_are_refused(name: str, make: Callable[[object], Loss], value: object) -> None:
    """Zero, negative, infinite or unreadable parameters are an error that names the parameter."""
    with pytest.raises(InvalidParameter, match=f"Expected {name} "):
        make(value)


def test_level_of_a_quantile_is_a_probability() -> None:
    """A level of 1 or more is no quantile."""
    with pytest.raises(InvalidParameter, match=r"level in \(0, 1\)"):
        QuantileLoss(level=1.0)


def test_custom_loss_declares_nothing_by_itself() -> None:
    """Without declared constants a custom loss has none, and is not called convex."""
    loss = CustomLoss(value=np.subtract, derivative=np.subtract, curvature=np.subtract)
    assert (loss.lipschitz(1.0), loss.smoothness(1.0), loss.convex) == (None, None, False)
    assert loss.admissible([0.0, math.nan]).tolist() == [True, False]
    positive = CustomLoss(
        value=np.subtract, derivative=np.subtract, curvature=np.subtract, label_set=lambda y: np.greater(y, 0)
    )
    assert positive.admissible([1.0, -1.0]).tolist() == [True, False]


def test_custom_loss_refuses_what_is_no_loss() -> None:
    """Each of the three functions must be callable, constants non-negative, outputs a positive count."""
    with pytest.raises(InvalidParameter, match="derivative"):
        CustomLoss(value=np.subtract, derivative=1, curvature=np.subtract)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="lipschitz_constant"):
        CustomLoss(value=np.subtract, derivative=np.subtract, curvature=np.subtract, lipschitz_constant=-1.0)
    with pytest.raises(InvalidParameter, match="outputs"):
        CustomLoss(value=np.subtract, derivative=np.subtract, curvature=np.subtract, outputs=0)
