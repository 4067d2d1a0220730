from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.errors import InvalidParameter
from privet.preprocessing.octaves import COARSE, octave_counts
from privet.preprocessing.scaling import scaling_from
from privet.preprocessing.tails import Root, check_tails, root_for

ODD = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e308, -1e308, 7.0, -7.0, 100.0, 101.0]


@given(st.lists(st.floats(-1e290, 1e290), min_size=2), st.floats(1e-12, 1e12))
def test_a_root_is_odd_monotone_and_keeps_zero(values: list[float], unit: float) -> None:
    """Larger values never get smaller, to the last bit; signs turn round; 0 stays 0; nothing gets longer."""
    root, ordered = Root(unit=unit), np.sort(values)
    found = root(ordered)
    assert (found[:-1] <= found[1:]).all()
    assert np.array_equal(root(-ordered), -found)
    assert root(np.zeros(1))[0] == 0
    assert (np.abs(found) * (1 - 1e-15) <= np.abs(ordered) + 4e-15 * unit).all()


def test_a_root_is_the_same_whatever_stands_beside_a_value() -> None:
    """One by one, side by side, with gaps between them and in another order: the same bits."""
    values = np.append(np.random.default_rng(0).lognormal(3, 3, 4_000), ODD)
    root = Root(unit=3.7)
    whole = root(values)
    table = np.column_stack([values] * 7)
    assert np.array_equal(root(table[:, 3]), whole, equal_nan=True)
    assert np.array_equal([root(np.array([value]))[0] for value in values], whole, equal_nan=True)
    assert np.array_equal(root(values[::-1])[::-1], whole, equal_nan=True)


def test_bent_features_stand_behind_the_others_within_their_norm() -> None:
    """Each row by itself, odd cells among them: values in [−1, 1], missing in both or neither, predictions alike."""
    rng = np.random.default_rng(1)
    scaling = scaling_from(([0.0, 5.0, -7.0], [100.0, 6.0, 50.0]), 3, intercept=True)
    root, other = Root(unit=2.0), Root(unit=0.5)
    bent = scaling.with_roots(((0, root), (2, other)))
    rows = rng.lognormal(2, 2, size=(128, 3))
    rows[: len(ODD), 0] = ODD
    whole = bent.features(rows)
    assert whole.shape == (128, 5)
    assert np.array_equal(whole[:, :3], scaling.features(rows))
    assert (np.abs(whole) <= 1).all()
    assert (np.linalg.norm(bent.prepare(rows), axis=1) <= 1 + 1e-15).all()
    assert np.array_equal(np.vstack([bent.features(row[None]) for row in rows]), whole)
    most = root(np.array([100.0]))[0]
    np.testing.assert_allclose(whole[20:, 3], root(np.clip(rows[20:, 0], 0, 100)) / most)
    assert whole[:3, 3].tolist() == [0, 1, 0]  # of NaN and both infinities
    assert [end.tolist() for end in bent.ranges] == [scaling.low.tolist(), scaling.high.tolist()]
    theta = rng.normal(size=(6, 2))
    coef, intercept = bent.unscaled(theta)
    np.testing.assert_allclose(
        bent.clipped(rows) @ coef.T + intercept, bent.prepare(rows) @ theta, rtol=1e-9, atol=1e-9
    )


COLUMNS: dict[str, tuple[Callable[[np.random.Generator], Any], bool]] = {
    "normal": (lambda rng: rng.normal(3, 2, 20_000), False),  # about 0, its octaves may look long
    "far from 0": (lambda rng: rng.normal(1000, 30, 20_000), False),
    "uniform": (lambda rng: rng.uniform(0, 9, 20_000), False),
    "flags": (lambda rng: rng.integers(0, 2, 20_000).astype(float), False),
    "zeros": (lambda rng: np.zeros(20_000), False),
    "lognormal": (lambda rng: rng.lognormal(5, 1.5, 20_000), True),
    "student": (lambda rng: 20 * rng.standard_t(1.5, 20_000), True),
    "counts": (lambda rng: rng.negative_binomial(0.3, 0.05, 20_000).astype(float), True),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_long_tails_are_told_from_others(kind: str) -> None:
    """At noise of 20 records, whatever the unit is; by noise alone nothing is."""
    make, long = COLUMNS[kind]
    rng = np.random.default_rng(2)
    for size in (1.0, 1.4, 1e-3 * math.pi):
        values = size * make(rng)
        noisy = octave_counts(values) + rng.normal(0, 20, COARSE)
        unit = root_for(noisy, stddev=20.0, records=20_000, columns=4)
        assert (unit is not None) == long
        if unit is not None:
            assert 0.1 < unit / np.median(np.abs(values[values != 0])) < 0.6
    assert root_for(rng.normal(0, 2000, COARSE), stddev=2000.0, records=20_000, columns=4) is None


def test_other_ways_are_refused() -> None:
    """Of a parameter, and of a unit that is none."""
    with pytest.raises(InvalidParameter, match=r"tails to be one of 'clip', 'bend'"):
        check_tails("log")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="unit"):
        Root(unit=0.0)
