"""Train a small convolutional network on handwritten digits privately: first in one call, then in a loop.

Run with `make demo-torch`. Under a minute, without a network connection.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from privet.torch import PrivateTraining, fit

DELTA = 1e-5
LOSS = nn.CrossEntropyLoss(reduction="none")
Pair = tuple[Tensor, Tensor]


def digits() -> tuple[Pair, Pair]:
    """1,400 digits that play the private data, and 397 that play public ones, with pixels from 0 to 1."""
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    x = torch.from_numpy(pixels[order]).float().reshape(-1, 1, 8, 8) / 16  # public fact: a pixel is 0 to 16
    y = torch.from_numpy(labels[order])
    return (x[:1400], y[:1400]), (x[1400:], y[1400:])


def network() -> nn.Module:
    """Two convolutions and a linear layer, 3,130 parameters; tanh, as it suits clipped gradients."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.Tanh(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, stride=2, padding=1),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # the same network, quicker on a CPU
    return model


def accuracy(model: nn.Module, public: Pair) -> float:
    """Share of public digits that are recognised."""
    with torch.no_grad():
        return float((model(public[0]).argmax(1) == public[1]).double().mean())


def plain(private: Pair, public: Pair) -> float:
    """The same network without privacy."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(80):
        optimizer.zero_grad()
        LOSS(model(private[0]), private[1]).mean().backward()
        optimizer.step()
    return accuracy(model, public)


def main() -> None:
    """Print accuracies by epsilon, and the promise of the last run."""
    begin = time.perf_counter()
    private, public = digits()
    print(f"without privacy  accuracy {plain(private, public):.3f} on {len(public[1])} digits kept apart")
    for epsilon in (1.0, 3.0, 8.0):
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        found = fit(
            model, private, loss=LOSS, epsilon=epsilon, delta=DELTA, epochs=30, batch_size=350,
            optimizer=optimizer, validation=public, ema=0.9,
        )  # fmt: skip
        print(f"epsilon {epsilon:<8g} accuracy {found.history[-1]['accuracy']:.3f}")

    print("\nThe same in a loop of one's own, three steps of it:")
    model = network()
    descent = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    run = PrivateTraining(model, descent, private, loss=LOSS, epsilon=3, delta=DELTA, epochs=40, batch_size=350)
    for batch in run:
        run.step(batch)
        print(f"step {run.steps_made} of {len(run)}: epsilon spent so far {run.epsilon_spent:.3f}")
        if run.steps_made == 3:
            break
    print(f"\n{run.plan}\n\n{run.guarantee}\n\n{time.perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
