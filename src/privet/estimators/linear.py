"""What all private linear models share: bounded rows, one budget, a solver, coefficients in the data's own units."""

from __future__ import annotations

import math
import numbers
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from privet.accounting import Event, Gaussian, calibrate
from privet.data import person_numbers
from privet.data.people import one_row_each
from privet.errors import InvalidParameter, LittleSignal
from privet.estimators.defaults import LITTLE, Task, constant_weight, settings_for
from privet.estimators.intervals import Uncertainty, altered_rows, inference_plan, uncertainty
from privet.estimators.scaling import Scaling, scaling_by_norm, scaling_from
from privet.estimators.solving import solved
from privet.estimators.weights import Weights, record_weights
from privet.geometry import whole_space
from privet.losses import Loss, Ridge, WeightedLoss
from privet.plan import check_budget
from privet.preprocessing import LearntRanges, private_ranges
from privet.privacy import Budget, Guarantee, Neighbours, check_neighbours
from privet.problems import GroupedProblem, LinearProblem
from privet.randomness import Random, fixed_seed_voids_guarantee, system_random
from privet.solvers import OneStepPlan, Result
from privet.solvers.planning import public_count
from privet.sums import bounded_table

__all__ = ["PrivateLinearModel"]

Vector = NDArray[np.float64]
People = NDArray[np.int64] | None
_RANGE_SHARE = 0.1  # of the squared signal, spent on ranges that were not given
_NORM_SHARE = 0.03  # and on the norms of rows
_CLEAR = 10.0  # standard deviations that all records together must stand above noise for norms to be worth learning
_LEAST_NORM = 2.0**-4
_ROOM = 1.2  # above the learnt norm, where intervals want next to no row shortened
_MOST_NOISE = 2.0**19
_ROWS = 1 << 12
_INFERENCE_CLIP = 0.5  # of a descent whose last step chooses its own
_MOST_SPARSE = 2_000  # sparse columns whose ranges are learnt


class PrivateLinearModel(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Shared by the estimators; not to be used by itself."""

    epsilon: float
    delta: float
    neighbours: Neighbours
    bounds: Any
    row_norm: float | None
    fit_intercept: bool
    alpha: float
    max_iter: int | None
    solver: str
    most_weight: float | None
    records: int | None
    account: Any = None
    random_state: Any
    inference: float = 0.0
    _uncertainty: Uncertainty | None = None
    _paid: tuple[Event, ...] = ()  # releases made before fit that its budget has to cover
    _source: Random | None = None  # where randomness comes from, if the caller has decided

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True  # a missing value counts as the middle of its range
        tags.non_deterministic = True  # the noise is never the same twice
        return tags

    def _table(self, X: Any, *, reset: bool) -> Any:
        """`X` checked on public facts: its type, its shape, its columns."""
        # how many rows there are is private under "add_remove", so none must do there
        least = 1 if reset and self.neighbours != "add_remove" else 0
        try:
            return validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=False,
                ensure_min_samples=least,
            )
        except ValueError as error:
            raise InvalidParameter(_without_cells(str(error))) from None

    def _given_target(self, y: Any) -> NDArray[Any]:
        """`y` as one column. What is wrong with another shape is said without it: how long it is may be private."""
        if y is None:
            raise InvalidParameter(
                f"Expected labels: {type(self).__name__} requires y to be passed, but the target y is None. "
                "Pass one label a row."
            )
        try:
            return np.asarray(column_or_1d(np.asarray(y), warn=True))
        except ValueError:
            raise InvalidParameter(
                "Expected y, which should be a 1d array, to hold one value a row, got another shape: rows and targets "
                "would be paired wrongly. Pass one column."
            ) from None

    def _random(self) -> Random:
        """The system's randomness; a fixed seed's, which voids the guarantee, if a random_state was given."""
        if self._source is not None:
            return self._source
        if self.random_state is None:
            return system_random()
        if isinstance(self.random_state, numbers.Integral):
            return fixed_seed_voids_guarantee(int(self.random_state))
        raise InvalidParameter(
            f"Expected random_state to be None or a whole number, got {type(self.random_state).__name__}: other "
            "generators are not cryptographic. Leave it out."
        )

    def _budget(self, rows: int) -> Budget:
        check_neighbours(self.neighbours)
        budget = check_budget(Budget(epsilon=self.epsilon, delta=self.delta))
        if self.neighbours == "add_remove":
            return budget
        if rows > 1 and self.delta >= 1 / rows:
            raise InvalidParameter(
                f"Expected delta below 1/n = {1 / rows:g}, got {self.delta!r}: publishing one record at random would "
                "meet it. Use a delta well below 1/n."
            )
        return budget

    def _last_step(self, X: Any, loss: Callable[[], Loss], *, plain: bool) -> OneStepPlan | None:
        """The releases that `inference` asks for, refused on public facts before any is made.

        `plain` says that a record is one row of weight 1; else not even the number of rows is looked at.
        """
        self._uncertainty = None
        for name in ("class_weight_", "covariance_", "standard_errors_", "refusal_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self.inference == 0:
            return None
        if not plain:
            raise InvalidParameter(
                "Expected neither groups nor weights with inference=..., got some: second moments are bounded here for "
                "records of one row and weight 1 only. Leave out groups and weights, or use inference=0."
            )
        return inference_plan(
            self.inference,
            loss=loss(),
            clip=_INFERENCE_CLIP,
            alpha=self.alpha,
            columns=X.shape[1] + bool(self.fit_intercept),
            records=self.records if self.neighbours == "add_remove" else X.shape[0],
            budget=self._budget(X.shape[0]),
            neighbours=self.neighbours,
        )

    def _fit_linear(
        self,
        X: Any,
        labels: Vector,
        loss: Loss,
        *,
        task: Task,
        weights: Weights | None,
        scaling: Scaling,
        also: tuple[Event, ...],
        random: Random,
        people: People = None,
        last: OneStepPlan | None = None,
        unit: float = 1.0,
        outside: NDArray[np.bool_] | None = None,
    ) -> Result:
        """Solve on prepared rows. Labels of NaN, or outside the loss's set, and bad weights empty their records.

        `last` is a private Newton step after the descent, which makes the covariance known: then `unit` is what a
        prediction of 1 means in the target's unit, and `outside` marks targets beyond their range.
        """
        keep = np.asarray(loss.admissible(labels), dtype=bool)
        if weights is not None:
            loss, labels = WeightedLoss(loss=loss), np.column_stack([labels, weights.values])
            keep = np.asarray(loss.admissible(labels), dtype=bool)
        rows = _scaled_sparse(X, scaling) if sparse.issparse(X) else X
        table = bounded_table(rows, row_norm=1.0, keep=keep, prepare=None if sparse.issparse(X) else scaling.prepare)
        known, ridge = np.where(keep if weights is None else keep[:, None], labels, 0.0), Ridge(strength=self.alpha)
        problem = (
            LinearProblem(loss, table, known, domain=whole_space(), ridge=ridge)
            if people is None
            else GroupedProblem(loss, table, known, people, domain=whole_space(), ridge=ridge)
        )
        if last is not None:
            last.check(problem)
        budget = self._budget(problem.records)
        signal, columns = self._signal(problem.records), table.shape[1]
        if signal < LITTLE * columns:
            warnings.warn(_little(columns, signal), LittleSignal, stacklevel=5)
        settings = settings_for(self.solver, task, loss=loss, columns=columns, signal=signal, max_iter=self.max_iter)
        found = solved(
            problem,
            settings if last is None else replace(settings, clip=last.clip),
            budget=budget,
            neighbours=self.neighbours,
            records=self.records,
            also=(*self._paid, *also, *(() if last is None else (last.event,))),
            random=random,
        )
        self._event, self._source = found.event, None
        if last is None or not isinstance(problem, LinearProblem):
            return found.result
        plan = found.result.plan
        altered = altered_rows(X, scaling, _norms(X, scaling))
        step = last.run(
            problem,
            found.result.coef,
            altered=keep & (altered if outside is None else altered | outside),
            most_records=plan.most_records,
            random=random,
        )
        covered = uncertainty(step, loss=loss, scaling=scaling, unit=unit, records=plan.records)
        self._uncertainty, self.refusal_ = covered, covered.refusal
        self.covariance_, self.standard_errors_ = covered.covariance, np.sqrt(np.diag(covered.covariance))
        return replace(found.result, coef=step.released)

    def _weights(self, given: Any, rows: int) -> Weights | None:
        return record_weights(given, rows, most=self.most_weight)

    def _whole_noise(self, budget: Budget) -> float:
        """The noise multiplier of one release that would spend the whole budget."""
        return calibrate(
            lambda s: Gaussian(noise_multiplier=s),
            epsilon=budget.epsilon,
            delta=budget.delta,
            neighbours=self.neighbours,
        )

    def _signal(self, records: int) -> float:
        """How many records can be told from noise, were the whole budget spent at once; public."""
        return public_count(records, self.neighbours, self.records) / self._whole_noise(self._budget(records))

    def _share_noise(self, share: float, rows: int) -> float:
        """The noise multiplier of a release that spends `share` of the squared signal."""
        noise = max(self._whole_noise(self._budget(rows)) / math.sqrt(share), 2.0**-9)
        if noise > _MOST_NOISE:
            raise InvalidParameter(
                f"Expected an epsilon from which ranges can be learnt, got {self.epsilon!r}: the noise would drown any "
                "table. Use a larger epsilon, or pass row_norm=..., a public bound on the norm of a row."
            )
        return noise

    def _people(self, groups: Any, rows: int, *, weighted: bool) -> People:
        """Whose row each is; None if every row stands for itself."""
        if groups is None:
            return None
        if weighted:  # before anything is learnt: class counts would be noisy enough for a row, not for a person
            raise InvalidParameter(
                "Expected groups or weights, got both: a person's rows are averaged, and what a weight means there "
                "is not settled. Leave out sample_weight and class_weight, or groups."
            )
        people = person_numbers(groups)
        if len(people) != rows:
            raise InvalidParameter(
                "Expected as many group labels as rows, got another number: rows would be taken for somebody else's. "
                "Pass one label a row."
            )
        if self.neighbours != "add_remove" and people.max(initial=-1) < 0:
            raise InvalidParameter(
                "Expected groups to label at least one person, got no label that is a number or a text: there is "
                "nobody to learn from. Pass a column of ids, e.g. as text."
            )
        return people

    def _scaling(
        self, X: Any, target: Vector | None, random: Random, people: People = None
    ) -> tuple[Scaling, tuple[float, float] | None, tuple[Event, ...]]:
        """What is known of the features' ranges and rows' norms (and, with `target`, of its range), or learnt of them.

        What is not given is learnt for a part of the budget: ranges first, then how long rows are once scaled, which
        for sparse or correlated features is far less than the √features that ranges alone allow. It is learnt from one
        row of each person, drawn at random, where rows have `people`.
        """
        if people is not None:
            rows = one_row_each(people, random)
            X, target = X[rows], None if target is None else target[rows]
        columns = X.shape[1]
        given = self._given(X)
        wanted = ({} if target is None else {"y": target}) | ({} if given is not None else _columns(X))
        events: tuple[Event, ...] = ()
        ranges: dict[str, tuple[float, float]] = {}
        if wanted:
            learnt = self._learnt(wanted, _RANGE_SHARE, X.shape[0], random)
            events, ranges = (learnt.event,), learnt.ranges
        if given is None:
            ends = np.array([ranges[f"x{j}"] for j in range(columns)])
            given = scaling_from(ends.T, columns, intercept=self.fit_intercept)
        scaling = given
        if sparse.issparse(X):  # zeros must stay zeros
            scaling = replace(scaling, low=np.minimum(scaling.low, 0.0), high=np.maximum(scaling.high, 0.0))
        signal = self._signal(X.shape[0] if people is None else int(people.max(initial=-1)) + 1)
        if self.row_norm is None and columns > 1 and signal * math.sqrt(_NORM_SHARE) > _CLEAR:
            learnt = self._learnt({"norm": _norms(X, scaling)}, _NORM_SHARE, X.shape[0], random)
            most = learnt.ranges["norm"][1] * (_ROOM if self.inference else 1.0)
            scaling = replace(scaling, norm=min(scaling.norm, max(most, _LEAST_NORM)))
            events = (*events, learnt.event)
        weight = constant_weight(signal / (columns + 1))
        scaling = replace(scaling, constant=max(scaling.constant, weight * scaling.norm))
        self._middle, self.ranges_ = scaling.middle, (scaling.low, scaling.high)
        return scaling, ranges.get("y"), events

    def _given(self, X: Any) -> Scaling | None:
        columns = X.shape[1]
        if self.row_norm is not None and self.bounds is not None:
            raise InvalidParameter(
                "Expected bounds=... or row_norm=..., got both: a row is bounded in one way. Leave one of the two out."
            )
        if self.row_norm is not None:
            return scaling_by_norm(self.row_norm, columns, intercept=self.fit_intercept)
        if self.bounds is not None:
            return scaling_from(self.bounds, columns, intercept=self.fit_intercept)
        if sparse.issparse(X) and columns > _MOST_SPARSE:
            raise InvalidParameter(
                f"Expected bounds=... for a sparse table of more than {_MOST_SPARSE:,} columns, got none: ranges of so "
                "many columns cannot be learnt from one budget. Pass their public ranges, e.g. bounds=(0, 1)."
            )
        return None

    def _learnt(self, columns: dict[str, Vector], share: float, rows: int, random: Random) -> LearntRanges:
        """Private ranges for `share` of the squared signal."""
        return private_ranges(
            columns,
            columns=list(columns),
            noise_multiplier=self._share_noise(share, rows),
            neighbours=self.neighbours,
            random=random,
        )

    def _predictions(self, X: Any) -> Vector:
        """X @ coef + intercept, with features kept to the ranges they were trained in, missing ones in the middle."""
        check_is_fitted(self)
        table = self._table(X, reset=False)
        coef = np.atleast_2d(self.coef_)
        low, high = self.ranges_
        if sparse.issparse(table):
            table = table.copy()
            with np.errstate(invalid="ignore"):
                table.data = np.clip(table.data, low[table.indices], high[table.indices])
            table.data[np.isnan(table.data)] = 0.0
        else:
            table = np.where(np.isnan(table), self._middle, np.clip(table, low, high))
        return np.asarray(table @ coef.T + self.intercept_)

    def _stated(self, guarantee: Guarantee, *extra: str) -> Guarantee:
        """The guarantee with what an estimator assumes beyond its solver."""
        ranges = "ranges were learnt and paid for"
        if self.bounds is not None or self.row_norm is not None:
            ranges = (
                "the ranges in `bounds` are public" if self.bounds is not None else "the bound `row_norm` is public"
            )
        rows = ("a person has one row",) if guarantee.unit == "record" else ()
        return replace(guarantee, assumptions=(*guarantee.assumptions, ranges, *rows, *extra))


def _little(columns: int, signal: float) -> str:
    """What to say when the model will be little more than a constant; of public facts."""
    return (
        f"Expected a signal of at least {LITTLE:g} a column, got {signal / columns:.2g}: with this budget and number "
        "of records noise drowns the features, so the model tends to the majority class, or the mean. Use a larger "
        "epsilon, fewer columns or more records."
    )


def _without_cells(message: str) -> str:
    """scikit-learn's complaint about a table, without the cells and numbers of rows that some of its messages quote."""
    if "could not convert" in message:
        return (
            "Expected X to be numbers, got text in some column: a model needs numbers. Encode it with a TableEncoder "
            "and a public list of categories first."
        )
    if "array instead" in message:
        return (
            "Expected X to have rows and columns, got another number of dimensions: features could not be told apart. "
            "Reshape your data with .reshape(-1, 1) if it is one feature, with .reshape(1, -1) if it is one row."
        )
    if "Complex data" in message:
        return "Complex data not supported: expected real numbers. Pass real and imaginary parts as two columns."
    if "inhomogeneous" in message:
        return (
            "Expected X to be an array of numbers, got rows of unequal lengths: they are no table. Pass as many "
            "numbers for each record."
        )
    return re.sub(r"\(shape=\([1-9]\d*", "(shape=(", message)


def _columns(X: Any) -> dict[str, Vector]:
    """Each column by a name."""
    table = X.tocsc() if sparse.issparse(X) else X
    dense = (table[:, [j]].toarray()[:, 0] if sparse.issparse(X) else table[:, j] for j in range(X.shape[1]))
    return {f"x{j}": np.asarray(column, dtype=np.float64) for j, column in enumerate(dense)}


def _norms(X: Any, scaling: Scaling) -> Vector:
    """The norm of each row once its features are scaled, without the constant. Private."""
    norms = np.empty(X.shape[0])
    with np.errstate(all="ignore"):
        if sparse.issparse(X):
            squares = _scaled_data(X, scaling) ** 2
            rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
            norms[:] = np.sqrt(np.bincount(rows, weights=squares, minlength=X.shape[0]))
            return norms
        for first in range(0, len(norms), _ROWS):
            part = slice(first, first + _ROWS)
            # in C order, where a row is summed alike whether it stands alone in its block or not
            block = scaling.features(np.array(X[part], dtype=np.float64, order="C"))
            norms[part] = np.sqrt(np.square(block).sum(axis=1))
    return norms


def _scaled_data(X: Any, scaling: Scaling) -> Vector:
    places = X.indices
    with np.errstate(all="ignore"):
        values = np.clip(X.data.astype(np.float64), scaling.low[places], scaling.high[places]) / scaling.half[places]
    return np.where(np.isnan(values), 0.0, values)


def _scaled_sparse(X: Any, scaling: Scaling) -> Any:
    """As `scaling.prepare`, for ranges that hold 0."""
    rows = sparse.csr_matrix((_scaled_data(X, scaling), X.indices, X.indptr), shape=X.shape)
    if scaling.intercept:
        rows = sparse.hstack([rows, np.full((rows.shape[0], 1), scaling.constant)], format="csr")
    rows.data *= scaling.shrink
    return rows
