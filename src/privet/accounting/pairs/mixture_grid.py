"""Quadrature nodes for the moments of mixture pairs; see :mod:`privet.accounting.pairs.mixture` for what they sum."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privet.accounting.pairs.pair import Complexes, Reals

Kind = Literal["remove", "add", "replace"]
Ends = tuple[float, float, float]  # of several pairs the largest shift, the least, and the largest rate

_MOST_NODES = 20_000


def exponents(kind: Kind, t: Complexes) -> tuple[Complexes, ...]:
    """(a,) or (a, b) of ∫ φ w₊^a w₋^b, which is the moment of order t."""
    if kind == "remove":
        return (1 + t,)
    return (-t,) if kind == "add" else (1 + t, -t)


def power(exponents: tuple[Complexes, ...], logs: Complexes) -> Complexes:
    """log of w₊^a w₋^b from log w₊ and log w₋: a table a pair, in it a row an order and a column a node."""
    out: Complexes = exponents[0][:, None] * logs[0][:, None, :]
    if len(logs) > 1:
        out += exponents[1][:, None] * logs[1][:, None, :]
    return out


@dataclass(slots=True)
class Grid:
    """Nodes x + i·eta, the same for pairs of one kind, with what does not depend on t: a row a pair.

    Tables of w have one such table for w₊ and, if the record changes, one for w₋.
    """

    x: Reals
    step: float
    eta: float
    edge: float  # largest |Im xi| of the strip in which the integrand is analytic
    cut: float  # nodes of relative size below e^-cut are left out
    span: float  # between the first node and the last, those left out included
    log_flat: Reals  # log of h·φ(x)
    log_cell: Reals  # log of what h·φ is at most up to the next nodes
    flat: Reals  # h·φ(x)
    weight: Complexes  # h·φ(xi)
    logs: Complexes  # log w
    plain: Reals  # log w at real x
    steepest: Reals  # log |w| for which its power is largest, anywhere in the strip, up to the next nodes
    rises: Reals  # w - 1 + q at real x

    def shaken(self, shift: Reals) -> Reals:
        """In units of rounding and per |a| + |b|, how far terms are off: log w is long, xi and weights are rounded."""
        moved = shift * (np.abs(self.x) + (abs(self.eta) + shift))
        out: Reals = np.add.reduce(np.abs(self.logs) + moved * self.rises * np.exp(-self.logs.real), axis=0)
        out *= 8 * self.x * self.x + (32 + len(self.x))
        return out


def lay_grid(
    kind: Kind,
    rate: Reals,
    shift: Reals,
    line: tuple[float, float],
    ends: Ends,
    least: float,
    most: float,
    accuracy: float,
) -> Grid:
    """Nodes fine and wide enough for every order t with 0 ≤ least ≤ Re t ≤ most, on a line of given height.

    `line` is that height and half the width of the strip around it in which the integrand is analytic; the trapezoid
    rule and the nodes left out err by about e^-accuracy. Rates and shifts are columns, of which `ends` tells the ends.
    """
    eta, half = line
    edge, cut = abs(eta) + half, accuracy + 4.0
    step = 2 * math.pi * half / (edge**2 / 2 + accuracy)
    x = _nodes(kind, ends, most, cut, step)
    span = float(x[-1] - x[0])
    bell = x * x / 2
    loss = shift * x - shift * shift / 2
    losses = np.array([loss, -loss - shift * shift]) if kind == "replace" else loss[None]
    grown, rises = rate * np.expm1(losses), rate * np.exp(losses)  # of which the first is w - 1 at real x
    logs = steepest = _log_w(rate, grown, losses, ends[2])
    if kind != "remove":  # the last power is negative
        steepest = logs.copy()
        steepest[-1] -= _dip(rate, rises[-1], shift, edge, step)
    # keep the nodes from the first to the last at which 1 or one of the wanted powers matters
    wanted = exponents(kind, np.array([least, most] if least < most else [most]))
    keep = np.logical_or.reduce(power(wanted, steepest) > bell - cut, axis=(0, 1)) | (bell < cut)
    kept = slice(int(keep.argmax()), len(x) - int(keep[::-1].argmax()))
    x, plain, steepest, rises = x[kept], logs[..., kept], steepest[..., kept], rises[..., kept]
    logs = plain
    log_flat = math.log(step / math.sqrt(2 * math.pi)) - bell[kept]
    flat = weight = np.exp(log_flat)
    if eta:
        weight = flat * np.exp(eta**2 / 2 - 1j * eta * x)
        angle = shift * eta
        angles = np.array([angle, -angle]) if kind == "replace" else angle
        logs = _log_turned(rate, grown[..., kept], rises, angles, ends[2])
    log_cell = log_flat + step**2 / 8
    return Grid(x, step, eta, edge, cut, span, log_flat, log_cell, flat, weight, logs, plain, steepest, rises)


def rough_nodes(
    kind: Kind, rate: Reals, shift: Reals, half: float, ends: Ends, most: float, accuracy: float
) -> tuple[Reals, Reals]:
    """log of h·φ and log w at real nodes that serve orders up to `most`, where nothing is certified."""
    step = 2 * math.pi * half / (half**2 / 2 + accuracy)
    x = _nodes(kind, ends, most, accuracy, step)
    loss = shift * x - shift * shift / 2
    losses = np.array([loss, -loss - shift * shift]) if kind == "replace" else loss[None]
    return math.log(step / math.sqrt(2 * math.pi)) - x * x / 2, _log_w(rate, rate * np.expm1(losses), losses, ends[2])


def _nodes(kind: Kind, ends: Ends, most: float, cut: float, step: float) -> Reals:
    """Equally spaced nodes that hold all maxima of φ|w₊|^a|w₋|^b and their neighbourhoods."""
    s, least_s, rate = ends
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


def _log_w(rate: Reals, grown: Reals, losses: Reals, most: float) -> Reals:
    """log w at real x, by (1-q) + q·e^loss where w is near 0 and 1 + (w - 1) has lost its digits."""
    out: Reals = np.log1p(grown)
    return out if most <= 0.5 else np.where(out < -0.5, np.log((1 - rate) + rate * np.exp(losses)), out)


def _log_turned(rate: Reals, grown: Reals, rise: Reals, angle: Reals, most: float) -> Complexes:
    """log w at xi = x + i·eta with s·eta = ±angle, likewise."""
    half, turned = np.sin(angle / 2), np.cos(angle)
    right, up = grown * turned - 2 * rate * half * half, rise * np.sin(angle)  # w - 1
    along = (1 - rate) + rise * turned
    out = np.empty(rise.shape, dtype=complex)
    out.real = np.log1p(right * (2 + right) + up * up) / 2
    out.imag = np.arctan2(up, along)
    far = rise > 1e8  # there squares overflow; near 0 they cancel
    if most > 0.5 or far.any():
        size = np.log(np.hypot(along, up))
        out.real = np.where(far | (size < -0.5), size, out.real)
    return out
