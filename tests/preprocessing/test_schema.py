from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.errors import InvalidParameter
from privet.preprocessing import (
    Category,
    Number,
    Schema,
    Target,
    dump_schema,
    parse_schema,
    read_schema,
    schema_skeleton,
    write_schema,
)
from privet.preprocessing.missing import Missing

SHARED = """
# Several tables in one file, as benchmarks keep them.
[adult]
target = { column = "income", kind = "label", values = ["<=50K", ">50K"] }
[adult.columns]
"age" = { kind = "number", range = [17, 90] }
"capital-gain" = { kind = "number", range = [0, 99999], log = true }
"sex" = { kind = "category", values = ["Male", "Female"] }

[kdd]
target = { column = "label", kind = "label", note = "binary: normal against the rest" }
[kdd.columns]
"count" = { kind = "number", range = [0, 511] }

[diamonds]
target = { column = "price", kind = "number", range = [300, 20000], log = true }
[diamonds.columns]
"carat" = { kind = "number", range = [0.1, 5], log = true }
"""

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
levels = st.lists(names.map(str.strip).filter(bool), unique=True, max_size=4).map(tuple)
missing: st.SearchStrategy[Missing] = st.sampled_from(get_args(Missing))
ends = st.tuples(st.floats(-1e12, 1e12), st.floats(1e-3, 1e12)).filter(lambda e: e[0] + e[1] > e[0])


@st.composite
def numbers(draw: st.DrawFn) -> Number:
    if draw(st.booleans()):
        return Number(log=draw(st.booleans()), missing=draw(missing))
    low, width = draw(ends)
    return Number(low=low, high=low + width, log=low > -1 and draw(st.booleans()), missing=draw(missing))


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    column = numbers() | st.builds(Category, values=st.none() | levels, missing=missing)
    found = draw(st.lists(names, unique=True, min_size=2, max_size=6))
    target = draw(
        st.none()
        | st.builds(Target, column=st.just(found[0]), kind=st.just("label"), values=st.none() | levels)
        | st.builds(Target, column=st.just(found[0]), kind=st.just("count"), low=st.just(0), high=st.just(7))
        | st.builds(Target, column=st.just(found[0]), kind=st.just("number"), log=st.booleans())
    )
    ignored = tuple(found[1:][: draw(st.integers(0, len(found) - 2))])
    return Schema(columns={name: draw(column) for name in found[1 + len(ignored) :]}, target=target, ignored=ignored)


@pytest.mark.medium
@pytest.mark.parametrize("form", ["toml", "json"])
@given(schema=schemas())
def test_a_schema_survives_its_file(form: str, schema: Schema) -> None:
    """What is written is read back equal, order of columns included, whatever the names and numbers."""
    again = parse_schema(dump_schema(schema, form=form), form=form)
    assert again == schema
    assert list(again.columns) == list(schema.columns)


@pytest.mark.parametrize("name", ["people.toml", "people.json"])
def test_files_are_written_and_read(tmp_path: Path, name: str) -> None:
    """The ending of the name chooses the format."""
    schema = parse_schema(SHARED, table="adult")
    write_schema(schema, tmp_path / name)
    assert read_schema(tmp_path / name) == schema
    assert (tmp_path / name).read_text(encoding="utf-8").startswith("{" if name.endswith("json") else "target")


def test_the_format_of_several_tables_loads() -> None:
    """Tables under their names: ranges, logs, code books, targets; a target without values stays open."""
    adult = parse_schema(SHARED, table="adult")
    assert adult.columns["capital-gain"] == Number(low=0, high=99999, log=True)
    assert adult.columns["sex"] == Category(values=("Male", "Female"))
    assert adult.target == Target(column="income", kind="label", values=("<=50K", ">50K"))
    assert parse_schema(SHARED, table="kdd").unknown == ("label",)
    diamonds = parse_schema(SHARED, table="diamonds").target
    assert diamonds == Target(column="price", kind="number", low=300, high=20000, log=True)


def test_which_table_must_be_said() -> None:
    """Of several tables none is guessed; the refusal lists them."""
    for table in (None, "titanic"):
        with pytest.raises(InvalidParameter, match=r"adult.*diamonds.*kdd"):
            parse_schema(SHARED, table=table)
    one = "[only.columns]\na = { kind = 'number' }"
    assert parse_schema(one).unknown == ("a",)


def test_a_skeleton_needs_the_header_alone_and_is_refused_by_name() -> None:
    """Every column is asked for; as long as one is not filled in, reading names it and says what to write."""
    text = schema_skeleton(["age", 'odd "name"', "y"], target="y")
    assert 'target = { column = "y"' in text
    with pytest.raises(InvalidParameter, match=r"'age'.*kind = \"number\" with range"):
        parse_schema(text)
    filled = text.replace('"age" = { kind = "?" }', '"age" = { kind = "number" }')
    with pytest.raises(InvalidParameter, match="odd"):
        parse_schema(filled)
    filled = filled.replace('\\"" = { kind = "?" }', '\\"" = { kind = "ignored" }')
    with pytest.raises(InvalidParameter, match="target"):
        parse_schema(filled)
    schema = parse_schema(filled.replace('column = "y", kind = "?"', 'column = "y", kind = "label"'))
    assert schema.ignored == ('odd "name"',)
    assert schema.unknown == ("age", "y")
    with pytest.raises(InvalidParameter, match="header"):
        schema_skeleton(["age"], target="y")
    assert "# The column to predict is named here, and not below: target = {" in schema_skeleton(["age", "y"])


WRONG = {
    "unknown kind": '"a" = { kind = "numeric" }',
    "misspelt key": '"a" = { kind = "number", rage = [0, 1] }',
    "key of another kind": '"a" = { kind = "category", range = [0, 1] }',
    "one end": '"a" = { kind = "number", range = [0] }',
    "turned round": '"a" = { kind = "number", range = [1, 0] }',
    "no width": '"a" = { kind = "number", range = [1, 1] }',
    "infinite": '"a" = { kind = "number", range = [0, inf] }',
    "text": '"a" = { kind = "number", range = ["0", "1"] }',
    "true": '"a" = { kind = "number", range = [false, true] }',
    "log of -1": '"a" = { kind = "number", range = [-1, 1], log = true }',
    "log is a text": '"a" = { kind = "number", log = "yes" }',
    "missing policy": '"a" = { kind = "number", missing = "drop" }',
    "level twice": '"a" = { kind = "category", values = ["x", " x"] }',
    "empty level": '"a" = { kind = "category", values = [""] }',
    "one text": '"a" = { kind = "category", values = "xy" }',
    "no table": '"a" = "number"',
}


@pytest.mark.parametrize("line", WRONG.values(), ids=WRONG)
def test_a_wrong_column_is_named_with_what_to_write(line: str) -> None:
    """Refusals of a schema name the column and say what to write instead."""
    with pytest.raises(InvalidParameter, match=r"'a'.*(Write|Spell)"):
        parse_schema(f"[columns]\n{line}\n")


@pytest.mark.parametrize(
    "line",
    [
        'target = { column = "y" }',
        'target = { kind = "label" }',
        'target = { column = "y", kind = "label", range = [0, 1] }',
        'target = { column = "y", kind = "number", values = ["a"] }',
        'target = { column = "y", kind = "count", range = [1, 9] }',
        'target = { column = "y", kind = "label", values = ["a"], other = "a" }',
        'target = { column = "y", kind = "label", vales = ["a"] }',
        'target = { column = "a", kind = "label" }',
        'ignored = ["a"]',
        "targt = 1",
        "target =",
    ],
)
def test_a_wrong_target_is_refused(line: str) -> None:
    """Missing or contradictory facts of the target, a column in two roles, and misspelt keys."""
    with pytest.raises(InvalidParameter):
        parse_schema(f'{line}\n[columns]\n"a" = {{ kind = "number" }}\n')


@pytest.mark.parametrize("columns", [{}, None, {"a": "number"}, {"": Number()}, {3: Number()}, {"\ud800": Number()}])
def test_a_schema_needs_named_columns(columns: Any) -> None:
    """No columns, columns of no kind, and names that no header can hold are refused."""
    with pytest.raises(InvalidParameter):
        Schema(columns=columns)
    with pytest.raises(InvalidParameter):
        Schema(columns={"a": Number()}, target="y")  # type: ignore[arg-type]


def test_numbers_and_truths_in_a_code_book_are_names() -> None:
    """A code book of numbers compares as text, so that 3 in a file and 3.0 in a frame are one level."""
    assert Category(values=(1, 2.0, True, " x ")).values == ("1", "2", "True", "x")  # type: ignore[arg-type]
    assert math.isclose(Number(low=1, high=2).low or 0, 1.0)
