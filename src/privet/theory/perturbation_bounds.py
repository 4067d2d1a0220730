"""How far output perturbation and the exponential mechanism are from the optimum. Proofs: docs/proofs/utility.md."""

import math

from privet.theory.risk import CONVEX, LIPSCHITZ, RiskBound, bound, positive, smaller, trivial_bound, whole


def output_perturbation_bound(
    *, distance: float, diameter: float, lipschitz: float, d: int, regularisation: float, noise_stddev: float
) -> RiskBound:
    """Bound the minimiser of L + (λ/2)|w − w_0|² over a convex set, plus noise, projected back.

    E excess <= G σ √d + λ R²/2, the cost of the noise and of the regulariser; never above G × diameter. With
    σ = 2G/(λnμ) and λ = 2 (G/R) √(√d/(nμ)) it is 2 G R √(√d/(nμ)). Lecture: Razaviyayn (claim 77), of which this is
    the explicit form.

    Parameters
    ----------
    distance : R, public bound on |w_0 − w*|; w_0 is where the regulariser is centred
    diameter : of the set
    lipschitz : G, bound on the norm of one record's gradient, without the regulariser
    d : number of parameters
    regularisation : λ
    noise_stddev : σ, of a coordinate of the released parameters

    Examples
    --------
    >>> found = output_perturbation_bound(distance=1.0, diameter=2.0, lipschitz=1.0, d=4, regularisation=0.1,
    ...                                   noise_stddev=0.02)
    >>> f"{found.value:.6f}"
    '0.090000'
    """
    radius, gradient = positive("distance", distance), positive("lipschitz", lipschitz)
    noise = gradient * positive("noise_stddev", noise_stddev) * math.sqrt(whole("d", d))
    found = bound(
        noise + 0.5 * positive("regularisation", regularisation) * radius * radius,
        "output perturbation with explicit constants, claim 77",
        CONVEX,
        LIPSCHITZ,
        "the regularised minimiser is exact; what a solver leaves over must be added to its sensitivity",
        "the noisy minimiser is projected on the set; `distance` does not come from the data",
    )
    return smaller(found, trivial_bound(distance=diameter, lipschitz=gradient))


def exponential_mechanism_bound(*, diameter: float, lipschitz: float, d: int, exponent: float) -> RiskBound:
    """Bound a point of a convex set drawn with density proportional to exp(−β L), β the `exponent`.

    E excess <= d/β, attained by the norm |w| far from the border; never above G × diameter. With β = εn/(2GD), which
    is ε-private for one record replaced, 2 G D d/(εn). Lecture: Wu (claim 32), of which this is the explicit form.

    Examples
    --------
    >>> found = exponential_mechanism_bound(diameter=1.0, lipschitz=1.0, d=10, exponent=1000 / 2)
    >>> f"{found.value:.6f}"
    '0.020000'
    """
    found = bound(
        whole("d", d) / positive("exponent", exponent),
        "exponential mechanism with explicit constants, claim 32",
        CONVEX,
        "the set is convex, closed and of that diameter",
        "the draw is exact; an approximate sampler pays for its error in delta and in risk",
    )
    return smaller(found, trivial_bound(distance=diameter, lipschitz=lipschitz))


def logistic_lipschitz(*, d: int, radius: float | None = None) -> float:
    """Return a bound on the norm of the logistic loss's gradient for x in [−1, 1]^d with a 1 appended.

    √(d+1); in a ball of that `radius` about 0, √(d+1)/(1 + exp(−radius √(d+1))), as |<x, θ>| <= radius √(d+1) there.
    Lecture: Nikolov (claim 114). The appended 1 is in the norm.

    Examples
    --------
    >>> f"{logistic_lipschitz(d=9):.6f} {logistic_lipschitz(d=9, radius=1.0):.6f}"
    '3.162278 3.033857'
    """
    norm = math.sqrt(whole("d", d) + 1.0)
    if radius is None:
        return norm
    return norm / (1.0 + math.exp(-positive("radius", radius) * norm))
