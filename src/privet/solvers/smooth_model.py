"""What output and objective perturbation ask of a model: public facts, checked before any record is read."""

import math
from dataclasses import dataclass

from privet._checks import positive, whole
from privet.clipping.lattice import MOST_RECORDS, check_clip, check_count
from privet.errors import InvalidParameter
from privet.losses import Loss, Ridge
from privet.plan import Plan
from privet.problems import Facts, Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Perturbation:
    """The settings that the two have in common."""

    regularisation: float | None = None
    clip: float | None = None
    radius: float | None = None
    max_records: int | None = None

    def __post_init__(self) -> None:
        if self.radius is not None:
            because = "the theorem balances noise and penalty with it"
            use = "Pass a public bound on the distance of the minimiser from the centre, or leave it out."
            positive("radius", self.radius, because=because, use=use)
        if self.max_records is not None:
            because = "rounding is allowed for so many records"
            whole("max_records", self.max_records, because=because, use="Pass a plain int, or leave it out.")


def gradient_bound(facts: Facts, clip: float | None) -> float:
    """The bound on a record's gradient, if the clipped loss is convex and smooth by public facts."""
    if facts.loss is None or facts.row_norm is None or facts.unit == "person":
        kind = "GroupedProblem" if facts.unit == "person" else "one of per-record gradients"
        raise InvalidParameter(
            f"Expected a generalised linear model, got {kind}: only there is a clipped gradient that of a convex loss, "
            "which the proof needs. Use glm(...) without groups, or dp_sgd."
        )
    if not facts.loss.convex:
        raise InvalidParameter(
            f"Expected a convex loss, got {facts.loss!r}: its minimiser may jump when one record changes. "
            "Use a convex loss, or dp_sgd."
        )
    if not isinstance(facts.ridge, Ridge):
        raise InvalidParameter(
            "Expected the same penalty on every coefficient, got another quadratic form: the noise rests on how "
            "strongly convex the penalty is in every direction. Use a ridge, or regularisation=... of the solver."
        )
    smoothness(facts.loss, facts.prediction_bound)
    proven = facts.lipschitz
    if clip is None and proven is None:
        raise InvalidParameter(
            "Expected a problem whose gradients have a proven bound, got one without: nothing bounds what one record "
            "can do. Pass clip=..., bound the domain and the labels, or use a loss such as 'huber'."
        )
    found = check_clip(proven if clip is None else clip)  # type: ignore[arg-type]  # one of them is there
    if facts.loss.outputs > 1 and (proven is None or found < proven):
        raise InvalidParameter(
            f"Expected a clip of at least the proven bound {proven!r} for a loss with several outputs, got {found:g}: "
            "clipped, its gradient is no longer that of a convex loss. Leave clip out."
        )
    return found


def smoothness(loss: Loss, prediction_bound: float) -> float:
    """The proven bound on the loss's second derivative up to such predictions; refuses a loss with a kink."""
    found = loss.smoothness(prediction_bound)
    if found is None:
        raise InvalidParameter(
            f"Expected a loss that is smooth on the domain, got {loss!r}: at a kink the minimiser can be told "
            "exactly, noise or not, and no solver reaches it for certain. Use 'smoothed_hinge', 'huber' or 'logistic'."
        )
    return found


def max_records(plan: Plan, problem: Problem, declared: int | None) -> int:
    """A public bound on the number of records, that rounding is allowed for."""
    if plan.neighbours != "add_remove":
        return plan.count
    most = MOST_RECORDS if declared is None else declared
    check_count(problem.records, most)
    return most


def default_reach(facts: Facts, clip: float, radius: float | None) -> float:
    """How far from the start a minimiser may be: the domain's radius, eight times the one given, or absurdly far."""
    if math.isfinite(facts.domain.radius):
        return facts.domain.radius
    if radius is not None:
        return 8.0 * radius
    bend = (facts.smoothness or 0.0) * (facts.row_norm or 0.0) ** 2
    return 1024.0 * clip / bend if bend > 0 else 1024.0  # a clipped slope needs clip/bend to change its sign
