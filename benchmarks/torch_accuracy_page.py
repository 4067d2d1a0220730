"""The accuracy of the small network on MNIST as a page of Markdown."""

from __future__ import annotations

import statistics
from typing import Any

from torch_page import _table

Results = dict[str, Any]
WHO = {
    "privet": "**privet**, examples/mnist_cnn.py",
    "example": "Opacus, its example as it is",
    "readme": "Opacus, its example with the settings its page gives for ε = 2.91",
    "recipe": "Opacus with privet's network and settings",
}


def page(results: Results) -> str:
    """The whole report."""
    tables = {"Bars": _bars(results["runs"]), "Runs": _runs(results), "Settings of Opacus": _settings(results)}
    parts = [_head(results), *(f"## {title}\n\n{table}" for title, table in tables.items())]
    return "\n\n".join(parts) + "\n"


def _head(results: Results) -> str:
    facts = results["facts"]
    return f"""# The usual small network on MNIST at ε = 3, δ = 1e-5

Written by `benchmarks/torch_accuracy.py` ({facts["date"]}); one machine. {facts["system"]},
load average {facts["load"]}, Python {facts["python"]}, PyTorch {facts["torch"]}, one thread. Everyone trains the
network of Opacus' example (two convolutions, two linear maps, 26,010 parameters; tanh where it says so) on 60,000
rows, one record added or removed, and is scored on the 10,000 test rows once a run. The noise is calibrated to ε = 3
by each library's own accountant. privet's settings were chosen on 10,000 training rows kept apart; those of Opacus are
its own, or privet's. Its example as it is has noise 1 and spends less; here it gets the noise of the budget. The
average is a running one of weights: privet's `ema=`, PyTorch's `AveragedModel` beside Opacus. CPU time is that of the
training alone. Of the settings for ε = 2.91, Opacus' own page says 96.78 % ± 0.21, ten runs."""


def _bars(runs: Results) -> str:
    ours = _scores(runs.get("privet", []))
    if not ours:
        return "privet was not measured."
    rows = []
    for who in ("example", "readme"):
        if theirs := _scores(runs.get(who, [])):
            verdict = "pass" if statistics.mean(ours) >= statistics.mean(theirs) else "**FAIL**"
            rows.append([f"at least {WHO[who]}: {_mean(theirs)}", _mean(ours), verdict])
    return _table(["bar", "privet", ""], rows or [["Opacus was not measured: no bar is judged", _mean(ours), "–"]])


def _mean(scores: list[float]) -> str:
    return f"{100 * statistics.mean(scores):.2f} % ({len(scores)} run{'s' * (len(scores) > 1)})"


def _scores(runs: list[Results]) -> list[float]:
    """What a user would keep: the average of weights where there is one."""
    return [run.get("average", run["accuracy"]) for run in runs if "failed" not in run]


def _runs(results: Results) -> str:
    rows = []
    for who, runs in results["runs"].items():
        good = [run for run in runs if "failed" not in run]
        if len(good) < len(runs):
            rows.append([WHO[who], f"{len(runs) - len(good)} failed", *["–"] * 6])
        if good:
            rows.append([WHO[who], *_row(good)])
    heads = ["", "runs", "last weights, %", "mean", "average of weights, %", "mean", "noise", "ε", "CPU, s"]
    return _table(heads, rows)


def _row(runs: list[Results]) -> list[str]:
    last, average = ([run[key] for run in runs if key in run] for key in ("accuracy", "average"))
    shown = [str(len(runs))]
    for scores in (last, average):
        shown += [", ".join(f"{100 * score:.2f}" for score in scores) or "–"]
        shown += [f"{100 * statistics.mean(scores):.2f}" if scores else "–"]
    cpu = statistics.mean(run["cpu"] for run in runs)
    return [*shown, f"{runs[0]['noise']:.3f}", f"{max(run['epsilon'] for run in runs):.4f}", f"{cpu:.0f}"]


def _settings(results: Results) -> str:
    asked = {who: options for who, options in results["settings"].items() if who != "privet"}
    rows = [[WHO[who], f"`{options}`" if options else "nothing"] for who, options in asked.items()]
    return _table(["", "beside `--epochs 10 --batch 64 --rate 0.1 --clip 1.0 --momentum 0`"], rows)
