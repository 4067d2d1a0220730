"""The usual small convolutional network on MNIST, trained privately at ε = 3; scored on test rows.

    python examples/mnist_cnn.py                     three runs
    python examples/mnist_cnn.py --hold-out --runs 1 trained on 50,000 rows, scored on the other 10,000

The network is that of Opacus' example (examples/mnist.py of Opacus) with tanh in place of ReLU, which keeps gradients
small (Papernot et al. 2021, Tempered sigmoid activations); batches and steps are large, as noise is shared by all of a
batch, and what is scored is a running average of weights. Settings were chosen on rows held out: 97.6 %, against 95.9 %
of 300 steps at rate 2. `make bench-torch-accuracy` trains it beside Opacus; see benchmarks/results/torch-accuracy.md.
Some three minutes of CPU a run. Expects mnist.npz in ../shared/data, or where --data says.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from privet.torch import PrivateTraining

EPSILON, DELTA = 3.0, 1e-5
MEAN, STDDEV = 0.1307, 0.3081  # how Opacus' example scales pixels: a habit of many years, taken as public
BATCH, STEPS, CLIP, RATE, MOMENTUM, EMA = 2048, 600, 0.1, 4.0, 0.9, 0.98  # 97.6 % on rows held out


def network() -> nn.Module:
    """Two convolutions, two linear maps."""
    first, second = nn.Conv2d(1, 16, 8, 2, padding=3), nn.Conv2d(16, 32, 4, 2)
    body = [first, nn.Tanh(), nn.MaxPool2d(2, 1), second, nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10))


def train(x: Tensor, y: Tensor, *, seed: int) -> PrivateTraining:
    """A run that has made all its steps; the seed is that of the first weights, the noise has none."""
    torch.manual_seed(seed)
    model = network()
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # the same network, at half the time
    run = PrivateTraining(
        model,
        torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM),
        (x, y),
        loss=nn.CrossEntropyLoss(reduction="none"),
        epsilon=EPSILON,
        delta=DELTA,
        steps=STEPS,
        batch_size=BATCH,
        clip=CLIP,
        neighbours="add_remove",
        records=len(y),
        ema=EMA,
    )
    for batch in run:
        run.step(batch)
    return run


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Share of digits that are recognised."""
    with torch.no_grad():
        return float((model(x).argmax(1) == y).double().mean())


def main() -> None:
    """Train and score, several times."""
    options = _options()
    torch.set_num_threads(1)
    x, y, x_test, y_test = digits(options.data, hold_out=options.hold_out)
    scores = []
    for seed in range(options.runs):
        start = time.process_time()
        run = train(x, y, seed=seed)
        scores.append(accuracy(run.averaged(), x_test, y_test))
        print(f"{scores[-1]:.4f}   {time.process_time() - start:.0f} s of CPU   {run.guarantee}", flush=True)
    print(f"ε = {EPSILON:g}: {np.mean(scores):.4f}, the mean of {options.runs}")


def digits(data: Path, *, hold_out: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pictures (n, 1, 28, 28) and classes to train on, then those to score on."""
    found = np.load(data / "mnist.npz")
    X, y, X_test, y_test = (found[key] for key in ("X_train", "y_train", "X_test", "y_test"))
    if hold_out:
        order = np.random.default_rng(0).permutation(len(y))
        X, y, X_test, y_test = X[order[:50_000]], y[order[:50_000]], X[order[50_000:]], y[order[50_000:]]
    x, x_test = ((torch.from_numpy(part)[:, None].float() / 255 - MEAN) / STDDEV for part in (X, X_test))
    return x, torch.from_numpy(y).long(), x_test, torch.from_numpy(y_test).long()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--hold-out", action="store_true", help="score on training rows kept apart, to choose settings")
    return parser.parse_args()


if __name__ == "__main__":
    main()
