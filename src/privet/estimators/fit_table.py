"""A private model of a table in one call, and what that call will release."""

from typing import Any

from privet._progress import task
from privet.errors import InvalidParameter
from privet.estimators.table_model import TableModel
from privet.estimators.table_outline import table_outline
from privet.plan import Plan
from privet.plan.plan import check_budget
from privet.preprocessing.tails import Tails
from privet.privacy import Budget, Neighbours
from privet.randomness import Random


def plan_table(
    schema: Any,
    estimator: Any = None,
    *,
    records: int,
    epsilon: float | None = None,
    delta: float | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "replace_one",
    groups: str | None = None,
    bounds_exact: bool = False,
    tails: Tails = "clip",
    count_usable: bool = True,
    account: Any = None,
) -> Plan:
    """What `fit_table` will release on a table of `records` rows (or people, with `groups`); no table is opened.

    Parameters are those of `fit_table`. With an `account`, which is not charged here, there are noisy sums alone.

    Examples
    --------
    >>> from privet.preprocessing import Number, Schema, Target
    >>> schema = Schema(columns={"age": Number()}, target=Target(column="ill", kind="label", values=("no", "yes")))
    >>> plan_table(schema, records=4000, epsilon=1, delta=1e-6).names
    ('ranges: octaves', 'ranges: bins', 'usable targets', 'usable records', 'norms', 'mean', 'centred norms',
     'second moment 1', 'whitened norms 1', 'second moment 2', 'whitened norms 2', 'gradients', 'calibration')
    """
    model = TableModel(
        schema,
        estimator,
        **_budget(budget, epsilon, delta),
        neighbours=neighbours,
        records=records,
        groups=groups,
        bounds_exact=bounds_exact,
        tails=tails,
        count_usable=count_usable,
        account=account,
    )
    return table_outline(model._task(), records).outline.plan


def fit_table(
    table: Any,
    schema: Any,
    estimator: Any = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "replace_one",
    records: int | None = None,
    groups: str | None = None,
    bounds_exact: bool = False,
    tails: Tails = "clip",
    count_usable: bool = True,
    account: Any = None,
    random: Random | None = None,
) -> TableModel:
    """Train a linear model on a private table, all of it out of one budget.

    What the schema leaves open, ranges and code books, is learnt privately, for 3 to 25 % of the budget: the less, the
    more records there are. So are ranges inside those that the schema declares, which may thus be wide, where there are
    enough records; `schema_` of the model is what was learnt. Where next to nothing can be told, only the target is
    looked at, and the model is a constant, as the warning `SmallEffectiveSample` says.

    A target of labels gets logistic regression, one of numbers least squares, one of counts Poisson regression: the
    estimators of those names, with the schema's ranges as their `bounds`; or the estimator that is given, with its
    parameters.

    How many records the schema can read is counted with noise, for at most 3 % of the budget and mostly a few per mille
    (`count_usable=False` to leave it out). Where next to none can be read, as of labels that are spelt otherwise, the
    warning `SchemaMisfit` names the column.

    Promise: the guarantee covers everything that was learnt and meets the budget; what is released is `plan_table`'s.

    Parameters
    ----------
    table : a data frame, dict of columns or list of dicts; or CSV or Parquet files, by their path or as
        `privet.engines.Files`, which are never in memory whole; private
    schema : the public facts, with a target; or the path of a schema file
    estimator : which model, with its own parameters, e.g. `HuberRegressor(alpha=1.0)`; what the schema says (ranges,
        classes) and what stands below is set by them
    epsilon, delta : what the model shall satisfy, or both as a `budget`; if left out, the estimator's
    neighbours : which two tables must look alike
    records : under "add_remove", a public guess of the number of rows, or of people
    groups : the column that says whose row it is, which is then no feature; the guarantee is for a person with all rows
    bounds_exact : whether declared ranges are to be used as they are; else narrower ones may be learnt inside
    tails : "clip", or "bend": then columns whose range is learnt and that have a long tail get a second, bent one, as
        `bent` of the model says
    count_usable : whether to count, with noise, how many records the schema can read; not with `groups`
    account : a `privet.ledger.Account` to reserve the plan from
    random : the system's, unless for a test; a fixed seed invalidates the guarantee

    Examples
    --------
    >>> from privet.preprocessing import Category, Number, Schema, Target
    >>> table = {"age": [20, 60] * 2000, "job": ["baker", "smith"] * 2000, "ill": ["no", "yes"] * 2000}
    >>> schema = Schema(columns={"age": Number(low=0, high=100), "job": Category(values=("baker", "smith"))},
    ...                 target=Target(column="ill", kind="label", values=("no", "yes")))
    >>> model = fit_table(table, schema, epsilon=1, delta=1e-6)
    >>> model.predict({"age": [20, 60], "job": ["baker", "smith"]}).tolist(), model.guarantee.epsilon <= 1
    (['no', 'yes'], True)
    """
    model = TableModel(
        schema,
        estimator,
        **_budget(budget, epsilon, delta),
        neighbours=neighbours,
        records=records,
        groups=groups,
        bounds_exact=bounds_exact,
        tails=tails,
        count_usable=count_usable,
        account=account,
    )
    with task():
        return model._fit(table, random)


def _budget(budget: Budget | None, epsilon: float | None, delta: float | None) -> dict[str, Any]:
    if budget is None:
        return {"epsilon": epsilon, "delta": delta}
    if epsilon is not None or delta is not None:
        raise InvalidParameter(
            "Expected a budget, or epsilon and delta, got both: which of them may be spent? Keep one."
        )
    check_budget(budget)
    return {"epsilon": budget.epsilon, "delta": budget.delta}
