"""The public names of privet: each room's `__all__`, where each is at home, and what code in a text means by a name."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import privet

OPTIONAL = ("torch", "dask", "distributed", "pyspark", "pandas", "pyarrow", "polars", "numba")
MISSING = [name for name in OPTIONAL if find_spec(name) is None]
# Words of every day that are names here as well: in a text they are linked only with their room before them.
_PLAIN = re.compile(r"[a-z]+")


@dataclass(frozen=True)
class Name:
    """A public name: `room` exports it as `short`; `home` is the room that it is explained in."""

    room: str
    short: str
    home: str

    @property
    def dotted(self) -> str:
        """As it is imported."""
        return f"{self.room}.{self.short}"

    @property
    def value(self) -> Any:
        """What it stands for."""
        return getattr(importlib.import_module(self.room), self.short)


@cache
def rooms() -> tuple[str, ...]:
    """All packages with an `__all__`, and the module of errors; privet first."""
    with _imitated():
        inner = sorted(m.name for m in pkgutil.walk_packages(privet.__path__, "privet.") if m.ispkg)
        found = tuple(room for room in ["privet", *inner] if getattr(importlib.import_module(room), "__all__", None))
    return (*found, "privet.errors")


def _imitated() -> AbstractContextManager[None]:
    """Imports of PyTorch succeed, whether or not it is installed; all else that is optional is imported when used."""
    if "torch" not in MISSING:
        return nullcontext()
    from sphinx.ext.autodoc.mock import _MockObject, mock

    _MockObject.__or__ = _MockObject.__ror__ = lambda self, other: (
        Any
    )  # types of its classes are written `Tensor | None`
    return mock(["torch"])


def exported(room: str) -> list[str]:
    """The names of a room; the errors are all that are defined there."""
    module = importlib.import_module(room)
    listed = getattr(module, "__all__", None)
    return list(listed) if listed else [k for k, v in vars(module).items() if getattr(v, "__module__", "") == room]


@cache
def names() -> tuple[Name, ...]:
    """Every public name of every room."""
    inside = [(room, short) for room in rooms() for short in exported(room)]
    by_value: dict[int, list[str]] = {}
    for room, short in inside:
        by_value.setdefault(id(getattr(importlib.import_module(room), short)), []).append(room)

    def home(room: str, short: str) -> str:
        value = getattr(importlib.import_module(room), short)
        where = getattr(value, "__module__", None) or ""
        shared = by_value[id(value)] if inspect.isclass(value) or inspect.isroutine(value) else [room]
        return next((r for r in shared if r != "privet" and where.startswith(f"{r}.")), room)

    return tuple(Name(room, short, home(room, short)) for room, short in inside)


@cache
def _by_word() -> dict[str, set[str]]:
    """Short names and dotted names, with what they may mean."""
    found: dict[str, set[str]] = {room: {room} for room in rooms()}
    for name in names():
        found.setdefault(name.dotted, set()).add(f"{name.home}.{name.short}")
        found.setdefault(name.short, set()).add(f"{name.home}.{name.short}")
    return found


def meant(code: str, room: str | None = None, own: frozenset[str] = frozenset()) -> str | None:
    """The public name that a piece of code in a text means, or None: `own` are words that mean something else there.

    Examples
    --------
    >>> meant("LogisticRegression"), meant("epsilon"), meant("epsilon", "privet.accounting")
    ('privet.estimators.LogisticRegression', None, 'privet.accounting.epsilon')
    """
    word = re.fullmatch(r"([A-Za-z_][\w.]*)(?:\(.*\))?", code)
    if word is None or word[1] in own:
        return None
    short = word[1]
    here = f"{room}.{short}" if room is not None else ""
    if here in _by_word():
        return next(iter(_by_word()[here]))
    if _PLAIN.fullmatch(short):
        return None
    found = _by_word().get(short) or _by_word().get(f"privet.{short}", set())
    return next(iter(found)) if len(found) == 1 else None


def said_of(name: Name) -> str:
    """The docstring of what is no class and no function: the text below its assignment, in the file it comes from."""
    tree = ast.parse(Path(inspect.getfile(importlib.import_module(name.room))).read_text(encoding="utf-8"))
    origin = next((n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and _brings(n, name.short)), None)
    module = importlib.import_module(origin or name.room)
    body = ast.parse(Path(inspect.getfile(module)).read_text(encoding="utf-8")).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if name.short in _assigned(node) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return inspect.cleandoc(str(after.value.value))
    return ""


def _brings(node: ast.ImportFrom, short: str) -> bool:
    return any((alias.asname or alias.name) == short for alias in node.names)


def _assigned(node: ast.AST) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", getattr(node, "name", None))]
    yield from (target.id for target in targets if isinstance(target, ast.Name))
