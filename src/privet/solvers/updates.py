"""Update rules: from a gradient to the next point. All are post-processing of the private gradients."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privet._checks import between, positive
from privet.arrays import Vector

StepSize = float | Callable[[int], float]
"""A constant, or a function of the step, which is counted from 1."""
Move = Callable[[Vector, Vector, float], Vector]
"""From the point, the gradient and the variance of its noise to the next point; remembers what it needs."""


class UpdateRule(Protocol):
    """How gradients move the point. `start` makes a fresh memory, so one rule may serve many runs."""

    def start(self) -> Move:
        """A move that remembers nothing yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GradientStep:
    """θ ← θ − η v with v ← momentum · v + gradient: plain descent if momentum is 0, the heavy ball otherwise.

    Examples
    --------
    >>> move = GradientStep(step_size=0.5).start()
    >>> move(np.array([1.0]), np.array([2.0]), 0.0)
    array([0.])
    """

    step_size: StepSize
    momentum: float = 0.0

    def __post_init__(self) -> None:
        _check_step(self.step_size)
        _check_share("momentum", self.momentum)

    def start(self) -> Move:
        t = 0
        velocity: Vector | None = None

        def move(theta: Vector, gradient: Vector, noise_variance: float) -> Vector:
            nonlocal t, velocity
            t += 1
            if self.momentum:
                velocity = gradient if velocity is None else self.momentum * velocity + gradient
                gradient = velocity
            return theta - _step(self.step_size, t) * gradient

        return move


@dataclass(frozen=True, kw_only=True, slots=True)
class Adam:
    """Adam (Kingma and Ba 2015), and with `corrected` its private form: the noise's own variance is taken out of the
    second moment, so that the step is scaled by the gradients and not by the noise.

    Theorem: E[g̃²] = E[g]² + Var(g) + noise variance, which is public; Tang, Shpilevskiy and Lécuyer 2023
    ("DP-AdamBC"). What is left is floored at `floor`, in the unit of a squared gradient.

    Examples
    --------
    >>> move = Adam(step_size=0.1).start()
    >>> move(np.array([1.0]), np.array([5.0]), 0.0).round(6)
    array([0.9])
    """

    step_size: StepSize
    beta1: float = 0.9
    beta2: float = 0.999
    stability: float = 1e-8
    corrected: bool = False
    floor: float = 1e-8

    def __post_init__(self) -> None:
        _check_step(self.step_size)
        _check_share("beta1", self.beta1)
        _check_share("beta2", self.beta2)
        _check_positive("stability", self.stability)
        _check_positive("floor", self.floor)

    def start(self) -> Move:
        t = 0
        mean: Vector | float = 0.0
        square: Vector | float = 0.0
        variance = 0.0  # the noise's share of `square`, by the same recursion

        def move(theta: Vector, gradient: Vector, noise_variance: float) -> Vector:
            nonlocal t, mean, square, variance
            t += 1
            mean = self.beta1 * mean + (1 - self.beta1) * gradient
            square = self.beta2 * square + (1 - self.beta2) * gradient * gradient
            variance = self.beta2 * variance + (1 - self.beta2) * noise_variance
            m = mean / (1 - self.beta1**t)
            v = square / (1 - self.beta2**t)
            if self.corrected:
                v = np.maximum(v - variance / (1 - self.beta2**t), self.floor)
            return theta - _step(self.step_size, t) * m / (np.sqrt(v) + self.stability)

        return move


@dataclass(frozen=True, kw_only=True, slots=True)
class AdamW:
    """Adam with weight decay apart from the gradient: θ ← θ − η·decay·θ as well (Loshchilov and Hutter 2019).

    Examples
    --------
    >>> move = AdamW(adam=Adam(step_size=0.1), decay=0.5).start()
    >>> move(np.array([1.0]), np.array([5.0]), 0.0).round(6)
    array([0.85])
    """

    adam: Adam
    decay: float = 0.01

    def __post_init__(self) -> None:
        positive("decay", self.decay, zero=True, because="weights would grow", use="Use e.g. 0.01.")

    def start(self) -> Move:
        inner, t = self.adam.start(), 0

        def move(theta: Vector, gradient: Vector, noise_variance: float) -> Vector:
            nonlocal t
            t += 1
            return inner(theta, gradient, noise_variance) - _step(self.adam.step_size, t) * self.decay * theta

        return move


@dataclass(frozen=True, kw_only=True, slots=True)
class Adafactor:
    """Adafactor (Shazeer and Stern 2018): for a matrix θ, the second moment is kept as row and column means.

    `corrected` takes the noise's variance out, as in `Adam`. A vector is kept whole. An update whose root mean square
    exceeds `threshold` is shortened to it.

    Examples
    --------
    >>> move = Adafactor(step_size=0.1).start()
    >>> move(np.ones((2, 2)), np.full((2, 2), 5.0), 0.0).round(6).tolist()
    [[0.9, 0.9], [0.9, 0.9]]
    """

    step_size: StepSize
    decay: float = 0.8
    threshold: float = 1.0
    corrected: bool = False
    floor: float = 1e-30

    def __post_init__(self) -> None:
        _check_step(self.step_size)
        for name in ("decay", "threshold", "floor"):
            _check_positive(name, getattr(self, name))

    def start(self) -> Move:
        t = 0
        rows: Vector | float = 0.0
        columns: Vector | float = 0.0

        def move(theta: Vector, gradient: Vector, noise_variance: float) -> Vector:
            nonlocal t, rows, columns
            t += 1
            keep = 1 - t**-self.decay
            square = gradient * gradient - (noise_variance if self.corrected else 0.0)
            if theta.ndim == 2:
                rows = keep * rows + (1 - keep) * square.mean(axis=1)
                columns = keep * columns + (1 - keep) * square.mean(axis=0)
                kept_rows, kept_columns = np.maximum(rows, self.floor), np.maximum(columns, self.floor)
                v = np.outer(kept_rows, kept_columns) / max(float(np.mean(kept_rows)), self.floor)
            else:
                rows = keep * rows + (1 - keep) * square
                v = np.maximum(rows, self.floor)
            update = gradient / np.sqrt(v)
            update /= max(1.0, float(np.sqrt(np.mean(update * update))) / self.threshold)
            return np.asarray(theta - _step(self.step_size, t) * update)

        return move


def _step(step_size: StepSize, t: int) -> float:
    return step_size(t) if callable(step_size) else step_size


def _check_step(step_size: StepSize) -> None:
    if not callable(step_size):
        _check_positive("step_size", step_size)


def _check_positive(name: str, value: float) -> None:
    positive(name, value, because="the descent would not descend", use=f"Use a small positive {name}.")


def _check_share(name: str, value: float) -> None:
    because = "old gradients would never be forgotten"
    between(name, value, 0, 1, closed=(True, False), because=because, use="Use e.g. 0.9.")
