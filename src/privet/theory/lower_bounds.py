"""What no private method can do better than: lower bounds on the excess risk, every constant proven.

Each is about the *worst* table of n records: whatever the mechanism, there is one on which its expected excess risk is
at least `value`. Three arguments, of which the best is taken: coordinates told apart one by one (Assouad), all
directions at once (for pure epsilon), and fingerprints (Bun, Ullman and Vadhan 2014; Bassily, Smith and Thakurta
2014). What is weaker than the literature's order: no factor √ln(1/δ). Proofs: docs/proofs/lower.md.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from privet.errors import InvalidParameter
from privet.privacy import Neighbours, check_neighbours
from privet.theory.closeness import ApproximateDP, Closeness
from privet.theory.risk import at_least_zero, positive, whole

_SHY = 1.0 - 1e-9  # far more than all rounding
_PRIORS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class RiskLowerBound:
    """A lower bound on the worst expected excess risk of every mechanism of a class; rounded downwards.

    `argument` says which proof gives it, `groups` on how many coordinates, directions or signs its tables differ, and
    `records` in how many records each of them shows.

    Examples
    --------
    >>> private = ApproximateDP(epsilon=1.0, delta=1e-6)
    >>> print(lipschitz_lower_bound(n=1000, d=10, radius=1.0, lipschitz=1.0, privacy=private))
    excess risk at least 0.00232667 on some table (coordinates, 10 × 2 records)
    """

    value: float
    argument: str
    groups: int
    records: int

    def __post_init__(self) -> None:
        at_least_zero("value", self.value)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        how = f"{self.argument}, {self.groups:,} × {self.records:,} records"
        return f"excess risk at least {self.value:.6g} on some table ({how})"


def lipschitz_lower_bound(
    *, n: int, d: int, radius: float, lipschitz: float, privacy: Closeness, neighbours: Neighbours = "replace_one"
) -> RiskLowerBound:
    """Bound from below what any private method can reach on convex losses with gradients at most G, in a ball.

    With G R for lipschitz × radius: 0.73 G R √d/(nε), or 0.67 G R √d/(nμ), once n >= d × 2/ε; for pure epsilon also
    0.1 G R d/(nε), whichever is larger; for fewer records 0.35 G R √d/(nε) by fingerprints. Constants are those of
    small ε and large n, d; `value` is exact for what is passed.

    Parameters
    ----------
    n, d : number of records and of parameters
    radius : R, of the ball that is searched
    lipschitz : G, bound on the norm of one record's gradient
    privacy : `ApproximateDP(epsilon=..., delta=...)` or `GaussianDP(mu=...)`, the class of mechanisms
    neighbours : what the promise is about

    Examples
    --------
    >>> from privet.theory import GaussianDP, plan_for
    >>> from privet import Budget
    >>> known = dict(n=100_000, d=100, radius=1.0, lipschitz=1.0)
    >>> plan = plan_for(**known, budget=Budget(epsilon=1, delta=1e-5), neighbours="replace_one")
    >>> mu = 2.0 * plan.noisy_steps**0.5 / plan.noise_multiplier
    >>> least = lipschitz_lower_bound(**known, privacy=GaussianDP(mu=mu))
    >>> f"{plan.floor / least.value:.1f} times the least possible"  # whatever one does with Gaussian privacy
    '3.0 times the least possible'
    """
    n, d, scale = whole("n", n), whole("d", d), positive("radius", radius) * positive("lipschitz", lipschitz)
    close = privacy.under(check_neighbours(neighbours))
    found = [_coordinates(n, d, close), _fingerprints(n, d, close)]
    if isinstance(close, ApproximateDP) and close.delta == 0.0:
        found.append(_directions(n, d, close.epsilon))
    return _best(found, scale)


def rank_lower_bound(
    *, n: int, rank: int, seminorm: float, lipschitz: float, privacy: Closeness, neighbours: Neighbours = "replace_one"
) -> RiskLowerBound:
    """Bound from below what any private method can reach on a generalised linear model, wherever its answer may lie.

    0.73 G |θ*| √r/(nε) for records of rank r, once n >= r × 2/ε; then as many coordinates as there are records for,
    which falls like 1/√(nε) and no longer depends on the rank. The losses are G|<x, θ> − y| with x a unit vector; no
    set confines θ, and |θ*| = seminorm. So Brown's theorem 4.1 (claim 49) is right in rank and n.

    Examples
    --------
    >>> print(rank_lower_bound(n=1000, rank=5, seminorm=1.0, lipschitz=1.0, privacy=ApproximateDP(epsilon=1.0)))
    excess risk at least 0.00164521 on some table (coordinates, 5 × 2 records)
    """
    n, rank, scale = whole("n", n), whole("rank", rank), positive("seminorm", seminorm)
    close = privacy.under(check_neighbours(neighbours))
    return _best([_coordinates(n, rank, close)], scale * positive("lipschitz", lipschitz))


def strongly_convex_lower_bound(
    *,
    n: int,
    d: int,
    radius: float,
    lipschitz: float,
    strength: float,
    privacy: Closeness,
    neighbours: Neighbours = "replace_one",
) -> RiskLowerBound:
    """Bound from below what any private method can reach if every loss is `strength`-strongly convex, too.

    With g = G − λR, which a loss of strength λ has left: 1.08 g² d/(λ n²ε²), or 0.66 g² d/(λ n²μ²), once
    n >= d × 4/ε and the minimiser has room in the ball; for pure epsilon of the order g² d²/(λ n²ε²).

    Parameters
    ----------
    strength : λ, below lipschitz ÷ radius, as no loss on that ball has more
    n, d, radius, lipschitz, privacy, neighbours : as in `lipschitz_lower_bound`

    Examples
    --------
    >>> private = ApproximateDP(epsilon=1.0, delta=1e-6)
    >>> print(strongly_convex_lower_bound(n=1000, d=10, radius=1.0, lipschitz=2.0, strength=1.0, privacy=private))
    excess risk at least 1.08267e-05 on some table (coordinates, 10 × 4 records)
    """
    n, d, radius = whole("n", n), whole("d", d), positive("radius", radius)
    strength, gradient = positive("strength", strength), positive("lipschitz", lipschitz)
    room, slope = strength * radius, gradient - strength * radius
    if not slope > 0.0:
        raise InvalidParameter(f"""Expected strength below lipschitz ÷ radius = {gradient / radius:g}, got {strength!r}:
            on a ball of that radius its gradients would be longer than lipschitz. Use a smaller one.""")
    close = privacy.under(check_neighbours(neighbours))
    found = [_coordinates(n, d, close, slope, room), _fingerprints(n, d, close, slope, room)]
    if isinstance(close, ApproximateDP) and close.delta == 0.0:
        found.append(_directions(n, d, close.epsilon, slope, room))
    return _best(found, 1.0 / (2.0 * strength))


def logistic_lower_bound(
    *, n: int, d: int, radius: float, privacy: Closeness, neighbours: Neighbours = "replace_one"
) -> RiskLowerBound:
    """Bound from below what any private method can reach on Nikolov's logistic regression: [−1, 1]^d with a 1 appended.

    About 0.18 R d/(nε) for R <= 1, once n >= d × 2/ε, d a power of 2: so the lecture's error, of the order
    R d √ln(1/δ)/(εn), has the right power of d. The tables are rows of a Hadamard matrix, labels what is private.

    Examples
    --------
    >>> print(logistic_lower_bound(n=1000, d=8, radius=1.0, privacy=ApproximateDP(epsilon=0.5)))
    excess risk at least 0.00288906 on some table (labels, 8 × 4 records)
    """
    n, d, radius = whole("n", n), whole("d", d), positive("radius", radius)
    close = privacy.under(check_neighbours(neighbours))
    rows = 1 << (d.bit_length() - 1)
    found = []
    for k in _sizes(n):
        for groups in _halved(min(rows, n // (2 * k))):
            rest = n - 2 * k * groups
            margin = radius * math.sqrt(rows / groups)
            gain = math.log(2.0) - math.log1p(math.exp(-margin)) - 0.5 * margin / (1.0 + math.exp(min(margin, 600.0)))
            value = groups * (2 * k / n) * gain * close.overlap(2 * k) - _odd(rest) / n
            found.append((value, "labels", groups, 2 * k))
    return _best(found, 1.0)


_Found = tuple[float, str, int, int]


def _best(found: Iterable[_Found], scale: float) -> RiskLowerBound:
    value, argument, groups, records = max(found, default=(0.0, "nothing", 0, 0))
    return RiskLowerBound(value=max(0.0, value * scale * _SHY), argument=argument, groups=groups, records=records)


def _sizes(n: int) -> list[int]:
    """Whole numbers up to n, dense where they are small: a bound holds for each, so that some may be left out."""
    return sorted({int(x) for x in np.geomspace(1, n, 12 * n.bit_length())} | set(range(1, min(n, 32) + 1)))


def _halved(groups: int) -> list[int]:
    """That many groups, then a half, a quarter, …"""
    return [groups >> i for i in range(groups.bit_length())]


def _odd(rest: int) -> float:
    """What one label too many gains by the intercept, if the records of 0 do not come in pairs; section 6."""
    if rest % 2 == 0:
        return 0.0
    if rest == 1:
        return math.log(2.0)
    return math.atanh(1.0 / rest) + 0.5 * rest * math.log1p(-1.0 / rest**2)


def _coordinates(n: int, d: int, close: Closeness, slope: float = 0.0, room: float = 0.0) -> _Found:
    """Section 2; with a slope, section 5, in units of 1/(2λ)."""
    found = [(0.0, "coordinates", 0, 0)]
    for k in _sizes(n):
        groups, apart = min(d, n // k), close.overlap(k)
        if apart < 1e-12:
            break
        step = math.sqrt(groups) * k / n
        value = min(slope * step, room) ** 2 if slope else step
        found.append((value * apart, "coordinates", groups, k))
    return max(found)


def _directions(n: int, d: int, epsilon: float, slope: float = 0.0, room: float = 0.0) -> _Found:
    """Section 3, for pure epsilon; with a slope, section 5."""
    found = [(0.0, "directions", 0, 0)]
    for k in _sizes(n):
        if k * epsilon > 40.0 + 5.0 * d:
            break  # e^{-a} of a cap is left by then
        part = alignment(d, k * epsilon)
        value = (min(slope * k / n, room) ** 2) * (1.0 - part * part) if slope else k / n * (1.0 - part)
        found.append((value, "directions", 1, k))
    return max(found)


def alignment(d: int, apart: float) -> float:
    """Return t with (e^a − 1)(1 − t) m(t) <= t: no answer leans more than t to a direction that is e^a-private.

    m(t) = E[v_1 1{v_1 > t}] for v uniform on the sphere in d dimensions. Proof: docs/proofs/lower.md, section 3.

    Examples
    --------
    >>> round(alignment(1, 1.0), 6), round(alignment(100, 1.0), 6)  # tanh(1/2); less in more dimensions
    (0.462117, 0.055657)
    """
    if apart <= 0.0:
        return 0.0
    grown = apart + math.log(-math.expm1(-apart))  # ln(e^a − 1)
    if d == 1:
        factor, power = -math.log(2.0), 0.0
    else:
        power = 0.5 * (d - 1)
        factor = math.lgamma(0.5 * d) - math.lgamma(power) - 0.5 * math.log(math.pi) - math.log(d - 1.0)

    slack = 1e-9 + 1e-13 * (d + apart)  # above all rounding: logarithms of gamma functions are near d ln d

    def missing(t: float) -> float:
        return math.log(t) - (grown + factor + power * math.log1p(-t * t) + math.log1p(-t)) - slack

    low, high = 1e-300, 1.0 - 2.0**-53
    if missing(low) > 0.0:
        return low
    if missing(high) <= 0.0:
        return 1.0
    for _ in range(60):  # `missing` rises, and is seen to be positive at `high`
        middle = math.sqrt(low * high) if low < 0.1 * high else 0.5 * (low + high)
        low, high = (low, middle) if missing(middle) > 0.0 else (middle, high)
    return high


def _fingerprints(n: int, d: int, close: Closeness, slope: float = 0.0, room: float = 0.0) -> _Found:
    """Section 4; with a slope, section 5."""
    found = [(0.0, "fingerprints", 0, 0)]
    sizes, pull = np.array(_sizes(n), dtype=np.float64), close.loading(d)
    for prior in _PRIORS:
        square = (1.0 + 2.0 * prior / sizes) / (2.0 * prior + 1.0)  # E x̄²
        h = (sizes + 2.0 * prior) / (2.0 * prior)
        if slope:
            values = np.minimum(slope * sizes / n, room) ** 2 * (square - close.quadratic(d, h))
        else:
            length = square * np.sqrt(d / (1.0 + (d - 1.0) * square))
            values = sizes / n * (length - h * pull / math.sqrt(d))
        best = int(np.argmax(values))
        found.append((float(values[best]), "fingerprints", d, int(sizes[best])))
    return max(found)
