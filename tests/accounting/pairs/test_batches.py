"""Many unlike steps at a time are the same as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privet.accounting.pairs.atoms import Atoms
from privet.accounting.pairs.elementary import DiscretePair
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.renyi_orders import gathered, log_moment, rough_log_moment

RNG = np.random.default_rng(11)
ATOMS = [DiscretePair((-e, e), (1 / (1 + np.exp(e)), 1 / (1 + np.exp(-e)))) for e in RNG.uniform(0.05, 0.9, size=40)]
ATOMS += [DiscretePair((-0.3, 0.0, 0.4), (0.25, 0.5, 0.125), 0.125)]


def mixtures(kind: Any) -> list[tuple[MixturePair, int]]:
    """Two hundred unlike pairs, over four octaves of noise."""
    rng = np.random.default_rng(5)
    rates, shifts = 10 ** rng.uniform(-4, -0.2, size=200), 2 ** rng.uniform(-3, 1, size=200)
    counts = rng.integers(1, 50, size=200)
    return [(MixturePair(q, s, kind), int(n)) for q, s, n in zip(rates, shifts, counts, strict=True)]


@pytest.mark.parametrize("kind", ["remove", "add", "replace"])
def test_mixtures_together_are_mixtures_one_by_one(kind: Any) -> None:
    """log M of a batch is the sum over its pairs, each alone, within the sum of the two bounds; so are the guesses."""
    steps = mixtures(kind)
    batches = gathered(steps)
    assert 4 <= len(batches) < 12
    for t in (np.array([0.4, 1.7, 3.1], dtype=complex), 1.3 + 0.7j * np.arange(4)):
        value, bound = log_moment(batches, t)
        alone, other = np.zeros(len(t), dtype=complex), np.zeros(len(t))
        for pair, count in steps:
            one, relative = pair.log_moment(t)
            alone, other = alone + count * one, other + count * np.log1p(relative)
        assert np.all(np.abs(np.expm1(value - alone)) <= np.expm1(bound + other))
        assert np.all(bound < 1e-6)
        if not t.imag.any():
            assert rough_log_moment(batches, t.real) == pytest.approx(alone.real, rel=1e-7)


@pytest.mark.parametrize("kind", ["remove", "add", "replace"])
def test_mixtures_decay_together(kind: Any) -> None:
    """The decay of a batch is at most what its moments show, at that frequency and beyond, and worth having."""
    batches = gathered(mixtures(kind))
    frequency = np.array([0.5, 3.0, 20.0])
    promised = np.sum([pair.decay(1.3, frequency) for pair, _ in batches], axis=0)
    for u, least in zip(frequency, promised, strict=True):
        t = 1.3 + 1j * np.concatenate([[0.0], u * np.linspace(1.0, 2.0, 9)])
        with np.errstate(over="ignore"):  # what has decayed has no relative error left
            value, error = log_moment(batches, t)
            assert np.all(least <= value[0].real - value[1:].real + error[0] + error[1:])
    assert promised[-1] > 40


@pytest.mark.parametrize("count", [1, 3, 10**6])
def test_atoms_together_are_atoms_one_by_one(count: int) -> None:
    """On a line, the product of many few-outcome steps is that of the steps one by one within its bound."""
    batch = Atoms(ATOMS, count)
    tilt, spacing, nodes = 1.5, 0.8, 300
    value, error = batch.on_line(tilt, spacing, nodes)
    t = tilt + 1j * spacing * np.arange(nodes)
    alone = count * sum(pair.log_moment(t)[0] for pair in ATOMS)
    blur = count * sum(np.log1p(pair.log_moment(t)[1]) for pair in ATOMS)
    with np.errstate(all="ignore"):  # relative to the moment at the tilt: where little is left, phases are not kept
        wrong = np.abs(np.exp(value - value[0].real) - np.exp(alone - value[0].real))
        assert np.all(wrong <= np.exp(value.real - value[0].real) * np.expm1(error + blur) + 1e-12 * count)
    assert np.all(error[:3] < 1e-11 * count)
    again, bound = batch.log_moment(t[:6])
    assert np.all(np.abs(np.expm1(again - value[:6])) <= np.expm1(error[:6]) + bound)


def test_what_is_not_followed_is_bounded() -> None:
    """Frequencies dropped as silent keep a bound that covers the true moment, whatever its phase."""
    batch = Atoms(ATOMS * 20, 1)
    value, error = batch.on_line(1.5, 0.8, 300)
    t = 1.5 + 0.8j * np.arange(300)
    truth = 20 * sum(pair.log_moment(t)[0].real for pair in ATOMS)
    assert np.any(error > 1.0)
    assert np.all(truth <= value.real + error + 1e-9)
