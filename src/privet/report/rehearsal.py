"""Choosing epsilon before any private row is touched: rehearse the fit on public rows that look alike."""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.errors import FixedSeed, InvalidParameter


@dataclass(frozen=True, kw_only=True, slots=True)
class Rehearsal:
    """What a model scored on public rows at each epsilon, and what a constant guess scores there.

    Examples
    --------
    >>> print(Rehearsal(scores={1.0: [0.8, 0.9]}, floor=0.5))
      epsilon   score   worst  an attacker's 50 % becomes at most (but for delta)
            1   0.850   0.800  73.106 %
    A constant guess scores 0.500.
    """

    scores: dict[float, list[float]]
    floor: float

    def __str__(self) -> str:
        rows = [f"{'epsilon':>9}  {'score':>6}  {'worst':>6}  an attacker's 50 % becomes at most (but for delta)"]
        for epsilon, scores in sorted(self.scores.items()):
            posterior = math.ceil(1e5 / (1 + math.exp(-epsilon))) / 1e3  # rounded up
            rows.append(f"{epsilon:>9g}  {np.mean(scores):>6.3f}  {min(scores):>6.3f}  {posterior:.3f} %")
        return "\n".join([*rows, f"A constant guess scores {self.floor:.3f}."])


def rehearse(
    model: Any,
    X: Any,
    y: Any,
    *,
    records: int,
    epsilons: Iterable[float] = (0.1, 0.3, 1.0, 3.0, 10.0),
    runs: int = 3,
    seed: int = 0,
) -> Rehearsal:
    """Score `model` at several epsilons on **public** rows, as if there were `records` private ones.

    A quarter of the rows is kept apart for scoring; the rest is drawn with replacement until there are as many as in
    the private table, since noise matters by records ÷ noise. What comes out is about the public rows: as good a
    forecast for the private ones as the two are alike. Nothing private is read, so nothing is spent.

    Parameters
    ----------
    model : an estimator; its epsilon is set in turn, the rest stays
    X, y : public rows: simulated, published, of another year
    records : how many rows the private table has, where that is public
    epsilons, runs : what to try, and how often
    seed : of which rows are drawn; a model with a `random_state` gets other noise in each run, the same every time

    Examples
    --------
    >>> import numpy as np
    >>> from privet.estimators import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(2_000, 3))
    >>> y = X @ [3, -2, 0] > 0
    >>> forecast = rehearse(LogisticRegression(bounds=(-1, 1)), X, y, records=5_000, epsilons=[0.1, 1], runs=2)
    >>> bool(np.mean(forecast.scores[1]) > 0.7)
    True
    """
    from sklearn.base import clone, is_classifier  # slow to load, and accounting must not wait for it

    rows, labels = np.asarray(X), np.asarray(y)
    if len(rows) != len(labels) or len(rows) < 8 or records < 1 or runs < 1:
        raise InvalidParameter(f"""Expected public rows with one label each, at least 8 of them, and records and runs of
            at least 1, got {len(rows)} rows, {len(labels)} labels, records={records!r}, runs={runs!r}: nothing could be
            scored.""")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    kept, rest = order[: len(rows) // 4], order[len(rows) // 4 :]
    scores: dict[float, list[float]] = {float(epsilon): [] for epsilon in epsilons}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedSeed)  # which takes nothing from rows that are public
        for epsilon, found in scores.items():
            for _ in range(runs):
                drawn = rng.choice(rest, size=records)
                tried = clone(model).set_params(epsilon=epsilon)
                if isinstance(getattr(tried, "random_state", None), int):  # or each run would have the same noise
                    tried.set_params(random_state=int(rng.integers(2**31)))
                fitted = tried.fit(rows[drawn], labels[drawn])
                found.append(float(fitted.score(rows[kept], labels[kept])))
    return Rehearsal(scores=scores, floor=_constant(labels[rest], labels[kept], classes=is_classifier(model)))


def _constant(known: Any, kept: Any, *, classes: bool) -> float:
    """What always guessing the commonest label, or the mean, scores."""
    if classes:
        values, counts = np.unique(known, return_counts=True)
        return float(np.mean(kept == values[counts.argmax()]))
    spread = float(np.square(kept - np.mean(kept)).sum())
    return 1.0 - float(np.square(kept - np.mean(known)).sum()) / spread if spread else 0.0
