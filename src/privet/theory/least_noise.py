"""The least Gaussian noise for a run: what every rule of thumb is held against."""

import math

from privet._checks import positive, whole
from privet.accounting.numerics import upward
from privet.accounting.theorems.gaussian_profile import largest_mu
from privet.privacy import check_delta, check_epsilon


def exact_noise(*, epsilon: float, delta: float, steps: int = 1, sensitivity: float) -> float:
    """Return the least noise standard deviation that certainly makes `steps` releases (epsilon, delta)-private.

    σ = √steps × sensitivity / μ(ε, δ), rounded upwards. Theorem: Balle and Wang 2018, theorem 8; Gaussian releases
    compose exactly. `sensitivity` is the l2 sensitivity of one noiseless gradient: 2G/n for an average
    under "replace_one".

    Examples
    --------
    >>> f"{exact_noise(epsilon=1.0, delta=1e-5, steps=100, sensitivity=2 / 1000):.9f}"
    '0.074612633'
    """
    check_run(epsilon, delta, steps, sensitivity)
    return upward(math.sqrt(steps) * sensitivity / largest_mu(epsilon, delta))


def check_run(epsilon: float, delta: float, steps: int, sensitivity: float) -> None:
    """Refuse a run that no noise can be set for."""
    check_epsilon(epsilon)
    check_delta(delta)
    whole("steps", steps, because="no run has it", use="Pass a positive int.")
    hint = "Use 2G/n for an average of n gradients of norm at most G."
    positive("sensitivity", sensitivity, because="no noise can be set for it", use=hint)
