"""Unlike steps of one family as one step: NumPy works on many at a time, and on no more than matter."""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from privet.accounting.pairs.fixed_size import FixedSizePair
from privet.accounting.pairs.pair import UNIT, Complexes, Reals

Member = Any  # LaplacePair, BoundedRangePair, SampledLaplacePair or FixedSizePair

SILENT = 60.0  # moments smaller than e^-60 of that at the tilt are no longer followed
_ROWS = 64  # pairs worked on at a time
_ROUGH_STEP = 0.15
_SWIFT = 96  # pairs whose decay is looked at


class Crowd:
    """Pairs of one family, each so many times, as one step."""

    infinite = 0.0

    def __init__(self, parts: Sequence[tuple[Member, int]]) -> None:
        self.parts = parts
        self.highest = math.fsum(count * pair.highest for pair, count in parts)
        self._swift: list[tuple[Any, Reals]] = []
        self._blocks = [_columns(parts[i : i + _ROWS]) for i in range(0, len(parts), _ROWS)]

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        """As `Pair.log_moment`."""
        value, error = np.zeros(t.shape, dtype=complex), np.zeros(t.shape)
        for pair, counts in self._blocks:
            one, wrong = pair.log_moment(t)
            value += counts @ one
            error += counts @ self._rounded(one, wrong)
        return value, np.expm1(error)

    def rough_log_moment(self, t: Reals) -> Reals:
        """log M at real orders for searches only: of fixed-size steps by a plain sum, else as `log_moment`."""
        if not isinstance(self.parts[0][0], FixedSizePair):
            out: Reals = self.log_moment(t.astype(complex))[0].real
            return out
        sums = (counts @ _rough_fixed_size(pair.rate, pair.shift, t) for pair, counts in self._blocks)
        return sum(sums, np.zeros(t.shape))

    def on_line(self, tilt: float, spacing: float, count: int) -> tuple[Complexes, Reals]:
        """log M at tilt + ik·spacing, k < count, and log(1 + relative error).

        Where so little is left that it does not matter, no further pair is taken in: whatever its phase, no factor
        that is left out is larger than it is at the tilt.
        """
        value, error, heard, here = np.zeros(count, dtype=complex), np.zeros(count), np.arange(count), 0.0
        for pair, counts in self._blocks:
            one, wrong = pair.log_moments(tilt, spacing, heard)
            here += float(counts @ one[:, 0].real)
            value[heard] += counts @ (one - one[:, :1].real)
            error[heard] += counts @ self._rounded(one, wrong)
            heard = heard[(value.real + error)[heard] > -SILENT]
        silent = np.ones(count, dtype=bool)
        silent[heard] = False
        error[silent] += math.log(3.0) + error[0]
        return value + here, np.where(np.isnan(error), math.inf, error)

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        """As `Pair.decay`: of all, or where that takes long of those that decay most, as none grows."""
        if not isinstance(self.parts[0][0], FixedSizePair):
            whole: Reals = sum((counts @ pair.decay(tilt, frequency) for pair, counts in self._blocks), np.zeros(1))
            return whole
        if not self._swift:
            most = sorted(self.parts, key=lambda part: -part[1] * part[0].rate * part[0].shift)[:_SWIFT]
            self._swift.append(_columns(most))
        pair, counts = self._swift[0]
        some: Reals = counts @ pair.decay(tilt, frequency, float(counts.sum()))
        return some

    def _rounded(self, logs: Complexes, wrong: Reals) -> Reals:
        out: Reals = np.log1p(wrong) + (len(self.parts) + 4) * UNIT * np.abs(logs)
        return out


def _rough_fixed_size(rate: Reals, shift: Reals, t: Reals) -> Reals:
    """log M of fixed-size steps at real orders, a row a pair: ∫_{s/2}^∞ φ (w^{1+t} - 1)(1 - w^{-t}) by trapezoids.

    The integrand vanishes to second order at s/2, so that the rule's error is of fourth order.
    """
    steepest = float(shift.max())
    x = _ROUGH_STEP * np.arange(int((9.0 + steepest * (1 + float(t.max()))) / _ROUGH_STEP) + 2)
    log_w = np.logaddexp(np.log1p(-rate), np.log(rate) + shift * x)
    bell = (x + shift / 2) ** 2 / 2
    rise = np.exp(np.minimum((1 + t)[:, None] * log_w[:, None] - bell[:, None], 700.0)) - np.exp(-bell)[:, None]
    fall = -np.expm1(-t[:, None] * log_w[:, None])
    out: Reals = np.log1p(np.add.reduce(rise * fall, axis=-1) * (_ROUGH_STEP / math.sqrt(2 * math.pi)))
    return out


def _columns(parts: Sequence[tuple[Member, int]]) -> tuple[Any, Reals]:
    """The pairs as one, with a column of numbers for each of its parameters, and their counts."""
    pairs = [pair for pair, _ in parts]
    names = [field.name for field in fields(pairs[0]) if field.name in ("rate", "shift", "distance", "epsilon")]
    columns: dict[str, Any] = {name: np.array([[getattr(pair, name)] for pair in pairs]) for name in names}
    return replace(pairs[0], **columns), np.array([float(count) for _, count in parts])
