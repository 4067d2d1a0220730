"""Noise in tests and examples: the same in every run, so that none fails by chance; PRIVET_FRESH_NOISE=1 draws anew.
Examples in the code that need an extra are run where it is installed.

`make test-repeats` looks for what holds by this only: it repeats all examples with fresh noise.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from privet.randomness import generator

_NEEDED = {
    "torch": ["src/privet/torch/*"],
    "distributed": ["src/privet/engines/dask_*.py"],
    "pyarrow": ["src/privet/engines/plain_columns.py"],
}
collect_ignore_glob = [
    pattern for extra, patterns in _NEEDED.items() if not importlib.util.find_spec(extra) for pattern in patterns
]
_FRESH = bool(os.environ.get("PRIVET_FRESH_NOISE"))


@contextmanager
def _keyed_by(name: str) -> Iterator[None]:
    """Key the system's noise of this process by a name; that of commands and workers stays as it comes."""
    before, used = generator._system_key, itertools.count()
    generator._system_key = lambda: hashlib.sha256(f"{name} {next(used)}".encode()).digest()
    for random in list(generator._LIVE):
        random._restart()
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
    try:
        yield
    finally:
        generator._system_key = before


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run each test with noise that its name decides."""
    if _FRESH:
        return (yield)
    with _keyed_by(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> Iterator[None]:
    """What several tests share is the same whichever of them runs first."""
    if _FRESH or fixturedef.scope == "function":
        return (yield)
    which = getattr(request, "param_index", 0)
    with _keyed_by(f"{fixturedef.baseid} {fixturedef.argname} {which}"):
        return (yield)
