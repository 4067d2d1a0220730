"""The commands that read a table: its schema, a model of it, predictions by that model."""

import csv
import json
import math
import sys
from pathlib import Path
from typing import Any, Literal, get_args

import click

from privet.cli.answers import Answering, answer, guarantee_record
from privet.cli.table_input import (
    at_hand,
    check_pipe,
    in_memory,
    named_columns,
    note_unnamed,
    opened,
    sep_option,
    table_argument,
    tables_argument,
)
from privet.data.cells import number_of
from privet.errors import InvalidParameter
from privet.privacy import Budget, Neighbours, check_delta

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last: full width
_epsilon = click.option("--epsilon", type=float, required=True, help="The epsilon to spend.")
_delta = click.option("--delta", type=float, required=True, help="Probability left out of the promise, e.g. 1e-6.")
_neighbours = click.option(
    "--neighbours",
    type=click.Choice(get_args(Neighbours)),
    default="replace_one",
    show_default=True,
    help="Which two tables must look alike.",
)
_groups = click.option(
    "--groups", help="The column that says whose row it is: then the promise is for a person with all rows."
)
_tails = click.option(
    "--tails",
    type=click.Choice(["clip", "bend"]),
    default="clip",
    show_default=True,
    help="What is done about long tails: values are kept to their range, or a bent column is added.",
)


@click.command(cls=Answering, epilog="Python: privet.estimators.fit_table(table, schema, budget=...)")
@tables_argument
@click.option(
    "--schema",
    "schema_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="Public facts about the columns, TOML or JSON; `privet schema` writes a skeleton.",
)
@click.option("--target", help="The column to predict, if the schema is to be checked against it.")
@_epsilon
@_delta
@_neighbours
@click.option("--records", type=int, help="Under add_remove, a public guess of the number of rows, or of people.")
@_groups
@_tails
@sep_option
@click.option(
    "--engine",
    type=click.Choice(["stream", "dask", "spark"]),
    default="stream",
    show_default=True,
    help="Where files are read: in this process, or on a cluster.",
)
@click.option("--scheduler", help="The address of the Dask scheduler, e.g. tcp://host:8786.")
@click.option("--cache", type=click.Path(file_okay=False), help="Folder for encoded rows, which nobody else may read.")
@click.option(
    "--journal",
    type=click.Path(dir_okay=False),
    help="File of what was released so far: the same command, after the process was killed, goes on from it.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for the model.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def fit(
    table: Path,
    schema_file: Path,
    target: str | None,
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    records: int | None,
    groups: str | None,
    tails: Literal["clip", "bend"],
    sep: str | None,
    engine: str,
    scheduler: str | None,
    cache: str | None,
    journal: str | None,
    out: Path,
    as_json: bool,
) -> None:
    """Train a private linear model of CSV or Parquet files, or of standard input (-), and say what that promises."""
    from privet.estimators import fit_table  # scikit-learn takes a second to import
    from privet.estimators.model_file import warn_of_refit
    from privet.preprocessing import read_schema

    facts = read_schema(schema_file)
    if target is not None and (facts.target is None or facts.target.column != target):
        raise InvalidParameter(
            f"Expected the schema to declare the target {target!r}, got another or none: nothing says how to read it. "
            f'Write target = {{ column = "{target}", kind = "label", values = [...] }} in the schema.'
        )
    budget = Budget(epsilon=epsilon, delta=delta)
    known: dict[str, Any] = {"neighbours": neighbours, "records": records, "groups": groups, "tails": tails}
    if neighbours == "add_remove":
        check_delta(delta, records)  # before a file is opened, or copied from a pipe
    check_pipe(table, engine, journal)
    with at_hand(table, cache) as place:
        rows = opened(place, sep, engine, scheduler, cache, journal)
        note_unnamed(place, sep)
        warn_of_refit(out)
        model = fit_table(rows, facts, budget=budget, **known)
    saved = model.save(out)
    learnt = learnt_facts(model.schema_, model.learnt_)
    bent = {name: str(root) for name, root in model.bent.items()}
    record = {**guarantee_record(model.guarantee, model.plan.event), "model": str(saved), "learnt": learnt}
    record |= {"bent": bent} if bent else {}
    said = "".join(f"\nLearnt: {name} {_words(found)}." for name, found in learnt.items())
    said += "".join(f"\nBent: {name} has a second column, {root}." for name, root in bent.items())
    answer(f"{model.guarantee.details}{said}\nModel written to {saved}.", record, as_json=as_json)


def learnt_facts(schema: Any, learnt: tuple[str, ...]) -> dict[str, Any]:
    """The ranges and names, in a complete schema, of the columns of which something was learnt; public, as released."""
    facts = {**schema.columns, **({} if schema.target is None else {schema.target.column: schema.target})}
    return {
        name: list(fact.values) if getattr(fact, "values", None) is not None else [fact.low, fact.high]
        for name, fact in facts.items()
        if name in learnt
    }


def _words(found: list[Any]) -> str:
    """What was learnt of a column, as the end of a sentence."""
    if not found or isinstance(found[0], str):
        return "has the names " + ", ".join(found) if found else "has no name that clearly many records hold"
    from privet.estimators.constant_model import is_point

    low, high = found
    return (
        f"is predicted to be {low:.6g}, whatever the row" if is_point(low, high) else f"is from {low:.6g} to {high:.6g}"
    )


@click.command(cls=Answering, epilog="Python: privet.estimators.plan_table(schema, records=..., budget=...)")
@click.argument("schema_file", metavar="SCHEMA", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--records", type=int, required=True, help="How many rows, or people, the table has; a public number.")
@_epsilon
@_delta
@_neighbours
@_groups
@_tails
@click.option("--json", "as_json", is_flag=True, help="The plan in JSON, to keep.")
def plan(
    schema_file: Path,
    records: int,
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    groups: str | None,
    tails: Literal["clip", "bend"],
    as_json: bool,
) -> None:
    """Say what `privet fit` would release, each release with its noise and its share; no table is opened."""
    from privet.estimators import plan_table
    from privet.plan import plan_to_json
    from privet.preprocessing import read_schema

    budget = Budget(epsilon=epsilon, delta=delta)
    known: dict[str, Any] = {"neighbours": neighbours, "groups": groups, "tails": tails}
    made = plan_table(read_schema(schema_file), records=records, budget=budget, **known)
    click.echo(plan_to_json(made) if as_json else str(made))


@click.command(cls=Answering, epilog="Python: privet.estimators.load_model(folder).predict(table)")
@click.argument("model", type=click.Path(exists=True, file_okay=False, path_type=Path))
@table_argument
@sep_option
@click.option("--proba", is_flag=True, help="Probabilities of the classes instead of the likeliest one.")
def predict(model: Path, table: Path, sep: str | None, proba: bool) -> None:
    """Predict the target of each row of a CSV or Parquet file, or of standard input (-), as CSV on standard output."""
    from privet.estimators import load_model

    loaded = load_model(model)
    target = loaded.schema_.target
    writer = csv.writer(sys.stdout, lineterminator="\n")
    with at_hand(table) as place:
        rows = in_memory(place, sep)
        if proba:
            odds = loaded.predict_proba(rows).tolist()
            writer.writerows([map(inert, target.classes if target is not None else ()), *odds])
            return
        values = loaded.predict(rows).tolist()
    writer.writerows([[inert(target.column if target is not None else "target")], *([inert(v)] for v in values)])


@click.command(cls=Answering, epilog="Python: privet.estimators.load_model(folder).summary()")
@click.argument("model", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def show(model: Path, as_json: bool) -> None:
    """Show a saved model: its coefficients by name, what was learnt, and what it promises."""
    from privet.estimators import load_model

    loaded = load_model(model)
    told = loaded.summary()
    rows = [dict(zip(("name", *told.head[1:]), row, strict=True)) for row in told.rows]
    promise = guarantee_record(loaded.guarantee, loaded.plan.event)
    answer(
        f"{str(told).removesuffix(f'Guarantee: {loaded.guarantee}')}{loaded.guarantee.details}",
        {"title": told.title, "coefficients": rows, "notes": list(told.notes), **promise},
        as_json=as_json,
    )


def inert(cell: Any) -> Any:
    """A cell that no spreadsheet executes: a text that would be a formula is quoted by an apostrophe."""
    risky = isinstance(cell, str) and cell.startswith(_FORMULA) and math.isnan(number_of(cell))
    return f"'{cell}" if risky else cell


@click.command(cls=Answering, epilog="Python: privet.preprocessing.schema_skeleton(header)")
@table_argument
@sep_option
@click.option("--target", help="The column to predict.")
@click.option("--json", "as_json", is_flag=True, help="Only the names of the columns, in JSON.")
def schema(table: Path, sep: str | None, target: str | None, as_json: bool) -> None:
    """Write the skeleton of a schema from the names in a CSV or Parquet file, or standard input (-); no row is read."""
    from privet.preprocessing import schema_skeleton

    with at_hand(table) as place:
        names = [name for name in named_columns(place, sep) if name]
        note_unnamed(place, sep)
    if as_json:
        click.echo(json.dumps({"columns": names, "target": target}))
        return
    click.echo(schema_skeleton(names, target=target), nl=False)
