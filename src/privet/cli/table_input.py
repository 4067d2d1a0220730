"""The tables that commands read: CSV or Parquet, by a path or from standard input."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from privet.data.csv_files import CsvFile
from privet.data.tables import header
from privet.errors import InvalidParameter

_UNNAMED = (
    "a column of the table has no name, as the index that pandas' to_csv() writes: it is ignored. Use "
    "to_csv(index=False) to leave it out."
)
_PIPE = Path("-")
_BEGIN = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz"}  # how such files begin

table_argument = click.argument("table", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
tables_argument = click.argument("table", type=click.Path(path_type=Path))  # a file, a folder, a pattern, or -


def _sign(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The sign between cells; a tab may be spelt."""
    sign = "\t" if value in ("\\t", "tab") else value
    try:
        CsvFile("", sep="," if sign is None else sign)
    except InvalidParameter as error:  # said here, as options are read before a command runs
        raise click.BadParameter(str(error)) from None
    return sign


sep_option = click.option(
    "--sep",
    callback=_sign,
    metavar="SIGN",
    help="What separates the cells of a CSV file: a comma by default; or ;, tab.",
)


@contextmanager
def at_hand(table: Path, folder: str | None = None) -> Iterator[Path]:
    """The path of a table; of standard input, that of a copy for its owner alone, which is removed afterwards."""
    if table != _PIPE:
        yield table
        return
    source = sys.stdin.buffer
    if folder is not None:
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="privet-", dir=folder) as place:  # which nobody else may enter
        first = source.read(4)
        ending = next((end for begin, end in _BEGIN.items() if first.startswith(begin)), ".csv")
        copy = Path(place) / f"stdin{ending}"
        with open(copy, "wb") as file:
            file.write(first)
            shutil.copyfileobj(source, file, 1 << 20)
        yield copy


def check_pipe(table: Path, engine: str, journal: str | None) -> None:
    """Refuse, of standard input, what needs a file that stays."""
    if table == _PIPE and (engine != "stream" or journal is not None):
        raise InvalidParameter(
            "Expected a file for --engine and --journal, got standard input: a cluster could not read it, and no "
            "second run could go on with it. Save the table, and pass its path."
        )


def named_columns(table: Path, sep: str | None) -> list[str]:
    """The names of a table's columns; no row is read."""
    _check_sep(table, sep)
    if _is_parquet(table):
        from privet.engines.sources import parquet_names

        return parquet_names(table)
    return header(CsvFile(table, sep=sep or ",")) or []


def in_memory(table: Path, sep: str | None) -> Any:
    """A table to predict: a CSV file as it is, the rows of a Parquet file."""
    _check_sep(table, sep)
    if _is_parquet(table):
        from privet.engines.sources import parquet_table

        return parquet_table(table)
    return CsvFile(table, sep=sep or ",")


def _is_parquet(table: Path) -> bool:
    """Whether a file is Parquet, by its name, or as it begins so; refused, if it is and cannot be read."""
    from privet.engines.sources import are_csv

    found = table.is_file() and not are_csv([str(table)])
    if found and find_spec("pyarrow") is None:
        raise InvalidParameter(
            "Expected Arrow for Parquet files, got none. Use pip install 'privet[tables]', or save the table as CSV."
        )
    return found


def _check_sep(table: Path, sep: str | None) -> None:
    if sep is not None and _is_parquet(table):
        raise InvalidParameter(
            "Expected --sep for CSV files only, got a Parquet file: its columns are told apart already. Leave it out."
        )


def note_unnamed(table: Path, sep: str | None) -> None:
    """Say that a column of a CSV file has no name, and is passed over."""
    if table.is_file() and not _is_parquet(table) and "" in named_columns(table, sep):
        click.echo(f"Note: {_UNNAMED}", err=True)


def opened(
    table: Path, sep: str | None, engine: str, scheduler: str | None, cache: str | None, journal: str | None
) -> Any:
    """The path of files; or files with the engine that reads them."""
    from privet.engines import Engine, Files, Stream
    from privet.engines.files import as_files

    if (engine == "dask") != (scheduler is not None):
        raise InvalidParameter(
            "Expected --scheduler with --engine dask, and only there: it is the address of that cluster. Pass e.g. "
            "--engine dask --scheduler tcp://host:8786."
        )
    files = as_files(table)
    if files is None and not table.is_file():
        raise click.BadParameter(f"{str(table)!r} is no file.", param_hint="'TABLE'")
    if files is None and (engine != "stream" or cache is not None or journal is not None):
        raise InvalidParameter(
            "Expected Arrow for --engine, --cache and --journal, got none: files are read into memory. Use pip install "
            "'privet[tables]', or leave them out."
        )
    _check_sep(table, sep)
    if files is None or (engine == "stream" and cache is None and journal is None):
        return table if sep is None else CsvFile(table, sep=sep)  # in memory without Arrow
    where: Engine = Stream()
    if scheduler is not None:
        try:
            from privet.engines.dask_engine import DaskEngine
        except ImportError:
            raise InvalidParameter(
                "Expected Dask for --engine dask, got none. Use pip install 'privet[dask]'."
            ) from None

        where = DaskEngine(scheduler)
    elif engine == "spark":
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise InvalidParameter(
                "Expected Spark's Python package for --engine spark, got none. Use pip install 'privet[spark]'."
            ) from None

        from privet.engines.spark_engine import SparkEngine

        where = SparkEngine(SparkSession.builder.getOrCreate())
    return Files(table, engine=where, cache=cache, journal=journal, sep=sep or ",")
