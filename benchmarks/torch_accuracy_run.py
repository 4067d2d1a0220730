"""One run of examples/mnist_cnn.py, scored on test rows; `torch_accuracy.py` starts it.

Prints one JSON line: CPU time, epsilon, noise, accuracy of the last weights and of their running average.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from mnist_cnn import accuracy, digits, train


def main() -> None:
    """Train and score."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    x, y, x_test, y_test = digits(options.data)
    start = time.process_time()
    run = train(x, y, seed=options.seed)
    facts = {"cpu": time.process_time() - start, "accuracy": accuracy(run.model, x_test, y_test)}
    facts |= {"average": accuracy(run.averaged(), x_test, y_test), "epsilon": run.guarantee.epsilon}
    print(json.dumps({**facts, "noise": run.plan.releases[0].noise_multiplier}))


if __name__ == "__main__":
    main()
