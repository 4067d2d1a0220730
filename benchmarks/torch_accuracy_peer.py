"""Opacus on MNIST: its example's network and settings, but the noise of a given budget; for the peers' environment.

    python benchmarks/torch_accuracy_peer.py --data ../shared/data --epsilon 3 --seed 0

Its example (examples/mnist.py of Opacus 1.6.0) trains ten epochs of Poisson batches of 64, rate 0.1, clip 1, hooks.
Prints one JSON line an epoch: epochs done, epsilon spent as Opacus reports it, accuracy on the rows scored.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn

MEAN, STDDEV, DELTA = 0.1307, 0.3081, 1e-5  # how the example scales pixels: a habit of many years, taken as public


def main() -> None:
    """Train and score."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    _train(options)


def network() -> nn.Module:
    """The network of Opacus' example, which is also that of TensorFlow Privacy's tutorial."""
    first, second = nn.Conv2d(1, 16, 8, 2, padding=3), nn.Conv2d(16, 32, 4, 2)
    body = [first, nn.ReLU(), nn.MaxPool2d(2, 1), second, nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10))


def _train(options: argparse.Namespace) -> None:
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    found = np.load(options.data / "mnist.npz")
    x, y, x_test, y_test = (torch.from_numpy(found[key]) for key in ("X_train", "y_train", "X_test", "y_test"))
    x, x_test = ((part[:, None].float() / 255 - MEAN) / STDDEV for part in (x, x_test))
    model, engine = network(), PrivacyEngine()
    private, optimizer, loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=options.rate),
        data_loader=DataLoader(TensorDataset(x, y.long()), batch_size=options.batch),
        target_epsilon=options.epsilon,
        target_delta=DELTA,
        epochs=options.epochs,
        max_grad_norm=options.clip,
    )
    loss, start = nn.CrossEntropyLoss(), time.process_time()
    for epoch in range(1, options.epochs + 1):
        private.train()
        for inputs, classes in loader:
            optimizer.zero_grad(set_to_none=True)
            loss(private(inputs), classes).backward()
            optimizer.step()
        private.eval()
        with torch.no_grad():
            score = float((private(x_test).argmax(1) == y_test).float().mean())
        spent = engine.get_epsilon(DELTA)
        facts = {"epoch": epoch, "epsilon": spent, "accuracy": score, "noise": optimizer.noise_multiplier}
        print(json.dumps({**facts, "cpu": time.process_time() - start}), flush=True)


if __name__ == "__main__":
    main()
