"""The loop that all first-order solvers share, and what of its path is released."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from privet._checks import between, whole
from privet._progress import shown
from privet.arrays import Vector
from privet.clipping import Bounding
from privet.errors import Interrupted, InvalidParameter
from privet.geometry import ConvexSet
from privet.plan import Meter, Plan, Release
from privet.privacy import Budget
from privet.problems import Facts, Problem
from privet.problems.protocol import assumed
from privet.randomness import Random
from privet.sampling import FullBatch, Sampling
from privet.solvers.solver import Releases, Result, Start, ready
from privet.solvers.updates import UpdateRule

ReleaseRule = Literal["average", "last", "all", "tail_average"]
"""What is published of w_0, …, w_k after k noisy gradients: their mean, the last, all of them, or the mean of the last
half (or another `tail`). They cost the same: what is not shown is post-processing (lecture 13, Wu, section 1.2)."""


@dataclass(frozen=True, slots=True)
class Path:
    """What is kept of a descent: the released point, and all points if all are released."""

    released: Vector
    points: Vector | None


def descend(
    gradient: Callable[[Vector], Vector],
    *,
    start: Vector,
    steps: int,
    update: UpdateRule,
    domain: ConvexSet,
    release: ReleaseRule,
    noise_stddev: Callable[[], float] = lambda: 0.0,
    tail: float = 0.5,
) -> Path:
    """w_t = Π(update(w_{t−1}, gradient(w_{t−1}))) for t = 1..steps; lecture 13 (Wu), algorithms 1 and 2.

    Interrupted, it raises `Interrupted` with the path so far, of which every step is charged.
    """
    steps = whole("steps", steps, because="without a step nothing is learnt", use="Use e.g. 100.")
    move = update.start()
    keep = _Keeper(release, steps, start, tail)
    theta = start
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in shown(steps, "privet is descending"):
                variance = noise_stddev() ** 2
                theta = project(domain, move(theta, gradient(theta), variance))
                keep.add(theta)
    except KeyboardInterrupt:
        raise Interrupted("The descent was interrupted.", keep.path()) from None
    return keep.path()


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """A descent about to begin: along released directions, so many, and how each moves the point."""

    direction: Callable[[Vector], Vector]
    steps: int
    update: UpdateRule
    noise_stddev: Callable[[], float] = lambda: 0.0
    bound: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DescentSolver(ABC):
    """What all descents share: the part of the path that is released, and how a plan is made and run.

    Parameters
    ----------
    release : "average", "last", "all" or "tail_average"; they cost the same
    tail : which part of the path the tail average is over, in (0, 1]
    """

    release: ReleaseRule = "average"
    tail: float = 0.5

    def __post_init__(self) -> None:
        check_release(self.release)
        because = "the average is over the last part of the path"
        between("tail", self.tail, 0, 1, closed=(False, True), because=because, use="Use 0.5.")

    def plan(self, facts: Facts, budget: Budget, *, before: Releases = (), after: Releases = ()) -> Plan:
        own, ratios = self._releases(facts, budget)
        return Plan.of(facts, (*before, *own, *after)).calibrated(budget, ratios=ratios)

    def run(
        self,
        plan: Plan,
        problem: Problem,
        *,
        meter: Meter | None = None,
        random: Random | None = None,
        start: Start = None,
    ) -> Result:
        """Descend as planned, from the domain's centre or a public start of one's own."""
        meter, theta = ready(plan, meter, random), self._begin(problem, start)
        course = self._course(plan, problem, meter)
        return descended(course, problem, meter, theta, release=self.release, tail=self.tail)

    def _begin(self, problem: Problem, start: Start) -> Vector:
        return starting_point(problem, start)

    @abstractmethod
    def _releases(self, facts: Facts, budget: Budget) -> tuple[Releases, Mapping[str, float]]:
        """Its own releases, in order, and the proportions of their noise multipliers, 1 where nothing is said."""

    @abstractmethod
    def _course(self, plan: Plan, problem: Problem, meter: Meter) -> Course:
        """How it descends; what is released before the first step is released here."""


def gradient_release(
    facts: Facts,
    bound: Bounding,
    *,
    steps: int = 1,
    sampling: Sampling = FullBatch(),  # noqa: B008  # a frozen value without state
) -> Release:
    """Noisy gradients of the loss, the release that descents have in common."""
    steps = whole("steps", steps, because="without a step nothing is learnt", use="Use e.g. 100.")
    of = "gradients of the loss"
    return Release(name="gradients", of=of, bound=bound, times=steps, sampling=sampling, size=facts.dimension)


def descended(
    course: Course,
    problem: Problem,
    meter: Meter,
    start: Vector,
    *,
    release: ReleaseRule,
    tail: float = 0.5,
    delta: float | None = None,
) -> Result:
    """Descend along released directions. The result, or in `Interrupted` the one so far, has the whole guarantee."""
    guarantee = meter.guarantee(delta=delta, assumptions=assumed(problem))

    def result(path: Path) -> Result:
        bound, points = course.bound, path.points
        return Result(coef=path.released, guarantee=guarantee, plan=meter.plan, bound=bound, iterates=points)

    try:
        path = descend(
            course.direction,
            start=start,
            steps=course.steps,
            update=course.update,
            domain=problem.domain,
            release=release,
            noise_stddev=course.noise_stddev,
            tail=tail,
        )
    except Interrupted as stop:
        stop.partial = result(stop.partial)
        raise
    return result(path)


def starting_point(problem: Problem, start: Start) -> Vector:
    """The public start: the domain's centre, or what the caller gives if it lies in the domain."""
    dimension = int(np.prod(problem.shape))
    if start is None:
        return np.asarray(problem.domain.centre(dimension), dtype=np.float64).reshape(problem.shape)
    theta = np.array(start, dtype=np.float64)
    if theta.shape != problem.shape or not np.isfinite(theta).all():
        raise InvalidParameter(
            f"Expected start to be finite and of shape {problem.shape}, got shape {theta.shape}: "
            "the descent has nowhere to begin. Leave it out to start at the domain's centre."
        )
    if not problem.domain.contains(theta.reshape(-1), tolerance=1e-9 * max(1.0, float(np.abs(theta).max()))):
        raise InvalidParameter(
            "Expected start to lie in the domain, got a point outside: the theorems start inside. "
            "Project it first, or leave it out to start at the domain's centre."
        )
    return theta


def project(domain: ConvexSet, theta: Vector) -> Vector:
    """Nearest point of the domain, whatever the shape of θ; refuses what is no longer finite."""
    if not np.isfinite(theta).all():
        raise InvalidParameter(
            "Expected the descent to stay finite, got coefficients that are not: the step size is too large. "
            "Use a smaller step size, or a bounded domain."
        )
    return np.asarray(domain.project(theta.reshape(-1)), dtype=np.float64).reshape(theta.shape)


def check_release(release: str) -> None:
    """Refuse what is no release rule; the best iterate is one only if its choice is paid for."""
    if release == "best":
        raise InvalidParameter(
            "Expected a release that is post-processing, got 'best': choosing it reads the data again. "
            "Use release='all' and choose_best(problem, result.iterates, ...), which is charged."
        )
    if release not in get_args(ReleaseRule):
        raise InvalidParameter(
            f"Expected release to be one of {', '.join(map(repr, get_args(ReleaseRule)))}, got {release!r}: "
            "what is published must be known beforehand. Use 'average'."
        )


class _Keeper:
    """Remembers of the points only what will be released."""

    def __init__(self, release: ReleaseRule, steps: int, start: Vector, tail: float) -> None:
        self._release, self._averages = release, release in ("average", "tail_average")
        self._first = steps - math.floor(steps * tail) if release == "tail_average" else 0
        self._seen, self._averaged = -1, 0
        self._mean = np.zeros_like(start)
        self._last = start
        self._all: list[Vector] = []
        self.add(start)

    def add(self, theta: Vector) -> None:
        self._seen += 1
        self._last = theta
        if self._release == "all":
            self._all.append(theta)
        if self._averages and self._seen >= self._first:
            self._averaged += 1
            self._mean += (theta - self._mean) / self._averaged

    def path(self) -> Path:
        points = np.array(self._all) if self._release == "all" else None
        return Path(self._mean if self._averaged > 0 else self._last, points)
