"""Quadrature nodes for the moments of mixture pairs; see :mod:`privet.accounting.pairs.mixture` for what they sum."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privet.accounting.pairs.pair import Complexes, Reals

Kind = Literal["remove", "add", "replace"]

_MOST_NODES = 20_000


def exponents(kind: Kind, t: Complexes) -> tuple[Complexes, ...]:
    """(a,) or (a, b) of ∫ φ w₊^a w₋^b, which is the moment of order t."""
    if kind == "remove":
        return (1 + t,)
    return (-t,) if kind == "add" else (1 + t, -t)


def power(exponents: tuple[Complexes, ...], logs: list[Complexes]) -> Complexes:
    """log of w₊^a w₋^b from log w₊ and log w₋: a table a pair, in it a row an order and a column a node."""
    out: Complexes = exponents[0][:, None] * logs[0][:, None, :]
    if len(logs) > 1:
        out += exponents[1][:, None] * logs[1][:, None, :]
    return out


@dataclass(slots=True)
class Grid:
    """Nodes x + i·eta, the same for pairs of one kind, with what does not depend on t: a row a pair.

    Lists hold what belongs to w₊ and, if the record changes, to w₋.
    """

    x: Reals
    step: float
    eta: float
    edge: float  # largest |Im xi| of the strip in which the integrand is analytic
    cut: float  # nodes of relative size below e^-cut are left out
    log_flat: Reals  # log of h·φ(x)
    log_cell: Reals  # log of what h·φ is at most up to the next nodes
    flat: Reals  # h·φ(x)
    weight: Complexes  # h·φ(xi)
    logs: list[Complexes]  # log w
    steepest: list[Reals]  # log |w| for which its power is largest, anywhere in the strip, up to the next nodes
    rises: list[Reals]  # w - 1 + q at real x
    span: float  # between the first node and the last, those left out in between included

    def shaken(self, shift: Reals) -> Reals:
        """In units of rounding and per |a| + |b|, how far terms are off: log w is long, xi and weights are rounded."""
        moved = shift * (np.abs(self.x) + (abs(self.eta) + shift))
        parts = zip(self.logs, self.rises, strict=True)
        out: Reals = sum(np.abs(log) + moved * rise * np.exp(-log.real) for log, rise in parts)
        out = out * (8 * self.x * self.x + (32 + len(self.x)))
        return out


def lay_grid(
    kind: Kind, rate: Reals, shift: Reals, line: tuple[float, float], least: float, most: float, accuracy: float
) -> Grid:
    """Nodes fine and wide enough for every order t with 0 ≤ least ≤ Re t ≤ most, on a line of given height.

    `line` is that height and half the width of the strip around it in which the integrand is analytic; the trapezoid
    rule and the nodes left out err by about e^-accuracy.
    """
    eta, half = line
    s, edge, cut = float(shift.max()), abs(eta) + half, accuracy + 4.0
    step = 2 * math.pi * half / (edge**2 / 2 + accuracy)
    x = _nodes(kind, s, float(shift.min()), float(rate.max()), most, cut, step)
    bell = x * x / 2
    signs = (1, -1) if kind == "replace" else (1,)
    losses = [sign * shift * x - shift * shift / 2 for sign in signs]
    grown = [rate * np.expm1(y) for y in losses]  # w - 1 at real x
    rises = [rate * np.exp(y) for y in losses]
    steepest = [np.log1p(v) for v in grown]
    if kind != "remove":  # the last power is negative
        steepest[-1] -= _dip(rate, rises[-1], shift, edge, step)
    # keep the nodes at which 1 or one of the wanted powers matters
    wanted = exponents(kind, np.array([least, most] if least < most else [most]))
    keep = (bell < cut) | (power(wanted, steepest) > bell - cut).any(axis=(0, 1))
    span = float(x[-1] - x[0])
    x, bell = x[keep], bell[keep]
    grown, rises, steepest = ([part[:, keep] for part in parts] for parts in (grown, rises, steepest))
    log_flat = math.log(step / math.sqrt(2 * math.pi)) - bell
    flat = np.exp(log_flat)
    if eta == 0:
        logs = [_log_w(rate, v, rise) for v, rise in zip(grown, rises, strict=True)]
        return Grid(x, step, eta, edge, cut, log_flat, log_flat + step**2 / 8, flat, flat, logs, steepest, rises, span)
    weight = flat * np.exp(eta**2 / 2 - 1j * eta * x)
    parts = zip(signs, grown, rises, strict=True)
    logs = [_log_turned(rate, v, rise, sign * shift * eta) for sign, v, rise in parts]
    return Grid(x, step, eta, edge, cut, log_flat, log_flat + step**2 / 8, flat, weight, logs, steepest, rises, span)


def _nodes(kind: Kind, s: float, least_s: float, rate: float, most: float, cut: float, step: float) -> Reals:
    """Equally spaced nodes that hold all maxima of φ|w₊|^a|w₋|^b and their neighbourhoods."""
    reach, odds = math.sqrt(2 * cut), rate / (1 - rate)
    right = reach + s * (1 + (most if kind != "add" else 0.0))
    # "add": φ·w^{-t} is log-concave, and its peak no further left than s·t·q/(1-q)
    left = -reach - s * {"remove": 0.0, "add": min(1.0, odds) * most, "replace": 1 + most}[kind]
    if kind == "replace" and odds > 1:  # φ·w₊^{1+t}·w₋^{-t} moves on by s·t until w₋ is down at 1 - q
        right += min(s * most, math.log(odds) / least_s)
    count = int((right - left) / step) + 2
    if count > _MOST_NODES:
        raise OverflowError(f"an order of {most:.3g} needs {count} quadrature nodes")
    return left + step * np.arange(count)


def _dip(rate: Reals, rise: Reals, shift: Reals, edge: float, step: float) -> Reals:
    """By how much log |w| is lower at the strip's edge than on the real line, and lower still between two nodes.

    The latter by what the curvature of log |w| allows; docs/proofs/contour.md, section 3.
    """
    angle, size = shift * edge, (1 - rate) + rise
    share = (1 - rate) / size * (rise / size)  # Aρ/(A + ρ)²
    # |A + ρe^{iθ}|² = (A + ρ)²(1 - 2(1 - cos θ)·share), and (log |w|)'' ≤ 2s²·share, e^{s·step} times that nearby
    between = (shift * step) ** 2 / 4 * np.exp(shift * step) * share
    out: Reals = between - np.log1p(2 * (np.cos(angle) - 1) * share) / 2
    return out


def _log_w(rate: Reals, grown: Reals, rise: Reals) -> Reals:
    """log w at real x, by (1-q) + rise where w is near 0 and 1 + (w - 1) has lost its digits."""
    out: Reals = np.log1p(grown)
    return out if rate.max() <= 0.5 else np.where(out < -0.5, np.log((1 - rate) + rise), out)


def _log_turned(rate: Reals, grown: Reals, rise: Reals, angle: Reals) -> Complexes:
    """log w at xi = x + i·eta with s·eta = ±angle, likewise."""
    half = np.sin(angle / 2)
    right, up = grown * np.cos(angle) - 2 * rate * half * half, rise * np.sin(angle)  # w - 1
    along = (1 - rate) + rise * np.cos(angle)
    out = np.empty(rise.shape, dtype=complex)
    out.real = np.log1p(right * (2 + right) + up * up) / 2
    out.imag = np.arctan2(up, along)
    far = rise > 1e8  # there squares overflow; near 0 they cancel
    if far.any() or rate.max() > 0.5:
        size = np.log(np.hypot(along, up))
        out.real = np.where(far | (size < -0.5), size, out.real)
    return out
