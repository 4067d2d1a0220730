"""Many steps of finitely many outcomes each, as one: their moments at equally spaced complex orders, in little time."""

import math
from collections.abc import Sequence

import numpy as np

from privet.accounting.pairs.complex_functions import expm1, log1p
from privet.accounting.pairs.elementary import DiscretePair
from privet.accounting.pairs.pair import UNIT, Complexes, Reals

_ROWS = 16  # pairs multiplied before a logarithm is taken
_SILENT = 60.0  # moments smaller than e^-60 of that at the tilt are no longer followed
_OFTEN = 100  # repetitions from which each pair's logarithm is taken alone, without losing digits where M ≈ 1


class Atoms:
    """`DiscretePair`s, each `count` times, as one step."""

    def __init__(self, pairs: Sequence[DiscretePair], count: int) -> None:
        self.parts, self.count = [(pair, count) for pair in pairs], count
        most = max(len(pair.losses) for pair in pairs)
        self._losses = np.array([pair.losses + pair.losses[-1:] * (most - len(pair.losses)) for pair in pairs])
        self._masses = np.array([pair.masses + (0.0,) * (most - len(pair.losses)) for pair in pairs])
        self._infinite = np.array([pair.infinite for pair in pairs])
        self.highest = math.fsum(count * pair.highest for pair in pairs)
        self.infinite = -math.expm1(count * math.fsum(np.log1p(-self._infinite)))

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        """As `Pair.log_moment`."""
        if not t.imag.any():
            logs, wrong, _ = self._tilted(t.real)
            error = np.where(np.isnan(wrong), math.inf, wrong)
            return (self.count * logs.sum(axis=1)).astype(complex), np.expm1(self.count * error.sum(axis=1))
        parts = [self._at(order, np.array([height])) for order, height in zip(t.real, t.imag, strict=True)]
        value, error = (np.concatenate(numbers) for numbers in zip(*parts, strict=True))
        return value, np.expm1(error)

    def on_line(self, tilt: float, spacing: float, count: int) -> tuple[Complexes, Reals]:
        """log M at tilt + ik·spacing, k < count, and log(1 + relative error)."""
        return self._at(tilt, spacing * np.arange(count))

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        """As `Pair.decay`: atoms never decay."""
        return np.zeros_like(frequency)

    def _tilted(self, orders: Reals) -> tuple[Reals, Reals, Reals]:
        """log M of each pair at real orders, a row an order, a bound on its error, and the shares of the outcomes."""
        exponents = orders[:, None, None] * self._losses
        size, top = np.abs(exponents).max(axis=2), exponents.max(axis=2)
        terms = np.exp(exponents - top[..., None]) * self._masses
        total = terms.sum(axis=2)
        # masses and infinite mass add up to 1, and where M ≈ 1 that keeps all digits
        grown = np.expm1(exponents) * self._masses
        near = size < 0.5
        logs = np.where(near, np.log1p(grown.sum(axis=2) - self._infinite), np.log(total) + top)
        wrong = 16 * UNIT * np.where(near, np.abs(grown).sum(axis=2) + self._infinite, 2 + 2 * size)
        return logs, wrong + (len(self._losses) + 4) * UNIT * np.abs(logs), terms / total[..., None]

    def _at(self, tilt: float, frequency: Reals) -> tuple[Complexes, Reals]:
        logs, wrong, (shares,) = self._tilted(np.array([tilt]))
        far = (shares * np.abs(self._losses)).sum(axis=1)
        if not frequency.any():
            value, error = np.zeros(len(frequency), dtype=complex), np.zeros(len(frequency))
        elif self.count > _OFTEN or len(frequency) == 1:
            value, error = self._each(frequency, shares, far)
        else:
            value, error = self._together(frequency, shares, far)
        error = np.where(np.isnan(error), math.inf, error + wrong.sum())
        return self.count * (value + logs.sum()), self.count * error

    def _each(self, frequency: Reals, shares: Reals, far: Reals) -> tuple[Complexes, Reals]:
        """log of M relative to M at the tilt, and log(1 + relative error), pair by pair."""
        value, error = np.zeros(len(frequency), dtype=complex), np.zeros(len(frequency))
        for losses, share, length in zip(self._losses, shares, far, strict=True):
            m = expm1(1j * np.multiply.outer(frequency, losses)) @ share
            log = log1p(m)
            value += log
            error += np.log1p(16 * UNIT * length * frequency / np.abs(1 + m)) + 8 * UNIT * np.abs(log)
        return value, error

    def _together(self, frequency: Reals, shares: Reals, far: Reals) -> tuple[Complexes, Reals]:
        """The same as products of many pairs: for equally spaced frequencies from 0 on.

        With k = j·B + i, e^{ik·spacing·loss} is a product of a factor in j and one in i. Frequencies at which so
        little is left that it does not matter are followed no further.
        """
        count, spacing = len(frequency), float(frequency[1])
        block = math.isqrt(count - 1) + 1
        turn = 1j * spacing * self._losses[:, :, None]
        fine, coarse = np.exp(turn * np.arange(block)), np.exp(turn * (block * np.arange(-(-count // block))))
        coarse *= shares[:, :, None]
        value, error, heard = np.zeros(count, dtype=complex), np.zeros(count), np.arange(count)
        for i in range(0, len(shares), _ROWS):
            rows = slice(i, i + _ROWS)
            at = slice(None) if len(heard) > count // 2 else heard
            if at is heard:
                high, low = np.divmod(heard, block)
                m = sum(coarse[rows, j][:, high] * fine[rows, j][:, low] for j in range(shares.shape[1]))
            else:
                m = sum(coarse[rows, j, :, None] * fine[rows, j, None, :] for j in range(shares.shape[1]))
                m = np.reshape(m, (-1, block * coarse.shape[2]))[:, :count]
            sizes, product = np.abs(m), np.multiply.reduce(m, axis=0)
            most = sizes + 16 * UNIT * (2 + frequency[at] * far[rows, None])
            least = np.log(np.multiply.reduce(sizes, axis=0))
            value[at] += least + 1j * np.arctan2(product.imag, product.real)
            error[at] += np.log(np.multiply.reduce(most, axis=0)) - least + UNIT * (8 * _ROWS + 4 * np.abs(least))
            heard = heard[self.count * (value.real + error)[heard] > -_SILENT]
        silent = np.ones(count, dtype=bool)
        silent[heard] = False
        error[silent] += math.log(3.0)  # whatever the phase: no factor that is left out is larger than 1
        return value, error
