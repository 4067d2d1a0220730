"""Record and replay: what one odd record can change is what was paid for, through every door and every fit.

A fit on a table is recorded: each sum as it reaches the meter, without noise, and the noisy answer. The fit on a
neighbouring table, one record of which is as odd as can be, gets the same answers. Then each sum may differ by the l2
sensitivity that its release was charged for, and nothing else may differ at all: no error, no warning, no attribute.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime as dt
import enum
import io
import math
import random
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from privet import Budget, glm
from privet.clipping import Bounding
from privet.data import columns as columns_module
from privet.data import csv_files as csv_module
from privet.data import floats as floats_module
from privet.data import people as people_module
from privet.data.cells import Names, Numbers, Reader
from privet.data.times import Times, seconds_in
from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    fit_table,
)
from privet.estimators import linear as linear_module
from privet.estimators import table_outline as table_module
from privet.estimators.outline import outlined
from privet.plan import Meter, Plan
from privet.plan.influence import Computed
from privet.preprocessing import (
    Category,
    Date,
    Number,
    Schema,
    Target,
    learn_schema,
    private_categories,
    private_moments,
    private_ranges,
)
from privet.privacy import sensitivity_factor
from privet.randomness import fixed_seed_invalidates_guarantee
from privet.solvers import FixedHessian, solve

ROWS = 30


class Colour(enum.IntEnum):
    RED = 7


MORE: list[Any] = [
    0, 1, -1, 2**53 + 1, 2**63, -0.0, 1e-320, 1e308, -1e308, "1e999", "0x10", "nan", "-1", "7", "1_0", "½", "", "\x00",
    "a,b", '"', 'a"b', '"a', "a\nb", "a\r\nb\r", "\u2028", "x" * 3000, '"\n1,1,a,no,1\n' * 40, "=1+1", "\ud800",
    b"7", b"\xff", np.str_("7"), np.bytes_(b"1"), np.int8(1), np.float16(2), np.longdouble(1) / 3, np.complex64(1),
    np.void(b"x"), np.array(1.0), np.array([[1.0]]), [], [[]], [1], ["no"], [None], (), {1}, {"a": 1}, range(1),
    dt.timedelta(1), dt.time(1), uuid.UUID(int=7), Colour.RED, Colour, ..., NotImplemented, math.sin, pd.Timedelta(1),
    pd.Interval(0, 1), pd.Series([1.0]), np.ma.masked, np.datetime64("NaT"), memoryview(b"1"), iter([1]),
]  # fmt: skip
"""More odd cells, to those of conftest.py."""

DATES: list[Any] = [
    "2020-02-30", "1995-05-05T25:00", "1995-05-05", dt.date.max, dt.datetime(1, 1, 1, tzinfo=dt.UTC), pd.Timestamp.max,
    np.datetime64("99999999-01"), dt.datetime(1995, 5, 5), pd.NaT,
]  # fmt: skip
"""And more, where there is a column of dates."""


# -- the tape --------------------------------------------------------------------------------------------------------


def allowed(meter: Meter, name: str, computed: float) -> float:
    """How far one record may move the next release of that name, in l2 norm: what it was charged for."""
    bound, relation = meter.plan[name].bound, meter.plan.neighbours
    if isinstance(bound, Computed):
        return computed * bound.sensitivity(relation)
    if isinstance(bound, Bounding):
        return meter.rule(name).clip * sensitivity_factor(relation)
    return bound.sensitivity(relation)


class Tape:
    """The sums of a run and their noisy answers; played to another run, it compares the sums and gives the answers."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, Any, Any]] = []
        self.place: int | None = None
        self.ranked: list[list[str]] = []

    def release(self, meter: Meter, name: str, units: Any, step: float, reach: float, answer: Any) -> Any:
        keyed = self._keyed(meter, name, units)
        if self.place is None:
            self.entries.append((name, keyed, self._keyed(meter, name, answer)))
            return answer
        before, sums, answers = self.entries[self.place]
        self.place += 1
        assert before == name
        assert len(keyed) == len(sums) or isinstance(keyed, dict)
        moved = sum((keyed.get(k, 0) - sums.get(k, 0)) ** 2 for k in {**keyed, **sums})
        assert moved * Fraction(step) ** 2 <= Fraction(reach) ** 2 * (1 + Fraction(2) ** -40), (name, reach)
        found = [answers.get(k, 0.0) for k in keyed]
        return np.array(found, dtype=np.float64).reshape(np.shape(answer))

    def _keyed(self, meter: Meter, name: str, values: Any) -> dict[Any, Any]:
        """By place; counts of names by column and name, as the names of two tables need not be the same."""
        flat = np.asarray(values).reshape(-1).tolist()
        if name != "counts of names":
            return dict(enumerate(flat))
        columns = self.ranked[-meter.plan[name].bound.columns :]  # type: ignore[union-attr]
        keys = [(column, text) for column, names in enumerate(columns) for text in names]
        return dict(zip(keys, flat, strict=True))


@contextmanager
def taped(tape: Tape) -> Iterator[None]:
    """All releases of all meters go through the tape; of each person's rows the first is drawn."""
    usual = {name: getattr(Meter, name) for name in ("noisy", "noisy_symmetric", "noisy_counts", "noisy_units")}
    ranked = Names.ranked

    def sums(method: str) -> Any:
        def noisy(self: Meter, name: str, total: Any) -> Any:
            reach = allowed(self, name, total.clip)
            answer = usual[method](self, name, total)
            return tape.release(self, name, total.units, total.step, reach, answer)

        return noisy

    def noisy_counts(self: Meter, name: str, units: Any, *, unit: float = 1.0) -> Any:
        answer = usual["noisy_counts"](self, name, units, unit=unit)
        return tape.release(self, name, units, unit, allowed(self, name, 1.0), answer)

    def noisy_units(self: Meter, name: str, units: Any, *, step: float, sensitivity: float) -> Any:
        answer = usual["noisy_units"](self, name, units, step=step, sensitivity=sensitivity)
        return tape.release(self, name, units, step, allowed(self, name, sensitivity), answer)

    def listed(self: Names, codes: Any) -> Any:
        found = ranked(self, codes)
        tape.ranked.append(found[0])
        return found

    with pytest.MonkeyPatch.context() as patch:
        for method in ("noisy", "noisy_symmetric"):
            patch.setattr(Meter, method, sums(method))
        patch.setattr(Meter, "noisy_counts", noisy_counts)
        patch.setattr(Meter, "noisy_units", noisy_units)
        patch.setattr(Names, "ranked", listed)
        patch.setattr(people_module, "integers_below", lambda _, __, count: np.zeros(count, dtype=np.int64))
        yield


def outcome(run: Callable[[], Any], tape: Tape) -> tuple[Any, list[str]]:
    """What a run returns, in full, or raises; and what it warns of."""
    with taped(tape), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = shown(run())
        except Exception as error:  # noqa: BLE001  # whatever it is, it is an output
            found = (type(error).__name__, str(error), str(error.__context__))
    return found, [str(one.message) for one in said]


def shown(value: Any) -> Any:
    """A result with all of its attributes, public or not, in a form that can be compared."""
    if isinstance(value, np.ndarray):
        return value.shape, str(value.dtype), value.tobytes() if value.dtype != object else value.tolist()
    if isinstance(value, dict):
        return {str(key): shown(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [shown(part) for part in value]
    if hasattr(value, "get_params"):
        return type(value).__name__, shown({k: v for k, v in vars(value).items() if k != "account"})
    if dataclasses.is_dataclass(value):
        return type(value).__name__, {f.name: shown(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return repr(value)


# -- tables and their neighbours ---------------------------------------------------------------------------------------


def clean(draw: random.Random, target: str) -> dict[str, list[Any]]:
    """Numbers, names, a target, weights, and whose rows they are."""
    age = [draw.uniform(-4, 4) for _ in range(ROWS)]
    dues = [draw.randrange(-3, 9) for _ in range(ROWS)]
    job = [draw.choice(["a", "b", "c"]) for _ in range(ROWS)]
    scores = [a - d / 3 + draw.gauss(0, 1) for a, d in zip(age, dues, strict=True)]
    y: dict[str, list[Any]] = {
        "two": [int(s > 0) for s in scores],
        "texts": ["yes" if s > 0 else "no" for s in scores],
        "three": [int(s > 0) + int(s > 1) for s in scores],
        "number": scores,
        "count": [int(abs(s)) for s in scores],
    }
    weight = [draw.choice([0.5, 1.0, 2]) for _ in range(ROWS)]
    who = [10**17 + i // 2 for i in range(ROWS)]  # which floats would merge
    found: dict[str, list[Any]] = {
        "age": age,
        "dues": dues,
        "job": job,
        "y": y.get(target, y["texts"]),
        "weight": weight,
        "who": who,
    }
    if target == "dated":
        found["born"] = [dt.datetime(1990, 1, 1) + dt.timedelta(hours=draw.randrange(10**5)) for _ in range(ROWS)]
    return found


def changed(columns: dict[str, list[Any]], place: int, record: dict[str, Any], relation: str) -> dict[str, list[Any]]:
    """The table with another record in that place; under "add_remove", with one more there."""
    after = place if relation == "add_remove" else place + 1
    return {name: [*cells[:place], record[name], *cells[after:]] for name, cells in columns.items()}


def odd_record(draw: random.Random, zoo: list[Any], columns: dict[str, list[Any]], place: int, relation: str) -> Any:
    """A record of which some cells, or all, are odd; zeroed out, all are missing. Unless added, it is its person's."""
    record = {name: None if relation == "zero_out" else draw.choice(cells) for name, cells in columns.items()}
    record["who"] = columns["who"][place] if relation != "add_remove" else 10**17 + 999
    if relation == "zero_out":
        return record
    names = [name for name in columns if name != "who" or relation == "add_remove"]
    for name in draw.sample(names, draw.randint(1, len(names))):
        record[name] = draw.choice(zoo)
    return record


def plain(kind: type, cells: list[Any]) -> list[Any]:
    """The cells that a column of declared numbers or texts can hold; None for the others."""
    return [cell if type(cell) is kind or (kind is float and type(cell) is int) else None for cell in cells]


def held(cells: list[Any]) -> Any:
    array = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        array[i] = cell
    return array


def objects(cells: list[Any]) -> pl.Series:
    """As polars has it, which looks at some cells itself: what raises then is left out."""
    try:
        return pl.Series(cells, dtype=pl.Object)
    except RuntimeError:
        return pl.Series([None if type(cell).__name__ == "Hostile" else cell for cell in cells], dtype=pl.Object)


def floats(cells: list[Any]) -> Any:
    return np.array([float(c) if type(c) in (int, float) and abs(c) < 2.0**1000 else math.nan for c in cells])


def typed(cells: list[Any], clean: list[Any]) -> pa.Array:
    """As pyarrow has it: the type is that of the clean cells, and what does not fit is null."""
    kind = {float: pa.float64(), int: pa.int64(), str: pa.string(), dt.datetime: pa.timestamp("us")}[type(clean[0])]
    found = []
    for cell in plain(type(clean[0]), cells):
        try:
            found.append(pa.scalar(cell, type=kind))
        except (pa.ArrowException, OverflowError, UnicodeError):
            found.append(pa.scalar(None, type=kind))
    return pa.array([one.as_py() for one in found], type=kind)


def arrow(columns: dict[str, list[Any]], clean: dict[str, list[Any]]) -> pa.Table:
    return pa.table({name: typed(cells, clean[name]) for name, cells in columns.items()})


def parquet(columns: dict[str, list[Any]], clean: dict[str, list[Any]]) -> Any:
    file = io.BytesIO()
    pq.write_table(arrow(columns, clean), file)
    file.seek(0)
    return file


FRAMES: dict[str, Callable[[Any, Any], Any]] = {
    "pandas of objects": lambda t, c: pd.DataFrame({n: pd.Series(held(x), dtype=object) for n, x in t.items()}),
    "polars of objects": lambda t, c: pl.DataFrame([objects(x).alias(n) for n, x in t.items()]),
    "pandas, nullable": lambda t, c: arrow(t, c).to_pandas(
        types_mapper={pa.float64(): pd.Float64Dtype(), pa.int64(): pd.Int64Dtype(), pa.string(): pd.StringDtype()}.get
    ),
    "pandas, arrow": lambda t, c: arrow(t, c).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda t, c: pl.DataFrame(arrow(t, c)),
    "pyarrow": arrow,
    "parquet by pyarrow": lambda t, c: pq.read_table(parquet(t, c)),
    "parquet by pandas": lambda t, c: pd.read_parquet(parquet(t, c), dtype_backend="numpy_nullable"),
    "parquet by polars": lambda t, c: pl.read_parquet(parquet(t, c)),
}


def csv_file(path: Path, columns: dict[str, list[Any]]) -> Path:
    def printed(cell: Any) -> Any:
        try:
            return "" if cell is None else str(cell)
        except RuntimeError:
            return "Jane Doe"

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[printed(cell) for cell in row] for row in zip(*columns.values(), strict=True)])
    path.write_bytes(text.getvalue().encode("utf-8", errors="surrogatepass"))
    return path


# -- what is run -------------------------------------------------------------------------------------------------------

MODELS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "logistic": (LogisticRegression, "two", {"classes": [0, 1]}),
    "texts": (LogisticRegression, "texts", {"classes": ["no", "yes"], "class_weight": "balanced"}),
    "multinomial": (LogisticRegression, "three", {"classes": [0, 1, 2]}),
    "hinge": (LinearSVC, "two", {"classes": [0, 1]}),
    "linear": (LinearRegression, "number", {}),
    "bounded linear": (LinearRegression, "number", {"target_range": (-3, 3)}),
    "ridge": (Ridge, "number", {}),
    "huber": (HuberRegressor, "number", {"target_range": (-3, 3)}),
    "poisson": (PoissonRegressor, "count", {}),
    "quantile": (QuantileRegressor, "number", {}),
}


def without_draws(kind: Any) -> Any:
    """A tape plays sums; exact draws have their own in tests/estimators/test_transcripts.py."""
    return type(kind.__name__, (kind,), {"_draws": False})


def fit_model(table: Any, original: Any, draw: random.Random, name: str, relation: Any, whole: Any) -> Any:
    """An estimator on arrays, lists or frames; `whole`, if given, is a place and what stands there for a row."""
    kind, _, settings = MODELS[name]
    extra = draw.choice(["", "", "weight", "who"]) if name != "texts" else ""
    form = draw.choice(["list", "tuple", "array", "floats", "sparse", *FRAMES])
    model = without_draws(kind)(draw.choice([0.03, 1.0, 60.0]), 1e-6, neighbours=relation, max_iter=2, random_state=1)
    model.set_params(bounds=draw.choice([None, (-4, 4), ([-4, -3], [4, 9])]), **settings)
    if relation == "add_remove":
        model.set_params(records=ROWS)
    if extra == "weight":
        model.set_params(max_weight=2.0)
    x = {column: table[column] for column in ("age", "dues")}
    rows: Any
    if form in ("list", "tuple"):
        rows = [list(row) for row in zip(*x.values(), strict=True)]
        if whole is not None:
            rows[whole[0]] = whole[1]
        rows = tuple(rows) if form == "tuple" else rows
    elif form == "array":
        rows = np.column_stack([held(cells) for cells in x.values()])
    elif form in ("floats", "sparse"):
        rows = np.column_stack([floats(cells) for cells in x.values()])
        rows = sparse.csr_array(rows) if form == "sparse" else rows
    else:
        rows = FRAMES[form](x, original)
    columns = {n: column_form(draw, table[n], original[n]) for n in ("y", "weight", "who")}
    given = {} if not extra else {"sample_weight" if extra == "weight" else "groups": columns[extra]}
    return model.fit(rows, columns["y"], **given)


def fit_glm(table: Any, original: Any, draw: random.Random, name: str, relation: Any, whole: Any) -> Any:
    """A problem of arrays, lists or frames, and a solver."""
    x = {column: table[column] for column in ("age", "dues")}
    form = draw.choice(["list", *FRAMES])
    rows = [list(row) for row in zip(*x.values(), strict=True)] if form == "list" else FRAMES[form](x, original)
    if form == "list" and whole is not None:
        rows[whole[0]] = whole[1]
    groups = column_form(draw, table["who"], original["who"]) if draw.random() < 0.3 else None
    y = column_form(draw, table["y"], original["y"])
    problem = glm({"two": "logistic", "number": "half_squared"}[name], rows, y, row_norm=2.0, groups=groups)
    return solve(
        FixedHessian(steps=2, clip=1.0),
        problem,
        budget=Budget(epsilon=5, delta=1e-6),
        neighbours=relation,
        records=ROWS if relation == "add_remove" else None,
        random=fixed_seed_invalidates_guarantee(1),
    )


def use_table(table: Any, original: Any, draw: random.Random, name: str, relation: Any, folder: Path) -> Any:
    """Preprocessing, or a fit, on a table with named columns: a dict, rows, a frame or a file."""
    form = draw.choice(["dict", "rows", "csv", "csv", *FRAMES])
    if form == "dict":
        data: Any = table
    elif form == "rows":
        data = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    else:
        data = csv_file(folder / "table.csv", table) if form == "csv" else FRAMES[form](table, original)
    numbers = {"age": (-4.0, 4.0), "dues": (-3.0, 9.0)}
    common: dict[str, Any] = {"neighbours": relation, "random": fixed_seed_invalidates_guarantee(1)}
    budget = Budget(epsilon=20, delta=1e-6)
    if name == "ranges":
        return private_ranges(data, columns=list(numbers), noise_multiplier=1.0, **common)
    if name == "moments":
        return private_moments(data, ranges=numbers, noise_multiplier=1.0, **common)
    if name == "names":
        return private_categories(data, columns=["job", "y"], noise_multiplier=0.5, threshold_delta=1e-9, **common)
    known = draw.random() < 0.5
    facts: dict[str, Any] = {n: Number(low=low, high=high) if known else Number() for n, (low, high) in numbers.items()}
    target: dict[str, Any] = {
        "texts": {"kind": "label", "values": ("no", "yes")},
        "number": {"kind": "number", "low": -3, "high": 3},
        "count": {"kind": "count", "low": 0, "high": 9},
    }
    facts["job"] = Category(values=("a", "b"), missing="indicator") if known else Category()
    if "born" in table:
        parts: Any = draw.choice([(), ("season", "weekday"), ("month", "hour")])
        facts["born"] = Date(low="1991-01-01", high="2000-12-31", parts=parts, missing="indicator")
    fact = target.get(name, target["texts"])
    if not known and name in ("number", "count"):
        fact = {"kind": fact["kind"]}
    schema = Schema(columns=facts, target=Target(column="y", **fact))
    whose = draw.choice([None, "who"])
    if name == "learn":
        open_schema = Schema(columns={"age": Number(), "job": Category()}, target=schema.target)
        return learn_schema(data, open_schema, budget=budget, groups=whose, **common)
    model = {"number": LinearRegression, "count": PoissonRegressor}.get(name, LogisticRegression)
    records = ROWS if relation == "add_remove" else None
    given = without_draws(model)()
    return fit_table(data, schema, given, budget=budget, groups=whose, records=records, **common)


def column_form(draw: random.Random, cells: list[Any], original: list[Any]) -> Any:
    form = draw.choice(["list", "tuple", "array", "pandas", "polars", "arrow", "nullable", "typed polars"])
    exact: Any = typed(cells, original) if form in ("arrow", "nullable", "typed polars") else None
    if isinstance(original[0], str) and form in ("nullable", "typed polars"):
        form = "arrow"
    made: dict[str, Callable[[], Any]] = {
        "list": lambda: cells,
        "tuple": lambda: tuple(cells),
        "array": lambda: held(cells),
        "pandas": lambda: pd.Series(held(cells), dtype=object),
        "polars": lambda: objects(cells),
        "arrow": lambda: exact,
        "nullable": lambda: exact.to_pandas(types_mapper=pd.ArrowDtype),
        "typed polars": lambda: pl.Series(exact),
    }
    return made[form]()


TABLES = {"ranges": "number", "moments": "number", "names": "texts", "learn": "texts", "texts": "texts"}
TABLES |= {"number": "number", "count": "count", "dated": "dated"}
CASES: list[tuple[Any, str, str]] = [
    *((fit_model, name, target) for name, (_, target, _) in MODELS.items()),
    *((fit_glm, name, name) for name in ("two", "number")),
    *((use_table, name, target) for name, target in TABLES.items()),
]


ZEROED = [case for case in CASES if case[0] is fit_glm or case[1] in ("ranges", "moments", "names", "learn")]
"""For the others, tests/estimators/test_empty_record.py has the law of a record that is zeroed out."""


def compare(case: Any, seed: int, zoo: list[Any], folder: Path, neighbours: int = 4) -> int:
    """One clean table, recorded once, and several neighbours of it; how many were compared."""
    run, name, target = case
    draw = random.Random(f"{run.__name__} {name} {seed}")
    original, settings = clean(draw, target), draw.random()
    zoo = [*zoo, *DATES] if target == "dated" else zoo
    relation = draw.choice(["replace_one", "add_remove", *(["zero_out"] if case in ZEROED else [])])
    whole_row = run is not use_table and draw.random() < 0.2
    if relation == "zero_out":  # where a person is emptied, with all rows: of two, one emptied is another person
        original["who"] = [10**17 + i for i in range(ROWS)]

    def play(table: Any, place: int | None, tape: Tape) -> Any:
        last = folder if run is use_table else (place, draw.choice(zoo)) if whole_row and place is not None else None
        return outcome(lambda: run(table, original, random.Random(settings), name, relation, last), tape)

    tape = Tape()
    expected = play(original, None, tape)
    assert tape.entries, expected  # a clean table is not refused
    assert len(expected[0]) == 2, expected
    for _ in range(neighbours):
        place = draw.choice([0, ROWS - 1, draw.randrange(ROWS)])
        record = odd_record(draw, zoo, original, place, relation)
        tape.place, tape.ranked = 0, []
        found = play(changed(original, place, record, relation), place, tape)
        assert found == expected
        assert tape.place == len(tape.entries)
    return neighbours


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans, which follow from public facts, are made once for each: nine tenths of the time of a small fit."""

    def memo(function: Any) -> Any:
        known: dict[str, Any] = {}

        def remembering(*given: Any, **named: Any) -> Any:
            key = repr([vars(one) if hasattr(one, "get_params") else one for one in given]) + repr(named)
            if key not in known:
                known[key] = function(*given, **named)
            return known[key]

        return remembering

    for module in (linear_module, table_module):
        monkeypatch.setattr(module, "outlined", memo(outlined))
    monkeypatch.setattr(FixedHessian, "plan", memo(FixedHessian.plan))
    monkeypatch.setattr(Plan, "guarantee", memo(Plan.guarantee))


@pytest.mark.medium
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__} {case[1]}")
def test_an_odd_record_moves_what_was_paid_for(case: Any, zoo: list[Any], tmp_path: Path, remembered: None) -> None:
    """Over neighbours with odd cells, in every kind of table: nothing but sums differs, and those by their share."""
    for seed in range(3):
        compare(case, seed, [*zoo, *MORE], tmp_path)


def one_type(column: Any, name: str) -> Any:
    return np.asarray(column)


def merged(values: Any, missing: Any) -> Any:
    return np.where(missing, np.nan, values) if missing.any() else values


def unguarded(self: Any, cells: Any) -> Any:
    return np.array([self.one(cell) for cell in cells], dtype=self.dtype)


def first_width(rows: Any) -> int:
    return len(rows[0] or ())


def line_by_line(lines: Any, sep: str) -> Any:
    return (next(csv.reader([line], delimiter=sep)) for line in lines)


def all_or_nothing(self: Any, cells: Any) -> Any:
    try:
        return np.array(cells, dtype=np.float64)
    except Exception:  # noqa: BLE001
        return np.full(len(cells), np.nan)


def all_dates_or_none(self: Any, cells: Any) -> Any:
    try:
        return seconds_in(np.array(cells, dtype="M8[us]"))
    except Exception:  # noqa: BLE001
        return np.full(len(cells), np.nan)


MUTANTS: dict[str, tuple[Any, str, Any, str, int]] = {
    "one type is made of all cells": (columns_module, "_plain_cells", one_type, "fit_model logistic", 0),
    "a null makes floats of whole numbers": (columns_module, "_exact", merged, "use_table learn", 1),
    "one bad cell empties its column": (Numbers, "_objects", all_or_nothing, "fit_model texts", 0),
    "a cell may raise": (Reader, "_objects", unguarded, "fit_model hinge", 1),
    "the first row of a list tells its width": (floats_module, "usual_width", first_width, "fit_model texts", 9),
    "one bad cell empties its dates": (Times, "_objects", all_dates_or_none, "use_table dated", 3),
    "a cell of a file has a longest length": (csv_module, "_LONGEST", 2000, "use_table number", 7),
    "a record of a file is a line": (csv_module, "_rows", line_by_line, "use_table texts", 3),
}
"""What to break, and on which case and tables it is seen; each was a way in which one cell reached others."""


@pytest.mark.medium
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(
    mutant: str, zoo: list[Any], tmp_path: Path, remembered: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replay sees each of them, put back into the reader, and without it sees nothing on the same tables."""
    place, name, broken, where, seed = MUTANTS[mutant]
    case = next(case for case in CASES if f"{case[0].__name__} {case[1]}" == where)
    compare(case, seed, [*zoo, *MORE], tmp_path)
    monkeypatch.setattr(place, name, broken)
    with pytest.raises(AssertionError):
        compare(case, seed, [*zoo, *MORE], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__} {case[1]}")
def test_ten_thousand_odd_records_move_what_was_paid_for(
    case: Any, zoo: list[Any], tmp_path: Path, remembered: None
) -> None:
    """As above, with other tables: 540 pairs a case, 10,800 in all."""
    for seed in range(1000, 1060):
        compare(case, seed, [*zoo, *MORE], tmp_path, neighbours=9)
