"""Neighbouring tables on one transcript: the same numbers are released, and what noise is added to hardly differs.

Gaussian releases that depend on each other cost what they cost one by one if each one's sensitivity holds whatever was
released before (docs/proofs/whitening.md, section 3). So here what was released before is fixed, and a whole fit runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from privet.arrays import IntArray
from privet.estimators import (
    HuberRegressor,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    centred_defaults,
    class_defaults,
    classifiers,
    lone_constant,
    outline,
    preparing,
    range_shares,
    turning,
)
from privet.noise import add_gaussian, add_laplace
from privet.plan import Meter
from privet.plan import meter as room
from privet.preprocessing import centring, whitening
from privet.privacy import sensitivity_factor
from privet.problems import linear_model
from privet.sampling import FullBatch, Strided
from privet.solvers import class_choice, class_rates, constant_draws, interval_draws, keeping, laplace_mean, settling
from privet.solvers.class_choice import flipped
from privet.solvers.constant_draws import drawn
from privet.sums import glm_sum, gram_sum

ROWS = 701  # of which four tenths are rounded another way than of one more
RNG = np.random.default_rng(5)
REST = RNG.normal(size=(ROWS, 3)) @ RNG.normal(size=(3, 3))
CELLS: list[list[float]] = [
    [np.nan] * 3,
    [np.inf, -np.inf, np.inf],
    [1e308, -1e308, 0.0],
    [-1e308, 1e308, -1e308],  # whose label is most unlikely
    [0.0] * 3,
    [1.0, 1.0, 5e-324],
]


Noised = tuple[str, IntArray, Fraction]
"""A release's name, whole numbers that noise is added to, and their step in units of that noise."""


class Transcript:
    """What noise is added to, release by release; all runs after the first one are told what the first one was."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.told: list[Any] = []
        self.sums: list[Noised] = []
        self.choices: list[int] = []
        self.scores: list[tuple[str, list[int], int]] = []
        self.rates: list[Any] = []
        self.counts: list[tuple[IntArray, Fraction]] = []  # of classes, and their step in units of Laplace noise
        counted = Meter._counted

        def named(meter: Meter, name: str) -> Any:
            self._name = name
            return counted(meter, name)

        def heard(units: Any, *, step: float, noise_stddev: float, random: Any) -> Any:
            self.sums.append((self._name, np.ravel(units).astype(np.int64), Fraction(step) / Fraction(noise_stddev)))
            place = len(self.sums) - 1
            if place == len(self.told):
                self.told.append(add_gaussian(units, step=step, noise_stddev=noise_stddev, random=random))
            return self.told[place]

        def chosen(draw: Any, name: str, scores: Any, width: int, meter: Meter, **more: Any) -> int:
            self.scores.append((name, list(scores), width))
            place = len(self.scores) - 1
            found = draw(name, scores, width, meter, **more)  # which also closes the release
            if place == len(self.choices):
                self.choices.append(found)
            return self.choices[place]

        def counted_with(units: Any, *, step: float, noise_scale: float, random: Any) -> Any:
            self.counts.append((np.ravel(units).astype(np.int64), Fraction(step) / Fraction(noise_scale)))
            place = len(self.counts) - 1
            if place == len(self.rates):
                self.rates.append(add_laplace(units, step=step, noise_scale=noise_scale, random=random))
            return self.rates[place]

        patch.setattr(Meter, "_counted", named)
        for drawing in (constant_draws, interval_draws, keeping, settling, class_choice):
            patch.setattr(drawing, "drawn", partial(chosen, drawn))
        patch.setattr(class_choice, "flipped", partial(chosen, flipped))
        for counting in (class_rates, laplace_mean):
            patch.setattr(counting, "add_laplace", counted_with)
        for drawing in (lone_constant, class_defaults):
            patch.setattr(drawing, "one_row_each", lambda people, random: np.unique(people, return_index=True)[1])
        patch.setattr(room, "add_gaussian", heard)
        patch.setattr(preparing, "one_row_each", lambda people, random: np.unique(people, return_index=True)[1])

    def of(self, fit: Callable[[], Any]) -> list[Noised]:
        self.sums, self.scores, self.counts = [], [], []
        fit()
        return self.sums


def most_moved(one: list[Noised], other: list[Noised]) -> dict[str, Fraction]:
    """By release, the largest squared move in units of its noise."""
    assert [(name, step) for name, _, step in one] == [(name, step) for name, _, step in other]
    moved: dict[str, Fraction] = {}
    for (name, units, step), (_, more, _) in zip(one, other, strict=True):
        difference = (units - more).astype(object)
        square = int(difference @ difference) * step**2
        in_two_parts = "second moment" in name or name in ("final Hessian", "curvature")
        whole = square + (moved.get(name, Fraction(0)) if in_two_parts else 0)
        moved[name] = max(moved.get(name, Fraction(0)), whole)
    return moved


def planned(model: Any) -> dict[str, Fraction]:
    """The squared sensitivity of each release, in units of its noise, that the guarantee counts with."""
    factor = sensitivity_factor(model.neighbours)
    return {
        r.name: (Fraction(factor) / Fraction(r.noise_multiplier)) ** 2 for r in model.plan_.releases if not r.mechanism
    }


def fitted(model: Any, cells: list[float] | None, kind: str, label: float = 1.0) -> None:
    """A fit with the record in front of the others, or without it."""
    copies = 0 if cells is None else 2 if kind == "people" else 1
    X = np.vstack([np.tile(np.zeros(3) if cells is None else cells, (copies, 1)), REST])
    empty = cells is not None and np.isnan(cells).all()
    y = np.append(np.full(copies, np.nan if empty else label), REST[:, 0] > 0)
    given: dict[str, Any] = {}
    if kind == "weights":
        given["sample_weight"] = np.append(np.ones(copies), np.linspace(0, 1, ROWS))
    if kind == "people":  # others have a row each; the one in front has two
        given["groups"] = np.append(np.full(copies, -7), np.arange(ROWS)) if copies else np.arange(ROWS)
    model.fit(sparse.csr_matrix(X) if kind == "sparse" else X, y, **given)


def strided(sampling_rate: float) -> Any:
    """The first part of the rows, in place of a drawn one."""
    return FullBatch() if sampling_rate == 1 else Strided(batch=round(ROWS * sampling_rate))


def once(bases: list[Any], others: list[Any]) -> list[Any]:
    """Both lists, without those that are in both."""
    return [*bases, *(each for each in others if not any(each is base for base in bases))]


WHITENED = {"second moment 1", "whitened norms 1", "gradients"}
CENTRED = {"norms", "mean", "centred norms", "gradients"}


def check(
    neighbours: Any,
    kind: str,
    patch: pytest.MonkeyPatch,
    mutant: Any = lambda patch: None,
    *,
    epsilon: float = 8.0,
    names: set[str] = WHITENED,
) -> None:
    """Fit each neighbour on one transcript, and compare; at a smaller epsilon rows are centred, not whitened."""
    transcript = Transcript(patch)
    if kind in PLENTY:
        patch.setattr(outline, "sample_rate", lambda *given: 0.25)
        ranged = 0.5 if kind == "plenty, ranges" else 1.0
        patch.setattr(range_shares, "range_rate", lambda *given: ranged)
        patch.setattr(preparing, "Poisson", strided)  # the record is among them
    mutant(patch)
    settings: dict[str, Any] = {"neighbours": neighbours, "random_state": 1, "max_iter": 3}
    if neighbours == "add_remove":
        settings["records"] = ROWS
    if kind == "weights":
        settings["max_weight"] = 1.0
    model: Any = LogisticRegression(epsilon, classes=[0, 1, 2] if kind == "several" else [0, 1], **settings)
    if kind in BALANCED:
        model.set_params(class_weight="balanced")
        patch.setattr(classifiers, "_RARE", 0.0 if kind == "balanced" else 1e9)
    if kind in ("regression", "plenty, regression"):
        model = LinearRegression(epsilon, **settings)
    if kind == "intervals":
        model = LinearRegression(epsilon, inference=0.5, **settings)
    if kind == "logistic intervals":
        model = LogisticRegression(epsilon, classes=[0, 1], inference=0.5, **settings)
    among: dict[str, list[Any]] = {"add_remove": [None], "zero_out": CELLS[:1], "replace_one": CELLS}
    bases = among[neighbours]
    found = {str(cells): transcript.of(partial(fitted, model, cells, kind)) for cells in once(bases, CELLS)}
    limits, most = planned(model), dict.fromkeys(planned(model), Fraction(0))
    for one in bases:
        for other in CELLS:
            for name, moved in most_moved(found[str(one)], found[str(other)]).items():
                assert moved <= limits[name], name
                most[name] = max(most[name], moved)
    assert names <= set(most)
    assert ("class counts" in most) == (kind in BALANCED)
    plain = ("regression", "intervals", "logistic intervals", *PLENTY)
    assert ("calibration" in most) == (kind not in plain and names == WHITENED)
    assert ("final Hessian" in most) == ("intervals" in kind)
    assert ({"pilot gradients", "curvature"} <= set(most)) == (kind in PLENTY)
    assert all(moved > 0 for moved in most.values())


PLENTY = ("plenty", "plenty, regression", "plenty, ranges")
BALANCED = ("balanced", "balanced, rare")  # by weights, and by intercepts
RELATIONS = ["replace_one", "zero_out", "add_remove"]
CASES = [
    (kind, each)
    for kind in ("records", "people", "weights", "several", "regression", "sparse", "intervals", "logistic intervals")
    for each in RELATIONS
] + [(kind, each) for kind in BALANCED for each in RELATIONS]
CASES += [(kind, each) for kind in PLENTY for each in RELATIONS[:2]]
MEDIUM = [pytest.param(*case, marks=pytest.mark.medium) for case in CASES if case != ("people", "zero_out")]


@pytest.mark.parametrize(("kind", "neighbours"), [("people", "zero_out"), *MEDIUM])
def test_one_record_moves_no_release_by_more_than_is_planned(
    kind: str, neighbours: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges, norms, second moments, whitened norms, gradients, recalibration: in fractions, and each of them moves."""
    check(neighbours, kind, monkeypatch)


# rows of sparse tables are not centred, which would fill them, nor those of intervals, nor where there are plenty
FEW = [case for case in CASES if case[0] not in ("sparse", *PLENTY) and "intervals" not in case[0]]


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize(("kind", "neighbours"), FEW)
def test_one_record_moves_no_release_of_a_centred_fit_by_more_than_is_planned(
    kind: str, neighbours: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges, norms, means, norms about them, gradients: in fractions, and each of them moves."""
    check(neighbours, kind, monkeypatch, epsilon=0.3 if kind == "several" else 0.8, names=CENTRED)


def waves_are_asked_for(patch: pytest.MonkeyPatch) -> None:
    right = centred_defaults.centring_for

    def waved(*given: Any, **named: Any) -> Any:
        found = right(*given, **named)
        return None if found is None else replace(found, wave_share=0.05)

    patch.setattr(turning, "centring_for", waved)


WAVED = CENTRED | {"waves"}
SMOOTHED = [("several", each) for each in RELATIONS] + [("people", "replace_one"), ("weights", "add_remove")]


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize(("kind", "neighbours"), SMOOTHED)
def test_one_record_moves_no_wave_by_more_than_is_planned(
    kind: str, neighbours: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Squares along waves as well, and what follows in their geometry."""
    epsilon = 0.3 if kind == "several" else 0.8
    check(neighbours, kind, monkeypatch, waves_are_asked_for, epsilon=epsilon, names=WAVED)


def rows_along_waves_are_as_long_as_they_come(patch: pytest.MonkeyPatch) -> None:
    waves_are_asked_for(patch)
    rows_are_as_long_as_they_come(patch)


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
def test_longer_waves_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Squares of twice the size move more than is planned."""
    with pytest.raises(AssertionError, match="waves"):
        check(
            "zero_out",
            "records",
            monkeypatch,
            rows_along_waves_are_as_long_as_they_come,
            epsilon=0.8,
            names=WAVED,
        )


def rows_count_twice_in_their_mean(patch: pytest.MonkeyPatch) -> None:
    right = linear_model.LinearModel.row_sum
    patch.setattr(
        linear_model.LinearModel,
        "row_sum",
        lambda self, **more: replace(right(self, **more), units=2 * right(self, **more).units),
    )


def an_empty_record_has_a_centred_norm(patch: pytest.MonkeyPatch) -> None:
    right = centring._histogram
    patch.setattr(centring, "_histogram", lambda norms, edges: right(np.nan_to_num(norms), edges))


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("mutant", [rows_count_twice_in_their_mean, an_empty_record_has_a_centred_norm])
def test_mutants_of_centring_are_caught(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean of twice the length, and a bin for the empty record, move more than is planned."""
    with pytest.raises(AssertionError):
        check("zero_out", "records", monkeypatch, mutant, epsilon=0.8, names=CENTRED)


def an_empty_record_has_a_norm(patch: pytest.MonkeyPatch) -> None:
    right = whitening._histogram
    patch.setattr(whitening, "_histogram", lambda norms, expected: right(np.nan_to_num(norms), expected))


def a_person_s_rows_are_counted_one_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(preparing, "one_row_each", lambda people, random: np.arange(len(people)))


def noise_for_one_step_on_each_of_five(patch: pytest.MonkeyPatch) -> None:
    right = Meter.noise_stddev
    fewer = {"calibration": 5**-0.5}
    patch.setattr(Meter, "noise_stddev", lambda self, name, **more: right(self, name, **more) * fewer.get(name, 1.0))


def rows_are_as_long_as_they_come(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(linear_model, "gram_sum", lambda table: replace(gram_sum(table), units=2 * gram_sum(table).units))


def a_record_is_twice_in_its_batch(patch: pytest.MonkeyPatch) -> None:
    right = Strided.indices

    def twice(*given: Any) -> Any:
        places = right(*given)
        assert places is not None
        return np.append(places[:-1], places[0])

    patch.setattr(Strided, "indices", twice)


def scores_are_not_bounded(patch: pytest.MonkeyPatch) -> None:
    def longer(*given: Any, **named: Any) -> Any:
        total = glm_sum(*given, **named)
        return replace(total, units=4 * total.units) if named["shape"] == (2,) else total

    patch.setattr(linear_model, "glm_sum", longer)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("mutant", "kind"),
    [
        (an_empty_record_has_a_norm, "records"),
        (a_person_s_rows_are_counted_one_by_one, "people"),
        (noise_for_one_step_on_each_of_five, "records"),
        (rows_are_as_long_as_they_come, "records"),
        (scores_are_not_bounded, "records"),
        (a_record_is_twice_in_its_batch, "plenty"),
    ],
)
def test_known_ways_to_break_it_are_seen(mutant: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above fails on each mutant."""
    with pytest.raises(AssertionError):
        check("zero_out", kind, monkeypatch, mutant)


FRONT = list(zip(CELLS, [np.nan, np.inf, 1e308, -1e308, 9.0, 0.0], strict=True))
"""The record in front, and its target."""


def check_draws(model: Any, kind: str, patch: pytest.MonkeyPatch, names: set[str]) -> None:
    """Fit each neighbour on one transcript, draws as well: no record moves scores apart by more than they are for.

    Each of them also moves by a third of that or more, as a bad case is among the neighbours.
    """
    transcript, neighbours = Transcript(patch), model.neighbours
    among: dict[str, list[Any]] = {"add_remove": [(None, 1.0)], "zero_out": FRONT[:1], "replace_one": FRONT}
    found, sums, means = {}, {}, {}
    for cells, label in once(among[neighbours], FRONT):
        key = str((cells, label))
        sums[key] = transcript.of(partial(fitted, model, cells, kind, label))
        found[key], means[key] = transcript.scores, transcript.counts
    limits, most = planned(model), dict.fromkeys(names, Fraction(0))
    for one in among[neighbours]:
        for other in FRONT:
            for name, moved in most_moved(sums[str(one)], sums[str(other)]).items():
                assert moved <= limits[name], name
            for (name, scores, width), (_, more, same) in zip(found[str(one)], found[str(other)], strict=True):
                apart = [a - b for a, b in zip(scores, more, strict=True)]
                assert width == same
                assert max(apart) - min(apart) <= width, name
                most[name] = max(most[name], Fraction(max(apart) - min(apart), width))
            for (units, step), (others, same_step) in zip(means[str(one)], means[str(other)], strict=True):
                assert step == same_step
                moved = abs(int(units[0]) - int(others[0])) * step
                mechanism: Any = model.plan_["constant"].mechanism
                spent = Fraction(sensitivity_factor(neighbours)) / Fraction(mechanism.scale)
                assert moved <= spent
                most["constant"] = max(most["constant"], moved / spent)
    assert set(most) == names
    assert all(moved >= Fraction(1, 3) for moved in most.values()), most


ANCHORED = {"target: reach", "target: location", "part kept", "constant beside slopes"}
DRAWN: dict[str, tuple[Any, dict[str, Any], float, set[str]]] = {
    "numbers": (HuberRegressor, {"target_range": (-9.0, 9.0)}, 0.03, {"constant"}),
    "counts": (PoissonRegressor, {}, 0.03, {"constant"}),
    "a tail": (QuantileRegressor, {"target_range": (-9.0, 9.0), "quantile": 0.9}, 0.08, {"target: reach", "constant"}),
    "a guess": (QuantileRegressor, {"target_range": (-9.0, 9.0), "quantile": 0.9}, 0.03, {"constant"}),
    "a median": (LinearRegression, {"target_range": (-9.0, 9.0)}, 0.06, {"constant"}),
    "a middle": (LinearRegression, {"target_range": (-9.0, 9.0)}, 0.02, {"constant"}),
    "a mean": (LinearRegression, {"target_range": (-9.0, 9.0)}, 0.15, {"target: reach", "constant"}),
    "a median anywhere": (LinearRegression, {}, 0.05, {"constant"}),
    "a mean anywhere": (Ridge, {}, 0.17, {"target: reach", "constant"}),
    "a line": (LinearRegression, {"target_range": (-9.0, 9.0)}, 0.5, {"part kept"}),
    "anywhere": (Ridge, {}, 0.7, {"part kept"}),
    "robust anywhere": (HuberRegressor, {}, 0.7, ANCHORED),
    "robust": (HuberRegressor, {"target_range": (-9.0, 9.0)}, 0.3, ANCHORED),
    "quantiles": (
        QuantileRegressor,
        {"target_range": (-9.0, 9.0), "quantile": 0.4},
        0.8,
        ANCHORED,
    ),
    "slopes of counts": (
        PoissonRegressor,
        {"target_range": (0.0, 9.0)},
        0.8,
        {"size of counts", "spread of counts", "part kept"},
    ),
}


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("kind", ["records", "people"])
@pytest.mark.parametrize("what", DRAWN)
def test_one_record_moves_no_draw_by_more_than_is_planned(
    what: str, kind: str, neighbours: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The constant, where it is and how far it spreads, what is kept beside it: in whole numbers; each moves."""
    estimator, facts, epsilon, names = DRAWN[what]
    settings: dict[str, Any] = {"neighbours": neighbours, "random_state": 1}
    if neighbours == "add_remove":
        settings["records"] = ROWS
        names = {"constant"} if what == "a mean" else names  # a median: how many records to divide by is private
    if epsilon > 0.1:
        settings["max_iter"] = 2
    epsilon *= sensitivity_factor(neighbours) / 2  # so that the effective sample size is the same
    check_draws(estimator(epsilon, bounds=(-4, 4), **facts, **settings), kind, monkeypatch, names)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("draw", "name"), [(keeping.Keeping, "part kept"), (settling.Settling, "constant beside slopes")]
)
def test_losses_that_are_not_cut_are_caught(draw: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above fails if a record's losses count three times in the choice of what to keep, or of the constant."""
    right, run = linear_model.LinearModel.slope_sum, draw.run

    def thrice(self: Any, *given: Any, **more: Any) -> Any:
        total = right(self, *given, **more)
        return replace(total, units=3 * total.units)

    def mutant(*given: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(linear_model.LinearModel, "slope_sum", thrice)
            return run(*given)

    monkeypatch.setattr(draw, "run", mutant)
    model = HuberRegressor(0.3, target_range=(-9, 9), bounds=(-4, 4), random_state=2, max_iter=2)
    with pytest.raises(AssertionError, match=name):
        check_draws(model, "records", monkeypatch, DRAWN["robust"][3])


CLASSIFIED: dict[str, tuple[Any, list[int], float, set[str]]] = {
    "two classes alone": (LogisticRegression, [0, 1], 0.05, {"class rates"}),
    "several alone": (LogisticRegression, [0, 1, 2], 0.05, {"constant"}),
    "several alone, rates": (LogisticRegression, [0, 1, 2], 0.1, {"class rates"}),
    "two classes": (LogisticRegression, [0, 1], 0.2, {"class rates"}),
    "margins": (LinearSVC, [0, 1], 0.2, {"class rates"}),
    "several": (LogisticRegression, [0, 1, 2], 0.3, {"class rates", "class or model"}),
    "several, whitened": (LogisticRegression, [0, 1, 2], 2.0, {"class rates", "class or model"}),
}
LABELLED = [(CELLS[0], np.nan), (CELLS[3], 1.0), (CELLS[3], 0.0), (CELLS[5], 2.0), (CELLS[2], 7.0)]
"""The record in front: empty, of either class, of one without others, of none."""


def check_classes(model: Any, kind: str, patch: pytest.MonkeyPatch, names: set[str], *, least: Fraction) -> None:
    """Fit each neighbour on one transcript: votes, rates and choices move by no more than they are planned for.

    Each of them also moves by `least` of that or more, as a worst case is among the neighbours.
    """
    transcript, neighbours = Transcript(patch), model.neighbours
    among: dict[str, list[Any]] = {"add_remove": [(None, 1.0)], "zero_out": LABELLED[:1], "replace_one": LABELLED}
    found = {}
    for cells, label in once(among[neighbours], LABELLED):
        sums = transcript.of(partial(fitted, model, cells, kind, label))
        found[str((cells, label))] = sums, transcript.scores, transcript.counts
    limits, most = planned(model), dict.fromkeys(names, Fraction(0))
    for one in among[neighbours]:
        for other in LABELLED:
            (sums, scores, counts), (more_sums, more_scores, more_counts) = found[str(one)], found[str(other)]
            for name, moved in most_moved(sums, more_sums).items():
                assert moved <= limits[name], name
            for (name, values, width), (_, others, same) in zip(scores, more_scores, strict=True):
                apart = [a - b for a, b in zip(values, others, strict=True)]
                assert width == same
                assert max(apart) - min(apart) <= width, name
                most[name] = max(most[name], Fraction(max(apart) - min(apart), width))
            for (units, step), (others_units, same_step) in zip(counts, more_counts, strict=True):
                assert step == same_step
                moved = Fraction(int(np.abs(units - others_units).sum())) * step
                spent = Fraction(sensitivity_factor(neighbours)) / Fraction(model.plan_["class rates"].mechanism.scale)
                assert moved <= spent, "class rates"
                most["class rates"] = max(most["class rates"], moved / spent)
    assert set(most) == names
    assert all(moved >= least for moved in most.values())


def classifying(what: str, neighbours: Any) -> Any:
    estimator, classes, epsilon, _ = CLASSIFIED[what]
    settings: dict[str, Any] = {"neighbours": neighbours, "random_state": 1, "max_iter": 2, "classes": classes}
    if neighbours == "add_remove":
        settings["records"] = ROWS
    return estimator(epsilon * sensitivity_factor(neighbours) / 2, bounds=(-4, 4), **settings)


VOTING = [(what, "records", each) for what in CLASSIFIED for each in RELATIONS if what != "several, whitened"]
VOTING += [(what, "people", "replace_one") for what in CLASSIFIED if what != "margins"]


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize(("what", "kind", "neighbours"), VOTING)
def test_one_record_moves_no_vote_by_more_than_is_planned(
    what: str, kind: str, neighbours: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How often classes occur, which is commonest, which class or model to keep: in whole numbers; each moves."""
    check_classes(classifying(what, neighbours), kind, monkeypatch, CLASSIFIED[what][3], least=Fraction(1, 2))


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
@pytest.mark.parametrize("what", ["two classes alone", "two classes", "several alone, rates"])
def test_labels_that_count_twice_are_caught(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above fails if a record is two in the counts of classes."""
    monkeypatch.setattr(class_rates, "_STEP", 1.0)
    with pytest.raises(AssertionError, match="class rates"):
        check_classes(classifying(what, "replace_one"), "records", monkeypatch, CLASSIFIED[what][3], least=Fraction(0))


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::privet.errors.SmallEffectiveSample")
def test_errors_that_count_three_times_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above fails if a record's errors count three times in the choice of a class or model."""
    right = linear_model.LinearModel.loss_sum

    def thrice(self: Any, *given: Any, **more: Any) -> Any:
        total = right(self, *given, **more)
        return replace(total, units=3 * total.units)

    monkeypatch.setattr(linear_model.LinearModel, "loss_sum", thrice)
    with pytest.raises(AssertionError, match="class or model"):
        check_classes(
            classifying("several", "replace_one"), "records", monkeypatch, CLASSIFIED["several"][3], least=Fraction(0)
        )
