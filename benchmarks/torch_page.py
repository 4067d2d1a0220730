"""The measured numbers of private steps of networks as a page of Markdown."""

from __future__ import annotations

from typing import Any

from torch_models import BATCH, SHAPES
from torch_modes import MODES, PEERS

Results = dict[str, Any]
MOST = {"logreg": 1.0, "mlp": 1.4, "cnn": 1.35, "transformer": 1.3, "lora": 1.05, "lstm": 1.6}
MEMORY, FASTER, EXACT, WRONG = 1.3, 1.4, 1e-5, 1e-3
WALL = {"mlp, 1 thread": 1.1}  # with a spare core, on which noise is drawn
LEAST = 8.0  # megabytes; a plain step that takes less has no memory to be compared with


def page(results: Results) -> str:
    """The whole report."""
    parts = [_head(results["facts"]), "## Bars", _bars(results), *_tables(results["steps"])]
    return "\n\n".join([*parts, _parts(results.get("parts", {}))]) + "\n"


def _head(facts: Results) -> str:
    return f"""# A private training step of a network

Written by `benchmarks/torch_steps.py` ({facts["date"]}); one run on one machine. {facts["system"]}, load average
{facts["load"]}, Python {facts["python"]}, PyTorch {facts["torch"]}. Times are CPU time of a step, all threads together,
the least of {facts["rounds"]} rounds in which the modes took turns; ratios are to the plain PyTorch step of the same
network and batch. Noise is part of every private step. Memory is what a step adds to the process at its peak. The error
is that of the clipped sum without noise, against a loop over examples, relative."""


def _table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(["| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows]])


def _bars(results: Results) -> str:
    rows: list[list[str]] = []
    for key, modes in results["steps"].items():
        name, plain, ours = key.split(",")[0], modes["plain"], modes.get("privet", {})
        if "cpu" not in ours:
            rows.append([f"{key}: privet", ours.get("failed", "not measured"), "**FAIL**"])
            continue
        rows.append(_bar(f"{key}: step ÷ plain, at most {MOST[name]:g}", ours["cpu"] / plain["cpu"], most=MOST[name]))
        spare = modes.get("privet, noise ahead", {})
        if key in WALL and "wall" in spare:
            promise = f"{key}: wall ÷ plain with a spare core, at most {WALL[key]:g}"
            rows.append(_bar(promise, spare["wall"] / plain["wall"], most=WALL[key]))
        peers = {mode: found["cpu"] for mode, found in modes.items() if mode.startswith("Opacus") and "cpu" in found}
        if peers:
            best = min(peers, key=lambda mode: peers[mode])
            rows.append(_bar(f"{key}: {best} ÷ privet, at least {FASTER:g}", peers[best] / ours["cpu"], least=FASTER))
        others = {mode: each["cpu"] for mode, each in modes.items() if mode in PEERS and _is_right(each)}
        if others:
            best = min(others, key=lambda mode: others[mode])
            rows.append(
                _bar(f"{key}: fastest peer ({best}) ÷ privet, at least 1", others[best] / ours["cpu"], least=1.0)
            )
        if plain["megabytes"] >= LEAST:
            ratio = ours["megabytes"] / plain["megabytes"]
            rows.append(_bar(f"{key}: memory ÷ plain, at most {MEMORY:g}", ratio, most=MEMORY))
        rows.append(_bar(f"{key}: error of the clipped sum, at most {EXACT:g}", ours["error"], most=EXACT))
    parts = results.get("parts", {}).get("privet", {})
    if "sampling_ms" in parts:
        drawn = parts["sampling_ms"]["10000000"]["privet"]
        rows.append(_bar("a Poisson batch out of 10,000,000, ms, at most 0.1", drawn, most=0.1))
        noise = parts["noise_ns"]
        if "privet, cryptographic" in noise:
            ratio = noise["privet, cryptographic"] / noise["torch normal_, in place"]
            rows.append(_bar("cryptographic noise ÷ torch normal_, at most 1", ratio, most=1.0))
    return _table(["bar", "measured", ""], rows)


def _is_right(found: Results) -> bool:
    """Whether a peer's step ran, and clipped what it was to clip: one that leaves parameters out is fast at that."""
    return "cpu" in found and (found["error"] or 0.0) < WRONG


def _bar(promise: str, value: float, *, most: float = float("inf"), least: float = 0.0) -> list[str]:
    return [promise, f"{value:.3g}", "pass" if least <= value <= most else "**FAIL**"]


def _tables(steps: Results) -> list[str]:
    found = []
    for key, modes in steps.items():
        name, plain = key.split(",")[0], modes["plain"]
        rows = [_row(mode, modes[mode], plain) for mode in MODES if mode in modes]
        heads = ["mode", "CPU, ms", "÷ plain", "wall, ms", "memory, MB", "÷ plain", "error", ""]
        found.append(f"## {SHAPES[name]}, batch {BATCH[name]}, {key.split(', ')[1]}\n\n{_table(heads, rows)}")
    return found


def _row(mode: str, found: Results, plain: Results) -> list[str]:
    shown = f"**{mode}**" if mode == "privet" else mode
    if "cpu" not in found:
        return [shown, *["–"] * 6, found.get("failed", "")]
    memory = f"{found['megabytes'] / plain['megabytes']:.2f}" if plain["megabytes"] >= LEAST else "–"
    times = [f"{1e3 * found['cpu']:.2f}", f"{found['cpu'] / plain['cpu']:.2f}", f"{1e3 * found['wall']:.2f}"]
    error = "–" if found["error"] is None else f"{found['error']:.1e}"
    return [shown, *times, f"{found['megabytes']:.0f}", memory, error, found["said"]]


def _parts(parts: Results) -> str:
    good = {who: found for who, found in parts.items() if "noise_ns" in found}
    if not good:
        return "Batches and noise were not measured."
    sizes = list(next(iter(good.values()))["sampling_ms"])
    drawn = [
        [mode, *(f"{found['sampling_ms'][size][mode]:.3f}" for size in sizes)]
        for found in good.values()
        for mode in found["sampling_ms"][sizes[0]]
    ]
    noise = [
        [f"{mode} ({who}' environment)" if who == "peers" else mode, f"{value:.2f}"]
        for who, found in good.items()
        for mode, value in found["noise_ns"].items()
    ]
    return "\n\n".join(
        [
            "## A Poisson batch of 256 expected examples, ms of CPU",
            _table(["", *(f"out of {int(size):,}" for size in sizes)], drawn),
            "## Gaussian noise, float32, ns of CPU a coordinate",
            _table(["", "ns"], noise),
        ]
    )
