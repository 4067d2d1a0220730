"""What all private linear models share: parameters, a plan from public facts, and a fit that runs it."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from privet._checks import whole
from privet._progress import task
from privet.arrays import Vector
from privet.data import MadeRows, matrix
from privet.data.cells import Reader
from privet.data.elsewhere import ElsewhereRows, each_alone
from privet.errors import InvalidParameter, SchemaMisfit, SmallEffectiveSample
from privet.estimators.bending import keep_scaling, whole_coef
from privet.estimators.constant_model import ConstantModel
from privet.estimators.defaults import Task
from privet.estimators.doubts import UNREAD, Doubts, faint_columns, is_unread
from privet.estimators.finishing import finished
from privet.estimators.intervals import WithIntervals
from privet.estimators.lone_constant import fit_constant
from privet.estimators.outline import Outline, Size, check_settings, outlined
from privet.estimators.pipelines import upstream
from privet.estimators.preparing import Posed, Records, learnt_scaling, prepared_problem, sampled, turned_scaling
from privet.estimators.reading import (
    by_name,
    file_records,
    in_files,
    journal_of,
    of_people,
    people_of,
    records_elsewhere,
)
from privet.estimators.reserving import begun, randomness, undone_on_failure
from privet.estimators.summary import Speaking
from privet.estimators.weights import record_weights
from privet.losses import Loss
from privet.plan import Meter, Plan, Release
from privet.preprocessing.scaling import Scaling, declared_columns
from privet.preprocessing.tails import Tails
from privet.privacy import Guarantee, Neighbours
from privet.problems import GroupedProblem

_LEFT = ("class_weight_", "covariance_", "standard_errors_", "refusal_", "_uncertainty")  # by an earlier fit, perhaps


@dataclass(eq=False, repr=False)
class PrivateLinearModel(ConstantModel, Speaking, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Shared by the estimators, with the parameters that all of them have; not to be used by itself."""

    epsilon: float = 1.0
    delta: float = 1e-6
    _: KW_ONLY
    neighbours: Neighbours = "replace_one"
    bounds: Any = None
    bounds_exact: bool = False
    tails: Tails = "clip"
    row_norm: float | None = None
    fit_intercept: bool = True
    alpha: float = 0.0
    max_iter: int | None = None
    solver: Any = "auto"
    max_weight: float | None = None
    records: int | None = None
    account: Any = None
    random_state: Any = None

    inference: ClassVar[float] = 0.0  # estimators with intervals make it a parameter
    _task: ClassVar[Task] = "binary"  # or several, if the loss has several outputs
    _learns_target: ClassVar[bool] = False  # its range, or inside a declared one
    _ends: ClassVar[tuple[float, float] | None] = None  # which regressors have
    _calibrates: ClassVar[bool] = False  # whether its predictions are probabilities

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True  # a missing value counts as the middle of its range
        tags.non_deterministic = True  # the noise is never the same twice
        return tags

    # -- what an estimator says of itself ----------------------------------------------------------------------------

    def _loss(self, classes: int) -> Loss:
        """The loss, as far as it is public before the run."""
        raise NotImplementedError

    def _own_releases(self, noise: Callable[[float], float], classes: int, draw: float) -> tuple[Release, ...]:
        """Releases between ranges and descent, with noise for a share of the budget, or the epsilon of a `draw`."""
        return ()

    def _read_target(self, y: Any, rows: int) -> Any:
        raise NotImplementedError

    def _target_reader(self) -> Reader:
        """Who reads a column of targets where the records are."""
        raise NotImplementedError

    def _pose(self, data: Records, learnt: tuple[float, float] | None, meter: Meter) -> Posed:
        """Labels and loss on prepared rows; what an estimator learns of its own is learnt here."""
        raise NotImplementedError

    def _keep(self, theta: Vector, scaling: Scaling, posed: Posed) -> None:
        """Set the fitted attributes, in the data's own units."""
        raise NotImplementedError

    # -- the plan ----------------------------------------------------------------------------------------------------

    def plan(
        self,
        *,
        records: int,
        columns: int,
        classes: int | None = None,
        people: bool = False,
        weighted: bool = False,
        sparse: bool = False,
    ) -> Plan:
        """What `fit` will release on a table of that size: from public facts alone, before any data is opened.

        Promise: `fit` on such a table releases this and nothing else, and `plan_` is equal to it.

        Parameters
        ----------
        records : how many rows the table has, or people; under "add_remove" only `records` of the model counts, if set
        columns : how many features
        classes : how many classes, for a classifier without declared ones
        people : whether rows will be grouped by people, as with `groups` in `fit`
        weighted : whether there will be weights
        sparse : whether the table will be a sparse matrix, whose rows are not centred, and whose declared ranges stay
        """
        self._check()
        because = "rates, divisors and steps follow from it"
        records = whole("records", records, because=because, use="Pass a public number of records.")
        known = self.neighbours != "add_remove" or self.records is not None
        model = self if known else type(self)(**self.get_params(deep=False) | {"records": records})
        return outlined(
            model,
            Size(
                records=records,
                columns=columns,
                classes=self._class_count(classes),
                people=people,
                weighted=self._weighs_classes or weighted,
                sparse=sparse,
            ),
        ).plan

    def _class_count(self, given: int | None) -> int:
        return 2

    @property
    def _weighs_classes(self) -> bool:
        return False

    # -- the fit -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Train on private rows `X`, targets `y` and weights; `guarantee_` says what that promises.

        With `groups`, a private label a row of whose it is, the promise is for a person with all rows. Of a frame, or a
        table in files, targets, weights and labels may be given as names of columns, which are then no features.
        """
        with undone_on_failure(self), task():
            self._check()
            before = (*upstream(self.account), *self._assumed(X))
            data = self._read(X, y, sample_weight, groups)
            outline = outlined(self, data.size)
            if outline.little:
                warnings.warn(outline.little, SmallEffectiveSample, stacklevel=2)
            kept = journal_of(self, X, y, sample_weight, groups)
            meter = begun(outline.plan, randomness(self.random_state), account=self.account, **kept)
            doubts = self._run(data, outline, meter, before)
            meter.finish()
        if doubts.unread:
            warnings.warn(UNREAD, SchemaMisfit, stacklevel=2)
        if said := doubts.sentence(self._named, exact=self.bounds_exact or bool(outline.little)):
            warnings.warn(said, SmallEffectiveSample, stacklevel=2)
        return self

    def _fit_planned(self, X: Any, y: Any, *, groups: Any = None, outline: Outline, meter: Meter) -> Doubts:
        """As `fit`, planned and begun by the caller, who finishes the meter and warns, too; `groups` are numbered."""
        with undone_on_failure(self):
            data = self._read(X, y, None, groups if isinstance(X, ElsewhereRows) else None)
            return self._run(of_people(data, groups), outline, meter)

    def _check(self) -> None:
        """Refuse parameters that promise nothing, before anything is read."""
        check_settings(self)

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Records:
        """The records as private arrays, checked on public facts; of a table in files, where they are."""
        if isinstance(X, ElsewhereRows):
            return records_elsewhere(self, X, each_alone(self._target_reader().read, y), people=groups)
        if in_files(X):
            return file_records(self, X, y, sample_weight, groups)
        X, y, sample_weight, groups = by_name(X, y, sample_weight, groups)
        if y is None:
            raise InvalidParameter(
                f"Expected labels: {type(self).__name__} requires y to be passed, but the target y is None. "
                "Pass one label a row."
            )
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
            message = "A column-vector y was passed when a 1d array was expected; its one column is taken."
            warnings.warn(message, DataConversionWarning, stacklevel=3)
        table = self._table(X, reset=True)
        rows = table.shape[0]
        target = self._read_target(y, rows)
        weights = record_weights(sample_weight, rows, most=self.max_weight)
        people = people_of(groups, rows, self.neighbours)
        count = rows if people is None else int(people.max(initial=-1)) + 1
        size = self._size(table, count, people=people is not None, weighted=weights is not None)
        return Records(table=table, target=target, weights=weights, people=people, size=size)

    def _size(self, table: Any, records: int, *, people: bool = False, weighted: bool = False) -> Size:
        """The public facts of a table of numbers."""
        return Size(
            records=records,
            columns=table.shape[1],
            classes=self._class_count(None),
            people=people,
            weighted=weighted or self._weighs_classes,
            sparse=not isinstance(table, np.ndarray | MadeRows | ElsewhereRows),
        )

    def _assumed(self, X: Any) -> tuple[str, ...]:
        """What is taken as public of a table: of a list of rows, which declares no shape, how long most of them are."""
        listed = isinstance(X, Sequence) and not isinstance(X, str)
        read_off = listed and declared_columns(self.bounds) is None
        return ("the number of columns, read off a list of rows, is public",) if read_off else ()

    def _table(self, X: Any, *, reset: bool) -> Any:
        """`X` as numbers, checked on public facts: its declared type, its shape, its columns."""
        table = matrix(X, columns=declared_columns(self.bounds) if reset else None)
        validate_data(self, X if hasattr(X, "columns") else table, reset=reset, skip_check_array=True)
        # how many rows there are is private under "add_remove", so none must do there
        if table.shape[0] == 0 and reset and self.neighbours != "add_remove":
            raise InvalidParameter(
                "Expected at least one row, found array with 0 sample(s) (shape=(0, ...)) while a minimum of 1 is "
                "required: there is nothing to learn from. Pass rows."
            )
        return table

    def _run(self, data: Records, outline: Outline, meter: Meter, before: tuple[str, ...] = ()) -> Doubts:
        """Learn what is not given, solve, and keep what was released; what is in doubt of ranges."""
        for name in _LEFT:
            self.__dict__.pop(name, None)
        if outline.alone is not None:
            fit_constant(self, data, outline, meter, before)
            return Doubts()
        few = sampled(data, outline.rate, meter.random)
        data = few if outline.rate == 1 else data  # of a table in files, rows that need not be decoded again
        scaling = (learnt := learnt_scaling(self, few, outline, meter, data)).scaling
        posed = self._pose(data, learnt.target, meter)
        of_few = posed if few is data or outline.whitener is None else self._pose(few, learnt.target, meter)
        for geometry in outline.geometry:
            scaling = turned_scaling(few, scaling, of_few, geometry, meter, rate=outline.rate)
        alpha, whole = self.alpha / outline.plan.count, outline.final is not None
        problem = prepared_problem(data, scaling, posed, alpha=alpha, whole=whole, reach=outline.reach)
        start = self._started(posed.rates, problem.shape, scaling.constant * scaling.shrink)
        solver = outline.solver(self, problem.loss, scaling, posed.steep)
        begin = {} if start is None else {"start": start}
        result = solver.run(outline.plan, problem, meter=meter, **begin)  # type: ignore[arg-type]  # a descent, which has a start
        made: dict[str, Any] = {"solver": solver, "scaling": scaling, "posed": posed, "start": start}
        coef = finished(self, outline, problem, result.coef, meter, **made, begun=learnt.begun)
        result = replace(result, coef=coef)
        if outline.final is not None and isinstance(self, WithIntervals) and not isinstance(problem, GroupedProblem):
            keep = each_alone(posed.loss.admissible, posed.labels)
            result = self._infer(data, outline, problem, result, scaling, posed, keep, meter)
        self._keep(result.coef.reshape(len(result.coef), -1), scaling, posed)
        keep_scaling(self, scaling)
        self.guarantee_ = self._stated(result.guarantee, (*posed.assumptions, *before))
        self.plan_ = meter.counted
        self.n_iter_ = sum(release.times for release in outline.plan.releases if release.name == "gradients") or 1
        faint = (*learnt.faint, *faint_columns(self, scaling, inside=outline.ranges is not None))
        return Doubts(unsure=learnt.unsure, faint=faint, unread=is_unread(scaling))

    def _named(self, column: str) -> str:
        """A column as the caller knows it: by name if it has one, the target as such."""
        names = getattr(self, "feature_names_in_", None)
        return "the target" if column == "y" else repr(column if names is None else str(names[int(column[1:])]))

    def _predictions(self, X: Any) -> Vector:
        """X @ coef + intercept, with features kept to the ranges they were trained in, missing ones in the middle."""
        check_is_fitted(self)
        return np.asarray(self._scale.clipped(self._table(X, reset=False)) @ whole_coef(self).T + self.intercept_)

    def _stated(self, guarantee: Guarantee, extra: tuple[str, ...]) -> Guarantee:
        """The guarantee with what an estimator assumes beyond its solver."""
        ranges = "ranges were learnt within the budget" if self.row_norm is None else "the bound `row_norm` is public"
        if self.bounds is not None:
            ranges = "the ranges in `bounds` are public"
        rows = ("a person has one row",) if guarantee.unit == "record" else ()
        return replace(guarantee, assumptions=(*guarantee.assumptions, ranges, *rows, *extra))
