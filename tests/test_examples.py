"""The examples' own parts: features that nobody learnt."""

from __future__ import annotations

import doctest
import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = str(Path(__file__).parents[1] / "examples")


def _example(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return importlib.import_module(name)


@pytest.mark.parametrize("name", ["scattering", "strokes"])
def test_examples_in_docstrings_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the docstrings of the examples show is what comes out."""
    tried = doctest.testmod(_example(name, monkeypatch))
    assert tried.attempted
    assert not tried.failed


def test_scattering_of_a_picture_depends_on_that_picture_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No record moves the features of another, whatever the blocks: else features would cost privacy."""
    scattering, strokes = (_example(name, monkeypatch) for name in ("scattering", "strokes"))
    pictures = strokes.strokes(5, seed=1)
    together = scattering.scattering(pictures, block=3)
    others = scattering.scattering(np.concatenate([255 - pictures[:4], pictures[4:]]), block=2)
    assert np.allclose(together[4], others[4], atol=1e-6)
    assert not np.allclose(together[3], others[3], atol=1e-3)


def test_scattering_turns_with_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a picture turned by a right angle, direction k looks as k + 4 of 8 did, summed over places."""
    scattering, strokes = (_example(name, monkeypatch) for name in ("scattering", "strokes"))
    pictures = strokes.strokes(6, seed=2)
    both = (pictures, np.rot90(pictures, axes=(1, 2)))
    upright, turned = (scattering.scattering(each)[:, 1:9].sum(axis=(2, 3)) for each in both)
    assert np.corrcoef(np.roll(upright, 4, axis=1).ravel(), turned.ravel())[0, 1] > 0.95
    assert np.corrcoef(upright.ravel(), turned.ravel())[0, 1] < 0.6  # the same directions are others now
