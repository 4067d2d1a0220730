"""From the risk on the sample to the risk on the population it was drawn from. Proofs: docs/proofs/utility.md."""

import math

from privet.accounting.numerics import upward
from privet.errors import InvalidParameter
from privet.theory.risk import RiskBound, at_least_zero, bound, positive, probability, whole


def uniform_convergence_sample_size(
    *, concepts: int, accuracy: float, failure_probability: float, two_sided: bool = False
) -> int:
    """Return how many independent records make max (L_D − L_X) <= accuracy over finitely many concepts.

    n >= ln(|C|/β)/(2α²), the loss in [0, 1]; with 2|C| for both signs at once. Holds with probability 1 − β, β the
    `failure_probability`. Lecture: Nikolov, uniform convergence (claim 105); Hoeffding and a union bound.

    Examples
    --------
    >>> uniform_convergence_sample_size(concepts=1000, accuracy=0.05, failure_probability=0.01)
    2303
    """
    events = whole("concepts", concepts) * (2 if two_sided else 1)
    alpha = positive("accuracy", accuracy)
    log = math.log(events) - math.log(probability("failure_probability", failure_probability))
    needed = log / (2.0 * alpha * alpha)
    if not needed < 2.0**53:
        raise InvalidParameter(f"""Expected an accuracy that some sample can have, got {alpha!r}: it would take over
            2**53 records. Ask for less.""")
    return math.ceil(needed)


def uniform_convergence_gap(
    *, n: int, concepts: int, failure_probability: float, loss_range: float = 1.0, two_sided: bool = False
) -> float:
    """Return the accuracy that n independent records give over finitely many concepts, rounded upwards.

    range × √(ln(|C|/β)/(2n)): the inverse of `uniform_convergence_sample_size`. Lecture: claim 105.

    Examples
    --------
    >>> f"{uniform_convergence_gap(n=2303, concepts=1000, failure_probability=0.01):.6f}"
    '0.049995'
    """
    events = whole("concepts", concepts) * (2 if two_sided else 1)
    log = math.log(events) - math.log(probability("failure_probability", failure_probability))
    return upward(positive("loss_range", loss_range) * math.sqrt(log / (2.0 * whole("n", n))))


def lipschitz_gap(*, n: int, d: int, radius: float, lipschitz: float, failure_probability: float) -> float:
    """Return how far L_D − L_X can move from its value at the start, over a set of that *radius* about the start.

    G R (√(2(ln(2/β) + d ln(1 + 2/g))/n) + 2g) at the best g = 2^{−k}: any G-Lipschitz loss, convex or not, with
    probability 1 − β. The excess population risk of any point is then at most its excess on the sample plus twice
    this. Not in the lectures, which stop at finitely many concepts (claim 105); a net of radius gR reduces to those.

    Examples
    --------
    >>> f"{lipschitz_gap(n=10**6, d=10, radius=1.0, lipschitz=1.0, failure_probability=0.05):.4f}"
    '0.0142'
    """
    n, d = whole("n", n), whole("d", d)
    log = math.log(2.0 / probability("failure_probability", failure_probability))
    best = min(math.sqrt(2.0 * (log + d * math.log1p(2.0 ** (k + 1))) / n) + 2.0 ** (1 - k) for k in range(64))
    return upward(positive("lipschitz", lipschitz) * positive("radius", radius) * best)


def glm_population_bound(*, empirical: RiskBound | float, n: int, radius: float, lipschitz: float) -> RiskBound:
    """Bound the expected excess *population* risk of a generalised linear model, from its empirical one.

    E L_D(w) − min L_D <= empirical + 2 G R/√n, for any release from the ball of that *radius* about the start, the
    n records independent; dimension does not enter. Not in the lectures; symmetrisation and contraction (Kakade,
    Sridharan and Tewari 2008). A release that was not projected on the ball is not covered.

    Examples
    --------
    >>> found = glm_population_bound(empirical=0.01, n=10_000, radius=1.0, lipschitz=1.0)
    >>> print(found)
    excess risk at most 0.03 (Rademacher complexity of linear classes, population risk)
    """
    value = at_least_zero("empirical", float(empirical), infinite=True)
    gap = 2.0 * positive("lipschitz", lipschitz) * positive("radius", radius) / math.sqrt(whole("n", n))
    inherited = empirical.assumptions if isinstance(empirical, RiskBound) else ()
    return bound(
        value + gap,
        "Rademacher complexity of linear classes, population risk",
        *inherited,
        "records are independent draws from the population",
        "the loss depends on the parameters through <x, w>, and the release lies in the ball",
    )
