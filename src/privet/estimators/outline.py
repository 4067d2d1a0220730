"""What a fit will release, from public facts: ranges and norms not given, the solver's sums, standard errors."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privet._checks import positive, whole
from privet.errors import InvalidParameter
from privet.estimators.centred_defaults import with_shorter_steps
from privet.estimators.class_defaults import ClassDraws, class_draws_for
from privet.estimators.constant_defaults import Anchor, anchor_for, keeping_for, rate_epsilon, settling_for
from privet.estimators.defaults import LITTLE, PLENTY, calibration_for, constant_weight
from privet.estimators.doubts import blind_sentence, is_blind
from privet.estimators.intervals import final_step
from privet.estimators.lone_constant import Alone, few_sentence, only_constant
from privet.estimators.range_shares import (
    LEAST_SEEN,
    NORM_SHARE,
    norm_finder,
    range_finder,
    share_noise,
    stands_out,
    target_finder,
)
from privet.estimators.sampling import sample_rate
from privet.estimators.turning import centring_in, for_steep, geometry_for, reach_for, solver_of
from privet.losses import Loss, Ridge, WeightedLoss
from privet.plan import Plan, Release
from privet.plan.plan import check_budget, whole_noise
from privet.preprocessing import RangeFinder
from privet.preprocessing.centring import Centring
from privet.preprocessing.scaling import Scaling, given_scaling
from privet.preprocessing.tails import Root, check_tails
from privet.preprocessing.whitening import Whitener
from privet.privacy import Budget, check_delta, check_neighbours
from privet.problems import Facts
from privet.problems.facts import public_count
from privet.solvers import NewtonInference, Recalibration, Solver
from privet.solvers.keeping import Keeping
from privet.solvers.mean_residual import MeanResidual
from privet.solvers.settling import Settling

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel

_CALIBRATION_SHARES = 0.1, 0.05  # of the budget, for honest probabilities of two classes, and of several
_MOST_SPARSE = 2_000  # sparse columns whose ranges are learnt


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """The public facts of a table that a plan depends on.

    `records` is how many rows there are, or people; `exact` says that `columns` is their true number, as it is unless
    the names of categories are still to be learnt.
    """

    records: int
    columns: int
    classes: int = 2
    people: bool = False
    weighted: bool = False
    sparse: bool = False
    exact: bool = True

    def __post_init__(self) -> None:
        for name, least in (("records", 0), ("columns", 1), ("classes", 2)):
            because, use = "what a fit releases depends on it", "Pass the public number of them."
            object.__setattr__(self, name, whole(name, getattr(self, name), least=least, because=because, use=use))
        for name in ("people", "weighted", "sparse"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidParameter(
                    f"Expected {name} to be True or False, got {getattr(self, name)!r}: what a fit releases depends on "
                    "it. Say whether there will be any."
                )
        if self.people and self.weighted:  # class counts would be noisy enough for a row, not for a person
            raise InvalidParameter(
                "Expected groups or weights, got both: a person's rows are averaged, and what a weight means there "
                "is not settled. Leave out sample_weight and class_weight, or groups."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Outline:
    """A plan, and how its parts are run; all of it public."""

    plan: Plan
    budget: Budget
    effective: float
    columns: int
    target: RangeFinder | None
    ranges: RangeFinder | None
    norms: RangeFinder | None
    final: NewtonInference | None
    centring: Centring | None = None
    whitener: Whitener | None = None
    calibration: Recalibration | None = None
    keeping: Keeping | None = None
    settling: Settling | MeanResidual | None = None
    classes: ClassDraws | None = None
    anchor: Anchor | None = None
    alone: Alone | None = None  # what is drawn, if only a constant is learnt
    rate: float = 1.0  # by which the solver samples, and with which a record is in what is learnt from before
    ranging: float = 1.0  # the same for ranges of features; that of the target is read off all records
    roots: tuple[tuple[int, Root], ...] = ()  # maps of columns with long tails that were learnt before
    reach: float = 1.0  # how many times as long as others a row may be where it is predicted for
    blind: bool = False  # whether declared ranges may be far too wide, and nothing would show it

    @property
    def geometry(self) -> tuple[Centring | Whitener, ...]:
        """How rows are turned, in this order."""
        return tuple(each for each in (self.centring, self.whitener) if each is not None)

    @property
    def each(self) -> float:
        """The effective sample size a coefficient."""
        return self.effective / self.columns

    @property
    def little(self) -> str:
        """What to say when the model will be little more than a constant, or its ranges noise; empty if neither."""
        if self.alone is not None:
            return few_sentence(self.effective, self.alone)
        finders = (self.ranges, self.target)
        inside = {f"{each.what}: octaves" for each in finders if each is not None and any(each.hulls)}
        open_ = {"ranges: octaves", "target: octaves"} - inside  # inside a declared range, that one is left
        octaves = [release for release in self.plan.releases if release.name in open_]
        needed = max((LEAST_SEEN * release.noise_stddev(self.plan.neighbours) for release in octaves), default=0.0)
        if self.plan.count < needed:
            return (
                f"Expected at least {math.ceil(needed):,} records to learn ranges from at this budget, got "
                f"{self.plan.count:,}: no range can stand out of its noise, so that chance will set the scales. "
                "Declare bounds=... and target_range=..., or the schema's ranges; else use a larger epsilon."
            )
        if self.each >= LITTLE:
            return blind_sentence(self.plan.count) if self.blind else ""
        return (
            f"Expected an effective sample size of at least {LITTLE:g} a column, got {self.each:.2g}: with this budget "
            "and number of records noise drowns the features, so the model tends to the majority class, or the mean. "
            "Use a larger epsilon, fewer columns or more records."
        )

    def constant(self, columns: int) -> float:
        """How long the constant beside the features is, in lengths of a row."""
        return constant_weight(self.effective / (columns + 1))

    def solver(self, model: "PrivateLinearModel", loss: Loss, scaling: Scaling, steep: float) -> Solver:
        """The solver with its settings for the loss and the rows' scaling, which may have been learnt by now.

        Never what it releases. Where there are more records than guessed, steps are shorter: sums are larger; and where
        the loss is `steep` times as steep as others of its kind.
        """
        people, geometry = self.plan.unit == "person", (self.centring, self.whitener)
        found = solver_of(
            model, loss, self.columns, self.effective, people, self.final, *geometry, scaling.spread, self.rate
        )
        found = for_steep(found, steep)
        return with_shorter_steps(found, scaling.total) if self.plan.neighbours == "add_remove" else found


def check_settings(model: "PrivateLinearModel") -> None:
    """Refuse parameters of a model that promise nothing; they are public, and no row has been read."""
    check_neighbours(model.neighbours)
    check_tails(model.tails)
    check_budget(Budget(epsilon=model.epsilon, delta=model.delta))
    positive("alpha", model.alpha, zero=True, because="it is the strength of a convex penalty", use="Use 0.")
    if model.row_norm is not None:
        because = "no row may be longer, and noise is scaled by it"
        positive("row_norm", model.row_norm, because=because, use="Pass a public bound on the norm of a row.")
    if model.records is not None:
        because = "rates, divisors and steps follow from it"
        whole("records", model.records, because=because, use="Pass a public guess of the number of rows.")
        check_delta(model.delta, model.records)


def outlined(
    model: "PrivateLinearModel", size: Size, *, before: tuple[Release, ...] = (), draws: bool = True
) -> Outline:
    """The outline of a fit of `model` on a table of such a size, with `before` made already out of the same budget.

    Without `draws`, or with an account, all that is released are noisy sums: an account composes those exactly.
    """
    draws = draws and model._draws and model.account is None
    count, known = _checked(model, size)
    budget = check_budget(Budget(epsilon=model.epsilon, delta=model.delta))
    check_delta(budget.delta, count)  # under "add_remove", by the public guess alone
    noise = whole_noise(budget, model.neighbours)
    effective = count / noise

    def of_share(share: float) -> float:
        return share_noise(noise, share, model.epsilon)

    if not before and (alone := constant_outline(model, size, draws=draws)) is not None:
        return alone
    facts = _facts(model, size, count)
    loss: Loss = facts.loss  # type: ignore[assignment]  # of a linear model
    anchor = anchor_for(model, count, effective) if draws else None
    rate_draw = rate_epsilon(model, count, effective) if draws else 0.0
    centring, whitener = geometry_for(model, loss, size, effective, stands_out(1, count, noise, model.neighbours))
    classes = class_draws_for(model, size, count, effective, centring, whitener) if draws else None
    if classes is not None:
        noise = whole_noise(replace(budget, epsilon=budget.epsilon - classes.epsilon), model.neighbours)
        effective, rate_draw = count / noise, classes.rates
    rate = 1.0 if whitener is None else sample_rate(model, size, loss, count, effective)
    plenty = whitener is not None and not model.inference and effective >= PLENTY * size.columns
    target, target_share = (None, 0.0) if anchor is not None else target_finder(model, count, noise, plenty)
    ranges, range_share, ranging = range_finder(model, size.columns, size.sparse, known, count, noise, rate, plenty)
    centring = centring_in(centring, known, learnt=ranges is not None)
    wanted = model, known, size.columns, rate * count, noise, whitener, rate
    norms = norm_finder(*wanted) if centring is None else None
    final, last = final_step(model.inference, facts, budget)
    first: tuple[Release, ...] = before + (() if anchor is None else anchor.releases())
    for finder, share in ((target, target_share), (ranges, range_share), (norms, NORM_SHARE)):
        if finder is not None:
            first += finder.releases(noise_multiplier=of_share(share))
    first += model._own_releases(of_share, size.classes, rate_draw)
    first += tuple(r for turn in (centring, whitener) if turn is not None for r in turn.releases(of_share))
    calibration = keeping = settling = None
    if final is None and rate == 1 and model._task == "binary":
        calibration = _calibration(model, loss, effective) if whitener is not None else None
        if calibration is not None:
            last += calibration.releases(noise_multiplier=of_share(_CALIBRATION_SHARES[loss.outputs > 1]))
    elif final is None and rate == 1:
        begun = anchor is not None or rate_draw > 0
        keeping = keeping_for(model, count, effective, centring is not None, begun) if draws else None
        settling = settling_for(model, loss, count, effective, of_share, draws)
    last += tuple(each.release() for each in (keeping, settling) if each is not None)
    last += () if classes is None else classes.releases()
    solver = solver_of(model, loss, facts.shape[0], effective, size.people, final, centring, whitener, 1.0, rate)
    plan = solver.plan(facts, budget, before=first, after=last)
    if not size.exact or (ranges is not None and ranges.tails):
        plan = replace(plan, releases=tuple(replace(r, size=0) for r in plan.releases))
    found: dict[str, Any] = {"target": target, "ranges": ranges, "norms": norms, "final": final, "anchor": anchor}
    found |= {"centring": centring, "whitener": whitener, "calibration": calibration, "keeping": keeping}
    found |= {"settling": settling, "classes": classes, "rate": rate, "ranging": ranging, "columns": facts.shape[0]}
    found |= {"blind": is_blind(model, known, centring, found=anchor or target), "effective": effective}
    return Outline(plan=plan, budget=budget, reach=reach_for(model, whitener, centring), **found)


def _calibration(model: "PrivateLinearModel", loss: Loss, effective: float) -> Recalibration | None:
    """How probabilities are recalibrated, if the model has any."""
    if not (model._calibrates and model.fit_intercept):
        return None
    return calibration_for(loss.outputs > 1, effective * math.sqrt(_CALIBRATION_SHARES[loss.outputs > 1]))


def constant_outline(model: "PrivateLinearModel", size: Size, *, draws: bool = True) -> Outline | None:
    """The outline of a fit that learns a constant alone, with all of the budget, if that is all that can be learnt."""
    count, _ = _checked(model, size)
    budget = check_budget(Budget(epsilon=model.epsilon, delta=model.delta))
    effective, facts = count / whole_noise(budget, model.neighbours), _facts(model, size, count)
    draws = draws and model._draws and model.account is None
    alone = only_constant(model, size, count, effective) if draws else None
    if alone is None:
        return None
    plan, columns = Plan.of(facts, alone.releases(float(budget.epsilon)), budget), facts.shape[0]
    nothing: dict[str, Any] = {"target": None, "ranges": None, "norms": None, "final": None}
    return Outline(plan=plan, budget=budget, effective=effective, columns=columns, alone=alone, **nothing)


def _checked(model: "PrivateLinearModel", size: Size) -> tuple[int, Scaling | None]:
    """How many records there are, in public, and the scaling that is declared; refuses before anything is charged."""
    count = public_count(size.records, model.neighbours, model.records)
    if model.neighbours != "add_remove" and count != size.records:
        raise InvalidParameter(
            f"Expected records to be left out under {model.neighbours!r}, where it is public, got {count:,} for a "
            "table of another number: rates and steps would not be what the guarantee covers. Leave records out."
        )
    known = given_scaling(model.bounds, model.row_norm, size.columns, intercept=model.fit_intercept)
    if known is None and size.sparse and size.columns > _MOST_SPARSE:
        raise InvalidParameter(
            f"Expected bounds=... for a sparse table of more than {_MOST_SPARSE:,} columns, got none: ranges of so "
            "many columns cannot be learnt from one budget. Pass their public ranges, e.g. bounds=(0, 1)."
        )
    return count, known


def _facts(model: "PrivateLinearModel", size: Size, count: int) -> Facts:
    """The public side of the problem."""
    columns = size.columns + bool(model.fit_intercept)
    loss = model._loss(size.classes)
    if size.weighted:
        loss = WeightedLoss(loss=loss)
    return Facts(
        records=max(count, 1),
        shape=(columns,) if loss.outputs == 1 else (columns, loss.outputs),
        neighbours=model.neighbours,
        unit="person" if size.people else "record",
        loss=loss,
        row_norm=1.0,
        ridge=Ridge(alpha=model.alpha),
        weighted=size.weighted,
    )
