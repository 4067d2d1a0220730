"""Quadrature nodes for the moments of a mixture pair; see :mod:`privet.accounting.pairs.mixture` for what they sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privet.accounting.pairs.complex_functions import expm1, log1p
from privet.accounting.pairs.pair import Complexes, Reals

Kind = Literal["remove", "add", "replace"]

CUT = 60.0  # log of the relative size below which quadrature nodes are dropped
_MOST_NODES = 20_000


@dataclass(slots=True)
class Grid:
    """Nodes on a line Im xi = eta, with everything that does not depend on t."""

    log_weight: Complexes  # log of h·φ(xi)
    up: Complexes  # log w₊
    down: Complexes  # log w₋
    v_up: Complexes  # w₊ - 1
    v_down: Complexes  # w₋ - 1
    step: float
    eta: float
    x: Reals
    rise: Reals  # log |w₊| and log |w₋| for which their powers are largest, anywhere in the strip, up to the next nodes
    fall: Reals
    span: float  # between the first node and the last, those left out in between included


def exponents(kind: Kind, t: Complexes) -> tuple[Complexes, Complexes]:
    """(a, b) of ∫ φ w₊^a w₋^b, which is the moment of order t."""
    if kind == "remove":
        return 1 + t, np.zeros_like(t)
    if kind == "add":
        return -t, np.zeros_like(t)
    return 1 + t, -t


def lay_grid(rate: float, shift: float, kind: Kind, line: tuple[float, float], least: float, most: float) -> Grid:
    """Nodes fine and wide enough for every order t with least ≤ Re t ≤ most, on a line of given height.

    `line` is that height and half the width of the strip around it in which the integrand is analytic.
    """
    s, q = shift, rate
    eta, half = line
    step = 2 * math.pi * half / ((abs(eta) + half) ** 2 / 2 + CUT - 12)
    reach = math.sqrt(2 * CUT)
    right = reach + s * (1 + (max(most, 0.0) if kind != "add" else max(-least, 0.0)))
    # "add": φ·w^{-t} is log-concave, and its peak no further left than s·t·q/(1-q)
    drift = {"remove": 0.0, "add": min(1.0, q / (1 - q)) * max(most, 0.0), "replace": 1 + max(most, 0.0)}[kind]
    left = -reach - s * drift
    if kind == "replace" and q > 0.5:  # φ·w₊^{1+t}·w₋^{-t} moves on by s·t until w₋ is down at 1 - q
        right += min(s * max(most, 0.0), (math.log(q) - math.log1p(-q)) / s)
    count = int((right - left) / step) + 2
    if count > _MOST_NODES:
        raise OverflowError(f"an order of {most:.3g} needs {count} quadrature nodes")
    x = left + step * np.arange(count)
    # keep the nodes at which 1 or one of the wanted powers matters, anywhere in the strip
    rise, fall = _largest(s, q, kind, x, s * (abs(eta) + half), step)
    keep = (x * x / 2 < CUT) | ((x - s) ** 2 / 2 < CUT)  # φ and φ·w₊, whose integrals are used
    if kind == "replace":
        keep |= (x + s) ** 2 / 2 < CUT  # φ·w₋
    for order in (least, most):
        a, b = (w.real[0] for w in exponents(kind, np.array([complex(order)])))
        power = a * rise + b * fall if kind == "replace" else a * rise
        keep |= power - x * x / 2 > -CUT
    x, rise, fall = x[keep], rise[keep], fall[keep]
    known = (step, eta, x, rise, fall, right - left)
    if eta == 0:
        v_up = q * np.expm1(s * x - s * s / 2)
        v_down = q * np.expm1(-s * x - s * s / 2) if kind == "replace" else np.zeros_like(x)
        log_weight = -x * x / 2 + math.log(step / math.sqrt(2 * math.pi))
        up, down = np.log1p(v_up), np.log1p(v_down)
        if q > 0.5:
            up, down = _logs_near_zero(s, q, kind, x, up, down)
        weight, up, down, v_up, v_down = (part.astype(complex) for part in (log_weight, up, down, v_up, v_down))
        return Grid(weight, up, down, v_up, v_down, *known)
    xi = x + 1j * eta
    v_up = q * expm1(s * xi - s * s / 2)
    v_down = q * expm1(-s * xi - s * s / 2) if kind == "replace" else np.zeros_like(v_up)
    log_weight = -xi * xi / 2 + math.log(step / math.sqrt(2 * math.pi))
    up, down = log1p(v_up), log1p(v_down)
    if q > 0.5:
        up, down = _logs_near_zero(s, q, kind, xi, up, down)
    return Grid(log_weight, up, down, v_up, v_down, *known)


def _largest(s: float, q: float, kind: Kind, x: Reals, angle: float, step: float) -> tuple[Reals, Reals]:
    """log |w₊| and log |w₋| for which their powers are largest: negative ones at `angle`, positive ones on the line.

    Negative powers may be larger between two nodes than at both, by what the curvature of log |w| allows.
    """

    def modulus(y: Reals, turned: bool) -> Reals:
        size = np.logaddexp(math.log1p(-q), math.log(q) + y)
        if not turned:
            return size
        share = np.exp(math.log1p(-q) + math.log(q) + y - 2 * size)  # Aρ/(A + ρ)²
        # |A + ρe^{iθ}|² = (A + ρ)²(1 - 2(1 - cos θ)·share), and (log |w|)'' ≤ 2s²·share, e^{s·step} times that nearby
        between = (s * step) ** 2 / 4 * math.exp(s * step) * share
        out: Reals = size + np.log1p(2 * (math.cos(angle) - 1) * share) / 2 - between
        return out

    rise = modulus(s * x - s * s / 2, kind == "add")
    return rise, modulus(-s * x - s * s / 2, True) if kind == "replace" else rise


def _logs_near_zero(
    s: float, q: float, kind: Kind, xi: Complexes, up: Complexes, down: Complexes
) -> tuple[Complexes, Complexes]:
    """log w₊ and log w₋, by (1-q) + q·e^y where w is near 0 and 1 + (w - 1) has lost its digits."""

    def mended(log_w: Complexes, y: Complexes) -> Complexes:
        with np.errstate(over="ignore"):
            return np.where(log_w.real < -0.5, np.log((1 - q) + q * np.exp(y)), log_w)

    if kind != "replace":
        return mended(up, s * xi - s * s / 2), down
    return mended(up, s * xi - s * s / 2), mended(down, -s * xi - s * s / 2)
