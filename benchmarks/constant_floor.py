"""What any private constant must lose: the least noise that hides a record, on targets whose shape is known.

Targets are those of `accuracy_constant.py`. If k records must change for the best constant to move by t, then no
ε-private constant that does as well wherever the target lies has a smaller mean squared error than Laplace noise of
scale t/(kε) (Koufogiannis, Han and Pappas 2014: Laplace noise is the best of all where privacy is in proportion to a
distance). For a number that is 1/(n ε density at the mode), as a location moves by TV distance; for a quantile the
density there; for a count the TV distance of two rates. The shape must be known for that, and so must the spread; a
method that knows neither pays more. δ is next to nothing at these sizes, and left out.

Run: python benchmarks/constant_floor.py [--rows 300,1000] [--epsilons 0.05,0.1,1]
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass

import numpy as np
from accuracy_constant import EPSILONS, ROWS, SIGNALS
from sklearn.metrics import d2_pinball_score, d2_tweedie_score, r2_score

DRAWS, NOISES = 400_000, 4_000
KINDS = ("mean", "median", "0.9 quantile", "counts")


@dataclass(frozen=True, kw_only=True)
class Target:
    """A sample of targets, the best constant, and by how much it moves if all records move, ÷ n."""

    values: np.ndarray
    constant: float
    reach: float
    kind: str

    def lost(self, records: int, epsilon: float) -> float:
        """What Laplace noise of the least scale costs, in the estimator's own score."""
        rng = np.random.default_rng(1)
        noise = rng.laplace(scale=self.reach / (records * epsilon), size=NOISES)
        centres = self.constant * np.exp(noise) if self.kind == "counts" else self.constant + noise
        sample = self.values[:2_000]
        best = self._score(sample, self.constant)
        return float(best - np.mean([self._score(sample, centre) for centre in centres[:: max(1, NOISES // 400)]]))

    def _score(self, sample: np.ndarray, centre: float) -> float:
        guess = np.full(len(sample), centre)
        if self.kind == "counts":
            return float(d2_tweedie_score(sample, guess, power=1))
        if self.kind == "mean":
            return float(r2_score(sample, guess))
        return float(d2_pinball_score(sample, guess, alpha=0.5 if self.kind == "median" else 0.9))


def target(kind: str, signal: float) -> Target:
    """A large sample of the benchmark's targets."""
    rng = np.random.default_rng(0)
    scores = signal * rng.standard_normal(DRAWS)
    if kind == "counts":
        rates = 2.9 * np.exp(0.7 * scores - (0.7 * signal) ** 2 / 2)
        y = np.minimum(rng.poisson(rates * rng.gamma(1.0, size=DRAWS)), 80).astype(float)
        return Target(values=y, constant=float(y.mean()), reach=1 / _turned(rates[:20_000]), kind=kind)
    y = scores + (rng.standard_normal(DRAWS) if kind == "mean" else rng.exponential(size=DRAWS))
    if kind == "mean":
        return Target(values=y, constant=float(y.mean()), reach=1 / _density(y, float(np.median(y))), kind=kind)
    place = float(np.quantile(y, 0.5 if kind == "median" else 0.9))
    return Target(values=y, constant=place, reach=1 / _density(y, place), kind=kind)


def _density(values: np.ndarray, place: float) -> float:
    width = 0.1 * float(np.quantile(values, 0.75) - np.quantile(values, 0.25))
    return float(np.mean(np.abs(values - place) <= width) / (2 * width))


def _turned(rates: np.ndarray) -> float:
    """TV distance of counts whose rates are a little higher, by the logarithm of how much; counts are geometric."""

    def chances(times: float) -> np.ndarray:
        odds = times * rates / (1 + times * rates)
        return np.array([np.mean((1 - odds) * odds**k) for k in range(200)])

    return float(np.abs(chances(1.02) - chances(1.0)).sum() / 2 / np.log(1.02))


def main() -> None:
    """Print, for every number of rows and epsilon, what is lost at least; the signal only spreads targets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--epsilons", default=",".join(map(str, EPSILONS)))
    options = parser.parse_args()
    known = {(kind, words): target(kind, signal) for kind, (words, signal) in itertools.product(KINDS, SIGNALS.items())}
    print("rows    ε     " + "  ".join(f"{kind + ', ' + words:>23}" for kind, words in known))
    for rows, epsilon in itertools.product(options.rows.split(","), options.epsilons.split(",")):
        lost = [each.lost(int(rows), float(epsilon)) for each in known.values()]
        print(f"{rows:>6}  {epsilon:<5} " + "  ".join(f"{value:>23.4f}" for value in lost))


if __name__ == "__main__":
    main()
