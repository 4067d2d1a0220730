"""Brown, lecture 13, section 4: what the rank of the data is worth (49 to 52)."""

from __future__ import annotations

import math

import numpy as np

from privet.accounting.theorems.gaussian_profile import epsilon_bounds, profile
from privet.lectures import Finding, check
from privet.lectures.examples.lopsided_valley import PRINTED, simulated_excess, valley_excess
from privet.lectures.examples.rank_and_projection import allowed, excess
from privet.lectures.measures import Vector, apart
from privet.theory import projector, rank, seminorm


@check("49", mutant={"constant": 4.0})
def theorem_4_1(constant: float = 2.0, full: bool = False) -> Finding:
    """Work out the best step size in a lopsided valley, simulate it, and lay data of rank 5 into more dimensions."""
    few = [0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 4.0, 10.0, 40.0]
    factors = np.geomspace(0.4, 40.0, 61).tolist() if full else few
    found = {factor: valley_excess(factor, fineness=0.5 if full else 1.0) for factor in factors}
    best = min(found, key=found.__getitem__)
    mean, error = simulated_excess(best, copies=10_000 if full else 400, seed=49)
    claimed = math.sqrt(1 + constant * math.log(1e5)) / 50
    mu = math.sqrt(2 / math.log(1e5))  # of σ = L√(2TΛ)/(nε), from which 2 rank(M) would follow; records replaced
    numbers, bound = {}, allowed()
    for d in (5, 50, 500, 3000) if full else (5, 500):
        for name, projected in (("", False), ("_projected", True)):
            numbers[f"excess_in_{d}{name}"] = excess(d, projected=projected, runs=20 if full else 2)
    flat = all(numbers[name] <= bound for name in numbers if not name.endswith("projected"))
    return Finding.judged(
        max(found[best], mean - 5 * error) <= claimed and flat,
        f"In a lopsided valley (n = 50, rank 1, T = {PRINTED.steps}) the best of {len(factors)} step sizes has an "
        f"excess of {found[best]:.4f} at least (simulated: {mean:.4f}), where {claimed:.4f} is claimed; "
        f"{PRINTED.bound.value:.4f} follows from the printed noise. Rank 5 in 5 and 500 dimensions: excess "
        f"{numbers['excess_in_5']:.3f} and {numbers['excess_in_500']:.3f}; with projection "
        f"{numbers['excess_in_5_projected']:.3f} and {numbers['excess_in_500_projected']:.3f}.",
        steps=PRINTED.steps,
        least_excess=found[best],
        excess_of_smallest_step=found[factors[0]],
        excess_of_largest_step=found[factors[-1]],
        simulated_excess=mean,
        simulated_standard_error=error,
        claimed=claimed,
        derived_bound=PRINTED.bound.value,
        true_epsilon_of_noise_for_2=epsilon_bounds(mu, 1e-5)[1],
        true_delta_of_noise_for_2=profile(mu, 1.0),
        rank_bound=bound,
        table=numbers,
    )


def _low_rank(seed: int) -> tuple[Vector, Vector, Vector, Vector]:
    """Ten records of rank 3 in six dimensions; eigenvalues and eigenvectors of Σ x xᵀ; a vector."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10, 3)) @ rng.normal(size=(3, 6))
    values, vectors = np.linalg.eigh(X.T @ X)
    return X, values, vectors, rng.normal(size=6)


@check("50", mutant={"least": 0.5})
def projector_on_the_span(least: float = 0.0) -> Finding:
    """Build M from eigenvectors whose eigenvalue is above `least` (of the largest), against the library's."""
    X, values, vectors, v = _low_rank(50)
    kept = (values > (least + 1e-12) * values.max()).astype(float)  # a zero eigenvalue comes out as 1e-16
    M = vectors @ np.diag(kept) @ vectors.T
    off, records, outside = apart(M, projector(X)), apart(X @ M, X), apart(X @ (v - M @ v))
    told = (
        f"M from {kept.sum():.0f} of 6 eigenvectors and the library's are {off:.1e} apart; records move by "
        f"{records:.1e} under it, and what it drops is orthogonal to them to {outside:.1e}."
    )
    holds = off < 1e-12 and records < 1e-12 and outside < 1e-12 and kept.sum() == rank(X)
    return Finding.judged(holds, told, apart=off, rank=rank(X), records_move=records, left_over=outside)


@check("51", mutant={"power": 1.0})
def seminorm_of_the_data(power: float = 0.5) -> Finding:
    """Compare (vᵀMv)^power with the library's length; test homogeneity, triangles, and a vector it cannot see."""
    X, _, vectors, v = _low_rank(51)
    M, rng = projector(X), np.random.default_rng(51)

    def length(w: Vector) -> float:
        return float(max(float(w @ M @ w), 0.0) ** power)

    off, stretched, triangle = abs(length(v) - seminorm(v, M)), abs(length(3 * v) - 3 * length(v)), -math.inf
    for _ in range(200):
        a, b = rng.normal(size=(2, 6))
        triangle = max(triangle, length(a + b) - length(a) - length(b))
    unseen = seminorm(vectors[:, 0], M)
    return Finding.judged(
        off < 1e-12 and stretched < 1e-12 and triangle <= 1e-12 and unseen < 1e-7,
        f"The length is the library's to {off:.1e}, is homogeneous to {stretched:.1e} and keeps 200 triangle "
        f"inequalities; a unit vector off the span has length {unseen:.1e}.",
        apart=off,
        stretched=stretched,
        worst_triangle=triangle,
        length_off_the_span=unseen,
    )


@check("52", mutant={"dropped": 1.0})
def components_kept(dropped: float = 0.0) -> Finding:
    """Split a vector along eigenvectors, keep those of positive eigenvalue, and compare with Mv."""
    X, values, vectors, v = _low_rank(52)
    weights = np.where(values > 1e-12 * values.max(), 1.0, dropped)
    by_hand = vectors @ (weights * (vectors.T @ v))
    off = apart(by_hand, projector(X) @ v)
    return Finding.judged(
        off < 1e-12,
        f"Keeping {int((values > 1e-12 * values.max()).sum())} of 6 components gives Mv to {off:.1e}.",
        apart=off,
        length_of_vector=float(np.linalg.norm(v)),
        length_of_image=float(np.linalg.norm(by_hand)),
    )
