"""Schemas as small TOML or JSON files: read and write."""

import json
import tomllib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from privet._checks import one_of
from privet.errors import InvalidParameter
from privet.preprocessing.schema import Category, Column, Date, Number, Schema, Target

_KEYS = {
    "number": {"range", "log", "missing"},
    "category": {"values", "missing"},
    "date": {"range", "parts", "format", "missing"},
    "ignored": set[str](),
}
_KINDS = {"number": Number, "category": Category, "date": Date}
_TARGET_KEYS = {"column", "kind", "values", "other", "range", "log"}
_WAYS = (
    'Write kind = "number" with range = [low, high], kind = "category" with values = [...] (leave range or values out '
    'to have them learnt privately), kind = "date" with range = ["2015-01-01", "2024-12-31"], or kind = "ignored".'
)


def read_schema(path: str | PathLike[str], *, table: str | None = None) -> Schema:
    r"""Read a schema from a TOML file, or JSON if its name ends in .json.

    The file holds one table (`target`, `ignored`, `[columns]`) or several, each under its name (`[adult.columns]`); of
    several, `table` names the one to read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.toml"
    >>> _ = file.write_text('[columns]\n"age" = { kind = "number", range = [0, 120] }\n')
    >>> read_schema(file)
    Schema(columns={'age': Number(low=0.0, high=120.0, log=False, missing='neutral')}, target=None, ignored=())
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = (
            "nothing there"
            if isinstance(error, FileNotFoundError)
            else f"none that can be read ({type(error).__name__})"
        )
        raise InvalidParameter(
            f"Expected the path of a schema file, TOML or JSON, got {what} at {str(path)!r}: nothing says how to read "
            "the table. Check the path; schema_skeleton(header), or `privet schema`, begins one."
        ) from None
    return parse_schema(text, form=_form(path), table=table)


def write_schema(schema: Schema, path: str | PathLike[str]) -> None:
    """Write a schema as a TOML file, or JSON if its name ends in .json; `read_schema` gives back an equal one.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.json"
    >>> schema = Schema(columns={"job": Category(values=("baker", "other"))})
    >>> write_schema(schema, file)
    >>> read_schema(file) == schema
    True
    """
    path = Path(path)
    path.write_text(dump_schema(schema, form=_form(path)), encoding="utf-8")


def dump_schema(schema: Schema, *, form: str = "toml") -> str:
    """The text of a schema file.

    Examples
    --------
    >>> print(dump_schema(Schema(columns={"age": Number(low=0, high=120)}, ignored=("id",))))
    ignored = ["id"]
    <BLANKLINE>
    [columns]
    "age" = { kind = "number", range = [0, 120] }
    <BLANKLINE>
    """
    body = _plain(schema)
    if form == "json":
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"
    _check_form(form)
    lines = [f"{key} = {toml_of(body[key])}" for key in ("target", "ignored") if key in body]
    lines += ["", "[columns]"] if lines else ["[columns]"]
    lines += [f"{toml_of(name)} = {toml_of(column)}" for name, column in body["columns"].items()]
    return "\n".join(lines) + "\n"


def parse_schema(text: str, *, form: str = "toml", table: str | None = None) -> Schema:
    """A schema from the text of a schema file.

    Examples
    --------
    >>> parse_schema('{"columns": {"job": {"kind": "category"}}}', form="json").unknown
    ('job',)
    """
    _check_form(form)
    try:
        body = json.loads(text) if form == "json" else tomllib.loads(text)
    except ValueError as error:  # a schema is public, so its own text may be quoted
        raise InvalidParameter(f"Expected a schema in {form.upper()}, got text that is not: {error}. {_WAYS}") from None
    return _schema(_one_table(body, table))


def _one_table(body: Any, table: str | None) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        raise InvalidParameter(f"Expected a schema with a table `columns`, got {type(body).__name__}. {_WAYS}")
    if table is None and "columns" in body:
        return body
    several = {name: part for name, part in body.items() if isinstance(part, Mapping) and "columns" in part}
    if table is None and len(several) == 1:
        return next(iter(several.values()))
    if table not in several:
        raise InvalidParameter(
            f"Expected a schema with [columns], or the name of one table among {sorted(several)}, got table={table!r}: "
            "nothing says which facts to use. Pass table=..., one of those names."
        )
    return several[table]


def _schema(body: Mapping[str, Any]) -> Schema:
    stray = sorted(set(body) - {"columns", "target", "ignored", "note"})
    if stray or not isinstance(body["columns"], Mapping):
        raise InvalidParameter(
            f"Expected columns, target and ignored in a schema, got {stray[0] if stray else 'columns'!r} as something "
            f"else: it would be passed over in silence. Spell it as one of these. {_WAYS}"
        )
    columns: dict[str, Column] = {}
    ignored = [name for name in body.get("ignored", ()) if name != ""]
    for name, facts in body["columns"].items():
        if name == "" and isinstance(facts, Mapping) and facts.get("kind") in ("?", "ignored"):
            continue  # an index that was written without a name, which no schema can mean
        column = _column(name, facts)
        if column is None:
            ignored.append(name)
        else:
            columns[name] = column
    return Schema(columns=columns, target=_target(body.get("target")), ignored=tuple(ignored))


def _column(name: str, facts: Any) -> Column | None:
    kind = facts.get("kind") if isinstance(facts, Mapping) else None
    if kind not in _KEYS:
        raise InvalidParameter(
            f"Expected column {name!r} with a kind, got {kind!r}: nothing says how to read it. {_WAYS}"
        )
    stray = sorted(set(facts) - _KEYS[kind] - {"kind", "note"})
    if stray:
        raise InvalidParameter(
            f"Expected column {name!r} of kind {kind!r} to have {sorted(_KEYS[kind])} at most, got {stray[0]!r}: it "
            f"would be passed over in silence. {_WAYS}"
        )
    if kind == "ignored":
        return None
    given = {key: facts[key] for key in ("log", "missing", "values", "parts", "format") if key in facts}
    ends = _ends(name, facts) or ({"low": None, "high": None} if kind == "date" else {})
    return _named(f"column {name!r}", _KINDS[kind], {**given, **ends})  # type: ignore[no-any-return]


def _target(facts: Any) -> Target | None:
    if facts is None:
        return None
    if not isinstance(facts, Mapping) or "column" not in facts or set(facts) - _TARGET_KEYS - {"note"}:
        raise InvalidParameter(
            f"Expected target to have column, kind and at most {sorted(_TARGET_KEYS - {'column', 'kind'})}: nothing "
            'says what to predict. Write target = { column = "y", kind = "label", values = ["no", "yes"] }.'
        )
    given = {key: facts[key] for key in ("values", "other", "log") if key in facts}
    ends = _ends(str(facts["column"]), facts)
    return _named("the target", Target, {"column": facts["column"], "kind": facts.get("kind"), **given, **ends})  # type: ignore[no-any-return]


def _ends(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    if "range" not in facts:
        return {}
    ends = facts["range"]
    if not isinstance(ends, list) or len(ends) != 2:
        raise InvalidParameter(
            f"Expected range = [low, high] for column {name!r}, got {ends!r}: two ends are needed to scale it. {_WAYS}"
        )
    return {"low": ends[0], "high": ends[1]}


def _named(where: str, kind: Any, given: dict[str, Any]) -> Any:
    """Make the value; a refusal says of which column it speaks."""
    try:
        return kind(**given)
    except InvalidParameter as error:
        raise InvalidParameter(f"In {where}: {error}") from None


def _plain(schema: Schema) -> dict[str, Any]:
    """The schema as dicts, lists, texts and numbers; what is as usual is left out."""
    body: dict[str, Any] = {}
    if schema.target is not None:
        target = schema.target
        body["target"] = {"column": target.column, "kind": target.kind, **_facts(target)}
    if schema.ignored:
        body["ignored"] = list(schema.ignored)
    body["columns"] = {
        name: {"kind": next(kind for kind, held in _KINDS.items() if isinstance(column, held)), **_facts(column)}
        for name, column in schema.columns.items()
    }
    return body


def _facts(fact: Column | Target) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(fact, Date):
        found["range"] = list(fact.ends)
        found |= {"parts": list(fact.parts)} if fact.parts else {}
        found |= {"format": fact.format} if fact.format is not None else {}
        return found | ({"missing": fact.missing} if fact.missing != "neutral" else {})
    if not isinstance(fact, Category) and fact.low is not None and fact.high is not None:
        found["range"] = [_short(fact.low), _short(fact.high)]
    if not isinstance(fact, Category) and fact.log:
        found["log"] = True
    if not isinstance(fact, Number) and fact.values is not None:
        found["values"] = list(fact.values)
    if not isinstance(fact, Target) and fact.missing != "neutral":
        found["missing"] = fact.missing
    if isinstance(fact, Target) and fact.other is not None:
        found["other"] = fact.other
    return found


def _short(value: float) -> float | int:
    return int(value) if value.is_integer() and abs(value) < 2.0**53 else value


def toml_of(value: Any) -> str:
    """A value in TOML; strings are JSON's, whose escapes TOML shares, with DEL escaped as well."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml_of(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_of, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _form(path: Path) -> str:
    return "json" if path.suffix == ".json" else "toml"


def _check_form(form: str) -> None:
    one_of("form", form, ("toml", "json"), because="no other is known", use="Use 'toml', which takes comments.")
