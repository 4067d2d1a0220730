"""Declared ranges that are far too wide: found out by what a fit releases anyway, else said in one sentence."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from privet import Budget
from privet.errors import SmallEffectiveSample
from privet.estimators import LinearRegression, LogisticRegression, fit_table
from privet.estimators.doubts import Doubts, faint_columns
from privet.preprocessing import Number, Schema, Target
from privet.preprocessing.scaling import Scaling
from privet.preprocessing.whitening import Shift
from privet.randomness import fixed_seed_invalidates_guarantee

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(2_300, 3))
Y = X @ [2.0, -1.0, 0.5] + 0.3 * RNG.normal(size=len(X)) > 0


def told(fit: Any) -> list[str]:
    """What a fit says."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit()
    assert all(each.category is SmallEffectiveSample for each in found)
    return [str(each.message) for each in found]


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
def test_bounds_a_thousand_times_too_wide_cost_little_with_three_hundred_rows() -> None:
    """Of 300 rows at epsilon 1 the median accuracy is within 5 points of that of tight bounds; it was the majority's.

    Ten fixed seeds; before, 50 % beside 90 %, and no word. 1 fit of 30 warns: by chance its norm is too short.
    """
    scores = {}
    for wide in (1.01, 1010.0):
        models = [
            LogisticRegression(epsilon=1, bounds=(-wide, wide), classes=[False, True], random_state=seed)
            for seed in range(10)
        ]
        scores[wide] = np.median([model.fit(X[:300], Y[:300]).score(X[300:], Y[300:]) for model in models])
    assert scores[1010.0] > max(0.8, scores[1.01] - 0.05)


def test_columns_of_unlike_scale_in_one_wide_box_are_seen_with_three_hundred_rows() -> None:
    """At epsilon 2 each finds its range inside, without a word; with `bounds_exact` the box is the scale: R² near 0."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(300, 5)) * [1, 3, 0.5, 10, 2] + [0, 5, 0, 20, -3]
    target = (rows - [0, 5, 0, 20, -3]) / [1, 3, 0.5, 10, 2] @ [1, 0.5, 0, 0, 0.3] + 0.5 * rng.normal(size=300)
    scores = {}
    for exact in (False, True):
        known: dict[str, Any] = {"bounds": (-40_000, 60_000), "target_range": (-5, 5), "bounds_exact": exact}
        fits = [LinearRegression(2.0, random_state=seed, **known).fit(rows, target) for seed in range(5)]
        scores[exact] = np.median([fit.score(rows, target) for fit in fits])
    assert scores[False] > 0.5
    assert scores[True] < 0.2


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_too_few_rows_to_see_whether_ranges_are_filled_are_warned_of_once(kind: str) -> None:
    """Sixty rows: a warning on public facts, none for who says that ranges are tight, nor for [−1, 1]."""
    few, target = X[:60], Y[:60] if kind == "labels" else X[:60, 0]

    def model(wide: float, **more: Any) -> Any:
        known: dict[str, Any] = {"epsilon": 1, "bounds": (-wide, wide), **more}
        return (
            LogisticRegression(classes=[False, True], **known)
            if kind == "labels"
            else LinearRegression(target_range=(-wide, wide), **known)
        )

    [said] = told(lambda: model(500.0).fit(few, target))
    if kind == "labels":
        assert said.startswith("Expected enough records to see whether they fill their declared ranges, got 60:")
        assert "bounds_exact=True" in said
    else:
        assert said.startswith("Expected an effective sample size of some dozens")
        assert "If the declared range is far too wide, even that is a guess" in said
    assert told(lambda: model(500.0, bounds_exact=True).fit(few, target)) == []
    assert told(lambda: model(1.0).fit(few, target)) == []


def test_a_table_of_too_few_rows_is_warned_of_as_well() -> None:
    """`fit_table`, and so `privet fit`, says the same, once; not of exact ranges."""
    schema = Schema(
        columns={"a": Number(low=-500, high=500)}, target=Target(column="y", kind="label", values=("n", "y"))
    )
    table = {"a": X[:60, 0], "y": np.where(Y[:60], "y", "n")}
    known: dict[str, Any] = {"budget": Budget(epsilon=1, delta=1e-6), "random": fixed_seed_invalidates_guarantee(1)}
    [said] = told(lambda: fit_table(table, schema, **known))
    assert said.startswith("Expected enough records to see whether they fill their declared ranges")
    assert told(lambda: fit_table(table, schema, bounds_exact=True, **known)) == []


def test_rows_that_are_far_too_short_are_told_by_the_names_of_their_columns() -> None:
    """By what was released: rows known to be short, or of the least norm; never [0, 1], nor what was learnt."""
    model = LogisticRegression(bounds=(np.array([-9.0, 0.0, 0.0]), np.array([9.0, 1.0, 7.0])))
    scaling = Scaling(low=np.zeros(3), high=np.ones(3), intercept=True, norm=2.0**-4)
    assert faint_columns(model, scaling, inside=False) == ("x0", "x2")
    assert faint_columns(model, scaling, inside=True) == ()
    assert faint_columns(LogisticRegression(), scaling, inside=False) == ()
    assert faint_columns(model, scaling.with_norm(0.1), inside=False) == ()
    for short in (False, True):
        shift = Shift(mean=np.zeros(3), scale=np.ones(3), short=short)
        assert bool(faint_columns(model, scaling.with_whitening(shift), inside=False)) == short


def test_one_sentence_names_a_few_columns() -> None:
    """What is unsure goes first; of many columns eight are shown; exact ranges are not doubted."""
    many = Doubts(faint=tuple(f"x{j}" for j in range(11)))
    said = many.sentence(repr, exact=False)
    assert "'x7' and 3 more" in said
    assert "Declare narrower bounds" in said
    assert many.sentence(repr, exact=True) == Doubts().sentence(repr, exact=False) == ""
    assert "a guess" in Doubts(unsure=("y",), faint=("x0",)).sentence(lambda _: "the target", exact=True)
