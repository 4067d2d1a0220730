"""One private Newton step, planned so that the error of where it lands is known: privacy noise and sampling alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privet.accounting import Event, Gaussian
from privet.clipping import Clip
from privet.clipping.lattice import check_clip
from privet.errors import InvalidParameter
from privet.noise import add_gaussian
from privet.problems import LinearProblem, Problem
from privet.randomness import Random
from privet.solvers.fixed_hessian import _smoothness, noisy_gram
from privet.solvers.gradient import noisy_mean
from privet.sums import norm_counts, sandwich_sums

__all__ = ["OneStep", "OneStepPlan"]

Vector = NDArray[np.float64]
_SHARES = {"gradient": 0.60, "bread": 0.25, "meat": 0.10, "altered": 0.01, "norms": 0.04}  # of the squared signal
_BINS = 16  # of gradient norms: half octaves down from the clip
_BELIEVED = 2.0  # standard deviations from which on a count is taken for records, not for noise


@dataclass(frozen=True, kw_only=True, slots=True)
class OneStepPlan:
    """Releases at one point: a gradient, the Hessian, the gradients' second moment, and two sorts of counts.

    Promise: together they are one Gaussian release of `noise_multiplier`; each record's share in each is bounded by
    an object that clips exactly: the gradient by the clip, the Hessian by smoothness × row_norm², the second moment by
    clip², the counts by 1. Theorem: docs/proofs/intervals.md.

    Parameters
    ----------
    clip : bound on a record's gradient norm
    noise_multiplier : noise stddev ÷ sensitivity of the whole
    choose_clip : take as clip a half octave more than the least below `clip` beyond which there are not clearly any
        records, by a noisy histogram of gradient norms. For losses without a Lipschitz constant, e.g. the squared one

    Examples
    --------
    >>> OneStepPlan(clip=1.0, noise_multiplier=10.0).event
    Gaussian(noise_multiplier=12.9...) + Gaussian(noise_multiplier=20.0...) + Gaussian(noise_multiplier=31.6...) + \
Gaussian(noise_multiplier=100.0...) + Gaussian(noise_multiplier=50.0...)
    """

    clip: float
    noise_multiplier: float
    choose_clip: bool = False

    def __post_init__(self) -> None:
        check_clip(self.clip)
        check_clip(self.noise_multiplier, name="noise_multiplier")

    def multiplier(self, part: str) -> float:
        """Noise stddev ÷ sensitivity of "gradient", "bread", "meat", "altered" or "norms"."""
        return self.noise_multiplier / math.sqrt(_SHARES[part]) * (1 + 2.0**-50)

    @property
    def event(self) -> Event:
        """What `run` releases; the histogram is charged whether it is needed or not."""
        first, *others = (Gaussian(noise_multiplier=self.multiplier(part)) for part in _SHARES)
        event: Event = first
        for other in others:
            event = event + other
        return event

    def check(self, problem: Problem) -> None:
        """Refuse, before any release, records whose shares are not bounded as above: several rows each, or weights."""
        if not isinstance(problem, LinearProblem) or len(problem.shape) > 1 or problem.labels.ndim > 1:
            raise InvalidParameter(
                "Expected a generalised linear model with one row, one prediction and no weight a record, got another "
                "problem: its second moments are not bounded here. Leave out groups, weights or inference."
            )

    def bread_noise(self, problem: LinearProblem) -> float:
        """Standard deviation of the noise on the diagonal of the Hessian's sum."""
        return self.multiplier("bread") * problem.row_norm**2 * _smoothness(problem)

    def run(
        self, problem: LinearProblem, theta: Vector, *, altered: NDArray[np.bool_], most_records: int, random: Random
    ) -> OneStep:
        """Release all of it at `theta`, which must be public. `altered` marks the records to count; private."""
        self.check(problem)
        smoothness = _smoothness(problem)
        clip = self._chosen(problem, theta, most_records, random) if self.choose_clip else self.clip
        total = problem.gradient_sum(theta, rule=Clip(clip=clip), most_records=most_records)
        bread, meat = sandwich_sums(
            problem.loss.derivative,
            problem.loss.curvature,
            problem.table,
            problem.labels,
            theta,
            clip=clip,
            smoothness=smoothness,
            most_records=most_records,
        )
        count = add_gaussian(
            np.array([np.count_nonzero(altered) << 30], dtype=np.int64),
            step=2.0**-30,
            noise_stddev=self.multiplier("altered"),
            random=random,
        )
        return OneStep(
            start=theta,
            gradient=noisy_mean(total, self.multiplier("gradient"), 1.0, random),
            bread=smoothness * noisy_gram(bread, self.multiplier("bread"), random),
            meat=noisy_gram(meat, self.multiplier("meat"), random),
            altered=float(count[0]),
            clip=clip,
            gradient_noise=self.multiplier("gradient") * clip,
            bread_noise=self.bread_noise(problem),
            meat_noise=self.multiplier("meat") * clip**2,
            altered_noise=self.multiplier("altered"),
        )

    def _chosen(self, problem: LinearProblem, theta: Vector, most_records: int, random: Random) -> float:
        """The clip, from noisy counts of gradient norms; public."""
        edges = self.clip * 2.0 ** (-np.arange(1, _BINS + 1) / 2)
        counts = norm_counts(
            problem.loss.derivative, problem.table, problem.labels, theta, edges=edges, most_records=most_records
        )
        stddev = self.multiplier("norms")
        longer = np.cumsum(noisy_mean(counts, stddev, 1.0, random))  # than each edge
        clear = longer > _BELIEVED * stddev * np.sqrt(np.arange(1, _BINS + 1))
        first = int(np.argmax(clear)) if clear.any() else 0
        return float(edges[first - 2]) if first >= 2 else self.clip  # a half octave more, for the tail that hides there


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class OneStep:
    """What was released at `start`: noisy sums over records, and the standard deviations of their noise. Public.

    With H̃ the bread, g̃ the gradient and θ₀ the start, the step lands at θ₁ = θ₀ − H̃⁻¹g̃. For the minimiser θ° of
    the expected clipped loss, up to what is quadratic in θ₀ − θ°,

        θ₁ − θ° = H̃⁻¹ [E(θ₀ − θ°) − ξ − g(θ°)],

    E and ξ the noise of H̃ and g̃, of known law, and g(θ°) the sum of the records' gradients at θ°, of mean 0 and with
    the meat as covariance. So H̃ is used as it is, and no bias of a noisy inverse arises. docs/proofs/intervals.md.
    """

    start: Vector
    gradient: Vector
    bread: Vector
    meat: Vector
    altered: float
    clip: float
    gradient_noise: float
    bread_noise: float
    meat_noise: float
    altered_noise: float

    @property
    def coef(self) -> Vector:
        """θ₁."""
        return np.asarray(self.start - np.linalg.solve(self.bread, self.gradient))

    @property
    def released(self) -> Vector:
        """θ₁, or θ₀ where the bread is no better than noise."""
        return self.coef if self.conditioning >= 1 else self.start

    @property
    def conditioning(self) -> float:
        """The bread's least eigenvalue, in units of what noise alone reaches: the spectral norm of its noise."""
        return float(np.linalg.eigvalsh(self.bread)[0]) / (self.bread_noise * math.sqrt(2 * len(self.start)))

    @property
    def middle(self) -> Vector:
        """The covariance of the bracket above: sampling, the gradient's noise, the Hessian's."""
        values, vectors = np.linalg.eigh(self.meat)
        known = self.gradient_noise**2
        # the meat's own noise may make it negative; if that is small beside the gradient's, it averages out
        sampling = (vectors * np.maximum(values, -known / 2)) @ vectors.T
        v = self.start - self.coef
        hessian = (np.eye(len(v)) * float(v @ v) + np.outer(v, v)) * (self.bread_noise**2 / 2)
        return np.asarray(sampling + known * np.eye(len(v)) + hessian)

    @property
    def covariance(self) -> Vector:
        """Of θ₁ − θ°."""
        inverse = np.linalg.inv(self.bread)
        found = inverse @ self.middle @ inverse.T
        return np.asarray((found + found.T) / 2)

    def degrees(self, contrasts: Vector) -> Vector:
        """Welch and Satterthwaite's degrees of freedom of the variance of each row of `contrasts` times θ₁.

        The meat's noise moves cᵀ Cov c by a standard deviation of meat_noise · ‖H̃⁻¹c‖², exactly.
        """
        directions = np.linalg.solve(self.bread, contrasts.T)
        variances = np.einsum("ij,ik,kj->j", directions, self.middle, directions)
        return np.asarray(2 * (variances / (self.meat_noise * np.square(directions).sum(axis=0))) ** 2)

    def remainder(self, bending: float) -> float:
        """The neglected quadratic term, bounded, in units of the least standard deviation of the bracket.

        If |ℓ‴| ≤ bending · ℓ″ and rows have norm at most 1, then ‖½ Σ ℓ‴ ⟨x, v⟩² x‖ ≤ ½ bending · vᵀHv.
        """
        v = self.start - self.coef
        least = float(np.linalg.eigvalsh(self.middle)[0])
        return bending * float(v @ self.bread @ v) / 2 / math.sqrt(least)
