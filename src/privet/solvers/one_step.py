"""Where one private Newton step lands, and the error of that: privacy noise and sampling alike. Post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privet.arrays import Vector


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
