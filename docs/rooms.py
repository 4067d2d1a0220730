"""The rooms of the house and what they import, read off the code: the figure of docs/design.md."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import privet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Graph = Mapping[str, set[str]]
"""Each room, and the rooms that it imports."""

SOURCE = Path(privet.__file__).parent
INK, PAPER, LINE = "#1c2733", "#eef3f7", "#5f7586"
WIDTH, HEIGHT = 1.66, 0.7  # of a box, in inches
GAP, RISE = 0.2, 1.35  # between boxes, and from floor to floor


def room_of(dotted: str) -> str | None:
    """The room of a dotted name; None for what is not privet's, and for the package itself."""
    parts = dotted.split(".")
    return parts[1] if parts[0] == "privet" and len(parts) > 1 and parts[1] != "__init__" else None


def imported(path: Path) -> set[str]:
    """The rooms that a file imports, wherever in it; the house writes imports in full."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {room for name in names if (room := room_of(name)) is not None}
    return found


def read_rooms(source: Path = SOURCE) -> dict[str, set[str]]:
    """Every room with the rooms that it imports.

    Examples
    --------
    >>> "accounting" in read_rooms()["plan"], "plan" in read_rooms()["accounting"]
    (True, False)
    """
    rooms: dict[str, set[str]] = {}
    for path in sorted(source.rglob("*.py")):
        here = room_of(".".join(["privet", *path.relative_to(source).with_suffix("").parts]))
        if here is not None:
            rooms.setdefault(here, set()).update(imported(path) - {here})
    return rooms


def direct(rooms: Graph) -> dict[str, set[str]]:
    """The imports that do not follow from others: a → c is left out where a → b → … → c.

    Examples
    --------
    >>> direct({"a": set(), "b": {"a"}, "c": {"a", "b"}})
    {'a': set(), 'b': {'a'}, 'c': {'b'}}
    """
    below: dict[str, set[str]] = {}

    def reach(room: str) -> set[str]:
        if room not in below:
            below[room] = set().union(*({there} | reach(there) for there in rooms[room]))
        return below[room]

    return {room: {a for a in near if not any(a in reach(b) for b in near - {a})} for room, near in rooms.items()}


def floors(rooms: Graph) -> dict[str, int]:
    """How high each room lies: one above the highest that it imports."""
    found: dict[str, int] = {}

    def floor(room: str) -> int:
        if room not in found:
            found[room] = 1 + max(map(floor, rooms[room]), default=-1)
        return found[room]

    for room in rooms:
        floor(room)
    return found


def lines_of(room: str, source: Path = SOURCE) -> int:
    """How many lines of code a room has."""
    folder = source / room
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def arranged(near: Graph, floor: Mapping[str, int]) -> tuple[list[list[str]], list[list[str]]]:
    """Each floor from left to right, and each import as the chain of places that its line goes through.

    A line that passes a floor has a place of its own there (named `from>to`), so that it goes between boxes; places
    are sorted by the mean of what they are joined to, up and down, which leaves few crossings (Sugiyama 1981).
    """
    levels: list[list[str]] = [[room for room in near if floor[room] == k] for k in range(max(floor.values()) + 1)]
    chains = []
    for room, others in near.items():
        for other in sorted(others):
            passed = range(floor[room] - 1, floor[other], -1)
            for k in passed:
                levels[k].append(f"{room}>{other}@{k}")
            chains.append([room, *(f"{room}>{other}@{k}" for k in passed), other])
    joined: dict[str, set[str]] = {}
    for chain in chains:
        for a, b in pairwise(chain):
            joined.setdefault(a, set()).add(b)
            joined.setdefault(b, set()).add(a)
    for sweep in range(24):
        order = range(1, len(levels)) if sweep % 2 == 0 else range(len(levels) - 2, -1, -1)
        for k in order:
            beside = levels[k - 1] if sweep % 2 == 0 else levels[k + 1]
            place = {name: (i + 0.5) / len(beside) for i, name in enumerate(beside)}
            mine = {name: (i + 0.5) / len(levels[k]) for i, name in enumerate(levels[k])}

            def mean(name: str, place: dict[str, float] = place, mine: dict[str, float] = mine) -> float:
                known = [place[other] for other in joined.get(name, ()) if other in place]
                return sum(known) / len(known) if known else mine[name]

            levels[k].sort(key=mean)
    return levels, chains


def places(levels: list[list[str]]) -> dict[str, tuple[float, float]]:
    """The middle of each box, and where each passing line goes, in inches; every floor is centred."""
    found = {}
    for k, level in enumerate(levels):
        widths = [GAP if ">" in name else WIDTH + GAP for name in level]
        x = -sum(widths) / 2
        for name, width in zip(level, widths, strict=True):
            found[name] = (x + width / 2, k * RISE)
            x += width
    return found


def rooms_figure() -> Figure:
    """Draw the rooms, each above what it imports; imports that follow from others are left out."""
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch, PathPatch
    from matplotlib.path import Path as Curve

    rooms = read_rooms()
    levels, chains = arranged(direct(rooms), floors(rooms))
    place = places(levels)
    right = max(x for x, _ in place.values()) + WIDTH / 2 + 0.15
    left = min(x for x, _ in place.values()) - WIDTH / 2 - 0.15
    top, bottom = (len(levels) - 1) * RISE + HEIGHT, -HEIGHT
    figure = Figure(figsize=(right - left, top - bottom), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(left, right), ylim=(bottom, top))
    axes.set_axis_off()
    for chain in chains:
        points, codes = [place[chain[0]]], [Curve.MOVETO]
        for a, b in pairwise(chain):
            (x0, y0), (x1, y1) = place[a], place[b]
            high, low, middle = y0 - HEIGHT / 2, y1 + HEIGHT / 2, (y0 + y1) / 2  # straight beside the boxes
            points += [(x0, high), (x0, middle), (x1, middle), (x1, low), (x1, y1)]
            codes += [Curve.LINETO, *[Curve.CURVE4] * 3, Curve.LINETO]
        axes.add_patch(PathPatch(Curve(points, codes), facecolor="none", edgecolor=LINE, linewidth=1.1, zorder=1))
    for room in rooms:
        x, y = place[room]
        axes.add_patch(
            FancyBboxPatch(
                (x - WIDTH / 2, y - HEIGHT / 2),
                WIDTH,
                HEIGHT,
                boxstyle="round,pad=0,rounding_size=0.08",
                facecolor=PAPER,
                edgecolor=INK,
                linewidth=0.9,
                zorder=2,
            )
        )
        axes.text(x, y + 0.1, room, ha="center", va="center", color=INK, fontsize=15.5, zorder=3)
        size = f"{lines_of(room):,} lines"
        axes.text(x, y - 0.19, size, ha="center", va="center", color=LINE, fontsize=11.5, zorder=3)
    return figure
