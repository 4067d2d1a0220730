"""A pilot from batch to batch, then a few Newton steps on all records: for tables with plenty of rows."""

import math
from dataclasses import dataclass, replace

import numpy as np

from privet._checks import between
from privet.arrays import Vector
from privet.clipping import Clip
from privet.errors import InvalidParameter
from privet.plan import Meter, Plan, Release, SecondMoments
from privet.privacy import Budget
from privet.problems import Facts, LinearProblem, Problem, facts_of
from privet.randomness import Random
from privet.sampling import FullBatch, Sampling, Strided
from privet.solvers.descent import Course, DescentSolver, ReleaseRule, descended, gradient_release
from privet.solvers.fixed_hessian import check_smooth
from privet.solvers.gradient import PrivateGradient
from privet.solvers.solver import Releases, Result, Start, ready
from privet.solvers.updates import GradientStep, UpdateRule

PILOT, CURVATURE = "pilot gradients", "curvature"
_MORE = 4.0  # batches that the one for the Hessian is as large as


@dataclass(frozen=True, kw_only=True, slots=True)
class PilotNewton(DescentSolver):
    """Descent from batch to batch, then a few Newton steps on all records: for tables with plenty of them.

    A Newton step is θ ← Π(θ − P g̃), g̃ a private gradient, P the inverse of a private Hessian at the point that the
    descent found. Its steps read a part of the table each, no record more often than the passes say, and near the
    minimum a Newton step gains a digit: so a handful of passes does what descent on all records needs dozens for. It
    wants records in plenty, as a batch's sum has the noise that one of all records would have.

    Promise: the guarantee meets the budget. No excess risk is claimed.
    Theorem: a record is in one batch a pass, by its place alone (`Strided`), and in that for the Hessian or not. The
    Hessian ÷ smoothness is a sum of positive semidefinite matrices of norm at most row_norm². All releases are Gaussian
    and compose exactly (docs/proofs/whitening.md, section 6).

    Parameters
    ----------
    clip : per-record bound on the gradient norm
    rate : part of the records that a batch holds, in (0, 1]; the batch for the Hessian is four times as large
    update : how gradients of batches move the point
    pilot_steps, steps : gradients of batches, and of all records
    pilot_share, curvature_share : of the budget; what is left is for the gradients of all records
    floor : added to the eigenvalues of the released Hessian, in units of the noise's typical spectral norm: with 1 it
        is hardly ever below the true one, so that no step goes too far
    release, tail : as in `DPSGD`, of the path on all records

    Examples
    --------
    >>> from privet import Budget, glm
    >>> from privet.problems import facts_of
    >>> problem = glm("logistic", [[1.0, 0.0], [0.0, 0.1]] * 5000, [0, 1] * 5000, row_norm=1.0)
    >>> solver = PilotNewton(clip=1.0, rate=0.25, update=GradientStep(step_size=4.0))
    >>> solver.plan(facts_of(problem, "zero_out"), Budget(epsilon=1, delta=1e-6)).names
    ('pilot gradients', 'curvature', 'gradients')
    """

    clip: float
    rate: float
    update: UpdateRule
    pilot_steps: int = 18
    steps: int = 4
    pilot_share: float = 0.15
    curvature_share: float = 0.15
    floor: float = 1.0
    release: ReleaseRule = "tail_average"

    def __post_init__(self) -> None:
        DescentSolver.__post_init__(self)
        because = "a record is in the sample with that probability"
        between("rate", self.rate, 0, 1, closed=(False, True), because=because, use="Use e.g. 0.1.")
        because = "samples, curvatures and gradients need a part of the budget each"
        for name in ("pilot_share", "curvature_share"):
            between(name, getattr(self, name), 0, 1, because=because, use="Use 0.1.")
        between("what is left of the budget", self._rest, 0, 1, because=because, use="Use 0.1 for each share.")

    @property
    def _rest(self) -> float:
        return 1 - self.pilot_share - self.curvature_share

    @property
    def _more(self) -> float:
        """The part of the records whose curvature is read."""
        return min(_MORE * self.rate, 1.0)

    def _releases(self, facts: Facts, budget: Budget) -> tuple[Releases, dict[str, float]]:
        moment, size = SecondMoments(clip=_check(facts) ** 2), facts.shape[0] ** 2

        few, more = (self._batches(facts, rate) for rate in (self.rate, self._more))
        passes = math.ceil(self.pilot_steps * few.batch_size(facts.records) / facts.records)

        def gradients(name: str, steps: int, sampling: Sampling = FullBatch()) -> Release:  # noqa: B008
            return replace(gradient_release(facts, Clip(clip=self.clip), steps=steps, sampling=sampling), name=name)

        each = {
            PILOT: self.pilot_share / passes,
            CURVATURE: self.curvature_share,
        }
        releases = (
            gradients(PILOT, self.pilot_steps, few),
            Release(name=CURVATURE, of="x xᵀ by the curvature of the loss", bound=moment, size=size, sampling=more),
            gradients("gradients", self.steps),
        )
        return releases, {name: math.sqrt(self._rest / self.steps / share) for name, share in each.items()}

    def _batches(self, facts: Facts, rate: float) -> Sampling:
        """Batches of a part of the records; all of them where a record that joins would move others to other ones."""
        return FullBatch() if facts.neighbours == "add_remove" else Strided(batch=math.ceil(rate * facts.records))

    def run(
        self,
        plan: Plan,
        problem: Problem,
        *,
        meter: Meter | None = None,
        random: Random | None = None,
        start: Start = None,
    ) -> Result:
        """Descend from batch to batch, from the domain's centre or a public start of one's own, then on all records."""
        meter, theta = ready(plan, meter, random), self._begin(problem, start)
        _check(facts_of(problem, plan.neighbours, plan.records))
        linear: LinearProblem = problem  # type: ignore[assignment]  # as the check found
        gradient = PrivateGradient(problem, meter, PILOT)
        course = Course(direction=gradient, steps=plan.times(PILOT), update=self.update)
        theta = descended(course, problem, meter, theta, release="tail_average", tail=0.25).coef
        course = self._newton(plan, linear, meter, theta)
        return descended(course, problem, meter, theta, release=self.release, tail=self.tail)

    def _course(self, plan: Plan, problem: Problem, meter: Meter) -> Course:
        raise NotImplementedError  # there are two of them

    def _newton(self, plan: Plan, problem: LinearProblem, meter: Meter, theta: Vector) -> Course:
        """Newton steps on all records with the curvature that a batch has at θ, which is released here."""
        gradient = PrivateGradient(problem, meter)
        loss, smoothness, most = problem.loss, problem.loss.smoothness() or 0.0, plan.max_records(CURVATURE)
        batch = meter.open(CURVATURE, count=problem.records)
        total = problem.curvature_sum(loss.curvature, theta, smoothness=smoothness, indices=batch, max_records=most)
        noisy = meter.noisy_symmetric(CURVATURE, total)
        blur = self.floor * math.sqrt(2 * len(noisy)) * meter.noise_stddev(CURVATURE)
        values, vectors = np.linalg.eigh(noisy)
        unit = smoothness / plan.batch_size(CURVATURE)
        inverse = (vectors / (unit * (np.maximum(values, 0.0) + blur) + problem.ridge.alpha)) @ vectors.T
        steps, update = plan.times("gradients"), GradientStep(step_size=1.0)
        return Course(direction=lambda point: inverse @ gradient(point), steps=steps, update=update)


def _check(facts: Facts) -> float:
    """Return the bound on rows of a smooth linear model of records with one prediction each, else refuse."""
    row_norm = check_smooth(facts)
    if facts.unit == "person" or len(facts.shape) > 1:
        raise InvalidParameter(
            "Expected records of one row and a loss of one prediction, got people or several classes: the sum of their "
            "curvatures is bounded row by row here. Use FixedHessian or DPSGD."
        )
    return row_norm
