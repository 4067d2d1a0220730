"""Intervals by an exact random draw: a short one with most of the values, the middle of one with nearly all; pure."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from privet.arrays import IntArray, Vector
from privet.data.elsewhere import tallies
from privet.plan import Meter, Release
from privet.privacy import sensitivity_factor
from privet.solvers.constant_draws import FARTHEST, MOST, ONE, draw_release, drawn, usual_place

_WIDER = 0.1  # logarithm of odds that an interval loses with each octave that it is wider
_PARTS = np.array([0.0, 0.25, 0.5])  # where parts of half an interval's width begin
_MORE = 0.2  # of all records, that an interval shall hold beyond half of the known ones
_AWAY = 64  # of its halves that the middle of an interval may be from the place next to 0
_HALVES = (20, 60)  # octaves of intervals inside declared ends, and where there are none
_GUESSED = 6  # octaves of intervals whose middle is a guess
_SHORT = 0.9  # logarithm of odds that those about the usual place lose with each octave that they are wider
_ELSEWHERE = 5.5  # and that the others lose beside the shortest of them


@dataclass(frozen=True, kw_only=True, slots=True)
class IntervalDraw:
    """A short interval with most of the values: with probability ∝ exp(−β s), s how many records it is off.

    So many does it lack to hold seven tenths of them, or has a part of half its width more than half. There are
    intervals of every size, up to 32 of their widths away from the place next to 0. How large values are stands
    out before a quantile far out does, also if they are close together far from 0: the shortest interval that is at
    hand then may hold them all.

    Promise: the release of that name, an exact ExponentialMechanism; values that are NaN count for nothing.
    Theorem: docs/proofs/drawing.md, section 7.

    Examples
    --------
    >>> IntervalDraw(name="reach").release(0.1).mechanism
    ExponentialMechanism(epsilon=0.1)
    """

    name: str

    def release(self, epsilon: float) -> Release:
        return draw_release(self.name, "values inside an interval, in a draw", epsilon)

    def run(self, values: Vector, ends: tuple[float, float] | None, meter: Meter) -> tuple[float, float]:
        """An interval within the public `ends`, if there are any; private in, public out."""
        room = intervals(ends)
        meter.open(self.name, count=len(values))
        width = sensitivity_factor(meter.plan.neighbours) * ONE
        scores = interval_scores(values, room, meter.plan.count)
        place = drawn(self.name, scores, width, meter, dislike=room.dislike.tolist())
        return float(room.lows[place]), float(room.highs[place])


@dataclass(frozen=True, kw_only=True, slots=True)
class MiddleDraw:
    """About the middle of an interval with nearly all values: with probability ∝ exp(−β · records outside − dislike).

    Where next to nothing can be told this is better than a quantile: all records speak against a place far off, not
    half of them. Nearly all odds are with intervals about a usual place, and the wider, the more disliked.
    Of a `level` beside 1/2, a place half as far from the middle.

    Promise: the release of that name, an exact ExponentialMechanism; values that are NaN count for nothing.
    Theorem: docs/proofs/drawing.md, section 7.

    Examples
    --------
    >>> MiddleDraw(name="constant").release(0.05).mechanism
    ExponentialMechanism(epsilon=0.05)
    """

    name: str
    level: float = 0.5

    def release(self, epsilon: float) -> Release:
        return draw_release(self.name, "values outside an interval, in a draw", epsilon)

    def run(self, values: Vector, ends: tuple[float, float], meter: Meter) -> float:
        """A place within the public `ends`; private in, public out."""
        lows, highs, dislike = guesses(ends)
        meter.open(self.name, count=len(values))
        (inside,) = tallies([partial(_held, lows=lows, highs=highs)], [values])
        scores = [-int(each) * ONE for each in inside]
        place = drawn(self.name, scores, sensitivity_factor(meter.plan.neighbours) * ONE, meter, dislike=dislike)
        low, high = float(lows[place]), float(highs[place])
        return low + (high - low) * (0.25 + self.level / 2)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Intervals:
    """Intervals by their ends, with three parts of half their width, one row each, and how much each is disliked.

    Parts that are too far from the origin, for their size, to have an interval of their own are NaN. All is public.
    """

    lows: Vector
    highs: Vector
    starts: Vector
    stops: Vector
    dislike: Vector


def intervals(ends: tuple[float, float] | None, octaves: int | None = None) -> Intervals:
    """Intervals of every size within `ends`, or within ±2⁴⁰; sizes of so many octaves.

    Examples
    --------
    >>> room = intervals((0.0, 8.0))
    >>> float(room.lows[0]), float(room.highs[0]), room.stops[0].tolist()
    (0.0, 8.0, [4.0, 6.0, 8.0])
    """
    low, high = np.clip(ends or (-MOST, MOST), -FARTHEST, FARTHEST).tolist()
    origin = min(max(0.0, low), high)
    top, octaves = max(high - origin, origin - low), octaves or _HALVES[ends is None]
    found = []
    for octave in range(octaves + 1):
        half = top * 2.0**-octave
        places = np.arange(-_AWAY, _AWAY + 1)  # but those that end at the origin: a half of what is about it is in them
        middles = origin + half * places[np.abs(places) != 1]
        middles = middles[(middles >= low) & (middles <= high)]
        lows, highs = np.maximum(middles - half, low), np.minimum(middles + half, high)
        width = (highs - lows)[:, None]
        starts = lows[:, None] + width * _PARTS
        away = (np.abs(starts + width / 4 - origin) > _AWAY * width / 4) | (octave == octaves)
        dislike = np.full(len(middles), math.log(len(middles)) - _WIDER * octave)
        found.append((lows, highs, np.where(away, np.nan, starts), np.where(away, np.nan, starts + width / 2), dislike))
    lows, highs, starts, stops, dislike = (np.concatenate(each) for each in zip(*found, strict=True))
    return Intervals(lows=lows, highs=highs, starts=starts, stops=stops, dislike=dislike - dislike.min())


def interval_scores(values: Vector, room: Intervals, count: int) -> list[int]:
    """By how many records each interval is off, in units: max(known/2 + more − inside, inside a part − known/2, 0).

    An interval that nothing is in is then the farther off the more it should hold. `count` of all records is public.
    """
    more = round(2 * _MORE * count)
    ((*inside, known),) = tallies([partial(_inside, room=room)], [values])
    found = np.array(inside, dtype=np.int64).reshape(-1, 4)
    off = np.maximum(int(known) + more - 2 * found[:, 0], 2 * found[:, 1:].max(axis=1) - int(known))
    return [max(int(each), 0) * (ONE // 2) for each in off]


def guesses(ends: tuple[float, float]) -> tuple[Vector, Vector, list[float]]:
    """Intervals within `ends`, by their ends, and how much each is disliked; public.

    Some are about the usual place, and the wider, the more disliked; they have most of the odds. Others are anywhere.
    """
    low, high = np.clip(ends, -FARTHEST, FARTHEST).tolist()
    origin = usual_place(low, high)
    octaves = np.arange(_GUESSED + 1)
    halves = max(high - origin, origin - low) * 2.0**-octaves
    room = intervals(ends, _GUESSED)
    lows = np.concatenate([np.maximum(origin - halves, low), room.lows])
    highs = np.concatenate([np.minimum(origin + halves, high), room.highs])
    return lows, highs, [*(_SHORT * (_GUESSED - octaves)).tolist(), *(_ELSEWHERE + room.dislike).tolist()]


def _held(values: Vector, lows: Vector, highs: Vector) -> IntArray:
    """How many values are in each interval; NaN is in none."""
    known = np.sort(values[~np.isnan(values)])
    return np.asarray(np.searchsorted(known, highs, side="right") - np.searchsorted(known, lows, side="left"))


def _inside(values: Vector, room: Intervals) -> IntArray:
    """How many values are in each interval and in each of its parts, and how many there are; NaN is none."""
    known = np.sort(values[~np.isnan(values)])
    lows, highs = np.column_stack([room.lows, room.starts]), np.column_stack([room.highs, room.stops])
    held = np.searchsorted(known, highs, side="right") - np.searchsorted(known, lows, side="left")
    return np.append(np.where(np.isnan(lows), 0, held), len(known)).astype(np.int64)
