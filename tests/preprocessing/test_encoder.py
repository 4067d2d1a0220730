from __future__ import annotations

import math
import pickle
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from privet.data.cells import number_of
from privet.errors import InvalidParameter
from privet.preprocessing import Category, Number, Schema, TableEncoder, Target
from privet.preprocessing.encoding import row_scale
from privet.preprocessing.scaling import scaling_from

SCHEMA = Schema(
    columns={
        "age": Number(low=17, high=90, missing="indicator"),
        "gain": Number(low=0, high=99999, log=True),
        "job": Category(values=("baker", "smith"), missing="indicator"),
        "sex": Category(values=("f", "m")),
    },
    target=Target(column="y", kind="label", values=("no", "yes")),
    ignored=("id",),
)
SECRETS: list[Any] = ["Jane Doe", "4929-1234", "<script>", 31337, -31337.5, math.inf, None, [31337], {"Jane Doe": 1}]
cell = st.one_of(st.sampled_from([*SECRETS, "f", "baker", "40"]), st.floats(), st.integers(), st.text(max_size=3))
records = st.fixed_dictionaries(dict.fromkeys(SCHEMA.columns, cell))


def exact_norm_squared(row: Any) -> Fraction:
    return sum((Fraction(float(value)) ** 2 for value in row), Fraction(0))


@given(rows=st.lists(records, min_size=1, max_size=5))
def test_no_row_is_longer_than_one_exactly(rows: list[dict[str, Any]]) -> None:
    """Whatever the cells, every row's norm is at most 1 in exact arithmetic, intercept included; nothing warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = TableEncoder(SCHEMA).transform(rows)
    assert np.isfinite(found).all()
    assert all(exact_norm_squared(row) <= 1 for row in found)


def test_the_scale_is_the_largest_that_keeps_the_norm() -> None:
    """(columns + 1)·scale² ≤ 1 exactly, and the next float breaks it. Mutant: 1/√(columns + 1) rounded to nearest."""
    for columns in [*range(1, 2000), 4095, 10**6]:
        scale = row_scale(columns)
        assert Fraction(scale) ** 2 * (columns + 1) <= 1
        assert Fraction(math.nextafter(scale, 1.0)) ** 2 * (columns + 1) > 1


@pytest.mark.parametrize("low", [2.0**52, -(2.0**52) - 3, 1e308])
def test_no_row_is_longer_than_one_where_a_range_is_a_few_floats(low: float) -> None:
    """The middle of such a range is rounded; its ends go to [-1, 1] all the same. Mutant: no clip after scaling."""
    ends = (low, max(low + 3, math.nextafter(low, math.inf)))
    found = TableEncoder(Schema(columns={"a": Number(low=ends[0], high=ends[1])})).transform({"a": list(ends)})
    assert all(exact_norm_squared(row) <= 1 for row in found)


def test_mutant_rounded_scale_is_caught() -> None:
    """Rounding to nearest gives rows longer than 1 for many numbers of columns; the test above would see it."""
    assert any(Fraction(1 / math.sqrt(d + 1)) ** 2 * (d + 1) > 1 for d in range(1, 200))


@given(rows=st.lists(records, min_size=1, max_size=5), other=records, place=st.integers(0, 4))
def test_a_row_depends_on_its_own_record_only(rows: list[dict[str, Any]], other: dict[str, Any], place: int) -> None:
    """D against D': changing one record leaves the bits of all other rows, and the width, as they are."""
    place = min(place, len(rows) - 1)
    changed = [*rows[:place], other, *rows[place + 1 :]]
    one, two = (TableEncoder(SCHEMA).transform({n: [r[n] for r in d] for n in SCHEMA.columns}) for d in (rows, changed))
    keep = np.arange(len(rows)) != place
    assert one.shape == two.shape
    assert np.array_equal(one[keep], two[keep])


@given(rows=st.lists(records, max_size=5))
def test_csr_rows_are_the_dense_ones(rows: list[dict[str, Any]]) -> None:
    """The sparse form holds the same numbers, with sorted indices."""
    dense, found = TableEncoder(SCHEMA).transform(rows), TableEncoder(SCHEMA, as_csr=True).transform(rows)
    assert sparse.issparse(found)
    assert found.has_sorted_indices
    assert np.array_equal(found.toarray(), dense)


def test_values_go_where_the_schema_says() -> None:
    """Numbers by range and log1p, clipped, 0 staying 0 where it is in range; names by code book; missing to zeros."""
    encoder = TableEncoder(SCHEMA)
    assert encoder.get_feature_names_out().tolist() == [
        "age", "age is missing", "gain", "job=baker", "job=smith", "job is missing", "sex=f", "sex=m", "(constant)"
    ]  # fmt: skip
    table = {"age": [17, 200, "x"], "gain": [0, 99999, 99], "job": ["smith", "tinker", None], "sex": ["f", "m", "?"]}
    rows = encoder.transform(table) / encoder.scale
    middle = math.log1p(99) / math.log1p(99999)
    expected: list[list[float]] = [
        [-1, 0, 0, 0, 1, 0, 1, 0, 1],
        [1, 0, 1, 0, 0, 1, 0, 1, 1],
        [0, 1, middle, 0, 0, 1, 0, 0, 1],
    ]
    np.testing.assert_allclose(rows, expected, atol=1e-12)


@given(rows=st.lists(records, min_size=1, max_size=5))
def test_features_in_their_own_units_are_the_same_features(rows: list[dict[str, Any]]) -> None:
    """`features`, within `bounds` and scaled as the estimators scale them, are the encoded rows; NaN where missing."""
    encoder = TableEncoder(SCHEMA)
    found, (low, high) = encoder.features(rows), encoder.bounds
    known = ~np.isnan(found)
    assert ((found >= low) & (found <= high))[known].all()
    scaled = scaling_from(encoder.bounds, found.shape[1], intercept=False).features(found)
    assert np.array_equal(scaled * encoder.scale, encoder.transform(rows)[:, :-1])


@pytest.mark.parametrize("secret", SECRETS)
def test_no_cell_is_ever_quoted(secret: Any) -> None:
    """Bad cells anywhere raise and warn nothing; errors on public facts beside them quote no cell.

    See docs/footguns.md, 44.
    """
    column = [secret, secret]
    table = dict.fromkeys((*SCHEMA.columns, "y"), column)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = TableEncoder(SCHEMA)
        encoder.fit(table).transform(table)
        encoder.encode_target(table)
        encoder.encode_target(column)
    wrong: list[Any] = [
        dict.fromkeys(("job", "sex"), column),
        {**table, "age": [secret]},
        {**table, "age": np.array([[1.0, 2.0], [2.0, 3.0]])},
        {**table, "surprise": column},
    ]
    for bad in wrong:
        with pytest.raises(InvalidParameter) as caught:
            TableEncoder(SCHEMA, extra="refuse").transform(bad)
        for text in ("Jane Doe", "4929", "script", "31337"):
            assert text not in str(caught.value)
        assert caught.value.__cause__ is None


def test_long_tables_are_encoded_cell_by_cell() -> None:
    """Over several blocks of rows, of every kind of column, features are what each cell alone says."""
    count = 9_001
    rng = np.random.default_rng(4)
    strided = rng.normal(0, 3, (count, 2))
    strided[[0, 4_095, 4_096, 9_000], 0] = np.inf, -np.inf, np.nan, 1e300
    odd: list[Any] = rng.normal(0, 3, count).tolist()
    odd[5:8] = ["1.5", "Jane Doe", 10**400]
    table: dict[str, Any] = {
        "strided": strided[:, 0],
        "whole": rng.integers(-9, 9, count),
        "job": rng.choice(["baker", "smith", "Jane Doe"], count),
        "short": np.append(rng.normal(0, 3, count - 1), np.inf).astype(np.float32),
        "log": np.abs(strided[:, 1]),
        "true": rng.random(count) < 0.5,
        "gone": np.where(rng.random(count) < 0.1, np.inf, strided[:, 1]),
        "odd": odd,
    }
    kinds: dict[str, Any] = {"job": Category(values=("baker", "smith")), "log": Number(low=0, high=5, log=True)}
    kinds["gone"] = Number(low=-4, high=4, missing="indicator")
    schema = Schema(columns={name: kinds.get(name, Number(low=-4, high=4)) for name in table})
    before = strided.copy()
    found = TableEncoder(schema).features(table)
    names = TableEncoder(schema).get_feature_names_out().tolist()[:-1]
    for name, cells in table.items():
        numbers = np.array([number_of(cell) for cell in list(cells)])
        if name == "job":
            wanted = np.array([[cell == "baker", cell == "smith"] for cell in cells], dtype=np.float64)
        elif name == "log":
            wanted = np.log1p(np.clip(numbers, 0, 5))[:, None]
        else:
            wanted = np.clip(numbers, -4, 4)[:, None]
        if name == "gone":
            wanted = np.column_stack([wanted, np.isnan(numbers)])
        place = next(j for j, feature in enumerate(names) if feature.startswith(name))
        np.testing.assert_array_equal(found[:, place : place + wanted.shape[1]], wanted)
    np.testing.assert_array_equal(strided, before)


def test_extra_columns_are_ignored_or_refused_by_name() -> None:
    """A column that the schema does not mention is passed over, or refused with its name; ignored ones never are."""
    table = {**{name: ["1"] for name in SCHEMA.columns}, "id": [1], "y": ["no"]}
    TableEncoder(SCHEMA, extra="refuse").fit(table)
    TableEncoder(SCHEMA).fit({**table, "Age": [1]})
    with pytest.raises(InvalidParameter, match="'Age'"):
        TableEncoder(SCHEMA, extra="refuse").transform({**table, "Age": [1]})


def test_fit_reads_no_row() -> None:
    """Fitting looks at the header only: cells that explode when touched are left alone."""

    class Bomb:
        def __float__(self) -> float:
            raise AssertionError

        __str__ = __repr__ = __hash__ = __eq__ = __float__  # type: ignore[assignment]

    TableEncoder(SCHEMA).fit({name: [Bomb()] for name in SCHEMA.columns})


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (TableEncoder("people.toml"), "read_schema"),  # type: ignore[arg-type]
        (TableEncoder(SCHEMA, extra="drop"), "'ignore'"),  # type: ignore[arg-type]
        (TableEncoder(Schema(columns={"age": Number()})), "'age'"),
    ],
)
def test_public_mistakes_are_refused(encoder: TableEncoder, message: str) -> None:
    """A schema that is none, is incomplete, or an option that does not exist."""
    with pytest.raises(InvalidParameter, match=message):
        encoder.fit({"age": [1]})
    with pytest.raises(InvalidParameter, match="target"):
        TableEncoder(Schema(columns={"age": Number(low=0, high=1)})).encode_target(["a"])


def test_it_is_a_transformer_like_others() -> None:
    """Clone, pickle, parameters, a pipeline, and named output frames."""
    encoder = TableEncoder(SCHEMA, as_csr=True)
    table = pd.DataFrame({"age": [20, 80], "gain": [0, 9], "job": ["baker", "smith"], "sex": ["f", "m"]})
    for copy in (clone(encoder), pickle.loads(pickle.dumps(encoder))):
        assert copy.get_params()["schema"] == SCHEMA
        assert np.array_equal(copy.transform(table).toarray(), encoder.transform(table).toarray())
    framed = TableEncoder(SCHEMA).set_output(transform="pandas").fit_transform(table)
    assert framed.columns.tolist() == encoder.get_feature_names_out().tolist()
    fitted = make_pipeline(encoder, LogisticRegression()).fit(table, [0, 1])
    assert fitted.predict(table).tolist() == [0, 1]
    assert encoder.row_norm == 1.0
