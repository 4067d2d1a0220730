"""Draw the figures of the pages when the pages are built: mkdocs calls `on_files`, see mkdocs.yml."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import matplotlib as mpl
from rooms import rooms_figure  # beside this file, in no package
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression as SimpleLogisticRegression

from privet.estimators import LogisticRegression
from privet.lectures.figures import constants_figure
from privet.lectures.figures.costs import (
    amplification_figure,
    asked_and_given_figure,
    one_record_figure,
    privacy_loss_figure,
    variance_rule_figure,
)
from privet.lectures.figures.how_good import risk_figure
from privet.lectures.figures.runs import averaging_figure, clip_figure, rank_figure, risk_against_steps_figure
from privet.plan import plan_training
from privet.report import accuracy_figure, batches_figure, rehearse

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files


def digits(records: int) -> Figure:
    """Odd or even, on scikit-learn's handwritten digits as public rows."""
    X, y = load_digits(return_X_y=True)
    model = LogisticRegression(bounds=(0, 16), classes=[0, 1], delta=1e-6, random_state=0)
    found = rehearse(model, X, y % 2, records=records, runs=5)
    plain = SimpleLogisticRegression(max_iter=5_000).fit(X[450:], y[450:] % 2).score(X[:450], y[:450] % 2)
    return accuracy_figure(
        found.scores, plain=plain, floor=found.floor, title="Odd or even digits", subtitle=f"{records:,} private rows"
    )


def batches() -> Figure:
    """Twenty epochs of 60,000 examples, at three budgets."""
    asked = {"records": 60_000, "delta": 1e-6, "compute": 20 * 60_000, "least_steps": 60}
    found = {f"ε = {epsilon}": plan_training(epsilon=epsilon, **asked) for epsilon in (1, 3, 8)}
    return batches_figure(found, subtitle="60,000 examples, 20 epochs, δ = 1e-6, one record added or removed")


# Where a page finds the figure, and what draws it.
FIGURES: dict[str, Callable[[], Figure]] = {
    "choosing-2000.svg": partial(digits, 2_000),
    "choosing-20000.svg": partial(digits, 20_000),
    "networks-batches.svg": batches,
    "rooms.svg": rooms_figure,
    "lectures/constants-1.svg": constants_figure,
    "lectures/constants-1000.svg": partial(constants_figure, steps=1000),
    "lectures/how-good-n.svg": partial(risk_figure, "n"),
    "lectures/how-good-d.svg": partial(risk_figure, "d"),
    "lectures/how-good-epsilon.svg": partial(risk_figure, "epsilon"),
    "lectures/wu-one-record.svg": one_record_figure,
    "lectures/wu-steps.svg": risk_against_steps_figure,
    "lectures/glm-asked.svg": asked_and_given_figure,
    "lectures/glm-rank.svg": rank_figure,
    "lectures/clipping-bias.svg": clip_figure,
    "lectures/clipping-averaging.svg": averaging_figure,
    "lectures/razaviyayn-amplification.svg": amplification_figure,
    "lectures/razaviyayn-loss.svg": privacy_loss_figure,
    "lectures/nikolov-variance.svg": variance_rule_figure,
}


def svg(figure: Figure) -> bytes:
    """The figure as SVG, letters as outlines, the same bytes each time."""
    with mpl.rc_context({"svg.hashsalt": "privet", "svg.fonttype": "path"}), io.BytesIO() as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the figures to the files of the site; called by mkdocs."""
    from mkdocs.structure.files import File  # here, so that the notebooks can be made without mkdocs

    for place, draw in FIGURES.items():
        files.append(File.generated(config, place, content=svg(draw())))
    return files
