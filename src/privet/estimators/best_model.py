"""A search speaks as its best model does."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privet.arrays import Vector
from privet.estimators.summary import Speaking, Summary, summarised


def _has(method: str) -> Callable[[Any], bool]:
    def check(search: Any) -> bool:
        getattr(search.estimator, method)  # whose AttributeError says what is missing
        return True

    return check


class BestModel(Speaking):
    """What a fitted search passes on to `best_estimator_`."""

    best_estimator_: Any

    @property
    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def summary(self) -> Summary:
        """The best model's, under the guarantee of the whole search."""
        return summarised(self._best)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, in the order of `predict_proba`."""
        return np.asarray(self._best.classes_)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the table."""
        return int(self._best.n_features_in_)

    def predict(self, X: Any) -> NDArray[Any]:
        """What the best model predicts."""
        return np.asarray(self._best.predict(X))

    def score(self, X: Any, y: Any) -> float:
        """The best model's score on rows that are not private, or not these."""
        return float(self._best.score(X, y))

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Vector:
        """The best model's scores of the classes."""
        return np.asarray(self._best.decision_function(X))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Vector:
        """The best model's probabilities of the classes."""
        return np.asarray(self._best.predict_proba(X))
