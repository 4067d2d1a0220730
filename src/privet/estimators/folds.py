"""Folds for cross-validation that one record cannot move."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from privet._checks import whole
from privet.arrays import IntArray
from privet.errors import InvalidParameter
from privet.problems.grouped import numbered
from privet.randomness import integers_below, system_random


class IndependentFolds:
    """Each record joins one of the folds by a die of its own: pass it as `cv=` to scikit-learn's tools.

    A privacy cost is for training sets that differ in one record. With `StratifiedKFold`, which scikit-learn takes for
    classifiers when `cv` is a number, one changed label moves *other* records between folds; with `KFold` under
    "add_remove", a record that leaves does. Dice that look at nothing move nobody.

    With `groups` there is one die a person, for all rows: else the number of people in a fold, which a fit with groups
    takes as public, would depend on how many rows somebody has. So pass groups to both,
    `cross_val_score(model, X, y, groups=who, params={"groups": who}, cv=IndependentFolds(5))`.

    Theorem: for each outcome of the dice, neighbouring tables give neighbouring folds; a mixture over outcomes has no
    higher epsilon than the worst of them (docs/proofs/selection.md, section 4).

    Parameters
    ----------
    n_splits : number of folds, at least 2; they are of about equal size

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from privet import Budget
    >>> from privet.estimators import IndependentFolds, LogisticRegression
    >>> from privet.ledger import Account
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 2))
    >>> account = Account(Budget(epsilon=3, delta=1e-6))                   # adds up what the three fits cost
    >>> model = LogisticRegression(epsilon=1, bounds=(-1, 1), classes=[False, True], account=account)
    >>> cross_val_score(model, X, X[:, 0] > 0, cv=IndependentFolds(3)).mean() > 0.7
    np.True_
    """

    def __init__(self, n_splits: int = 5) -> None:
        because = "each fold is tested on by a model that has not seen it"
        self.n_splits = whole("n_splits", n_splits, least=2, because=because, use="Use 5.")

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Indices of the rows to train on and to test on, for each fold; by `groups`, a person's rows stay together."""
        try:
            check_consistent_length(X, y)
        except ValueError:
            raise InvalidParameter(
                "Expected as many targets as rows, got another number: records and targets would be paired wrongly. "
                "Pass one target a row."  # how many is private
            ) from None
        count = X.shape[0] if isinstance(getattr(X, "shape", None), tuple) else len(X)
        fold = integers_below(system_random(), self.n_splits, count)
        if groups is not None:
            people = numbered(groups, count)
            each = integers_below(system_random(), self.n_splits, int(people.max(initial=-1)) + 1)
            fold = np.where(people < 0, fold, np.append(each, 0)[people])  # nobody's rows have a die each
        for place in range(self.n_splits):
            yield np.flatnonzero(fold != place), np.flatnonzero(fold == place)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many folds there are."""
        return self.n_splits

    def __repr__(self) -> str:
        return f"IndependentFolds({self.n_splits})"
