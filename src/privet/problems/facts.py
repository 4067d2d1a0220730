"""The public side of a problem: all that a plan may be made from."""

import math
from dataclasses import dataclass, field

import numpy as np

from privet._checks import whole
from privet.errors import InvalidParameter
from privet.geometry import ConvexSet, whole_space
from privet.losses import Loss, Ridge, WeightedLoss
from privet.losses.ridge import Penalty
from privet.privacy import Neighbours, Unit, check_neighbours, check_unit
from privet.problems.linear_model import LinearModel
from privet.problems.protocol import Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What is public of a problem before its records are opened: sizes, the loss, the set, the relation.

    Parameters
    ----------
    records : how many records, or people, there are; under "add_remove" a public guess
    shape : of the coefficients
    neighbours, unit : which data sets must look alike, and whom that protects
    loss : pointwise, of a generalised linear model; None for a problem of per-record gradients
    row_norm : the public bound on ‖x‖, of a generalised linear model
    domain, ridge : the set to stay in, and the penalty
    weighted : whether records have weights of their own

    Examples
    --------
    >>> from privet.losses import LogisticLoss
    >>> facts = Facts(records=1000, shape=(3,), neighbours="replace_one", loss=LogisticLoss(), row_norm=1.0)
    >>> facts.lipschitz, facts.dimension
    (1.0, 3)
    """

    records: int
    shape: tuple[int, ...]
    neighbours: Neighbours
    unit: Unit = "record"
    loss: Loss | None = None
    row_norm: float | None = None
    domain: ConvexSet = field(default_factory=whole_space)
    ridge: Penalty = Ridge(alpha=0.0)  # noqa: RUF009  # a frozen value without state
    weighted: bool = False

    def __post_init__(self) -> None:
        check_neighbours(self.neighbours)
        check_unit(self.unit)
        because, use = "rates, divisors and steps follow from it", "Pass a public number of records."
        object.__setattr__(self, "records", whole("records", self.records, because=because, use=use))

    @property
    def dimension(self) -> int:
        """How many coefficients there are."""
        return math.prod(self.shape)

    @property
    def linear(self) -> bool:
        """Whether this is a generalised linear model."""
        return self.loss is not None and self.row_norm is not None

    @property
    def lipschitz(self) -> float | None:
        """A bound on every record's gradient norm over the domain; None if none is proven.

        Theorem: a gradient is ℓ'(⟨x, θ⟩)·x (lecture 13, Brown, claim 1.4), and a person's is a mean of such.
        """
        if self.loss is None or self.row_norm is None:
            return None
        slope = self.loss.lipschitz(self.prediction_bound)
        return None if slope is None else self.row_norm * slope

    @property
    def smoothness(self) -> float | None:
        """A bound on the loss's second derivative over the domain; None if none is proven."""
        return None if self.loss is None else self.loss.smoothness(self.prediction_bound)

    @property
    def prediction_bound(self) -> float:
        """A bound on |⟨x, θ⟩| over the domain; a little more than that, as θ is rounded before use."""
        reach = float(np.linalg.norm(self.domain.centre(self.dimension))) + self.domain.radius
        return (self.row_norm or math.inf) * reach * (1 + 2.0**-30)


def facts_of(problem: Problem, neighbours: Neighbours, records: int | None = None) -> Facts:
    """The public side of a problem; under "add_remove" with `records` for the number of its records.

    Examples
    --------
    >>> from privet import glm
    >>> facts_of(glm("logistic", [[0.6, 0.8]], [1], row_norm=1.0), "replace_one").records
    1
    """
    check_neighbours(neighbours)
    loss, row_norm = (problem.loss, problem.row_norm) if isinstance(problem, LinearModel) else (None, None)
    return Facts(
        records=public_count(problem.records, neighbours, records),
        shape=problem.shape,
        neighbours=neighbours,
        unit=problem.unit,
        loss=loss,
        row_norm=row_norm,
        domain=problem.domain,
        ridge=problem.ridge,
        weighted=isinstance(loss, WeightedLoss),
    )


def public_count(true: int, neighbours: Neighbours, records: int | None) -> int:
    """The number of records that may be used in public: the true one, or under "add_remove" the caller's guess."""
    if neighbours != "add_remove":
        return true if records is None else records
    if records is None:
        raise InvalidParameter("""Expected records=... under 'add_remove', got none: there the number of records is
            private, and rates, divisors and steps must not be computed from it. Pass a public guess of it.""")
    return records
