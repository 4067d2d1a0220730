"""From a loss's constants to those of a GLM, θ ↦ ℓ(⟨x, θ⟩, y), for rows of bounded length.

The numbers are computed in ordinary floating point, so the last digit may be off; who must not rely on that clips.
"""

import math

from privet.losses.loss import Loss, check_number


def prediction_bound(*, row_norm: float, coefficient_norm: float) -> float:
    """Return the largest |⟨x, θ⟩| over ‖x‖ ≤ row_norm and ‖θ‖ ≤ coefficient_norm.

    Theorem: Cauchy and Schwarz; reached by parallel x and θ. With several outputs it bounds each of them.

    Parameters
    ----------
    row_norm : public bound on ‖x‖₂, after all feature maps and the appended 1
    coefficient_norm : bound on ‖θ‖₂ over the domain, ∞ if there is none: the radius of a ball about 0;
        with several outputs, of the longest column of θ

    Examples
    --------
    >>> prediction_bound(row_norm=2.0, coefficient_norm=5.0)
    10.0
    """
    row = check_number("row_norm", row_norm)
    return row * check_number("coefficient_norm", coefficient_norm, zero=True, infinite=True)


def gradient_bound(loss: Loss, *, row_norm: float, prediction_bound: float = math.inf) -> float | None:
    """Return the largest ‖∇ℓ(⟨x, θ⟩, y)‖ over ‖x‖ ≤ row_norm, |⟨x, θ⟩| ≤ prediction_bound; None if unbounded.

    Theorem: the gradient is derivative · x (lecture 13, claim 1.4), so the bound is row_norm × Lipschitz constant.
    For the squared loss with factor 2 this is the lectures' data clipping, 2X(Y + XΘ).

    Examples
    --------
    >>> from privet.losses import LogisticLoss, SquaredLoss
    >>> gradient_bound(LogisticLoss(), row_norm=1.5)
    1.5
    >>> gradient_bound(SquaredLoss(factor=2, label_bound=1.0), row_norm=2.0, prediction_bound=10.0)
    44.0
    """
    row = check_number("row_norm", row_norm)
    slope = loss.lipschitz(prediction_bound)
    return None if slope is None else row * slope


def hessian_bound(loss: Loss, *, row_norm: float, prediction_bound: float = math.inf) -> float | None:
    """Return the smoothness constant of θ ↦ ℓ(⟨x, θ⟩, y) over ‖x‖ ≤ row_norm; None if there is none.

    Theorem: the second derivative is curvature · x xᵀ, whose norm is curvature · ‖x‖².

    Examples
    --------
    >>> from privet.losses import LogisticLoss
    >>> hessian_bound(LogisticLoss(), row_norm=2.0)
    1.0
    """
    row = check_number("row_norm", row_norm)
    curvature = loss.smoothness(prediction_bound)
    return None if curvature is None else row * row * curvature
