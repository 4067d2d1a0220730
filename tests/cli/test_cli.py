"""The commands say what their Python twins return, completely, and refuse in one paragraph."""

from __future__ import annotations

import gzip
import json
import math
import re
import runpy
import shlex
import sys
import warnings
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from privet import Budget, accounting, report
from privet.accounting import Event, Gaussian, Laplace, from_json, to_json
from privet.cli import main
from privet.cli.options import ACCOUNTANTS
from privet.cli.training import inert
from privet.errors import LooseBound, SmallEffectiveSample
from privet.estimators import fit_table
from privet.plan import plan_from_json
from privet.preprocessing import Number, Schema, Target

STEP = Gaussian(noise_multiplier=1.5).poisson(rate=0.01)
RUN = STEP * 1000
FLAGS = "--noise-multiplier 1.5 --sampling-rate 0.01 --steps 1000 --neighbours add_remove"
COMMANDS = (
    "epsilon",
    "delta",
    "noise",
    "compare",
    "profile",
    "meaning",
    "schema",
    "plan",
    "fit",
    "predict",
    "show",
    "lectures",
)
DOCS = Path(__file__).parents[2] / "docs"


def privet(line: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, shlex.split(line), input=text)


def said(line: str, text: str | None = None) -> str:
    result = privet(line, text)
    assert result.exit_code == 0, result.output
    return result.stdout


def told(line: str, text: str | None = None) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(said(f"{line} --json", text), parse_constant=refuse)


def test_there_are_these_commands() -> None:
    """The commands are those of the documentation, and each help names its Python twin."""
    assert set(main.commands) == set(COMMANDS)
    for name in COMMANDS:
        assert re.search(
            r"Python: privet\.(accounting|report|estimators|lectures|preprocessing)\.\w+\(", said(f"{name} --help")
        )


def test_it_runs_as_a_module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m privet` is the command, by its name."""
    monkeypatch.setattr(sys, "argv", ["elsewhere", "--help"])
    with pytest.raises(SystemExit):
        runpy.run_module("privet", run_name="__main__")
    assert capsys.readouterr().out.startswith("Usage: privet [OPTIONS] COMMAND")


def test_epsilon_is_a_whole_sentence() -> None:
    """The answer is the guarantee's sentence: epsilon, delta, neighbours, sampling, accountant and bracket."""
    promise = accounting.guarantee(RUN, delta=1e-5, neighbours="add_remove")
    assert said(f"epsilon {FLAGS} --delta 1e-5") == f"{promise.details}\n"
    record = told(f"epsilon {FLAGS} --delta 1e-5")
    assert record["epsilon"] == accounting.epsilon(RUN, delta=1e-5, neighbours="add_remove")
    assert record["lower"] == accounting.bounds(RUN, delta=1e-5, neighbours="add_remove").lower
    assert (record["delta"], record["neighbours"]) == (1e-5, "add_remove")
    assert {"accountant", "theorem", "sampling", "assumptions"} <= set(record)
    assert from_json(json.dumps(record["event"])) == RUN


def test_delta_is_a_whole_sentence() -> None:
    """The answer names epsilon, delta, relation, accountant and the bracket of delta, rounded to the safe side."""
    text = said(f"delta {FLAGS} --epsilon 1.5")
    lower, upper = accounting.bounds(RUN, epsilon=1.5, neighbours="add_remove")
    first, second = map(float, re.findall(r"true delta in \[(.*), (.*)\]", text)[0])
    assert first <= lower <= upper <= second
    assert "(1.5, " in text
    assert "add_remove" in text
    assert "accountant" in text
    record = told(f"delta {FLAGS} --epsilon 1.5")
    assert (record["epsilon"], record["delta"], record["lower"]) == (1.5, upper, lower)


def test_noise_meets_its_target() -> None:
    """The noise multiplier is calibrate's, its run costs at most the target, and the printed one is no smaller."""
    flags = "--sampling-rate 1/100 --steps 1000 --neighbours add_remove --epsilon 1 --delta 1e-5"
    record = told(f"noise {flags}")
    multiplier = record["noise_multiplier"]
    run = Gaussian(noise_multiplier=multiplier).poisson(rate=0.01) * 1000
    assert from_json(json.dumps(record["event"])) == run
    assert accounting.epsilon(run, delta=1e-5, neighbours="add_remove") <= 1
    assert record["epsilon"] == pytest.approx(1, rel=1e-5)
    printed = re.findall(r"A noise multiplier of (\S+) ", said(f"noise {flags}"))[0]
    assert multiplier <= float(printed) <= multiplier * (1 + 1e-5)


@pytest.mark.medium
def test_compare_has_every_row() -> None:
    """The table is compare's, and JSON has every row of it."""
    comparison = accounting.compare(RUN, delta=1e-5, neighbours="add_remove")
    assert said(f"compare {FLAGS} --delta 1e-5") == f"{RUN!r}\n{comparison}\n"
    record = told(f"compare {FLAGS} --delta 1e-5")
    assert [row["accountant"] for row in record["rows"]] == [row.accountant for row in comparison.rows]
    assert (record["delta"], record["neighbours"]) == (1e-5, "add_remove")


def test_profile_is_the_profile() -> None:
    """The deltas are profile's at the epsilons asked for; without any, a round grid from 0 to where delta vanishes."""
    record = told(f"profile {FLAGS} --epsilon 0.5 --epsilon 2")
    expected = accounting.profile(RUN, [0.5, 2.0], neighbours="add_remove")
    assert record["epsilon"] == [0.5, 2.0]
    assert record["delta"] == pytest.approx(expected.tolist(), rel=1e-12)  # points share lines
    grid = told(f"profile {FLAGS}")
    assert grid["epsilon"][0] == 0
    assert 6 <= len(grid["epsilon"]) <= 13
    assert grid["delta"] == sorted(grid["delta"], reverse=True)
    assert grid["delta"][-1] <= 1.1e-12
    lines = said(f"profile {FLAGS}").splitlines()
    assert lines[2].split() == ["epsilon", "delta"]
    assert [float(line.split()[0]) for line in lines[3 : 3 + len(grid["epsilon"])]] == grid["epsilon"]
    assert "add_remove" in lines[0]


@pytest.mark.medium
def test_meaning_is_in_words() -> None:
    """The words are report.meaning's, for the prior and the rates asked for."""
    flags = f"{FLAGS} --delta 1e-5 --prior 0.1 --false-positive-rate 0.02"
    meaning = report.meaning(RUN, delta=1e-5, neighbours="add_remove", prior=0.1, false_positive_rates=[0.02])
    assert said(f"meaning {flags}") == f"{meaning}\n"
    record = told(f"meaning {flags}")
    assert record["attacks"] == [
        {"false_positive_rate": 0.02, "true_positive_rate": meaning.attacks[0].true_positive_rate}
    ]
    assert (record["prior"], record["guess"], tuple(record["posterior"])) == (0.1, meaning.guess, meaning.posterior)


@pytest.mark.parametrize(
    ("flags", "run"),
    [
        ("--noise-multiplier 2 --steps 1", Gaussian(noise_multiplier=2.0)),
        ("--noise-multiplier 2 --steps 7", Gaussian(noise_multiplier=2.0) * 7),
        ("--noise-multiplier 2 --steps 7 --sampling none", Gaussian(noise_multiplier=2.0) * 7),
        (
            "--noise-multiplier 2 --steps 7 --sampling none --batch 4 --records 9",
            Gaussian(noise_multiplier=2.0) * 7,
        ),
        ("--noise-multiplier 2 --steps 7 --sampling-rate 1/8", Gaussian(noise_multiplier=2.0).poisson(rate=0.125) * 7),
        (
            "--noise-multiplier 2 --steps 7 --sampling poisson --batch 1 --records 8",
            Gaussian(noise_multiplier=2.0).poisson(rate=0.125) * 7,
        ),
        (
            "--noise-multiplier 2 --steps 7 --sampling without_replacement --batch 1 --records 8",
            Gaussian(noise_multiplier=2.0).without_replacement(batch=1, records=8) * 7,
        ),
    ],
)
def test_flags_describe_this_run(flags: str, run: Event) -> None:
    """Each way to give the flags stands for exactly one event."""
    record = told(f"epsilon {flags} --neighbours replace-one --delta 1e-5")
    assert from_json(json.dumps(record["event"])) == run
    assert record["neighbours"] == "replace_one"


def test_allocated_batches_are_counted_in_epochs() -> None:
    """An epoch has records ÷ batch steps, rounded down, and one that is not finished counts whole."""
    flags = "--noise-multiplier 2 --steps 7 --sampling allocated --neighbours zero-out --delta 1e-5"
    record = told(f"epsilon {flags} --batch 2 --records 7")
    assert from_json(json.dumps(record["event"])) == Gaussian(noise_multiplier=2.0).allocated(steps=3) * 3
    assert "both sizes matter" in privet(f"epsilon {flags}").output


def test_anything_can_be_read_from_events(tmp_path: Path) -> None:
    """A file or standard input with to_json's text is priced like the event itself."""
    run = Laplace(scale=4.0) * 10 + Gaussian(noise_multiplier=5.0) * 10
    path = tmp_path / "run.json"
    path.write_text(to_json(run), encoding="utf-8")
    expected = accounting.epsilon(run, delta=1e-6, neighbours="add_remove")
    flags = "--neighbours add_remove --delta 1e-6"
    assert told(f"epsilon --events {path} {flags}")["epsilon"] == expected
    assert told(f"epsilon --events - {flags}", text=to_json(run))["epsilon"] == expected


def test_the_accountant_can_be_chosen() -> None:
    """--accountant asks that one, and the names offered are exactly those the library knows."""
    record = told(f"epsilon {FLAGS} --delta 1e-5 --accountant renyi")
    expected = accounting.epsilon(RUN, delta=1e-5, neighbours="add_remove", accountant="renyi")
    assert record["epsilon"] == expected
    assert "renyi" in record["accountant"].lower() or "rényi" in record["accountant"].lower()
    rows = accounting.compare(Gaussian(noise_multiplier=3.0) * 2, delta=1e-5, neighbours="add_remove").rows
    assert {row.accountant for row in rows} == set(ACCOUNTANTS) - {"auto"}


def test_no_noise_is_said_plainly() -> None:
    """Noise 0 costs infinity: a sentence in words, null in JSON, delta 1."""
    flags = "--noise-multiplier 0 --steps 3 --neighbours zero_out"
    assert "promises nothing" in said(f"epsilon {flags} --delta 1e-5")
    assert told(f"epsilon {flags} --delta 1e-5")["epsilon"] is None
    assert "promises nothing" in said(f"delta {flags} --epsilon 1")
    assert told(f"delta {flags} --epsilon 1")["delta"] == 1


@pytest.mark.medium
@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("epsilon", "--delta 1e-5"),
        ("delta", "--epsilon 1"),
        ("compare", "--delta 1e-5"),
        ("profile", ""),
        ("meaning", "--delta 1e-5"),
    ],
)
def test_plot_writes_a_figure(command: str, flags: str, tmp_path: Path) -> None:
    """--plot writes the figure, says so on stderr, and leaves stdout to the answer."""
    path = tmp_path / "figure.png"
    plain = said(f"{command} {FLAGS} {flags}")
    result = privet(f"{command} {FLAGS} {flags} --plot {path}")
    assert (result.exit_code, result.stdout) == (0, plain)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "Figure written to" in result.stderr


@pytest.mark.medium
def test_noise_can_be_plotted(tmp_path: Path) -> None:
    """`noise --plot` draws the profile of the run it found."""
    flags = "--sampling-rate 1/100 --steps 1000 --neighbours add_remove --epsilon 1 --delta 1e-5"
    assert privet(f"noise {flags} --plot {tmp_path / 'noise.svg'}").exit_code == 0
    assert (tmp_path / "noise.svg").exists()


N = "--neighbours add_remove --delta 1e-5"
REFUSED = {
    "nothing": ("", "neighbours"),
    "no relation": ("--noise-multiplier 1 --steps 5 --delta 1e-5", "--neighbours"),
    "unknown relation": ("--noise-multiplier 1 --steps 5 --delta 1e-5 --neighbours both", "add_remove"),
    "no run": (N, "there is no run"),
    "no steps": (f"{N} --noise-multiplier 1", "Expected --steps"),
    "zero steps": (f"{N} --noise-multiplier 1 --steps 0", "got 0"),
    "fractional steps": (f"{N} --noise-multiplier 1 --steps 1.5", "1.5"),
    "negative noise": (f"{N} --noise-multiplier -1 --steps 5", "got -1.0"),
    "NaN noise": (f"{N} --noise-multiplier nan --steps 5", "got nan"),
    "infinite noise": (f"{N} --noise-multiplier inf --steps 5", "got inf"),
    "rate above 1": (f"{N} --noise-multiplier 1 --steps 5 --sampling-rate 2", "rate in (0, 1]"),
    "rate not a number": (f"{N} --noise-multiplier 1 --steps 5 --sampling-rate 1/0", "nor a ratio"),
    "delta of 1": ("--noise-multiplier 1 --steps 5 --neighbours add_remove --delta 1", "delta in (0, 1)"),
    "delta of NaN": ("--noise-multiplier 1 --steps 5 --neighbours add_remove --delta nan", "delta in (0, 1)"),
    "batch alone": (f"{N} --noise-multiplier 1 --steps 5 --batch 5", "--batch and --records together"),
    "sampling not said": (f"{N} --noise-multiplier 1 --steps 5 --batch 5 --records 9", "Say poisson if"),
    "rate and batch": (f"{N} --noise-multiplier 1 --steps 5 --batch 5 --records 9 --sampling-rate 0.1", "got both"),
    "batch above records": (f"{N} --noise-multiplier 1 --steps 5 --batch 9 --records 5 --sampling poisson", "9 of 5"),
    "poisson without rate": (f"{N} --noise-multiplier 1 --steps 5 --sampling poisson", "--sampling-rate"),
    "subset without sizes": (f"{N} --noise-multiplier 1 --steps 5 --sampling without-replacement", "both sizes"),
    "rate without sampling": (f"{N} --noise-multiplier 1 --steps 5 --sampling none --sampling-rate 0.1", "Leave one"),
    "unknown accountant": (f"{N} --noise-multiplier 1 --steps 5 --accountant prv", "contour"),
    "no such file": (f"{N} --events nowhere.json", "nowhere.json"),
    "flags and file": (f"{N} --events - --steps 5", "got both"),
    "broken events": (f"{N} --events -", "Expected JSON"),
    "figure of no format": (f"{N} --noise-multiplier 1 --steps 5 --plot figure.docx", "figure.docx"),
    "figure nowhere": (f"{N} --noise-multiplier 1 --steps 5 --plot no/such/folder/figure.png", "no/such/folder"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_one_paragraph(name: str) -> None:
    """What cannot be priced exits with 2, says why on stderr, prints nothing else, and shows no traceback."""
    flags, message = REFUSED[name]
    result = privet(f"epsilon {flags}", text="this is not JSON")
    assert (result.exit_code, result.stdout) == (2, "")
    assert isinstance(result.exception, SystemExit)
    error = result.stderr.split("Error: ")[1]
    assert message in error
    assert "Traceback" not in result.stderr
    assert len(error.strip().splitlines()) <= 4


def test_other_commands_refuse_likewise() -> None:
    """A prior, a rate, an epsilon or a target that cannot be are refused by their commands in the same way."""
    for line, message in (
        (f"meaning {FLAGS} --delta 1e-5 --prior 1", "prior in (0, 1)"),
        (f"meaning {FLAGS} --delta 1e-5 --false-positive-rate 2", "false positive rates"),
        (f"delta {FLAGS} --epsilon -1", "epsilon"),
        (f"profile {FLAGS} --epsilon nan", "epsilon"),
        ("noise --steps 5 --neighbours zero_out --epsilon -1 --delta 1e-5", "epsilon"),
        ("noise --neighbours zero_out --epsilon 1 --delta 1e-5", "Expected --steps"),
    ):
        result = privet(line)
        assert (result.exit_code, result.stdout) == (2, ""), line
        assert message in result.stderr


def test_an_unproven_pairing_is_refused() -> None:
    """Fixed-size batches have no proven price under add_remove, and the command says so."""
    flags = "--noise-multiplier 1 --batch 5 --records 50 --sampling without-replacement --steps 9 --delta 1e-5"
    result = privet(f"epsilon {flags} --neighbours add_remove")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "replace_one" in result.stderr


def test_loose_bounds_are_remarked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certified but loose bound is answered as usual, with one remark on stderr however many bounds are loose."""
    promise = accounting.guarantee(RUN, delta=1e-5, neighbours="add_remove")

    def loose(*_: Any, **__: Any) -> Any:
        for width in (1, 2, 2):
            warnings.warn(f"The bound is {width} wide.", LooseBound, stacklevel=1)
        return promise

    monkeypatch.setattr(accounting, "guarantee", loose)
    result = privet(f"epsilon {FLAGS} --delta 1e-5")
    assert (result.exit_code, result.stdout) == (0, f"{promise.details}\n")
    assert result.stderr == "Note: The bound is 1 wide. (And 1 more bounds likewise.)\n"


def test_every_remark_on_a_fit_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two unlike remarks on one fit, e.g. too few records and which columns suffered, are two lines, each said once."""
    promise = accounting.guarantee(RUN, delta=1e-5, neighbours="add_remove")

    def small(*_: Any, **__: Any) -> Any:
        for what in ("few records", "no range in 'age'", "few records"):
            warnings.warn(what, SmallEffectiveSample, stacklevel=1)
        return promise

    monkeypatch.setattr(accounting, "guarantee", small)
    assert privet(f"epsilon {FLAGS} --delta 1e-5").stderr == "Note: few records\nNote: no range in 'age'\n"


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """--plot without matplotlib names the extra to install, in one line."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = privet(f"profile {FLAGS} --plot {tmp_path / 'figure.png'}")
    assert result.exit_code == 2
    assert "privet[plot]" in result.stderr


def test_every_command_and_flag_is_documented() -> None:
    """docs/cli.md has a section for each command with exactly the flags that its --help has."""
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## `privet (\w+)`\n(.*?)(?=^## |\Z)", page, flags=re.M | re.S))
    assert set(sections) == set(COMMANDS)
    shared = re.findall(r"^## Describing the run\n(.*?)(?=^## )", page, flags=re.M | re.S)[0]
    for name, command in main.commands.items():
        flags = {option for param in command.params if isinstance(param, click.Option) for option in param.opts}
        written = set(re.findall(r"^\| `(--[a-z-]+)", sections[name] + shared, flags=re.M))
        assert flags <= written, name
        assert set(re.findall(r"^\| `(--[a-z-]+)", sections[name], flags=re.M)) <= flags, name


def test_rounding_of_probabilities_is_safe() -> None:
    """An epsilon with many digits is never printed smaller than it is."""
    asked = math.nextafter(1.23456789012, 2)
    shown = float(re.findall(r"is \((\S+), ", said(f"delta {FLAGS} --epsilon {asked!r}"))[0])
    assert shown >= asked


def test_plan_says_what_a_fit_would_release_without_a_table(tmp_path: Path) -> None:
    """`privet plan` needs the schema and a number of rows; its JSON reads back as the same plan."""
    schema = tmp_path / "table.toml"
    schema.write_text(
        'target = { column = "ill", kind = "label", values = ["no", "yes"] }\n[columns]\nage = { kind = "number" }\n'
    )
    flags = f"plan {schema} --records 5000 --epsilon 1 --delta 1e-6"
    shown = said(flags)
    assert shown.startswith("Plan for 5,000 records, replace_one, epsilon <= 1 at delta = 1e-06")
    assert all(name in shown for name in ("ranges: octaves", "second moment 1", "gradients"))
    stored = plan_from_json(said(f"{flags} --json"))
    assert str(stored) == shown.rstrip("\n")
    assert stored.guarantee().epsilon <= 1
    refused = privet(f"plan {schema} --records 5000 --epsilon 1 --delta 0.1")
    assert refused.exit_code != 0
    assert "below 1/n" in refused.output


@pytest.mark.parametrize("risky", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1+1"])
def test_a_text_that_would_be_a_formula_is_quoted(risky: str) -> None:
    """By an apostrophe, so that no spreadsheet runs it; a number stays one, as text too, and a text without as well."""
    assert inert(risky) == f"'{risky}"
    for harmless in (-1, -1.5, "-1", "+2.5e3", "no", "a=b", ""):
        assert inert(harmless) == harmless


@pytest.mark.medium
def test_predictions_hold_nothing_that_a_spreadsheet_runs(tmp_path: Path) -> None:
    """Neither as a label, nor as the name of the target or of a class."""
    facts = Target(column="=y", kind="label", values=("=1+1", "-1"))
    schema = Schema(columns={"a": Number(low=0, high=1)}, target=facts)
    table = {"a": [0.0, 1.0] * 100, "=y": ["=1+1", "-1"] * 100}
    fit_table(table, schema, budget=Budget(epsilon=1e3, delta=1e-6)).save(tmp_path / "model")
    (tmp_path / "rows.csv").write_text("a\n0\n1\n")
    assert said(f"predict {tmp_path}/model {tmp_path}/rows.csv").splitlines() == ["'=y", "'=1+1", "-1"]
    assert said(f"predict --proba {tmp_path}/model {tmp_path}/rows.csv").splitlines()[0] == "'=1+1,-1"


def test_schema_reads_the_header_line_and_nothing_else(tmp_path: Path) -> None:
    """An open quote in it ends there; a file of another format is refused without a word of what it holds."""
    path = tmp_path / "t.csv"
    path.write_text('age,"note\n20,Jane Doe\n30,"x"\n')
    assert told(f"schema {path} --json")["columns"] == ["age", "note"]
    assert "Jane" not in said(f"schema {path}")
    path.write_bytes(b"PAR1\x15\x04Jane Doe")
    refused = privet(f"schema {path}")
    assert refused.exit_code == 2
    assert "Expected a CSV file" in refused.stderr
    assert "Jane" not in refused.output


def test_a_compressed_file_that_is_cut_off_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """Not an abort, and no traceback: the file as a whole cannot be read, whatever its records."""
    whole = gzip.compress(b"age,rich\n" + b"".join(f"{i},{i % 7}\n".encode() for i in range(5000)))
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "t.toml").write_text(
        'target = { column = "rich", kind = "number", range = [0, 7] }\n'
        '[columns]\n"age" = { kind = "number", range = [0, 100] }\n'
    )
    flags = ["--schema", str(tmp_path / "t.toml"), "--epsilon", "1", "--delta", "1e-6", "--out", str(tmp_path / "m")]
    result = CliRunner().invoke(main, ["fit", str(tmp_path / "cut.csv.gz"), *flags])
    assert result.exit_code == 2
    assert "cut off or damaged" in result.output
    assert not (tmp_path / "m" / "model.json").exists()
