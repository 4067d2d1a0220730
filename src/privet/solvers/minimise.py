"""The minimiser of clipped losses plus a public penalty, to a tolerance that is certified, whatever the data.

    F(w) = Σ clipped ℓ(⟨x, w⟩, y) + (strength/2)‖w − centre‖² + ⟨tilt, w⟩   over a convex set

F is `strength`-strongly convex, so a gradient bounds the distance from the minimiser: ‖w − w*‖ ≤ ‖∇F(w)‖/strength.
Every rounding of the computed gradient is bounded and added. Newton's method and accelerated descent are tried first,
as they are fast; plain descent, whose convergence is proven beforehand, roundings included, comes last. So a result is
always found, and no refusal depends on the data. Proofs: docs/proofs/perturbation.md, sections 1 and 2.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.arrays import IntArray, Vector
from privet.errors import InvalidParameter
from privet.geometry.whole_space import WholeSpace
from privet.problems import LinearProblem
from privet.solvers.smooth_model import smoothness
from privet.sums import gram_sum
from privet.sums.blocks import blas

_DEPTH = 128  # products added up in one go
_ROWS = 64 * _DEPTH  # records in memory at a time
_SPARSE_ROWS = 1024
_NEWTON_SIZE = 512  # coefficients up to which a Hessian is worth its cost
_NEWTON_STEPS = 60
_LATTICE = 40  # bits of the noise's standard deviation
_THETA_BITS = 37  # as in sums/glm.py: so many bits of w make ⟨x, w⟩ exact


@dataclass(frozen=True, kw_only=True, slots=True)
class Minimiser:
    """F as described above, all of it public but the records and the `tilt`.

    Promise: `solve(tolerance)` is within `tolerance` of the true minimiser, both pulled back to within `reach` of the
    start, if `tolerance` is at least `least_tolerance`.

    Parameters
    ----------
    problem : convex and smooth on its domain; see smooth_model.py
    clip : bound on a record's gradient norm, enforced
    strength : of the penalty, in units of the *sum* of losses
    centre : of the penalty, shaped as the coefficients
    reach : how far from the start a result may be; what is further is pulled back, which moves no two points apart
    """

    problem: LinearProblem
    clip: float
    strength: float
    centre: Vector
    reach: float

    def __post_init__(self) -> None:
        if not isinstance(self.problem, LinearProblem):
            raise InvalidParameter("""Expected a linear model of records in memory, got another: its minimiser is found
                by sums of floats here, which are not those of files or of people. Use a gradient method.""")

    @property
    def start(self) -> Vector:
        """The public point where the search begins: the domain's centre."""
        return np.asarray(self.problem.domain.centre(math.prod(self.problem.shape))).reshape(self.problem.shape)

    @property
    def furthest(self) -> float:
        """A bound on the norm of a result; public."""
        return self.reach + float(np.linalg.norm(self.start))

    def lattice(self, stddev: float) -> float:
        """The power of two on whose multiples a result is put before such noise: far finer, and within 2^61 of it."""
        step = math.ldexp(1.0, max(math.frexp(stddev)[1] - 1 - _LATTICE, math.frexp(self.furthest)[1] - 61))
        if not 2.0**11 * step <= stddev < 2.0**400:
            raise InvalidParameter(
                "Expected noise that is within 2^50 of the largest coefficients, got a standard deviation of "
                f"{stddev:g} and coefficients up to {self.furthest:g}: floats cannot hold both. Ask for a smaller "
                "epsilon, or bound the domain."
            )
        return step

    def slack(self, step: float) -> float:
        """How far `on_lattice` and the pull towards the start may round a result; public."""
        return math.sqrt(math.prod(self.problem.shape)) * step + 2.0**-48 * self.furthest

    def on_lattice(self, w: Vector, step: float) -> IntArray:
        """`w` in whole steps, each coordinate within reach, so that nothing overflows; private."""
        return np.rint(np.clip(w, -self.furthest, self.furthest) / step).astype(np.int64)

    def pulled(self, w: Vector) -> Vector:
        """The nearest point within `reach` of the start, up to a relative rounding of 2^-50."""
        away = w - self.start
        size = float(np.linalg.norm(away))
        return w if size <= self.reach else self.start + away * (self.reach / size)

    def least_tolerance(self, *, records: int, tilt: float = 0.0) -> float:
        """What rounding can always be kept below, for at most so many records and a tilt of at most that norm; public.

        Four times the distance at which plain descent stalls: section 2 of the proof.
        """
        n, size = float(records), self.furthest
        bend = self.strength + n * self.clip_smoothness
        steep = n * self.clip + self.strength * (size + float(np.linalg.norm(self.centre))) + tilt
        error = self._error(n, size, tilt) + bend * 2.0**-50 * size + self._projection_error(bend * size + steep)
        return 4.0 * error / self.strength

    @property
    def clip_smoothness(self) -> float:
        """By how much one record's clipped gradient changes at most, per unit of w."""
        return self._smoothness * self.problem.row_norm**2

    @property
    def _smoothness(self) -> float:
        return smoothness(self.problem.loss, self.problem.prediction_bound)

    def solve(self, tolerance: float, *, tilt: Vector | None = None) -> Vector:
        """A point within `tolerance` of the minimiser in the sense of the class. Private."""
        push = np.zeros(self.problem.shape) if tilt is None else tilt
        w = self.start
        # Blocks are too small to share, and threads that wait for each other are slow.
        with blas().limit(limits=1):
            for attempt in (self._newton, self._accelerated):
                w = attempt(w, push, tolerance)
                if self._distance(w, push)[0] <= tolerance:
                    return self.pulled(w)
            return self.pulled(self._descent(w, push, tolerance))

    def gradient(self, w: Vector, tilt: Vector) -> Vector:
        """∇F(w) up to `_error`. Private."""
        total, lost = np.zeros(w.shape), np.zeros(w.shape)
        for x, slopes, _ in self._records(w):
            part = _products(x, slopes).reshape(w.shape) * self.problem.table.step
            added = total + part  # what a float sum of blocks loses is kept beside it (Neumaier)
            lost += np.where(np.abs(total) >= np.abs(part), (total - added) + part, (part - added) + total)
            total = added
        return (total + lost) + self.strength * (w - self.centre) + tilt

    def _records(self, w: Vector, *, curvature: bool = False) -> Iterator[tuple[Any, Vector, Vector]]:
        """Rows in units, clipped slopes (and curvatures, 0 where clipped), a block of records at a time."""
        table, loss = self.problem.table, self.problem.loss
        caps = table.inverse_norms * (self.clip / table.step)
        high, low = _split(w)
        rows = _SPARSE_ROWS if table.is_sparse else _ROWS
        for first in range(0, table.shape[0], rows):
            part = slice(first, first + rows)
            x = table.units[part] if table.is_sparse else table.units[part].astype(np.float64)
            z = ((x @ high) + (x @ low)) * table.step
            y, cap = self.problem.labels[part], caps[part]
            with np.errstate(all="ignore"):
                slopes = np.array(loss.derivative(z, y), dtype=np.float64)
                slopes[np.isnan(slopes)] = 0.0
                bends = np.zeros(0)
                if slopes.ndim == 1:  # of several outputs nothing is clipped, see smooth_model.py, and empty rows are 0
                    if curvature:
                        bends = np.asarray(loss.curvature(z, y), dtype=np.float64) * (np.abs(slopes) < cap)
                    slopes = np.clip(slopes, -cap, cap)
            yield x, slopes, bends

    def _error(self, records: float, size: float, tilt: float) -> float:
        """Bound on the error of `gradient` at a point of norm `size`; section 2 of the proof."""
        depth = _SPARSE_ROWS if self.problem.table.is_sparse else _DEPTH + _ROWS // _DEPTH
        sums = records * self.clip * (depth + 64) * 2.0**-53
        predictions = records * self.clip_smoothness * size * 2.0**-51
        public = (self.strength * (size + float(np.linalg.norm(self.centre))) + tilt) * 2.0**-50
        return sums + predictions + public

    def _projection_error(self, size: float) -> float:
        """Bound on the rounding of Π(u) for ‖u‖ ≤ `size`, in the unit of `size`."""
        return 0.0 if self._free else (math.prod(self.problem.shape) + 64) * 2.0**-51 * size

    @property
    def _free(self) -> bool:
        return isinstance(self.problem.domain, WholeSpace)

    def _steepest(self) -> float:
        """A bound on the smoothness of F on the domain. Private: it looks at the rows."""
        table = self.problem.table
        if table.shape[1] <= _NEWTON_SIZE:
            largest = float(np.linalg.eigvalsh(gram_sum(table).value)[-1]) * (1 + 1e-6)
        else:
            present = table.inverse_norms[table.inverse_norms > 0] / table.step
            largest = float(np.sum(present**-2.0)) * (1 + 1e-6)
        return self.strength + self._smoothness * max(largest, 0.0)

    def _project(self, w: Vector) -> Vector:
        return w if self._free else np.asarray(self.problem.domain.project(w.reshape(-1))).reshape(w.shape)

    def _distance(self, w: Vector, tilt: Vector, bend: float = math.nan) -> tuple[float, Vector]:
        """A bound on the distance of `w` from the minimiser, both pulled back; and the gradient. `w` in the domain."""
        gradient = self.gradient(w, tilt)
        size = float(np.linalg.norm(w))
        error = self._error(float(self.problem.records), size, float(np.linalg.norm(tilt)))
        if self._free:
            residual = float(np.linalg.norm(gradient)) * (1 + 2.0**-20) + error
        else:
            bend = self._steepest() if math.isnan(bend) else bend
            stay = bend * float(np.linalg.norm(w - self._project(w - gradient / bend))) * (1 + 2.0**-20)
            # The projected point would have residual `stay`; w itself is that much /bend away from it.
            rounding = self._projection_error(bend * size + float(np.linalg.norm(gradient)))
            residual = stay * (1 + self.strength / bend) + error + rounding
        distance = residual / self.strength
        away = float(np.linalg.norm(w - self.start)) - distance
        return distance * self.reach / max(self.reach, away), gradient

    def _newton(self, w: Vector, tilt: Vector, tolerance: float) -> Vector:
        """Newton's method on the whole space, damped until the gradient falls; a first try, with no promise."""
        if w.ndim > 1 or w.size > _NEWTON_SIZE:
            return w
        gradient = self.gradient(w, tilt)
        size = float(np.linalg.norm(gradient))
        for _ in range(_NEWTON_STEPS):
            if size <= 0.5 * tolerance * self.strength:
                break
            try:
                step = np.linalg.solve(self._hessian(w), gradient)
            except np.linalg.LinAlgError:  # a penalty too weak for floats; the other ways need no inverse
                break
            for halvings in range(12):
                there = w - step * 0.5**halvings
                slope = self.gradient(there, tilt)
                if float(np.linalg.norm(slope)) < (1 - 0.1 * 0.5**halvings) * size:
                    break
            else:
                break
            w, gradient, size = there, slope, float(np.linalg.norm(slope))
        return self._project(w)

    def _hessian(self, w: Vector) -> Vector:
        total = self.strength * np.eye(w.size)
        for x, _, bends in self._records(w, curvature=True):
            weighted = x.multiply(bends[:, None]) if self.problem.table.is_sparse else x * bends[:, None]
            part = x.T @ weighted
            total += (part.toarray() if self.problem.table.is_sparse else part) * self.problem.table.step**2
        return total

    def _accelerated(self, w: Vector, tilt: Vector, tolerance: float) -> Vector:
        """Nesterov's method, restarted when it goes uphill, until certified; a second try."""
        bend = self._steepest()
        root = math.sqrt(bend / self.strength)
        momentum = (root - 1) / (root + 1)
        bound, gradient = self._distance(w, tilt, bend)
        best, best_bound = w, bound
        limit = math.ceil(4 * root * math.log(4 + root * root * bound / tolerance)) + 10
        ahead = w
        for count in range(limit):
            there = self._project(ahead - gradient / bend)
            uphill = float(np.vdot(gradient, there - w)) > 0
            ahead = self._project(there if uphill else there + momentum * (there - w))
            w = there
            if count % 10 == 9:
                bound = self._distance(w, tilt, bend)[0]
                if bound < best_bound:
                    best, best_bound = w, bound
                if bound <= tolerance:
                    break
            gradient = self.gradient(ahead, tilt)
        return best

    def _descent(self, w: Vector, tilt: Vector, tolerance: float) -> Vector:
        """w ← Π(w − ∇F(w)/bend), so often that the distance is below `tolerance` by theorem; or until certified."""
        bend = self._steepest()
        bound = self._distance(w, tilt, bend)[0]
        # The bound is on points pulled back; before that it is larger by at most the factor that undoes the pull.
        far = max(1.0, (float(np.linalg.norm(w - self.start)) + bound) / self.reach)
        steps = math.ceil(bend / self.strength * math.log(max(8.0, 8 * far * bound / tolerance)))
        for count in range(steps):
            bound, gradient = self._distance(w, tilt, bend) if count % 10 == 0 else (bound, self.gradient(w, tilt))
            if bound <= tolerance:
                break
            w = self._project(w - gradient / bend)
        return w


def _split(w: Vector) -> tuple[Vector, Vector]:
    """w = high + low exactly: `high` so short that its products with 16-bit rows add up exactly, `low` the rest."""
    size = float(np.linalg.norm(w))
    if size == 0.0:
        return w, w
    step = math.ldexp(1.0, math.frexp(size)[1] - _THETA_BITS + 1)
    high = np.trunc(w / step) * step
    return high, w - high


def _products(x: Any, slopes: Vector) -> Vector:
    """xᵀ slopes, at most `_DEPTH` products in a row before their sums are added up."""
    if not isinstance(x, np.ndarray):
        return np.asarray(x.T @ slopes)
    count = len(x) // _DEPTH * _DEPTH
    shaped = slopes.reshape(len(x), -1)
    parts = np.matmul(
        shaped[:count].reshape(-1, _DEPTH, shaped.shape[1]).transpose(0, 2, 1),
        x[:count].reshape(-1, _DEPTH, x.shape[1]),
    ).sum(axis=0)
    return np.asarray((parts + shaped[count:].T @ x[count:]).T).reshape(-1)
