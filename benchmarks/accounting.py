"""Price the same runs with privet and with its peers, on one machine in one go, and write down what came out.

    python benchmarks/accounting.py              everything, about half an hour with the peers
    python benchmarks/accounting.py --quick      the panel only, few repetitions
    python benchmarks/accounting.py --no-peers   privet alone
    python benchmarks/accounting.py --scan 50    50 random settings in place of 300

Writes results/accounting.json (all numbers) and results/accounting.md (bars and tables). `--report` writes the second
again from the first. `make bench-accounting` prepares the environment.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cases import HERE, Case, hard_cases, load_panel, random_cases
from peers import ADAPTERS, FAST_PEERS, PEERS
from tables import page
from worker import ONE_THREAD, Worker

SEED = 20_261_115
IMPORT = """
import time; wall, cpu = time.perf_counter(), time.process_time()
import privet.accounting
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, then write the two result files."""
    options = _options(arguments)
    folder: Path = options.output
    folder.mkdir(parents=True, exist_ok=True)
    numbers = folder / "accounting.json"
    if options.report:
        results = json.loads(numbers.read_text(encoding="utf-8"))
    else:
        results = {}
        for _ in stages(results, options):  # each stage is written down when it is done, lest a later one be stopped
            numbers.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (folder / "accounting.md").write_text(page(results), encoding="utf-8")
    print(f"Wrote {folder / 'accounting.md'}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the panel only, few repetitions")
    parser.add_argument("--no-peers", action="store_true", help="measure privet alone")
    parser.add_argument("--scan", type=int, default=None, metavar="N", help="random settings to scan (300; quick: 0)")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help="CPU seconds for a question (60)")
    parser.add_argument("--report", action="store_true", help="write the page again from the numbers on file")
    parser.add_argument("--output", type=Path, default=HERE / "results", metavar="DIR", help="where to write")
    return parser.parse_args(arguments)


def stages(results: dict[str, Any], options: argparse.Namespace) -> Iterator[None]:
    """Fill `results` with plain values, stage by stage."""
    _make_importable()
    quick: bool = options.quick
    timeout: float = options.timeout

    def asked(*names: str) -> tuple[str, ...]:
        return () if options.no_peers else names

    results |= {"facts": _facts(), "import": _import_times(), "timeout": timeout, "timeout_clock": "CPU"}
    panel = load_panel()
    results["panel"] = _price(panel, asked(*PEERS), repeats=5 if quick else 21, timeout=timeout)
    yield
    twins = [twin for case in panel if (twin := case.calibrating()) is not None]
    calibrating = () if quick else asked("google_pld")
    results["calibration"] = _price(twins, calibrating, repeats=2 if quick else 7, timeout=timeout)
    yield
    if not quick:
        results["hard"] = _price(hard_cases(), asked(*FAST_PEERS), repeats=7, timeout=timeout, witness=True)
        yield
    scan = options.scan if options.scan is not None else (0 if quick else 300)
    if scan:
        cases = random_cases(scan, seed=SEED)
        results["scan"] = _price(cases, asked("google_pld"), repeats=3, timeout=timeout, witness=True)
        results["seed"] = SEED
        yield


def _make_importable() -> None:
    """Use the source tree when privet is not installed; the child processes inherit this."""
    if importlib.util.find_spec("privet") is None:
        paths = [str(HERE.parent / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)


def _price(
    cases: Iterable[Case], peers: Sequence[str], *, repeats: int, timeout: float, witness: bool = False
) -> list[dict[str, Any]]:
    """Every case by privet (answer and bracket), by its Fourier accountant if `witness`, and by the peers."""
    rows = []
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(Worker(name, timeout=timeout)) for name in ("privet", "privet_fourier", *peers)
        }
        for case in cases:
            replies = {"privet": workers["privet"].ask(case, repeats=repeats)}
            brackets = {"privet": workers["privet"].ask(case, what="bounds", repeats=0)}
            if witness:
                brackets["privet_fourier"] = workers["privet_fourier"].ask(case, what="bounds", repeats=0)
            for name in peers:
                replies[name] = workers[name].ask(case, repeats=min(repeats, 3))
            rows.append({"case": case.to_dict(), "replies": replies, "brackets": brackets})
            told = ", ".join(f"{ADAPTERS[name].label} {_told(reply)}" for name, reply in replies.items())
            print(f"{case.name}: {told}", flush=True)
    return rows


def _told(reply: dict[str, Any]) -> str:
    if "value" in reply:
        return f"{reply['value']:.8g} in {1e3 * reply['cpu']:.3g} ms"
    return "unsupported" if "unsupported" in reply else f"failed ({reply['failed']})"


def _import_times() -> dict[str, Any]:
    """Wall and CPU seconds of `import privet.accounting` in a fresh interpreter, medians of five."""
    wall, cpu = [], []
    for _ in range(5):
        run = subprocess.run(
            [sys.executable, "-c", IMPORT],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **ONE_THREAD},
        )
        if run.returncode != 0:
            return {"failed": (run.stderr.strip().splitlines() or ["no reason given"])[-1]}
        w, c = map(float, run.stdout.split())
        wall.append(w)
        cpu.append(c)
    return {"wall": statistics.median(wall), "cpu": statistics.median(cpu)}


def _facts() -> dict[str, str]:
    """What the numbers depend on."""
    facts = {
        "date": dt.datetime.now(tz=dt.UTC).strftime("%Y-%m-%d"),
        "processor": f"{_processor()}, {os.cpu_count()} cores; one thread for every library",
        "system": f"{platform.system()} {platform.machine()}",
        "load": f"{os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else "unknown",
        "python": platform.python_version(),
    }
    for name in ("privet", "numpy", "scipy", "dp-accounting", "prv-accountant", "opacus", "torch"):
        try:
            facts[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            facts[name] = "from the source tree" if name == "privet" else "not installed"
    return facts


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"


if __name__ == "__main__":
    main()
