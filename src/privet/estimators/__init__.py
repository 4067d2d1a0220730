"""Private linear models with scikit-learn's face.

>>> from privet.estimators import LogisticRegression
>>> LogisticRegression(epsilon=1.0, bounds=(0, 1))
LogisticRegression(bounds=(0, 1))
"""

from privet.estimators.classifiers import LinearSVC, LogisticRegression
from privet.estimators.counts import PoissonRegressor
from privet.estimators.fit_table import fit_table, plan_table
from privet.estimators.folds import IndependentFolds
from privet.estimators.intervals import Intervals
from privet.estimators.model_file import load_model
from privet.estimators.regressors import HuberRegressor, LinearRegression, QuantileRegressor, Ridge
from privet.estimators.search import PrivateSearchCV
from privet.estimators.summary import Summary
from privet.estimators.table_model import TableModel

__all__ = [
    "HuberRegressor",
    "IndependentFolds",
    "Intervals",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PoissonRegressor",
    "PrivateSearchCV",
    "QuantileRegressor",
    "Ridge",
    "Summary",
    "TableModel",
    "fit_table",
    "load_model",
    "plan_table",
]
