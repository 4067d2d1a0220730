"""One private Newton step, planned so that the error of where it lands is known: privacy noise and sampling alike."""

import math
from dataclasses import dataclass, replace

import numpy as np

from privet._checks import between
from privet.accounting.numerics import upward
from privet.arrays import BoolArray, Vector
from privet.clipping import Clip
from privet.clipping.lattice import check_clip
from privet.data.elsewhere import tallies
from privet.errors import InvalidParameter
from privet.plan import Computed, Histograms, Meter, Release, SecondMoments
from privet.plan.plan import whole_noise
from privet.privacy import Budget
from privet.problems import Facts, LinearProblem, Problem, facts_of
from privet.solvers.fixed_hessian import check_smooth
from privet.solvers.gradient import check_problem
from privet.solvers.solver import Releases

NORMS = "gradient norms"
GRADIENT = "final gradient"
BREAD = "final Hessian"
MEAT = "gradients' second moment"
ALTERED = "altered rows"
_SHARES = {NORMS: 0.04, GRADIENT: 0.60, BREAD: 0.25, MEAT: 0.10, ALTERED: 0.01}  # of its part of the budget
_BINS = 16  # of gradient norms: half octaves down from the clip
_ALONE, _TOGETHER = 4.0, 1.5  # times what noise alone makes of an eigenvalue, from which on it is one of the records
_BELIEVED = 2.0  # standard deviations from which on a count is taken for records, not for noise
_SURE = 2.0  # standard deviations that are added to a length that others are compared with


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
        """θ₁; along directions that are not determined, θ₀."""
        return np.asarray(self.start - self.inverse @ self.gradient)

    @property
    def inverse(self) -> Vector:
        """H̃⁻¹ on the span of the directions that are determined, 0 beside it."""
        values, vectors = np.linalg.eigh(self.bread)
        weak = self._weak(values)
        return np.asarray((vectors[:, weak:] / values[weak:]) @ vectors[:, weak:].T)

    @property
    def undetermined(self) -> Vector:
        """Directions, as columns, in which the bread is not clearly above its noise."""
        values, vectors = np.linalg.eigh(self.bread)
        return np.asarray(vectors[:, : self._weak(values)])

    def _weak(self, values: Vector) -> int:
        """How many of the rising eigenvalues may be noise.

        Alone, a direction has noise of one standard deviation; the largest eigenvalue of k of them, of about √(2k).
        """
        least = self.bread_noise * np.maximum(_ALONE, _TOGETHER * np.sqrt(2 * np.arange(1, len(values) + 1)))
        return int(np.max(np.flatnonzero(values < least) + 1, initial=0))

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
        found = self.inverse @ self.middle @ self.inverse
        return np.asarray((found + found.T) / 2)

    def degrees(self, contrasts: Vector) -> Vector:
        """Welch and Satterthwaite's degrees of freedom of the variance of each row of `contrasts` times θ₁.

        The meat's noise moves cᵀ Cov c by a standard deviation of meat_noise · ‖H̃⁻¹c‖², exactly.
        """
        directions = self.inverse @ contrasts.T
        variances = np.einsum("ij,ik,kj->j", directions, self.middle, directions)
        moved = np.maximum(self.meat_noise * np.square(directions).sum(axis=0), 2.0**-1000)
        return np.asarray(2 * (variances / moved) ** 2)

    def unseen(self, contrasts: Vector, units: Vector) -> tuple[Vector, Vector]:
        """What undetermined directions may add to the covariance of `contrasts` times θ₁, as two matrices.

        First by the contrasts' shares in them, then by what the Hessian's noise mixes of them into the others. That is
        if no combination of them has a longer coefficient than all others together, the length being that of `units` θ:
        off by w, the error is c·w + cᵀH̃⁻¹Ew. Neither depends on how noise turned the undetermined directions among
        themselves. docs/proofs/intervals.md, section 4.
        """
        weak = self.undetermined
        if not weak.size:
            return np.zeros((len(contrasts),) * 2), np.zeros((len(contrasts),) * 2)
        # not only the length that was found, but what it may be
        size = float(np.linalg.norm(units @ self.coef)) + _SURE * math.sqrt(np.trace(units @ self.covariance @ units.T))
        _, lengths, axes = np.linalg.svd(units @ weak)
        lengths = np.maximum(lengths, 2.0**-400)
        known = weak.T @ self.start
        reach = float(np.linalg.norm(units @ weak @ known)) + size
        shares = contrasts @ weak @ axes.T * (reach / lengths)
        turned = contrasts @ self.inverse * (self.bread_noise * (float(np.linalg.norm(known)) + size / lengths[-1]))
        return shares @ shares.T, turned @ turned.T

    def remainder(self, bending: float, constant: float = 0.0) -> float:
        """The neglected quadratic term, in units of the least standard deviation of the bracket.

        If |ℓ‴| ≤ bending · ℓ″ and rows have norm at most 1, then ‖½ Σ ℓ‴ ⟨x, v⟩² x‖ ≤ ½ bending · vᵀHv. If they end in
        a `constant`, Σ ℓ″ is known, and a kurtosis of at most 9 along v makes it √(9 · largest eigenvalue ÷ Σ ℓ″) of
        that, by Cauchy and Schwarz. v is as long as the step, less what noise makes it, but half of that at least.
        """
        v, inverse = self.start - self.coef, self.inverse
        bent = float(v @ self.bread @ v)
        bent = max(bent - self.gradient_noise**2 * float(np.trace(inverse)), bent / 2)
        values = np.linalg.eigvalsh(self.bread)
        least = float(np.linalg.eigvalsh(self.middle)[0])
        whole = float(self.bread[-1, -1]) / constant**2 if constant else 0.0
        share = min(1.0, math.sqrt(9 * max(float(values[-1]), 0.0) / whole)) if whole > 0 else 1.0
        return share * bending * bent / 2 / math.sqrt(least)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewtonInference:
    """Releases at one point: a gradient, the Hessian, the gradients' second moment, and counts.

    Promise: together they cost the share of the budget that is asked for; each record's share in each is bounded by
    an object that clips exactly: the gradient by the clip, the Hessian by smoothness × row_norm², the second moment by
    clip², the counts by 1. Theorem: docs/proofs/intervals.md.

    Parameters
    ----------
    clip : bound on a record's gradient norm
    choose_clip : take as clip a half octave more than the least below `clip` beyond which there are not clearly any
        records, by a noisy histogram of gradient norms. For losses without a Lipschitz constant, e.g. the squared one

    Examples
    --------
    >>> from privet import Budget
    >>> from privet.losses import LogisticLoss
    >>> from privet.problems import Facts
    >>> facts = Facts(records=10_000, shape=(3,), neighbours="replace_one", loss=LogisticLoss(), row_norm=1.0)
    >>> releases = NewtonInference(clip=1.0).releases(facts, Budget(epsilon=1, delta=1e-6), share=0.5)
    >>> [(release.name, round(release.noise_multiplier, 1)) for release in releases]
    [('final gradient', 15.1), ('final Hessian', 23.4), ("gradients' second moment", 37.0), ('altered rows', 117.1)]
    """

    clip: float
    choose_clip: bool = False

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def releases(self, facts: Facts, budget: Budget, *, share: float) -> Releases:
        """What `run` releases, in order, for `share` of the budget."""
        row_norm = _check_rows(facts)
        because = "it is a part of the budget"
        between("share", share, 0, 1, closed=(False, True), because=because, use="Use e.g. 0.5.")
        d, squared = facts.dimension, math.nextafter(self.clip * self.clip, math.inf)
        found = (
            Release(name=NORMS, of="lengths of gradients, by half octaves", bound=Histograms(), size=_BINS),
            Release(name=GRADIENT, of="gradients of the loss", bound=Clip(clip=self.clip), size=d),
            Release(
                name=BREAD,
                of="curvatures, times x xᵀ of each row",
                bound=SecondMoments(clip=row_norm * row_norm),
                size=d * d,
            ),
            Release(name=MEAT, of="g gᵀ of each clipped gradient", bound=SecondMoments(clip=squared), size=d * d),
            Release(
                name=ALTERED,
                of="rows that were altered",
                bound=Computed(how="a row is altered, which counts 1, or it is not", when_replaced=1.0),
                size=1,
            ),
        )
        wanted = tuple(map(_chosen_later, found)) if self.choose_clip else found[1:]
        total = sum(_SHARES[release.name] for release in wanted)
        every = whole_noise(budget, facts.neighbours)
        return tuple(
            replace(release, noise_multiplier=upward(upward(every / math.sqrt(share * _SHARES[release.name] / total))))
            for release in wanted
        )

    def run(self, problem: Problem, theta: Vector, *, altered: BoolArray, meter: Meter) -> OneStep:
        """Make all of them at `theta`, which must be public. `altered` marks the records to count; private."""
        plan = meter.plan
        check_problem(plan, problem)
        facts = facts_of(problem, plan.neighbours, plan.records)
        _check_rows(facts)
        return self._made(problem, facts.smoothness or 0.0, theta, altered, meter)  # type: ignore[arg-type]  # linear

    def _made(
        self, problem: LinearProblem, smoothness: float, theta: Vector, altered: BoolArray, meter: Meter
    ) -> OneStep:
        most = meter.plan.max_records(GRADIENT)
        clip = self._chosen(problem, theta, most, meter) if self.choose_clip else self.clip
        meter.open(GRADIENT, count=problem.records)
        total = problem.gradient_sum(theta, rule=Clip(clip=clip), max_records=most)
        gradient = meter.noisy(GRADIENT, total)
        meter.open(BREAD, count=problem.records)
        bread, meat = problem.sandwich_sums(theta, clip=clip, smoothness=smoothness, max_records=most)
        hessian = smoothness * meter.noisy_symmetric(BREAD, bread)
        meter.open(MEAT, count=problem.records)
        moment = meter.noisy_symmetric(MEAT, meat)
        meter.open(ALTERED, count=problem.records)
        (marks,) = tallies([np.count_nonzero], [altered])
        marked = np.array([int(marks) << 30], dtype=np.int64)
        count = meter.noisy_units(ALTERED, marked, step=2.0**-30, sensitivity=1.0)
        return OneStep(
            start=theta,
            gradient=gradient,
            bread=hessian,
            meat=moment,
            altered=float(count[0]),
            clip=clip,
            gradient_noise=meter.noise_stddev(GRADIENT, sensitivity=total.clip),
            bread_noise=smoothness * meter.noise_stddev(BREAD),
            meat_noise=meter.noise_stddev(MEAT, sensitivity=meat.clip),
            altered_noise=meter.noise_stddev(ALTERED, sensitivity=1.0),
        )

    def _chosen(self, problem: LinearProblem, theta: Vector, max_records: int, meter: Meter) -> float:
        """The clip, from noisy counts of gradient norms; public."""
        edges = self.clip * 2.0 ** (-np.arange(1, _BINS + 1) / 2)
        meter.open(NORMS, count=problem.records)
        counts = problem.norm_counts(theta, edges=edges, max_records=max_records)
        longer = np.cumsum(meter.noisy_counts(NORMS, counts.units, unit=counts.step))  # than each edge
        clear = longer > _BELIEVED * meter.noise_stddev(NORMS) * np.sqrt(np.arange(1, _BINS + 1))
        first = int(np.argmax(clear)) if clear.any() else 0
        return float(edges[first - 2]) if first >= 2 else self.clip  # a half octave more, for the tail that hides there


def _chosen_later(release: Release) -> Release:
    """The same release, where its clip follows from the histogram of gradient norms."""
    how = "gradients are clipped to a norm that was chosen by released counts"
    if release.name == GRADIENT:
        return replace(release, bound=Computed(how=how, when_replaced=2.0))
    if release.name == MEAT:
        return replace(release, bound=Computed(how=how, when_replaced=math.nextafter(math.sqrt(2), math.inf)))
    return release


def _check_rows(facts: Facts) -> float:
    """Refuse, before any release, records whose shares are not bounded as above: several rows each, or weights."""
    if not facts.linear or facts.unit == "person" or len(facts.shape) > 1 or facts.weighted:
        raise InvalidParameter(
            "Expected a generalised linear model with one row, one prediction and no weight a record, got another "
            "problem: its second moments are not bounded here. Leave out groups, weights or inference."
        )
    return check_smooth(facts)
