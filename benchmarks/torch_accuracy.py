"""How well the usual small network learns MNIST at ε = 3, δ = 1e-5: privet's recipe beside Opacus, in one run.

    python benchmarks/torch_accuracy.py                          three rounds, all settings
    python benchmarks/torch_accuracy.py --rounds 1 --only privet,example
    python benchmarks/torch_accuracy.py --more                   further rounds, beside the numbers that are there
    python benchmarks/torch_accuracy.py --page                   the page anew, from the numbers that are there

Writes results/torch-accuracy.json (every run) and results/torch-accuracy.md after each training run, so that a long one
may be stopped. `make bench-torch-accuracy` prepares the two environments, privet's and the peers'. In a round each
setting trains once, one after the other, in a process of its own with one thread; the round's number seeds the first
weights. Scored are test rows, once a run, at its end; settings were chosen on training rows, or are the peer's own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from torch_accuracy_page import page
from torch_steps import HERE, _facts

EXAMPLES = HERE.parent / "examples"
Results = dict[str, Any]


def main() -> None:
    """Train and score round by round, writing the two files after each run."""
    options = _options()
    path = options.output / "torch-accuracy.json"
    kept = (options.more or options.page) and path.exists()
    results: Results = json.loads(path.read_text(encoding="utf-8")) if kept else {"runs": {}}
    if not options.page:
        results["facts"] = _facts(options.rounds)
        settings = _settings(options)
        results["settings"] = results.get("settings", {}) | {name: _shown(settings[name]) for name in options.only}
        for _ in range(options.rounds):
            for name in options.only:
                runs = results["runs"].setdefault(name, [])
                runs.append(_run(settings[name], seed=len(runs)))
                print(name, runs[-1], flush=True)
                path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
                (options.output / "torch-accuracy.md").write_text(page(results), encoding="utf-8")
    (options.output / "torch-accuracy.md").write_text(page(results), encoding="utf-8")


def _settings(options: argparse.Namespace) -> dict[str, list[str]]:
    """The command of each setting."""
    sys.path.insert(0, str(EXAMPLES))
    from mnist_cnn import BATCH, CLIP, EMA, MOMENTUM, RATE, STEPS

    epochs = max(1, round(STEPS * BATCH / 60_000))
    recipe = f"--epochs {epochs} --batch {BATCH} --rate {RATE} --clip {CLIP} --momentum {MOMENTUM} --average {EMA}"
    peer = [str(options.peers), str(HERE / "torch_accuracy_peer.py"), "--data", str(options.data)]
    ours = [sys.executable, str(HERE / "torch_accuracy_run.py"), "--data", str(options.data)]
    return {
        "privet": ours,
        "example": peer,
        "readme": [*peer, "--epochs", "60", "--batch", "240", "--rate", "0.15"],
        "recipe": [*peer, *recipe.split(), "--tanh", "--mode", "ghost"],
    }


def _shown(command: list[str]) -> str:
    return " ".join(command[command.index("--data") + 2 :])


def _run(command: list[str], *, seed: int) -> Results:
    """What one training run says at its end, or why it failed."""
    limits = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    asked = [*command, "--seed", str(seed)]
    done = subprocess.run(asked, env={**os.environ, **limits}, capture_output=True, text=True)
    if done.returncode != 0:
        return {"failed": done.stderr[-300:]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="privet,example,readme,recipe", help="with commas between")
    parser.add_argument("--more", action="store_true", help="keep the runs that are there")
    parser.add_argument("--peers", default=str(HERE.parent / ".venv-torch-peers" / "bin" / "python"))
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--page", action="store_true", help="write the page anew, from the numbers that are there")
    found = parser.parse_args()
    found.only = found.only.split(",")
    if not (found.data / "mnist.npz").exists():
        raise SystemExit(f"Expected mnist.npz in {found.data}: name its folder with --data.")
    if set(found.only) - {"privet"} and not found.page and not Path(found.peers).exists():
        raise SystemExit(f"Expected the peers' Python at {found.peers}: `make bench-torch-accuracy` prepares it.")
    return found


if __name__ == "__main__":
    main()
