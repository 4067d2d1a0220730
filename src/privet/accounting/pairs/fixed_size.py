"""Gaussian noise on batches of fixed size: tails, moments at complex orders, and their decay.

With w = 1 - q + q·e^{s·xi - s²/2} as in :mod:`privet.accounting.pairs.mixture`, all moments are

    M(t) - 1 = ∫_{s/2}^∞ φ (w^{1+t} - 1)(1 - w^{-t}) = (M₊(t) - 1) + (M₋(t) - 1) - ∫_{-∞}^{s/2} (the same),

M₊ and M₋ being those of a record that leaves a Poisson batch, and joins it. Left of s/2, w is between 1 - q and 1, so
that little turns there. `docs/proofs/contour.md`, section 4, has the error bounds.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privet.accounting.pairs.complex_functions import expm1, log1p
from privet.accounting.pairs.line_products import by_powers
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.pairs.mixture_moments import Mixtures
from privet.accounting.pairs.pair import UNIT, Complexes, Reals
from privet.accounting.pairs.sampled import PANEL_ERROR, panels, sum_blocks
from privet.accounting.pairs.truncated_mixture import CutPair

_FALL = 40.0  # about how far a run decays where its line is cut
_MILD = 2.0  # log of how large w^{-t} may be left of s/2
_MOST_WORK = 4e6  # terms summed directly
_SLOW = 50.0  # frequencies times shift beyond which panels are many
_SHARP = 1e-9  # relative to log M, the error from which on more digits are sought
_REPEATS = 90_000  # the sides are computed as exactly as so many steps need them


@dataclass(frozen=True, slots=True)
class FixedSizePair:
    """Gaussian noise on a batch of fixed size, one record of the data replaced.

    Zhu, Dong and Wang (2022, theorem 11): if N(shift, 1) against N(0, 1) dominates the unsampled step, the sampled
    one is dominated by the curve H_α((1-q)Q + qP ‖ Q) for α ≥ 1 and H_α(P ‖ (1-q)P + qQ) for α < 1. Read as one
    pair: losses above 0 as when a record leaves, below 0 as when it joins, and an atom at 0 with the rest.
    Unlike the worst pair of a single step (Lebeda et al. 2024), this curve is valid under composition.
    """

    rate: float
    shift: float
    infinite: float = 0.0
    lowest: float = -math.inf
    highest: float = math.inf
    atoms: tuple[float, ...] = (0.0,)
    _known: list[Mixtures] = field(default_factory=list, init=False, repr=False, compare=False)

    def _sides(self) -> tuple[MixturePair, MixturePair]:
        return MixturePair(self.rate, self.shift, "remove"), MixturePair(self.rate, self.shift, "add")

    def above(self, loss: Reals) -> tuple[Reals, Reals]:
        loss = np.asarray(loss, dtype=float)
        remove, add = self._sides()
        right, left = remove.above(np.maximum(loss, 0.0)), add.below(np.minimum(loss, 0.0))
        return np.where(loss >= 0, right[0], 1 - left[0]), np.where(loss >= 0, right[1], 1 - left[1])

    def below(self, loss: Reals) -> tuple[Reals, Reals]:
        loss = np.asarray(loss, dtype=float)
        remove, add = self._sides()
        right, left = remove.above(np.maximum(loss, 0.0)), add.below(np.minimum(loss, 0.0))
        return np.where(loss >= 0, 1 - right[0], left[0]), np.where(loss >= 0, 1 - right[1], left[1])

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        t = np.asarray(t, dtype=complex)
        if not self._is_mild(t):
            return self._by_panels(t)
        return self._sharpened(t, *self.joined(t, [side.each(t) for side in self.sides()]))

    def log_moments(self, tilt: float, spacing: float, heard: NDArray[np.int64]) -> tuple[Complexes, Reals]:
        """`log_moment` at tilt + ik·spacing for k in `heard`, which rises: by matrix products where that is quicker."""
        t, count = tilt + 1j * spacing * heard, int(heard[-1]) + 1
        if count > 8 * len(heard) or not self._is_mild(t):
            return self.log_moment(t)
        tables = [side.each_on_line(tilt, spacing, count, fine=True) for side in self.sides()]
        return self._sharpened(t, *self.joined(t, [(logs[:, heard], wrong[:, heard]) for logs, wrong in tables]))

    def _sharpened(self, t: Complexes, value: Complexes, error: Reals) -> tuple[Complexes, Reals]:
        """One pair's moments, by panels where those keep more digits: at low orders, as of very long runs."""
        if np.ndim(self.rate):
            return value, error
        value, error = value[0], error[0]
        if float(np.abs(t.imag).max()) * self.shift < _SLOW and (error > _SHARP * np.abs(value)).any():
            try:
                other, wrong = self._by_panels(t)
            except OverflowError:
                return value, error
            value, error = np.where(wrong < error, other, value), np.minimum(wrong, error)
        return value, error

    def _is_mild(self, t: Complexes) -> bool:
        """Whether w^{-t} is of size 1 where w < 1, so that nothing cancels when that is subtracted."""
        return float(t.real.min()) >= 0 and float(t.real.max()) * -math.log1p(-float(np.max(self.rate))) < _MILD

    def sides(self) -> list[Mixtures]:
        """The sides of a record that leaves and of one that joins."""
        if not self._known:
            pairs = list(zip(np.ravel(self.rate).tolist(), np.ravel(self.shift).tolist(), strict=True))
            repeats = _REPEATS if len(pairs) == 1 else 16
            for kind in ("remove", "add"):
                self._known.append(Mixtures([(MixturePair(q, s, kind), repeats) for q, s in pairs]))
        return self._known

    def joined(self, t: Complexes, sides: list[tuple[Complexes, Reals]]) -> tuple[Complexes, Reals]:
        """log M and its relative error, a row a pair, from those of both sides, less what they have too much."""
        below, wrong = self._below(t)
        total, size = -below, np.abs(below)
        for logs, relative in sides:
            if float(logs.real.max()) > 600.0:
                raise OverflowError("moments of this order are too large to compute")
            rise = expm1(logs.astype(complex))
            total, size, wrong = total + rise, size + np.abs(rise), wrong + relative * np.exp(logs.real)
        value = log1p(total)
        return value, (wrong + 8 * UNIT * size) / np.abs(1 + total) + 8 * UNIT * np.abs(value)

    def _below(self, t: Complexes) -> tuple[Complexes, Reals]:
        """∫_{-∞}^{s/2} φ (w^{1+t} - 1)(1 - w^{-t}) and a bound on its error, a row a pair; see `cut_curve`."""
        q, s = np.reshape(self.rate, (-1, 1)), np.reshape(self.shift, (-1, 1))
        top, odds, cut, steepest = float(np.abs(t.imag).max()), q / (1 - q), s / 2, float(np.max(self.shift))
        turn = float((odds * s).max()) * top  # no arg w exceeds this over top, times Im xi
        high = min(1.6, math.pi / 2 / steepest, 6.0 / max(turn, 1e-9))
        kappa, depth = 2 * high / math.pi, 44.0 + 2 * turn * high + high * high / 2
        step = 2 * math.pi * high / depth
        v = np.arange(-steepest / 2 - 9.5, 14 * kappa, step)
        back = kappa * np.logaddexp(0.0, -v / kappa)
        weight = np.exp(-((cut - back) ** 2) / 2) * (step / math.sqrt(2 * math.pi) / (1 + np.exp(v / kappa)))
        log_w = np.log1p(q * np.expm1(-s * back))
        spread = (weight * log_w**2).sum(axis=1, keepdims=True)
        reach = float(np.abs(log_w).max()) * top
        if reach < 4 and not np.ptp(t.real):
            found, terms, growth = *by_powers(float(t.real[0]), t.imag, log_w, weight), math.exp(reach)
        else:
            terms, growth = 0, 1.0

            if log_w.size * len(t) > _MOST_WORK:
                raise OverflowError("too many nodes are needed at such frequencies")
            rise = expm1 if top else np.expm1

            def integrate(block: Complexes) -> Complexes:
                power = block[:, None] * log_w[:, None]
                out: Complexes = (rise(power + log_w[:, None]) * -rise(-power) @ weight[..., None])[..., 0]
                return out

            found = sum_blocks(t if top else t.real, log_w.size, integrate)
        # docs/proofs/contour.md, section 4: the strip, the nodes that are left out, and rounding
        near = cut + high + kappa
        size = np.minimum(2 + 1.6 * (cut + kappa), s * s * (1 + near * near * (1 + 0.4 * (cut + kappa))))
        missed = 1e-19 * np.minimum(4.0, 400 * s * s) + 1e-18 * (s * kappa) ** 2
        wrong = odds**2 * (3 * math.exp(-44.0) * size + missed) + 16 * UNIT * growth * (len(v) + 64 + terms) * spread
        return found, wrong * np.exp(-t.real * np.log1p(-q)) * np.abs(t * (1 + t))

    def _by_panels(self, t: Complexes) -> tuple[Complexes, Reals]:
        # as one integral from s/2 on: the atom and both sides together, without cancellation
        if np.ndim(self.rate):
            pairs = zip(np.ravel(self.rate).tolist(), np.ravel(self.shift).tolist(), strict=True)
            found = [FixedSizePair(q, s)._by_panels(t) for q, s in pairs]
            return np.array([value for value, _ in found]), np.array([error for _, error in found])
        q, s = self.rate, self.shift
        top = float(np.abs(t.imag).max())
        most = max(float(t.real.max()), -1 - float(t.real.min()), 0.0)
        if (1 + most) * (s * s * (1 + most) / 2 + math.log(q)) > 600.0:
            raise OverflowError(f"moments of order {most:.3g} are too large to compute")
        half = min(0.5, 0.9 / s, 3.0 / (top * s) if top else 1.0, 2.5 / (12 + s * (1 + most)))
        end = s / 2 + 11.5 + s * (1 + most)
        x, weight, half = panels(s / 2, end, half)
        ell = np.log1p(q * np.expm1(s * x - s * s / 2))
        log_flat = -x * x / 2 - math.log(math.sqrt(2 * math.pi)) + np.log(weight)

        def integrate(block: Complexes) -> Complexes:
            power = np.multiply.outer(1 + block, ell)
            large = power.real > 40.0  # there -1 is lost in rounding, and e^power may overflow before φ makes it small
            grown = np.where(large, np.exp(power + log_flat), expm1(np.where(large, 0.0, power)) * np.exp(log_flat))
            total: Complexes = np.sum(grown * -expm1(-np.multiply.outer(block, ell)), axis=1)
            return total

        with np.errstate(over="ignore", invalid="ignore"):
            m = sum_blocks(t, len(x), integrate)
            value = log1p(m)
            orders, which = np.unique(t.real, return_inverse=True)
            steep = np.maximum(np.maximum(orders, -1 - orders), 0.0)
            powers = np.exp(np.multiply.outer(1 + steep, ell) + log_flat) + np.exp(log_flat)
            size, spread = powers.sum(axis=1)[which], (powers @ (ell * (4 + x * x)))[which]
            tall, wide = half * 4 / 3, half * 2 / 3
            slack = math.exp(tall**2 / 2 + top * s * tall + half * (8 / 3 * (end + wide) + 1.5 * s * most))
            error = (PANEL_ERROR * 4 * slack + 1e-25) * size + 32 * UNIT * (1 + 2 * np.abs(t)) * spread
            return value, np.nan_to_num(error / np.abs(1 + m), nan=math.inf) + 8 * UNIT * np.abs(value)

    def decay(self, tilt: float, frequency: Reals, repeats: float = 1.0) -> Reals:
        """As `Pair.decay`; with many `repeats`, what suits a run of about so many steps is tried only."""
        most = 0.45 * min(math.pi / float(np.max(self.shift)), 4.0)
        heights = most * 2.0 ** -np.arange(0.0, 11.0)
        if repeats > 1:  # where the bound falls by e^_FALL, eta² is about that over the count
            heights = np.unique(np.minimum(most, math.sqrt(_FALL / repeats) * np.array([0.6, 1.3])))
        try:
            with np.errstate(all="ignore"):
                found = self._decay(max(tilt, 0.0), frequency, heights, 14.0 if 1 < repeats < 1e4 else 7.0)
        except OverflowError:  # an order too high to compute: nothing is claimed
            found = np.zeros((np.size(self.rate), len(frequency)))
        return found if np.ndim(self.rate) else found[0]

    def _decay(self, c: float, frequency: Reals, heights: Reals, wide: float) -> Reals:
        # Each side's integral is moved from [s/2, ∞) to Im xi = ±eta, up the vertical at s/2 and along; what the two
        # verticals leave nearly cancels, and is bounded by V (docs/proofs/contour.md, section 4).
        q, s, steepest = np.reshape(self.rate, (-1, 1)), np.reshape(self.shift, (-1, 1)), float(np.max(self.shift))
        far = 11.5 + steepest * (1 + c)
        x, weight, half = panels(0.0, far, min(wide / 28, 0.5 / steepest, wide / (12 + steepest * (1 + c))))
        x, end = x + s / 2, far + steepest / 2
        z = q * np.exp(s * x - s * s / 2)
        ell = np.log1p(q * np.expm1(s * x - s * s / 2))
        log_here = np.reshape(self.log_moment(np.array([complex(c)]))[0].real, (-1, 1))
        log_flat = np.log(weight) - x * x / 2 - math.log(2 * math.pi) / 2 - log_here
        above, under = np.exp(log_flat + (1 + c) * ell), np.exp(log_flat - c * ell)  # relative to M(tilt)
        both = above + under
        keep = (both > 1e-7 * both.max(axis=1, keepdims=True)).any(axis=0)  # elsewhere nothing is gained
        tall, over = half * 4 / 3, half * 2 / 3
        rule = PANEL_ERROR * math.exp(tall**2 / 2 + 8 / 3 * half * (end + over))
        edge = np.exp(-s * s / 8 - log_here) / math.sqrt(2 * math.pi)
        best = np.zeros((len(q), len(frequency)))
        for eta in heights.tolist():
            angle = s * eta
            turned = (1 - q) + z * np.exp(1j * angle)
            bend, turn = np.log(np.abs(turned)) - ell, np.angle(turned)
            falls, left = frequency[:, None] * turn[:, None, keep], np.zeros_like(best)
            for power, share in (((1 + c) * bend, above), (-c * bend, under)):
                power = np.minimum(power + eta * eta / 2, 700.0)
                left -= (np.expm1(power[:, None, keep] - falls) @ share[:, keep, None])[..., 0]
                left -= (np.maximum(np.expm1(power), 0.0) * share)[:, ~keep].sum(axis=1, keepdims=True)
            left -= edge * _verticals(q, s, c, frequency, eta)
            # the panels' error, w being at most turned by psi and at least `least` on their ellipses
            psi, start = angle + s * tall, q * np.exp(-s * over)
            inner = start > (q - 1) * np.cos(psi)
            least = np.where(inner, np.abs(1 - q + start * np.exp(1j * psi)), (1 - q) * np.sin(psi))
            wrong = rule * (
                above.sum(axis=1, keepdims=True)
                + np.exp(log_flat).sum(axis=1, keepdims=True) * np.exp(np.minimum(700.0, -c * np.log(least)))
            )
            grown = np.exp(np.minimum((1 + c) * bend, 700.0)) * above + np.exp(np.minimum(-c * bend, 700.0)) * under
            rounding = 64 + x.shape[1] + 16 * (2 + c) * (4 + s * s + s * end)
            wrong = wrong + UNIT * (1 + grown.sum(axis=1, keepdims=True)) * rounding
            found = np.clip(left - math.exp(eta**2 / 2) * wrong - 1e-12, 0.0, 1.0 - 1e-9)
            best = np.maximum(best, np.where(np.isnan(found), 0.0, found))
        out: Reals = -np.log1p(-best) * (1 - 1e-9)
        return out


@dataclass(frozen=True, slots=True)
class CutFixedSize:
    """A fixed-size pair without the outcomes xi > cut of the side of a record that leaves: see `CutPair`."""

    pair: FixedSizePair
    leaving: CutPair
    infinite: float = 0.0

    @property
    def highest(self) -> float:
        return self.leaving.highest

    def log_moment(self, t: Complexes) -> tuple[Complexes, Reals]:
        t = np.asarray(t, dtype=complex)
        return self._joined(t, self.leaving.log_moment(t), self.pair.sides()[1].each(t))

    def log_moments(self, tilt: float, spacing: float, heard: NDArray[np.int64]) -> tuple[Complexes, Reals]:
        """`log_moment` at tilt + ik·spacing for k in `heard`, which are all from 0 on."""
        t, count = tilt + 1j * spacing * heard, len(heard)
        joining = self.pair.sides()[1].each_on_line(tilt, spacing, count, fine=True)
        return self._joined(t, self.leaving.log_moments(tilt, spacing, count), joining)

    def _joined(
        self, t: Complexes, leaving: tuple[Complexes, Reals], joining: tuple[Complexes, Reals]
    ) -> tuple[Complexes, Reals]:
        value, error = self.pair.joined(t, [(leaving[0][None], leaving[1][None]), joining])
        return value[0], error[0]

    def decay(self, tilt: float, frequency: Reals) -> Reals:
        return np.zeros_like(frequency)  # nothing is claimed: where it is asked for, the loss is nearly an atom


def _verticals(q: Reals, s: Reals, c: float, frequency: Reals, eta: float) -> Reals:
    """What the verticals at xi = s/2 ± iy leave: an upper Riemann sum, each factor at the worse end of its cell."""
    y = eta * np.linspace(0.0, 1.0, 49)
    side = 1 + q * expm1(1j * s * y)
    size, twist = -np.log(np.abs(side)), np.angle(side)
    # |e^{a+i(phase+2v·size)} - e^b| ≤ |e^a - e^b| + e^min(a,b)·(|phase| + 2v·size), size ≤ twist·tan(sy/2), and
    # v·e^{-v·twist} falls once v·twist exceeds 1: no part of the bound rises with the frequency
    decays = frequency[:, None] * twist[:, None, :-1]
    fixed = np.exp(np.minimum(c * size, 700.0)) - np.exp(-(1 + c) * size) + s * y - twist
    late = np.where(decays < 1, math.exp(-1), decays * np.exp(-decays))
    gap = np.exp(-decays) * fixed[:, None, 1:] + 2 * np.tan(s * y[1:] / 2)[:, None] * late
    out: Reals = gap @ (np.exp(y[1:] ** 2 / 2) * eta / 48)
    return out
