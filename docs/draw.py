"""Draw the figures of the pages when the pages are built; an extension of Sphinx, see conf.py.

A page shows a figure as Markdown does, `![what it shows](name.svg)`, as if the file lay beside the page; what it shows
becomes the caption. Files are drawn into docs/_figures.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import sklearn
from ahead import TASKS, Task  # beside this file, in no package
from rooms import rooms_figure
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression as SimpleLogisticRegression
from tutorial_figures import epsilon_figure, people_figure, torch_figure, tuning_figure

import privet
from privet.accounting import Gaussian, calibrate
from privet.estimators import LogisticRegression
from privet.lectures.figures import constants_figure
from privet.lectures.figures.bracketed_risk import bracket_figure
from privet.lectures.figures.costs import (
    amplification_figure,
    asked_and_given_figure,
    one_record_figure,
    privacy_loss_figure,
    variance_rule_figure,
)
from privet.lectures.figures.how_good import risk_figure
from privet.lectures.figures.runs import averaging_figure, clip_figure, rank_figure, risk_against_steps_figure
from privet.lectures.figures.sketches import (
    ball_figure,
    convex_figure,
    median_figure,
    projection_figure,
    separators_figure,
    sigmoid_figure,
    triangle_figure,
    where_figure,
)
from privet.plan import plan_training
from privet.report import (
    accuracy_figure,
    batches_figure,
    comparison_figure,
    profile_figure,
    rehearse,
    steps_figure,
    tradeoff_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def promise() -> Figure:
    """What a budget of ε = 1 leaves to an attacker, beside a release with a tenth of its noise."""
    noise = calibrate(lambda s: Gaussian(noise_multiplier=s), epsilon=1, delta=1e-6, neighbours="replace_one")
    runs = {"ε = 1": Gaussian(noise_multiplier=noise), "a tenth of the noise": Gaussian(noise_multiplier=noise / 10)}
    return tradeoff_figure(runs, neighbours="replace_one")


_STEP = Gaussian(noise_multiplier=1.1).poisson(rate=256 / 60_000)  # of DP-SGD on MNIST, batches of 256
_RUNS = {"noise 1.1": _STEP * 14_062, "noise 2": Gaussian(noise_multiplier=2.0).poisson(rate=256 / 60_000) * 14_062}
_ASKED = {"delta": 1e-5, "neighbours": "add_remove"}

# Where a page finds the figure, and what draws it.
FIGURES: dict[str, Callable[[], Figure]] = {
    "choosing-2000.svg": partial(digits, 2_000),
    "choosing-20000.svg": partial(digits, 20_000),
    "networks-batches.svg": batches,
    "tutorial-csv.svg": promise,
    "tutorial-epsilon.svg": epsilon_figure,
    "tutorial-people.svg": people_figure,
    "tutorial-tuning.svg": tuning_figure,
    "tutorial-torch.svg": torch_figure,
    "gallery-profile.svg": partial(profile_figure, _RUNS, neighbours="add_remove"),
    "gallery-steps.svg": partial(steps_figure, _STEP, steps=14_062, accountants=["auto", "renyi"], **_ASKED),
    "gallery-tradeoff.svg": partial(tradeoff_figure, _RUNS, neighbours="add_remove"),
    "gallery-comparison.svg": partial(comparison_figure, _RUNS["noise 1.1"], **_ASKED),
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
    "lectures/clipping-bias.svg": partial(clip_figure, points=13),
    "lectures/clipping-averaging.svg": averaging_figure,
    "lectures/razaviyayn-amplification.svg": amplification_figure,
    "lectures/razaviyayn-loss.svg": privacy_loss_figure,
    "lectures/nikolov-variance.svg": variance_rule_figure,
    "lectures/wu-bracket.svg": partial(bracket_figure, "wu"),
    "lectures/glm-bracket.svg": partial(bracket_figure, "brown-glm"),
    "lectures/clipping-bracket.svg": partial(bracket_figure, "brown-clipping"),
    "lectures/razaviyayn-bracket.svg": partial(bracket_figure, "razaviyayn"),
    "lectures/nikolov-bracket.svg": partial(bracket_figure, "nikolov"),
    "lectures/wu-projection.svg": projection_figure,
    "lectures/wu-triangle.svg": triangle_figure,
    "lectures/razaviyayn-where.svg": where_figure,
    "lectures/razaviyayn-median.svg": median_figure,
    "lectures/nikolov-separators.svg": separators_figure,
    "lectures/nikolov-logistic.svg": sigmoid_figure,
    "lectures/nikolov-convex.svg": convex_figure,
    "lectures/nikolov-ball.svg": ball_figure,
}

# About how long those take that take long: they begin first.
SECONDS = {
    "choosing-2000.svg": 8.0,
    "choosing-20000.svg": 16.0,
    "tutorial-epsilon.svg": 5.0,
    "tutorial-torch.svg": 14.0,
    "lectures/how-good-n.svg": 54.0,
    "lectures/how-good-d.svg": 54.0,
    "lectures/how-good-epsilon.svg": 54.0,
    "lectures/clipping-bias.svg": 5.0,
}


def svg(figure: Figure) -> bytes:
    """The figure as SVG, letters as outlines, the same bytes each time."""
    with mpl.rc_context({"svg.hashsalt": "privet", "svg.fonttype": "path"}), io.BytesIO() as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()


def drawn_from() -> str:
    """A digest of all that the figures follow from: where it is the old one, so are they."""
    source = Path(privet.__file__).parent
    here = [Path(__file__).with_name(name) for name in ("draw.py", "rooms.py", "tutorial_figures.py")]
    texts = [path.read_bytes() for path in (*sorted(source.rglob("*.py")), *here)]
    versions = f"{mpl.__version__} {np.__version__} {sklearn.__version__}".encode()
    return hashlib.sha256(b"\0".join([versions, *texts])).hexdigest()


def draw_one(path: Path) -> None:
    """Draw the figure that a file of `_figures` is of."""
    place = path.name if path.parent.name == "_figures" else f"{path.parent.name}/{path.name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(svg(FIGURES[place]()))


def draw_all(app: Any, env: Any, docnames: list[str]) -> None:
    """Have the figures drawn; called by Sphinx before it reads a page."""
    folder = Path(app.srcdir) / "_figures"
    stamp, digest = folder / "drawn-from", drawn_from()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == digest:
        return
    stamp.unlink(missing_ok=True)  # so that figures that are not all drawn are not taken for such
    TASKS.extend(Task(SECONDS.get(place, 1.0), draw_one, folder / place, lambda _: None) for place in FIGURES)

    def drawn(app: Any, env: Any) -> None:
        stamp.write_text(digest, encoding="utf-8")

    app.connect("env-updated", drawn)


IMAGE = re.compile(r"^\[?!\[(?P<said>[^]]+)\]\((?P<file>[^)\s]+\.svg)\)(?:\]\([^)]*\))?$", re.M)


def on_read(app: Any, docname: str, source: list[str]) -> None:
    """Give a page's figures a caption, and a link to the whole of them; called by Sphinx."""
    folder = Path(docname).parent
    up = "../" * docname.count("/")

    def figure(match: re.Match[str]) -> str:
        place = (folder / match["file"]).as_posix()
        path = f"/_figures/{place}" if place in FIGURES else f"/{place}"
        target = f"{up}_images/{Path(place).name}"
        return (
            f"```{{figure}} {path}\n:alt: {match['said'].replace('`', '')}\n:target: {target}\n\n{match['said']}\n```"
        )

    source[0] = IMAGE.sub(figure, source[0])


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("env-before-read-docs", draw_all)
    app.connect("source-read", on_read)
    return {"parallel_read_safe": True}
