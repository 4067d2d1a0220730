"""Tables as they come: other signs between cells, standard input, gzip, Parquet."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from privet.cli import main
from privet.data import CsvFile, read
from privet.data.cells import Numbers, Texts
from privet.errors import InvalidParameter

SCHEMA = """
target = { column = "ill", kind = "label", values = ["no", "yes"] }
[columns]
age = { kind = "number", range = [0, 100] }
seen = { kind = "date", range = ["2020-01-01", "2020-12-31"] }
"""


def frame(records: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(20, 80, size=records)
    seen = np.datetime64("2020-01-01") + rng.integers(0, 366, size=records)
    return pd.DataFrame({"age": age, "seen": seen, "ill": np.where(age > 50, "yes", "no"), "note": "a;b\tc,d"})


def raw(form: str) -> bytes:
    """The table as bytes."""
    file = io.BytesIO()
    table = frame()
    if form == "parquet":
        table.to_parquet(file)
        return file.getvalue()
    table.to_csv(file, index=False, sep={"semicolon": ";", "tab": "\t"}.get(form, ","))
    return gzip.compress(file.getvalue()) if form == "gzip" else file.getvalue()


FORMS: dict[str, tuple[str, list[str]]] = {
    "comma": (".csv", []),
    "semicolon": (".csv", ["--sep", ";"]),
    "tab": (".tsv", ["--sep", "tab"]),
    "gzip": (".csv.gz", []),
    "parquet": (".parquet", []),
}


def run(*told: str, given: bytes | None = None) -> Any:
    return CliRunner().invoke(main, list(told), input=given)


@pytest.mark.medium
@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_every_command_reads_every_form(
    tmp_path: Path, form: str, piped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a file or standard input: the same names, a model, and the same predictions; no copy is left."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    ending, sep = FORMS[form]
    path = tmp_path / f"table{ending}"
    path.write_bytes(raw(form))
    (tmp_path / "table.toml").write_text(SCHEMA, encoding="utf-8")
    table, given = ("-", raw(form)) if piped else (str(path), None)
    named = run("schema", table, *sep, "--json", given=given)
    assert named.exit_code == 0, repr(named.exception)
    assert json.loads(named.stdout)["columns"] == ["age", "seen", "ill", "note"]
    told = ["--schema", str(tmp_path / "table.toml"), "--epsilon", "8", "--delta", "1e-6", "--json"]
    fitted = run("fit", table, *sep, *told, "--out", str(tmp_path / "model"), given=given)
    assert fitted.exit_code == 0, fitted.output
    assert json.loads(fitted.stdout)["epsilon"] <= 8
    found = run("predict", str(tmp_path / "model"), table, *sep, given=given)
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[0] == "ill"
    assert len(lines) == 3001
    right = np.mean(np.array(lines[1:]) == frame()["ill"].to_numpy())
    assert right > 0.8  # a coin would give 0.5; of 40 fits the worst gave 0.997
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("sep", ["", ";;", '"', "\n", "a", "7", "\x00"])
def test_what_separates_nothing_is_refused(sep: str) -> None:
    """In one sentence."""
    with pytest.raises(InvalidParameter, match="Expected sep to be one sign"):
        CsvFile("people.csv", sep=sep)


def test_a_command_says_so_in_one_sentence(tmp_path: Path) -> None:
    """Options are read before a command runs: what is wrong with one is words there, too."""
    path = tmp_path / "people.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    found = run("schema", str(path), "--sep", "ab")
    assert found.exit_code == 2
    assert "Expected sep to be one sign" in found.output


@pytest.mark.parametrize("sep", [";", "\t", "|", " ", "^", "]", "-", "\\", "."])
def test_quoting_is_the_same_whatever_separates(tmp_path: Path, sep: str) -> None:
    """Quoted signs and line ends are of their cell; a quote left open ends with its line; records stay apart."""
    body = f'a{sep}b\n1{sep}"x{sep}y"\n2{sep}"u\nv"\n3{sep}"open\n4{sep}"he said ""no"""\n5{sep}"end"\n'
    path = tmp_path / "table.csv"
    path.write_text(body, encoding="utf-8")
    found = read(CsvFile(path, sep=sep), {"a": Numbers(), "b": Texts()})
    assert found["a"].tolist() == [1, 2, 3, 4, 5]
    assert found["b"].tolist() == [f"x{sep}y", "u\nv", "open\n", 'he said "no"', "end"]


def test_another_sign_is_hinted_at_by_the_header(tmp_path: Path) -> None:
    """Where the first line is one name, the refusal says what to pass."""
    path = tmp_path / "table.csv"
    path.write_bytes(raw("semicolon"))
    with pytest.raises(InvalidParameter, match="if another sign separates its cells, say so by sep"):
        read(path, {"age": Numbers()})


@pytest.mark.parametrize("more", [["--journal", "a.journal"], ["--engine", "spark"]])
def test_standard_input_is_no_file_that_stays(tmp_path: Path, more: list[str]) -> None:
    """A cluster, and a run that goes on, need one."""
    (tmp_path / "table.toml").write_text(SCHEMA, encoding="utf-8")
    told = ["--schema", str(tmp_path / "table.toml"), "--epsilon", "1", "--delta", "1e-6", "--out", str(tmp_path / "m")]
    found = run("fit", "-", *told, *more, given=b"Jane Doe")
    assert found.exit_code == 2
    assert "got standard input" in found.output
    assert "Jane" not in found.output


def test_a_parquet_file_has_no_sign_between_cells(tmp_path: Path) -> None:
    """To say one is refused."""
    path = tmp_path / "table.parquet"
    path.write_bytes(raw("parquet"))
    found = run("schema", str(path), "--sep", ";")
    assert found.exit_code == 2
    assert "Expected --sep for CSV files only" in found.output
