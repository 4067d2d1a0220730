"""Opacus on MNIST: its example's network, the noise of a given budget; for the peers' environment.

    python benchmarks/torch_accuracy_peer.py --data ../shared/data --epsilon 3 --seed 0

The defaults are those of its example (examples/mnist.py): ten epochs of Poisson batches of 64, rate 0.1, clip 1, hooks.
Prints one JSON line an epoch: epochs done, epsilon spent as Opacus reports it, accuracy on test rows, CPU time so far;
`average` is the accuracy of a running average of weights, if one is asked for. `torch_accuracy.py` starts it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

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
    parser.add_argument("--momentum", type=float, default=0.0)
    parser.add_argument("--average", type=float, help="how much of it an average of weights keeps at a step")
    parser.add_argument("--tanh", action="store_true", help="in place of ReLU")
    parser.add_argument("--mode", choices=["hooks", "ghost"], default="hooks")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    _train(options)


def network(activation: type[nn.Module] = nn.ReLU) -> nn.Module:
    """The network of Opacus' example, which is also that of TensorFlow Privacy's tutorial."""
    first, second = nn.Conv2d(1, 16, 8, 2, padding=3), nn.Conv2d(16, 32, 4, 2)
    body = [first, activation(), nn.MaxPool2d(2, 1), second, activation(), nn.MaxPool2d(2, 1), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(512, 32), activation(), nn.Linear(32, 10))


def _train(options: argparse.Namespace) -> None:
    x, y, x_test, y_test = _digits(options.data)
    model = network(nn.Tanh if options.tanh else nn.ReLU)  # in channels_last Opacus 1.6.0 has wrong gradients
    engine, private, optimizer, criterion, loader = _private(model, x, y, options)
    average = None
    if options.average is not None:
        average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(options.average))
    start = time.process_time()
    for epoch in range(1, options.epochs + 1):
        for inputs, classes in loader:
            optimizer.zero_grad(set_to_none=True)
            criterion(private(inputs), classes).backward()
            optimizer.step()
            if average is not None:
                average.update_parameters(model)
        facts = {"epoch": epoch, "cpu": time.process_time() - start, "accuracy": _accuracy(model, x_test, y_test)}
        if average is not None:
            facts["average"] = _accuracy(average, x_test, y_test)
        spent, noise = engine.get_epsilon(DELTA), optimizer.noise_multiplier
        print(json.dumps({**facts, "epsilon": spent, "noise": noise}), flush=True)


def _private(model: nn.Module, x: Tensor, y: Tensor, options: argparse.Namespace) -> tuple[Any, ...]:
    """Opacus' engine, and what takes the place of model, optimiser, loss and loader."""
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    engine, loss = PrivacyEngine(), nn.CrossEntropyLoss()
    found = engine.make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=options.rate, momentum=options.momentum),
        criterion=loss,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=options.batch),
        target_epsilon=options.epsilon,
        target_delta=DELTA,
        epochs=options.epochs,
        max_grad_norm=options.clip,
        grad_sample_mode=options.mode,
    )
    private, optimizer, *criterion, loader = found
    return engine, private, optimizer, *(criterion or [loss]), loader


def _digits(data: Path) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    found = np.load(data / "mnist.npz")
    x, y, x_test, y_test = (torch.from_numpy(found[key]) for key in ("X_train", "y_train", "X_test", "y_test"))
    x, x_test = ((part[:, None].float() / 255 - MEAN) / STDDEV for part in (x, x_test))
    return x, y.long(), x_test, y_test.long()


def _accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return float((model(x).argmax(1) == y).double().mean())


if __name__ == "__main__":
    main()
