"""Private gradient descent: speed of its parts, and risk against the proven bounds; one machine, one go.

    python benchmarks/descent.py            everything, some minutes
    python benchmarks/descent.py --quick    small sizes, to see that it runs

Writes results/descent.json (all numbers) and results/descent.md (bars and tables). `make bench-descent` prepares the
environment. A ratio is between two things that were timed in turn, in the same process: the median over the rounds of
one time divided by the other, so that a machine that is busy for a while slows both.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from descent_page import page
from threadpoolctl import threadpool_limits

from privet import Budget, glm, l2_ball, noisy_gradient_descent, whole_space
from privet.clipping import Clip
from privet.losses import loss_named
from privet.noise import add_gaussian
from privet.randomness import fixed_seed_invalidates_guarantee, system_random
from privet.sampling import Poisson
from privet.solvers.plain_descent import projected_gradient_descent
from privet.sums import bounded_table, compiled, glm_sum

HERE = Path(__file__).parent
Results = dict[str, Any]


def main() -> None:
    """Measure, then write the two result files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    results: Results = {
        "facts": {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "load": round(os.getloadavg()[0], 2),
            "numpy": np.__version__,
            "python": platform.python_version(),
        }
    }
    for stage in (kernel, sampling, noise, rank, risk):
        print(stage.__name__, flush=True)
        results[stage.__name__] = stage(options.quick)
        (options.output / "descent.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (options.output / "descent.md").write_text(page(results), encoding="utf-8")
    print(f"Wrote {options.output / 'descent.md'}")


def paired(*actions: Callable[[], object], rounds: int) -> list[list[float]]:
    """Wall times of each action, taken in turn; one round first that does not count."""
    times: list[list[float]] = [[] for _ in actions]
    for number in range(rounds + 1):
        for action, taken in zip(actions, times, strict=True):
            start = time.perf_counter()
            action()
            if number:
                taken.append(time.perf_counter() - start)
    return times


def ratio(one: list[float], other: list[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


@contextmanager
def path(name: str) -> Iterator[None]:
    """Sums by NumPy alone, or by the compiled functions."""
    before = compiled._WORTH_CALLING
    compiled._WORTH_CALLING = 2**62 if name == "plain" else 0
    try:
        yield
    finally:
        compiled._WORTH_CALLING = before


def kernel(quick: bool) -> Results:
    """One clipped full-batch logistic gradient against one streaming read of X."""
    n, d = (100_000, 100) if quick else (1_000_000, 100)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X32 = X.astype(np.float32)
    y = (rng.random(n) < 0.5).astype(np.float64)
    w = rng.standard_normal(d)
    w32 = w.astype(np.float32)
    derivative = loss_named("logistic").derivative
    start = time.perf_counter()
    table = bounded_table(X, row_norm=1.0)
    prepared = time.perf_counter() - start
    rule = Clip(clip=0.5)
    start = time.perf_counter()
    best = "plain" if compiled.kernels() is None else "compiled"
    loaded = time.perf_counter() - start

    def private(threads: int, how: str = best) -> Callable[[], Any]:
        def run() -> Any:
            with path(how):
                return glm_sum(derivative, table, y, w, rule=rule, threads=threads, max_records=n)

        return run

    def two_products() -> object:
        a = derivative(X @ w, y)
        return a @ X

    rows = np.linalg.norm(X, axis=1)

    def materialised() -> object:
        gradients = derivative(X @ w, y)[:, None] * X
        gradients *= np.minimum(1.0, 0.5 / np.maximum(np.linalg.norm(gradients, axis=1), 1e-300))[:, None]
        return gradients.sum(axis=0)

    def clipped_products() -> object:
        a = derivative(X @ w, y)
        a *= np.minimum(1.0, 0.5 / np.maximum(np.abs(a) * rows, 1e-300))
        return a @ X

    rounds = 5 if quick else 25
    paths = {}
    with threadpool_limits(1):
        for how in dict.fromkeys(("plain", best)):
            read, read32, one, two = paired(
                lambda: X @ w, lambda: X32 @ w32, private(1, how), private(2, how), rounds=rounds
            )
            paths[how] = {
                "read_ms": 1e3 * min(read),
                "read32_ms": 1e3 * min(read32),
                "one_ms": 1e3 * min(one),
                "two_ms": 1e3 * min(two),
                "ratio_float64": ratio(one, read),
                "ratio_float32": ratio(one, read32),
                "two_threads": ratio(one, two),
            }
        z = X @ w
        with ThreadPoolExecutor(2) as pool:
            alone, halved = paired(
                lambda: np.dot(X, w), lambda: list(pool.map(np.dot, (X[: n // 2], X[n // 2 :]), (w, w))), rounds=rounds
            )
            slope, slopes = paired(
                lambda: derivative(z, y),
                lambda: list(pool.map(derivative, (z[: n // 2], z[n // 2 :]), (y[: n // 2], y[n // 2 :]))),
                rounds=rounds,
            )
        read_again, unclipped, slow, plain = paired(
            lambda: X @ w, two_products, materialised, clipped_products, rounds=3
        )
    tracemalloc.start()
    private(1)()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    exact = private(2)()
    assert (exact.units == private(1, "plain")().units).all()
    a = derivative(X @ w, y)
    a *= np.minimum(1.0, 0.5 / np.maximum(np.abs(a) * rows, 1e-300))
    found = paths[best]
    return {
        "n": n,
        "d": d,
        "path": best,
        "paths": paths,
        "load_ms": 1e3 * loaded,
        "read_ms": found["read_ms"],
        "read32_ms": found["read32_ms"],
        "private_ms": found["one_ms"],
        "prepare_ms": 1e3 * prepared,
        "ratio_float64": found["ratio_float64"],
        "ratio_float32": found["ratio_float32"],
        "ratio_two_products": ratio(unclipped, read_again),
        "ratio_clipped_products": ratio(plain, read_again),
        "ratio_materialised": ratio(slow, read_again),
        "two_threads": found["two_threads"],
        "two_threads_of_a_read": ratio(alone, halved),
        "two_threads_of_the_derivative": ratio(slope, slopes),
        "extra_megabytes": peak / 1e6,
        "relative_difference": float(np.linalg.norm(exact.value - a @ X) / np.linalg.norm(a @ X)),
        "bytes_read": int(table.units.nbytes),
    }


def sampling(quick: bool) -> Results:
    """A Poisson batch of 256 out of n."""
    random = system_random()
    sizes = [10**4, 10**6, 10**8, 10**12]
    draws = [(lambda n=n: Poisson(sampling_rate=256 / n).indices(n, 0, random)) for n in sizes]
    times = paired(*draws, rounds=20 if quick else 200)
    tracemalloc.start()
    Poisson(sampling_rate=256 / 10**8).indices(10**8, 0, random)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    generator = np.random.default_rng(0)
    naive = paired(lambda: np.flatnonzero(generator.random(10**6) < 256 / 10**6), rounds=5)[0]
    return {
        "microseconds": {str(n): 1e6 * statistics.median(t) for n, t in zip(sizes, times, strict=True)},
        "ratio_1e8_to_1e4": ratio(times[2], times[0]),
        "peak_bytes_1e8": peak,
        "one_uniform_a_record_1e6_microseconds": 1e6 * statistics.median(naive),
    }


def noise(quick: bool) -> Results:
    """A million coordinates of lattice noise, and the whole release, against NumPy's normal draw."""
    d = 10**5 if quick else 10**6
    random = system_random()
    generator = np.random.default_rng(0)
    units = generator.integers(-(2**40), 2**40, d)
    with threadpool_limits(1):
        plain, release = paired(
            lambda: generator.standard_normal(d),
            lambda: add_gaussian(units, step=2.0**-34, noise_stddev=3.0, random=random),
            rounds=10 if quick else 30,
        )
    return {
        "d": d,
        "numpy_ns": 1e9 * statistics.median(plain) / d,
        "release_ns": 1e9 * statistics.median(release) / d,
        "ratio": ratio(release, plain),
    }


def rank(quick: bool) -> Results:
    """The same rank-5 records in ever more dimensions, with and without projection: lecture 13 (Brown), theorem 4.1."""
    n, r, runs = 1000, 5, 3 if quick else 12
    dimensions = (5, 50, 500) if quick else (5, 50, 500, 3000)
    rng = np.random.default_rng(5)
    core = rng.standard_normal((n, r))
    core /= np.linalg.norm(core, axis=1, keepdims=True)
    truth = rng.standard_normal(r)
    truth *= 3 / np.linalg.norm(truth)
    y = (rng.random(n) < 1 / (1 + np.exp(-core @ truth))).astype(np.float64)
    base = glm("logistic", core, y, row_norm=1.0)
    best = projected_gradient_descent(base, steps=20_000, step_size=4.0, release="last").released
    size = float(np.linalg.norm(best))
    rows = []
    for d in dimensions:
        basis = np.linalg.qr(np.random.default_rng(d).standard_normal((d, r)))[0]
        X = core @ basis.T
        row: Results = {"d": d}
        for name, domain in (("free", whole_space()), ("ball", l2_ball(radius=size))):
            problem = glm("logistic", X, y, row_norm=1.0, domain=domain)
            excess = []
            for seed in range(runs):
                result = noisy_gradient_descent(
                    problem,
                    budget=Budget(epsilon=1, delta=1e-5),
                    method="rank" if name == "free" else "average",
                    rank=r if name == "free" else None,
                    radius=size,
                    max_steps=2000,
                    random=fixed_seed_invalidates_guarantee(seed),
                )
                excess.append(mean_loss(X, y, result.coef) - mean_loss(core, y, best))
                row[f"{name}_bound"] = result.bound
            row[name] = statistics.mean(excess)
            row[f"{name}_error"] = statistics.stdev(excess) / len(excess) ** 0.5
        rows.append(row)
    return {"n": n, "rank": r, "runs": runs, "epsilon": 1, "delta": 1e-5, "rows": rows}


def risk(quick: bool) -> Results:
    """Mean excess risk of noisy projected descent against its proven bound."""
    runs = 3 if quick else 20
    rows = []
    for n, d, epsilon in ((500, 5, 0.5), (2000, 5, 1.0), (2000, 20, 1.0), (10_000, 20, 1.0)):
        rng = np.random.default_rng(n + d)
        X = rng.standard_normal((n, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        truth = rng.standard_normal(d)
        truth *= 2 / np.linalg.norm(truth)
        y = (rng.random(n) < 1 / (1 + np.exp(-X @ truth))).astype(np.float64)
        problem = glm("logistic", X, y, row_norm=1.0, domain=l2_ball(radius=2.0))
        best = projected_gradient_descent(problem, steps=20_000, step_size=4.0, release="last").released
        for release in ("average", "last"):
            excess = []
            for seed in range(runs):
                result = noisy_gradient_descent(
                    problem,
                    budget=Budget(epsilon=epsilon, delta=1e-6),
                    release=release,
                    max_steps=1000,
                    random=fixed_seed_invalidates_guarantee(seed),
                )
                excess.append(mean_loss(X, y, result.coef) - mean_loss(X, y, best))
            rows.append(
                {
                    "n": n,
                    "d": d,
                    "epsilon": epsilon,
                    "release": release,
                    "excess": statistics.mean(excess),
                    "error": statistics.stdev(excess) / runs**0.5,
                    "bound": result.bound,
                }
            )
    return {"runs": runs, "rows": rows}


def mean_loss(X: np.ndarray, y: np.ndarray, theta: np.ndarray) -> float:
    """The average logistic loss."""
    return float(np.mean(loss_named("logistic").value(X @ theta, y)))


if __name__ == "__main__":
    main()
