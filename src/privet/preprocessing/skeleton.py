"""A schema file to fill in, begun from the names of a table's columns."""

from collections.abc import Iterable

from privet.errors import InvalidParameter
from privet.preprocessing.schema_files import toml_of


def schema_skeleton(header: Iterable[str], *, target: str | None = None) -> str:
    """A schema file to fill in, from the column names alone: no value is read.

    Every kind is "?", which `read_schema` refuses by name until somebody who knows the column has replaced it. A column
    without a name, as the index that pandas writes, is left out, and so ignored; what pandas then calls "Unnamed: 0" is
    ignored, too.

    Examples
    --------
    >>> print(schema_skeleton(["age", "y"], target="y"))
    # For each column write what is known without looking at the rows:
    #   { kind = "number", range = [low, high] }       and log = true for a log1p before scaling
    #   { kind = "category", values = ["a", "b"] }     the code book
    #   { kind = "date", range = ["2015-01-01", "2024-12-31"] }
    #     and parts = ["season", "month", "weekday", "hour"], any of them; format = "%d.%m.%Y" if not ISO 8601
    #   { kind = "ignored" }
    # Leave a number's range or values out to have them learnt privately, for a part of the budget.
    # Of the target: kind "label" with values, "number" with range, or "count" with range = [0, most].
    target = { column = "y", kind = "?" }
    <BLANKLINE>
    [columns]
    "age" = { kind = "?" }
    <BLANKLINE>
    """
    names = [name for name in header if name]
    if target is not None and target not in names:
        raise InvalidParameter(
            f"Expected the target among the column names, got {target!r}, which is not: nothing would be predicted. "
            "Use a name of the header."
        )
    lines = [
        "# For each column write what is known without looking at the rows:",
        '#   { kind = "number", range = [low, high] }       and log = true for a log1p before scaling',
        '#   { kind = "category", values = ["a", "b"] }     the code book',
        '#   { kind = "date", range = ["2015-01-01", "2024-12-31"] }',
        '#     and parts = ["season", "month", "weekday", "hour"], any of them; format = "%d.%m.%Y" if not ISO 8601',
        '#   { kind = "ignored" }',
        "# Leave a number's range or values out to have them learnt privately, for a part of the budget.",
    ]
    if target is None:
        lines.append(
            "# The column to predict is named here, and not below: "
            'target = { column = "...", kind = "label", values = ["no", "yes"] }'
        )
    else:
        lines.append(
            '# Of the target: kind "label" with values, "number" with range, or "count" with range = [0, most].'
        )
        lines.append(f"target = {toml_of({'column': target, 'kind': '?'})}")
    lines += ["", "[columns]"]
    kinds = {name: "ignored" if str(name).startswith("Unnamed: ") else "?" for name in names if name != target}
    lines += [f"{toml_of(str(name))} = {toml_of({'kind': kind})}" for name, kind in kinds.items()]
    return "\n".join(lines) + "\n"
