"""What a private training step of a network costs beside the plain PyTorch step, and beside the peers' private steps.

    python benchmarks/torch_steps.py                     everything: six networks, one thread and two, some ten minutes
    python benchmarks/torch_steps.py --quick             three rounds, one thread, to see that it runs
    python benchmarks/torch_steps.py --no-peers          privet and plain PyTorch alone
    python benchmarks/torch_steps.py --networks mlp,cnn  some networks; the numbers of the others are kept
    python benchmarks/torch_steps.py --page              the page anew, from the numbers that are there

Writes results/torch.json (all numbers) and results/torch.md (bars and tables). `make bench-torch` prepares the two
environments, privet's and the peers', with the same PyTorch. Each network in each mode lives in a process of its own;
the processes of a network take turns, round by round, so that what else the machine does hits all alike. A mode's time
is the least over the rounds of the CPU time of a step. Before it is timed, each private step without noise is compared
with a loop over examples. fastDP, which is in no registry, is measured if PEERS_FASTDP names a checkout.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import statistics
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch_models import BATCH
from torch_modes import OURS, PEERS
from torch_page import page
from torch_worker import Worker

HERE = Path(__file__).resolve().parent
Results = dict[str, Any]


def main() -> None:
    """Measure, then write the two result files."""
    options = _options()
    path = options.output / "torch.json"
    results: Results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"steps": {}}
    if not options.page:
        names = options.networks.split(",")
        modes = list(OURS) + ([] if options.no_peers else _peers(options.peers))
        results["facts"] = _facts(options.rounds)
        for threads in (1,) if options.quick else options.threads:
            for name in names:
                key = f"{name}, {threads} thread{'s' * (threads > 1)}"
                results["steps"][key] = _network(name, modes, options, threads=threads)
                _store(path, results)
        results["parts"] = _parts(options)
        _store(path, results)
    (options.output / "torch.md").write_text(page(results), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three rounds, one thread, to see that it runs")
    parser.add_argument("--rounds", type=int, default=9, help="how often the modes of a network take turns")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="of a process; one after the other")
    parser.add_argument("--no-peers", action="store_true", help="privet and plain PyTorch alone")
    parser.add_argument("--networks", default=",".join(BATCH), help="with commas between")
    parser.add_argument("--peers", default=str(HERE.parent / ".venv-torch-peers" / "bin" / "python"))
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--page", action="store_true", help="write the page anew, from the numbers that are there")
    found = parser.parse_args()
    found.rounds = 3 if found.quick else found.rounds
    found.output.mkdir(parents=True, exist_ok=True)
    return found


def _peers(python: str) -> list[str]:
    if not Path(python).exists():
        raise SystemExit(f"Expected the peers' Python at {python}: `make bench-torch` prepares it. Or use --no-peers.")
    return [mode for mode in PEERS if "PEERS_FASTDP" in os.environ or not mode.startswith("fastDP")]


def _network(name: str, modes: list[str], options: argparse.Namespace, *, threads: int) -> Results:
    """Each mode of one network: time, memory, error; or why it failed."""
    workers = {
        mode: Worker(options.peers if mode in PEERS else sys.executable, mode, name, threads=threads) for mode in modes
    }
    for _ in range(options.rounds):
        for worker in workers.values():
            if "failed" not in worker.facts:
                worker.round()
    found: Results = {}
    for mode, worker in workers.items():
        worker.stop()
        found[mode] = worker.facts
        if worker.rounds:
            cpu, wall = ([r[clock] for r in worker.rounds] for clock in ("cpu", "wall"))
            found[mode] |= {"cpu": min(cpu), "median": statistics.median(cpu), "wall": min(wall)}
        print(name, threads, mode, found[mode], flush=True)
    return found


def _parts(options: argparse.Namespace) -> Results:
    """Batches and noise, in privet's environment and in the peers'."""
    found: Results = {}
    pythons = {"privet": sys.executable} | ({} if options.no_peers else {"peers": options.peers})
    for who, python in pythons.items():
        limits = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run([python, str(HERE / "torch_parts.py")], env=limits, capture_output=True, text=True)
        found[who] = json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr[-300:]}
    return found


def _facts(rounds: int) -> Results:
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "python": platform.python_version(),
        "torch": version("torch"),
        "rounds": rounds,
    }


def _store(path: Path, results: Results) -> None:
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
