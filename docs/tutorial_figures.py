"""The figures of the tutorials, drawn by draw.py when the pages are built."""

from __future__ import annotations

import warnings
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_digits

from privet.accounting import Gaussian, calibrate, epsilon, random_trials
from privet.estimators import LogisticRegression
from privet.report import rehearse
from privet.report.canvas import FAINT, canvas, styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (6.2, 4.6)  # small paper, so that letters can be read on a phone
_ASKED = {"delta": 1e-6, "neighbours": "replace_one"}


def epsilon_figure() -> Figure:
    """What the model of tutorial-epsilon scores, for a table of 1,000 rows and for one of 10,000."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(3_000, 4))
    y = X @ [3, -2, 1, 0] + rng.logistic(size=3_000) > 0
    model = LogisticRegression(delta=1e-6, bounds=(-1, 1), classes=[False, True], random_state=0)
    at = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
    with canvas("What epsilon costs", "the rows of this page", size=SIZE) as (figure, axes):
        floor = 0.5
        for style, records in zip(styles(), (1_000, 10_000), strict=False):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few records and little budget: that is what is shown
                found = rehearse(model, X, y, records=records, epsilons=at, runs=5)
            floor = found.floor
            scores = [found.scores[e] for e in at]
            low, high = [min(s) for s in scores], [max(s) for s in scores]
            axes.fill_between(at, low, high, color=style["color"], alpha=0.2, linewidth=0)
            axes.plot(at, [np.mean(s) for s in scores], marker="o", label=f"{records:,} private rows", **style)
        axes.axhline(floor, color=FAINT, linestyle=(0, (4, 3)), linewidth=1.4, label="a constant guess")
        axes.set(xscale="log", xlabel="ε (nats)", ylabel="share predicted rightly")
        axes.set_xticks(at, [f"{e:g}" for e in at])
        axes.minorticks_off()
        axes.legend(loc="lower right")
    return figure


def people_figure() -> Figure:
    """Epsilon of somebody with k rows, under a promise of epsilon 1 for rows and for people."""
    noise = calibrate(lambda s: Gaussian(noise_multiplier=s), epsilon=1, **_ASKED)
    rows = [1, 2, 3, 5, 7, 10, 14, 20, 28, 40]
    by_row = [epsilon(Gaussian(noise_multiplier=noise / k), **_ASKED) for k in rows]
    with canvas("What one patient was promised", "ε = 1 asked for, δ = 1e-6", size=SIZE) as (figure, axes):
        first, second = islice(styles(), 2)
        axes.plot(rows, by_row, marker="o", label="a promise for rows", **first)
        axes.plot(rows, [1.0] * len(rows), label="a promise for people", **second)
        axes.set(xscale="log", yscale="log", xlabel="rows about the patient", ylabel="ε of the patient (nats)")
        axes.set_xticks([1, 2, 5, 10, 20, 40], ["1", "2", "5", "10", "20", "40"])
        axes.set_yticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
        axes.minorticks_off()
        axes.legend()
    return figure


def tuning_figure() -> Figure:
    """Epsilon of one trial, where all together may cost 1."""
    trials = [2, 3, 5, 10, 20, 50, 100]

    def each(noise: float) -> float:
        return epsilon(Gaussian(noise_multiplier=noise), **_ASKED)

    best = [
        each(calibrate(lambda s, k=k: random_trials(Gaussian(noise_multiplier=s), mean=k), epsilon=1, **_ASKED))
        for k in trials
    ]
    every = [each(calibrate(lambda s, k=k: Gaussian(noise_multiplier=s) * k, epsilon=1, **_ASKED)) for k in trials]
    with canvas("What is left for one trial", "ε = 1 in all, δ = 1e-6", size=SIZE) as (figure, axes):
        first, second = islice(styles(), 2)
        axes.plot(trials, best, marker="o", label="the best of a random number", **first)
        axes.plot(trials, every, marker="o", label="every trial charged", **second)
        axes.set(xscale="log", ylim=(0, 1), xlabel="trials (on average)", ylabel="ε of one trial (nats)")
        axes.set_xticks(trials, [str(k) for k in trials])
        axes.minorticks_off()
        axes.legend()
    return figure


def torch_figure() -> Figure:
    """Accuracy on public digits after each epoch, plain and at three budgets, noise with a fixed seed."""
    import torch
    from torch import nn

    from privet.randomness import fixed_seed_invalidates_guarantee
    from privet.torch import fit

    pixels, labels = load_digits(return_X_y=True)
    x, y = torch.from_numpy(pixels).float() / 16, torch.from_numpy(labels)
    private, public = (x[:1_400], y[:1_400]), (x[1_400:], y[1_400:])
    loss, epochs, curves = nn.CrossEntropyLoss(reduction="none"), 20, {}

    def network() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
        return model, torch.optim.Adam(model.parameters(), lr=0.01)

    model, optimizer = network()
    curves["without privacy"] = []
    for _ in range(epochs):
        for rows in torch.randperm(1_400, generator=torch.Generator().manual_seed(0)).split(350):
            optimizer.zero_grad()
            loss(model(private[0][rows]), private[1][rows]).mean().backward()
            optimizer.step()
        with torch.no_grad():
            curves["without privacy"].append(float((model(public[0]).argmax(1) == public[1]).double().mean()))
    for budget in (8, 3, 1):
        model, optimizer = network()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the seed
            found = fit(
                model, private, loss=loss, epsilon=budget, delta=1e-5, epochs=epochs, batch_size=350,
                optimizer=optimizer, validation=public, random=fixed_seed_invalidates_guarantee(0),
            )  # fmt: skip
        curves[f"ε = {budget}"] = [row["accuracy"] for row in found.history]
    with canvas("Reading digits", "1,400 private digits, δ = 1e-5", size=SIZE) as (figure, axes):
        for style, (name, curve) in zip(styles(), curves.items(), strict=False):
            axes.plot(range(1, epochs + 1), curve, label=name, **style)
        axes.set(ylim=(0, 1), xlabel="epochs", ylabel="share of public digits read rightly")
        axes.set_xticks([1, 5, 10, 15, 20])
        axes.legend(loc="lower right")
    return figure
