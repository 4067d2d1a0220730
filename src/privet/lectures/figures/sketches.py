"""The pictures of the notes, drawn anew: what a proof points at, computed where there is something to compute.

The house style is that of `privet.report.canvas`. Needs the extra `privet[plot]`.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from privet.geometry import box, l2_ball
from privet.report.canvas import COLOURS, FAINT, INK, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (6.2, 4.2)
BLUE, RED, GREEN = COLOURS[:3]


def _bare(axes: "Axes") -> None:
    """Take the ticks and the frame away: a sketch has no scale, but its angles are right."""
    axes.set_aspect("equal", adjustable="datalim")
    axes.axis("off")


def _point(axes: "Axes", at: Any, name: str, offset: tuple[float, float] = (7, 5), colour: str = INK) -> None:
    axes.plot(*at, "o", color=colour, markersize=6)
    axes.annotate(name, at, offset, textcoords="offset points", color=colour)


def _line(axes: "Axes", *points: Any, colour: str = INK, style: str = "-") -> None:
    axes.plot(*zip(*points, strict=True), color=colour, linestyle=style, linewidth=1.8)


def _arrow(axes: "Axes", start: Any, end: Any, colour: str = INK, style: str = "-|>") -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": style, "color": colour, "linewidth": 1.8})


def projection_figure() -> "Figure":
    """Draw lemma 2.2: a point, its projection onto a square, and the angle there towards a point of the set.

    >>> len(projection_figure().axes[0].texts)  # the subtitle and four names
    5
    """
    x, y = np.array([1.9, 1.5]), np.array([-0.6, -0.5])
    nearest = box(low=-1.0, high=1.0, size=2).project(x)
    with canvas("A projection comes nearer to all of C", "the angle at the projection is 90° or more", SIZE) as (
        figure,
        axes,
    ):
        axes.fill([-1, 1, 1, -1], [-1, -1, 1, 1], color=BLUE, alpha=0.15)
        _line(axes, nearest, x, colour=RED)
        _line(axes, nearest, y, colour=BLUE)
        _line(axes, x, y, colour=FAINT, style="--")
        _point(axes, x, "x")
        _point(axes, nearest, "Π(x)", (-10, 9))
        _point(axes, y, "y", (-14, -4))
        axes.annotate("C", (-0.9, 0.8), color=BLUE)
        _bare(axes)
    return figure


def triangle_figure() -> "Figure":
    """Draw claim 2.4: the optimum, an iterate, the point after its step and that point projected.

    >>> {"w*", "w_t", "u_t+1", "w_t+1"} <= {text.get_text() for text in triangle_figure().axes[0].texts}
    True
    """
    best, here, step = np.array([0.0, 0.0]), np.array([2.4, 0.6]), np.array([-0.3, 1.6])
    beyond = here + step
    ball = l2_ball(radius=2.5)
    with canvas("A step, and the way that is left", "2⟨a, b⟩ = |a|² + |b|² − |b − a|²", SIZE) as (figure, axes):
        angles = np.linspace(-0.35, 1.6, 60)
        axes.plot(2.5 * np.cos(angles), 2.5 * np.sin(angles), color=FAINT, linewidth=1.4)
        _line(axes, best, here, colour=BLUE)
        _line(axes, best, beyond, colour=GREEN)
        _arrow(axes, here, beyond, RED)
        _point(axes, best, "w*", (-22, -4))
        _point(axes, here, "w_t", (8, -6))
        _point(axes, beyond, "u_t+1", (6, 6))
        _line(axes, beyond, ball.project(beyond), colour=FAINT, style="--")
        _point(axes, ball.project(beyond), "w_t+1", (-46, 2))
        axes.annotate("−a = −η g", here + step / 2, (8, 0), textcoords="offset points", color=RED)
        axes.annotate("b", here / 2, (0, -14), textcoords="offset points", color=BLUE)
        axes.annotate("b − a", beyond / 2, (-34, 4), textcoords="offset points", color=GREEN)
        axes.annotate("edge of C", (2.5 * math.cos(-0.3), 2.5 * math.sin(-0.3)), (-58, -2), textcoords="offset points")
        _bare(axes)
    return figure


def where_figure() -> "Figure":
    """Draw the way from records to answers, and the four places on it where privacy may be put.

    >>> len(where_figure().axes[0].texts)
    12
    """
    stages = ("records", "training", "model", "answers")
    ways = ("private or\nsynthetic data", "noise in\nevery step", "noise on\nthe model", "noise on\nevery answer")
    with canvas("Where privacy may be put", "all that comes after is free", (6.2, 3.0)) as (figure, axes):
        for place, (stage, way) in enumerate(zip(stages, ways, strict=True)):
            frame = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": INK}
            axes.text(place, 0, stage, ha="center", va="center", bbox=frame)
            axes.text(place, -0.62, way, ha="center", va="center", color=RED, fontsize=10)
            if place:
                _arrow(axes, (place - 0.64, 0), (place - 0.36, 0), FAINT)
        axes.set(xlim=(-0.55, 3.55), ylim=(-1.0, 0.5))
        axes.axis("off")
    return figure


def median_figure(*, tilt: float = -0.4) -> "Figure":
    """Draw the tilted objective of the median of {0, 100} and of {0, 101}, with their minimisers.

    >>> [label for label in median_figure().axes[0].get_legend_handles_labels()[1]]
    ['records 0 and 100', 'records 0 and 101']
    """
    w = np.linspace(-30.0, 150.0, 361)
    with canvas("A tilt shows a record", f"|w|/2 + |w − x|/2 + b w/2 with b = {tilt:g}", SIZE) as (figure, axes):
        for moved, colour, style in ((100.0, BLUE, "-"), (101.0, RED, "--")):
            value = (np.abs(w) + np.abs(w - moved) + tilt * w) / 2
            lowest = int(np.argmin(value))  # records are among the points
            axes.plot(w, value, color=colour, linestyle=style, label=f"records 0 and {moved:g}")
            axes.plot(w[lowest], value[lowest], "o", color=colour)
            axes.annotate(
                f"{w[lowest]:g}", (w[lowest], value[lowest]), (-30 if moved == 100 else 12, -12),
                textcoords="offset points", color=colour,
            )  # fmt: skip
        axes.set(xlabel="w", ylabel="objective")
        axes.legend(loc="upper center")
    return figure


def separators_figure() -> "Figure":
    """Draw points that a line separates, and points that none does.

    >>> separators_figure().axes[0].get_xlabel()
    ''
    """
    rng = np.random.default_rng(106)
    with canvas("Realisable, and agnostic", "left a line is never wrong, right every line is at times", SIZE) as (
        figure,
        axes,
    ):
        for shift, mixed in ((0.0, 0), (1.4, 4)):
            points = rng.uniform(size=(40, 2))
            points = points[np.abs(points[:, 1] - 0.25 - 0.5 * points[:, 0]) > 0.06]
            above = points[:, 1] > 0.25 + 0.5 * points[:, 0]
            above[:mixed] = ~above[:mixed]
            for chosen, mark, colour in ((above, "o", BLUE), (~above, "^", RED)):
                axes.plot(points[chosen, 0] + shift, points[chosen, 1], mark, color=colour)
            axes.plot([shift, shift + 1], [0.25, 0.75], color=INK)
        _bare(axes)
    return figure


def sigmoid_figure() -> "Figure":
    """Draw the chance that a logistic model predicts +1, and how steep its loss for that label is.

    >>> len(sigmoid_figure().axes[0].lines)
    2
    """
    z = np.linspace(-6.0, 6.0, 241)
    with canvas("A score, a chance, a slope", "the slope of the loss is the chance of being wrong", SIZE) as (
        figure,
        axes,
    ):
        axes.plot(z, 1 / (1 + np.exp(-z)), color=BLUE, label="chance of predicting +1")
        axes.plot(z, 1 / (1 + np.exp(z)), color=RED, linestyle="--", label="slope of the loss for y = +1")
        axes.set(xlabel="score ⟨x, θ⟩", ylabel="between 0 and 1", ylim=(-0.05, 1.35))
        axes.legend(loc="upper center")
    return figure


def convex_figure() -> "Figure":
    """Draw a logistic risk with a chord and a tangent, beside the count of errors on the same records.

    >>> len(convex_figure().axes[0].lines)
    4
    """
    x, y = np.array([-2.0, -1.0, 0.5, 1.5, 3.0]), np.array([-1.0, 1.0, -1.0, 1.0, 1.0])
    theta = np.linspace(-3.0, 4.0, 300)

    def risk(t: Any) -> Any:
        return np.log1p(np.exp(-y * (x - np.asarray(t)[..., None]))).mean(axis=-1)

    errors = (np.sign(x - theta[:, None]) != y).mean(axis=-1)
    slope = float(risk(-0.5 + 1e-6) - risk(-0.5 - 1e-6)) / 2e-6
    with canvas("Convex, and not", "five records in one dimension, score x − θ", SIZE) as (figure, axes):
        axes.plot(theta, risk(theta), color=BLUE, label="logistic risk")
        axes.plot([-2, 2], risk(np.array([-2.0, 2.0])), color=FAINT, linestyle="--", label="a chord")
        near = np.array([-1.6, 0.6])
        axes.plot(near, risk(-0.5) + slope * (near + 0.5), color=FAINT, label="a tangent")
        axes.plot(theta, errors, color=RED, drawstyle="steps-mid", label="share of errors")
        axes.set(xlabel="θ", ylabel="risk")
        axes.legend(loc="upper center")
    return figure


def ball_figure(*, seed: int = 3) -> "Figure":
    """Draw noisy descent in a ball: where each step would go, and where it is scaled back to.

    >>> ball_figure().axes[0].get_aspect()
    1.0
    """
    rng, ball, target = np.random.default_rng(seed), l2_ball(radius=1.0), np.array([1.1, 0.7])
    here = np.zeros(2)
    with canvas("Descent in a ball", "what leaves it is scaled back to its edge", SIZE) as (figure, axes):
        angles = np.linspace(0, 2 * math.pi, 200)
        axes.fill(np.cos(angles), np.sin(angles), color=BLUE, alpha=0.12)
        for _ in range(9):
            there = here - 0.3 * (here - target + 0.9 * rng.normal(size=2))
            back = ball.project(there)
            _arrow(axes, here, there, BLUE)
            if np.any(back != there):
                _line(axes, there, back, colour=RED, style="--")
            here = back
            axes.plot(*here, "o", color=INK, markersize=4)
        _point(axes, (0.0, 0.0), "start", (-34, -4))
        axes.annotate("R", (-0.72, -0.7), (-16, -6), textcoords="offset points")
        _bare(axes)
    return figure
