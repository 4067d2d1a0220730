"""How sure a coefficient is: standard errors and confidence intervals that count the privacy noise, or a refusal."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse, stats
from sklearn.utils.validation import check_is_fitted

from privet._checks import between
from privet.arrays import BoolArray, Vector
from privet.data.elsewhere import ElsewhereRows
from privet.errors import InvalidParameter, NoProvenBound
from privet.losses import HuberLoss, Loss, SquaredLoss
from privet.plan import Meter, Release
from privet.preprocessing.scaling import Scaling
from privet.preprocessing.whitening import Whitener
from privet.privacy import Budget
from privet.problems import Facts, LinearProblem
from privet.problems.parted import PartedProblem
from privet.solvers import NewtonInference, OneStep, Result
from privet.solvers.newton_inference import BREAD

if TYPE_CHECKING:
    from privet.estimators.outline import Outline
    from privet.estimators.preparing import Records

_LEAST_CONDITIONING = 1.5  # typical norms of the Hessian's noise that its eigenvalues could reach at all
# The square of what undetermined directions may add to a coefficient ÷ its other variance: added as if it were one,
# it then keeps cover at every level to half a point (docs/proofs/intervals.md, section 4).
_MOST_UNSEEN = 0.25
_MOST_REMAINDER = 2.0  # bound on the neglected quadratic term ÷ standard deviation; the term itself is a fraction of it
_MOST_ALTERED = 0.01  # share of records
NOTICED = 0.05  # of a range, or of a row's length
_ROWS = 1 << 12
_WORTH = 30.0  # effective sample size a column from which whitening pays
_MOST_COLUMNS = 500
_LEFT_OUT = 300.0  # effective sample size a column beyond which ever fewer rows are left out
_PLENTY = 10_000.0  # the same, beyond which half of the rounds find all that there is
_ROUNDS = (0.015, 0.015, 0.02, 0.02, 0.03, 0.07)  # shares of the budget: each sees what the last did not
_UNDETERMINED = (
    "Refused: eigenvalues of the released Hessian are not clearly above its noise, so that every coefficient is hardly "
    "determined. Use a larger epsilon, more records, or fewer or less correlated columns."
)
_CLIP = 0.5  # of a descent whose last step chooses its own


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Intervals:
    """Coefficients between `low` and `high`, each with probability `level`; prints as a table.

    The order is that of the features, the intercept last if there is one. What is not determined has NaN for its
    standard error and ends, and is named in `undetermined`. Public.
    """

    names: tuple[str, ...]
    estimate: Vector
    standard_error: Vector
    low: Vector
    high: Vector
    level: float

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Coefficients for which records, noise and budget allow no interval."""
        return tuple(name for name, error in zip(self.names, self.standard_error, strict=True) if math.isnan(error))

    def __str__(self) -> str:
        width = max(len(name) for name in self.names)
        head = f"{'':{width}}  {'estimate':>10}  {'std. error':>10}  {f'{self.level:.4g} interval':>24}"
        rows = zip(self.names, self.estimate, self.standard_error, self.low, self.high, strict=True)
        lines = [
            f"{n:{width}}  {e:10.4g}  {s:10.3g}  {'not determined' if math.isnan(s) else f'[{a:.4g}, {b:.4g}]':>24}"
            for n, e, s, a, b in rows
        ]
        return "\n".join([head, *lines])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Uncertainty:
    """Covariance of the coefficients in the data's own units, degrees of freedom, or why there are none. Public.

    NaN for coefficients that are not determined.
    """

    covariance: Vector
    degrees: Vector
    refusal: str


class WithIntervals:
    """What an estimator with an `inference` parameter has once it is fitted."""

    def _infer(
        self,
        data: "Records",
        outline: "Outline",
        problem: LinearProblem | PartedProblem,
        result: Result,
        scaling: Scaling,
        posed: Any,
        keep: BoolArray,
        meter: Meter,
    ) -> Result:
        """A last private Newton step, whose error is known."""
        norms = scaling.norms(data.table)
        altered = altered_rows(data.table, scaling, norms)
        if posed.outside is not None:
            altered = altered | posed.outside
        if outline.whitener is not None:
            altered = altered & (norms <= scaling.norm)  # longer ones were left out
        step = outline.final.run(problem, result.coef, altered=keep & altered, meter=meter)  # type: ignore[union-attr]
        records = outline.plan.records or 1
        covered = uncertainty(step, loss=posed.loss, scaling=scaling, unit=posed.unit, records=records)
        self._uncertainty, self.refusal_ = covered, covered.refusal
        self.covariance_, self.standard_errors_ = covered.covariance, np.sqrt(np.diag(covered.covariance))
        return replace(result, coef=step.coef)

    def confidence_intervals(self, level: float = 0.95) -> Intervals:
        """Intervals that hold each coefficient with probability `level`, privacy noise included.

        They are for the coefficients that minimise the expected loss, clipped as in training; see the page "How
        sure is a coefficient". A coefficient that is not determined has NaN for its ends; if none is, or another reason
        speaks against all of them, raises `NoProvenBound` with it.
        """
        check_is_fitted(self)
        between("level", level, 0, 1, because="it is the probability to cover", use="Use 0.95.")
        known: Uncertainty | None = vars(self).get("_uncertainty")
        if known is None:
            raise InvalidParameter(
                "Expected a model fitted with inference=..., got one without: no budget was spent on its standard "
                "errors. Fit it with inference=0.5, half of the budget."
            )
        if known.refusal:
            raise NoProvenBound(known.refusal)
        count = len(known.covariance)
        columns = np.asarray(self.coef_).size  # type: ignore[attr-defined]  # set by fit
        given = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(columns)] if given is None else [str(name) for name in given]
        both = np.append(np.ravel(self.coef_), np.ravel(self.intercept_))  # type: ignore[attr-defined]  # the same
        estimate = both[:count]
        error = np.sqrt(np.diag(known.covariance))
        reach = stats.t.ppf(0.5 + level / 2, known.degrees) * error
        return Intervals(
            names=(*names, "intercept")[:count],
            estimate=estimate,
            standard_error=error,
            low=estimate - reach,
            high=estimate + reach,
            level=float(level),
        )


def final_step(inference: float, facts: Facts, budget: Budget) -> tuple[NewtonInference | None, tuple[Release, ...]]:
    """The last step that `inference` of the budget buys, and its releases, or none; refused on public facts.

    The clip is the loss's own bound on a gradient where it has one, so that nothing is clipped and nothing biased.
    """
    because = "it is the share of the budget that is kept for standard errors, and the descent needs the rest"
    share = between("inference", inference, 0, 0.9, closed=(True, True), because=because, use="Use 0.5, or 0 for none.")
    if not share:
        return None, ()
    loss = facts.loss
    if facts.weighted or facts.unit == "person" or loss is None:
        raise InvalidParameter(
            "Expected neither groups nor weights with inference=..., got some: second moments are bounded here for "
            "records of one row and weight 1 only. Leave out groups and weights, or use inference=0."
        )
    if loss.outputs > 1:
        raise InvalidParameter(
            f"Expected two classes for inference=..., got {loss.outputs}: the Hessian of several classes couples them, "
            "for which no sensitivity is proven here. Fit two classes at a time, or use inference=0."
        )
    if facts.ridge.alpha:
        raise InvalidParameter(
            f"Expected alpha=0 for inference=..., got {facts.ridge.alpha!r}: a penalty biases the coefficients "
            "towards 0 by an amount that no interval knows. Use alpha=0, or inference=0."
        )
    slope = loss.lipschitz()
    step = NewtonInference(clip=_CLIP if slope is None else slope, choose_clip=slope is None)
    releases = step.releases(facts, budget, share=share)
    # rows have norm at most 1: a trace of at most n, so a least eigenvalue of at most n/columns
    columns = facts.shape[0]
    (bread,) = (release for release in releases if release.name == BREAD)
    noise = bread.noise_stddev(facts.neighbours) * math.sqrt(2 * columns)
    needed = math.ceil(_LEAST_CONDITIONING * noise * columns)
    if facts.records < needed:
        raise InvalidParameter(
            f"Expected at least {needed:,} records for intervals at this budget with {columns} coefficients, got "
            f"{facts.records:,}: the Hessian would drown in its noise whatever the data. Use a larger epsilon, fewer "
            "columns, or inference=0."
        )
    return step, releases


def uncertainty(step: OneStep, *, loss: Loss, scaling: Scaling, unit: float, records: int) -> Uncertainty:
    """From what was released to covariances in the data's units, or the reason why not. Post-processing.

    `unit` is what a prediction of 1 means in the target's unit.
    """
    coef, intercept = scaling.unscaled(np.eye(len(step.start)))
    to_units = (np.vstack([coef.T, intercept]) if scaling.intercept else coef.T) * unit
    nothing = np.full((len(to_units),) * 2, math.nan)
    constant = scaling.constant * scaling.shrink if scaling.intercept else 0.0
    refusal = _refusal(step, loss, records, constant)
    if refusal:
        return Uncertainty(covariance=nothing, degrees=nothing[0], refusal=refusal)
    covariance = to_units @ step.covariance @ to_units.T
    own, mixed = step.unseen(to_units, scaling.spreads)
    unknown = ~(np.diag(own) < _MOST_UNSEEN * np.diag(covariance + mixed))  # nor if both are 0
    if unknown.all():
        return Uncertainty(covariance=nothing, degrees=nothing[0], refusal=_UNDETERMINED)
    covariance = covariance + own + mixed
    covariance[unknown] = covariance[:, unknown] = math.nan
    return Uncertainty(covariance=covariance, degrees=step.degrees(to_units), refusal="")


def _refusal(step: OneStep, loss: Loss, records: int, constant: float) -> str:
    """Why there are no intervals; empty if there are. All that is looked at was released with noise."""
    if not step.remainder(_bending(loss), constant) <= _MOST_REMAINDER:
        return (
            "Refused: the private Newton step was so long that what it neglects may be as large as the standard error. "
            "Use a larger epsilon, more records, a smaller `inference`, or more steps (max_iter)."
        )
    most = min(_MOST_ALTERED, 2 / math.sqrt(records))
    if step.altered - 2 * step.altered_noise > most * records:
        return (
            f"Refused: clearly more than {most:.2g} of the records were altered or left out, having a missing value, "
            "one well outside its range, or a row well beyond the norm; the coefficients are those of the rest. Pass "
            "wider `bounds` (or `target_range`), or fill in missing values from public facts first."
        )
    return ""


def _bending(loss: Loss) -> float:
    """A bound on |ℓ‴|/ℓ″: 1 for the logistic loss; for Huber's kinks, what a unimodal error has there at most."""
    if isinstance(loss, SquaredLoss):
        return 0.0
    return 1 / float(loss.threshold) if isinstance(loss, HuberLoss) else 1.0


def altered_rows(X: Any, scaling: Scaling, norms: Vector) -> BoolArray:
    """Which rows `scaling` changes noticeably: a value missing or beyond its range, or the row shortened. Private."""
    if isinstance(X, ElsewhereRows):
        return X.each(altered_rows, scaling, norms.later)  # type: ignore[return-value, attr-defined]  # which are there
    with np.errstate(all="ignore"):
        long = ~(norms <= scaling.norm * (1 + NOTICED))
        low, high = scaling.low - NOTICED * scaling.half, scaling.high + NOTICED * scaling.half
        if sparse.issparse(X):
            outside = ~((X.data >= low[X.indices]) & (X.data <= high[X.indices]))
            rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
            return np.asarray(long | (np.bincount(rows[outside], minlength=X.shape[0]) > 0))
        found = long.copy()
        for first in range(0, len(found), _ROWS):
            part = slice(first, first + _ROWS)
            block = np.asarray(X[part])
            found[part] |= ~((block >= low) & (block <= high)).all(axis=1)
    return found


def interval_whitener(*, columns: int, intercept: bool, effective: float) -> Whitener | None:
    """How rows are whitened for intervals; None where there are too few records for it to pay."""
    if effective / (columns + intercept) < _WORTH or columns > _MOST_COLUMNS:
        return None
    each = effective / (columns + intercept)
    shares = _ROUNDS if each < _PLENTY else _ROUNDS[-3:]
    tail = 0.02 * min(1.0, _LEFT_OUT / each)  # what is left out may bias, if the model is wrong; what is not is noise
    return Whitener(
        columns=columns,
        intercept=intercept,
        shares=shares,
        tail=tail,
        norm_share=0.01,
        last_norm_share=0.03,
        floor=0.1,
    )
