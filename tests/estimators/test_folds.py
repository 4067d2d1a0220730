"""Folds that look at nothing: a record moves no other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from privet import Budget
from privet.errors import InvalidParameter
from privet.estimators import IndependentFolds, LogisticRegression, folds
from privet.ledger import Account


def test_folds_part_the_records() -> None:
    """Every record is tested on once, trained on in all other folds, and the folds are of about equal size.

    5,000 records on 5 folds: a fold outside 1,000 ± 170 has a chance below 1e-8.
    """
    X = np.zeros((5000, 2))
    tested = np.zeros(5000, dtype=int)
    for train, test in IndependentFolds(5).split(X, np.zeros(5000)):
        assert not set(train) & set(test)
        assert len(train) + len(test) == 5000
        assert abs(len(test) - 1000) < 170
        tested[test] += 1
    assert (tested == 1).all()
    assert IndependentFolds(5).get_n_splits() == 5
    assert len(list(IndependentFolds(2).split(sparse.csr_matrix(X)))) == 2
    assert len(list(IndependentFolds(2).split([[0.0]] * 10))) == 2


def test_one_record_moves_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same dice, folds of tables that differ in one record differ in it alone; scikit-learn's may not."""
    rng = np.random.default_rng(0)
    dice = rng.integers(0, 3, size=99)
    X, y = np.zeros((99, 1)), rng.integers(0, 2, size=99)

    def changed(place: int) -> np.ndarray:
        other = y.copy()
        other[place] = 1 - other[place]
        return other

    def members(cv: object, labels: np.ndarray, keep: slice = slice(None)) -> list[set[int]]:
        rows = np.arange(99)[keep]
        return [set(rows[train].tolist()) for train, _ in cv.split(X[keep], labels[keep])]  # type: ignore[attr-defined]

    def moved(one: list[set[int]], two: list[set[int]], but: int = 0) -> set[int]:
        return set().union(*(a ^ b for a, b in zip(one, two, strict=True))) - {but}

    def relabelled(cv: object) -> int:
        """The most others that one changed label moves."""
        return max(len(moved(members(cv, y), members(cv, changed(place)), place)) for place in range(99))

    monkeypatch.setattr(folds, "integers_below", lambda random, sides, count: dice[-count:])
    ours = IndependentFolds(3)
    assert relabelled(ours) == relabelled(KFold(3)) == 0
    assert not moved(members(ours, y), members(ours, y, slice(1, None)))
    assert relabelled(StratifiedKFold(3)) > 0
    assert moved(members(KFold(3), y), members(KFold(3), y, slice(1, None)))


def test_bad_numbers_of_folds_are_refused() -> None:
    """One fold, half a fold."""
    for wrong in (1, 2.5, True):
        with pytest.raises(InvalidParameter, match="n_splits"):
            IndependentFolds(wrong)  # type: ignore[arg-type]
    assert repr(IndependentFolds()) == "IndependentFolds(5)"


def test_unequal_lengths_are_refused_without_their_numbers() -> None:
    """How many rows there are may be private."""
    with pytest.raises(InvalidParameter, match="as many targets as rows") as caught:
        next(IndependentFolds(3).split(np.zeros((137, 2)), np.zeros(136)))
    assert "13" not in str(caught.value)


def test_a_person_is_in_one_fold_with_all_rows() -> None:
    """How many people are in a fold, which a fit with groups takes as public, depends on nobody's number of rows."""
    who = np.array([*np.repeat(np.arange(300), 5), *[-1] * 300])
    inside = []
    for train, test in IndependentFolds(3).split(np.zeros((1800, 1)), groups=who):
        assert not set(who[train]) & set(who[test]) - {-1}
        inside.append(len(set(who[test]) - {-1}))
    assert sum(inside) == 300
    assert min(inside) > 50  # each is 100 ± 8: below 51 with a chance under 1e-8
    with pytest.raises(InvalidParameter, match="as many group labels"):
        next(IndependentFolds(3).split(np.zeros((9, 1)), groups=who))
    scores = cross_val_score(
        LogisticRegression(epsilon=9, bounds=(0, 1), classes=[0, 1], max_iter=2, account=people_account()),
        np.zeros((1800, 1)),
        np.arange(1800) % 2,
        groups=who,
        params={"groups": who},
        cv=IndependentFolds(3),
    )
    assert len(scores) == 3


def people_account() -> Account:
    return Account(Budget(epsilon=99, delta=1e-6), unit="person")
