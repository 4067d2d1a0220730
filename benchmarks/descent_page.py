"""The measured numbers of private gradient descent as a page of Markdown."""

from __future__ import annotations

from typing import Any

Results = dict[str, Any]


def page(results: Results) -> str:
    """The whole report."""
    parts = [_head(results), _bars(results), _kernel(results["kernel"]), _sampling(results["sampling"])]
    parts += [_noise(results["noise"]), _rank(results["rank"]), _risk(results["risk"])]
    return "\n\n".join(parts) + "\n"


def _head(results: Results) -> str:
    facts = results["facts"]
    return f"""# Private gradient descent: its parts and its risk

Written by `benchmarks/descent.py` ({facts["date"]}); one run on one machine. {facts["system"]}, load average
{facts["load"]}, Python {facts["python"]}, NumPy {facts["numpy"]}. Ratios are medians of paired rounds."""


def _table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(["| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows]])


def _bars(results: Results) -> str:
    k, s, z = results["kernel"], results["sampling"], results["noise"]
    bars = [
        ("one private gradient ÷ one read of X, float64, at most 1.6", k["ratio_float64"], k["ratio_float64"] <= 1.6),
        ("the same, float32, at most 1.6", k["ratio_float32"], k["ratio_float32"] <= 1.6),
        ("two threads ÷ one, at least 1.7 times as fast", k["two_threads"], k["two_threads"] >= 1.7),
        ("extra memory of one gradient, MB, at most 40", k["extra_megabytes"], k["extra_megabytes"] <= 40),
        ("a batch out of 1e8 ÷ a batch out of 1e4, at most 2", s["ratio_1e8_to_1e4"], s["ratio_1e8_to_1e4"] <= 2),
        ("a released coordinate, ns, at most 60", z["release_ns"], z["release_ns"] <= 60),
        ("a release ÷ NumPy's normal draw, at most 2.5", z["ratio"], z["ratio"] <= 2.5),
    ]
    return _table(
        ["bar", "measured", ""], [[name, f"{value:.3g}", "pass" if met else "**FAIL**"] for name, value, met in bars]
    )


def _kernel(k: Results) -> str:
    rows = [
        ["**privet**, exact sums on the lattice", f"{k['ratio_float64']:.2f}"],
        ["two products, no clipping", f"{k['ratio_two_products']:.2f}"],
        ["two products, clipped by norms known beforehand, inexact", f"{k['ratio_clipped_products']:.2f}"],
        ["per-record gradients in memory", f"{k['ratio_materialised']:.2f}"],
    ]
    ways = [
        [
            {"plain": "NumPy alone", "compiled": "compiled (Numba, the `fast` extra)"}[name],
            f"{p['one_ms']:.1f}",
            f"{p['two_ms']:.1f}",
            f"{p['ratio_float64']:.2f}",
            f"{p['ratio_float32']:.2f}",
            f"{p['two_threads']:.2f}",
        ]
        for name, p in k["paths"].items()
    ]
    heads = ["path", "one thread, ms", "two, ms", "one ÷ float64 read", "one ÷ float32 read", "one ÷ two threads"]
    return f"""## One clipped logistic gradient, n = {k["n"]:,}, d = {k["d"]}

{_table(["", "÷ one read of X (X @ w, float64, one thread)"], rows)}

X @ w took {k["read_ms"]:.1f} ms ({8e-6 * k["n"] * k["d"] / k["read_ms"]:.1f} GB/s), in float32 {k["read32_ms"]:.1f} ms;
privet {k["private_ms"]:.1f} ms: it reads a quarter of the bytes (16-bit rows, {k["bytes_read"] / 1e6:.0f} MB), made
once in {k["prepare_ms"]:.0f} ms. Its sum differs from the float64 one by {k["relative_difference"]:.1e},
the rounding of the rows.

{_table(heads, ways)}

Both paths give the same bits. Times are the best of the rounds, ratios medians of paired ones. The compiled functions
were loaded in {k["load_ms"]:.0f} ms, once a process; compiling them, once a machine, takes some seconds.
Two threads that do nothing but X @ w, half of it each, are {k["two_threads_of_a_read"]:.2f} times as fast as one here;
two that do nothing but the loss's derivative of all records, {k["two_threads_of_the_derivative"]:.2f} times."""


def _sampling(s: Results) -> str:
    rows = [[f"{int(n):,}", f"{t:.0f}"] for n, t in s["microseconds"].items()]
    return f"""## A Poisson batch of 256

{_table(["records", "µs"], rows)}

Memory at 10⁸ records: {s["peak_bytes_1e8"] / 1e3:.0f} kB. One uniform a record, which is how Opacus draws a batch, took
{s["one_uniform_a_record_1e6_microseconds"]:.0f} µs at 10⁶ records (NumPy)."""


def _noise(z: Results) -> str:
    return f"""## Noise, d = {z["d"]:,}

NumPy's `standard_normal` {z["numpy_ns"]:.1f} ns a coordinate; the whole release (cryptographic words, normals, rounding
to the lattice with exact decisions at cell edges, adding to the sum, scaling) {z["release_ns"]:.1f} ns."""


def _rank(r: Results) -> str:
    rows = [
        [
            str(row["d"]),
            f"{row['free']:.4f} ± {row['free_error']:.4f}",
            f"{row['free_bound']:.3f}",
            f"{row['ball']:.4f} ± {row['ball_error']:.4f}",
            f"{row['ball_bound']:.3f}",
        ]
        for row in r["rows"]
    ]
    return f"""## The rank bound needs no projection

The same rank-{r["rank"]} records (n = {r["n"]:,}) in d dimensions; mean excess risk of {r["runs"]} runs at
ε = 1, δ = 1e-5.

{_table(["d", "whole space", "bound by rank", "in a ball", "its bound"], rows)}"""


def _risk(r: Results) -> str:
    rows = [
        [
            f"{row['n']:,}",
            str(row["d"]),
            f"{row['epsilon']:g}",
            row["release"],
            f"{row['excess']:.4f} ± {row['error']:.4f}",
            f"{row['bound']:.3f}",
        ]
        for row in r["rows"]
    ]
    return f"""## Excess risk and its proven bound

Logistic loss in a ball of radius 2; mean of {r["runs"]} runs, δ = 1e-6, at most 1,000 steps.

{_table(["n", "d", "ε", "release", "excess risk", "proven"], rows)}"""
