"""How good a trial of a search is: scores of records that were held out, and their noisy sum."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import is_classifier

from privet.accounting import NegativeBinomialTrials, PoissonTrials
from privet.arrays import Vector
from privet.clipping import Clip
from privet.data import places, vector
from privet.plan import Meter, Plan, Release
from privet.randomness import Random, negative_binomial_trials, poisson_trials
from privet.sums import record_sum

_CLIP = 0.5  # a record's score is between -1/2 and 1/2
_ROWS = 1 << 10  # held-out rows that are predicted at a time


def number_of_trials(random: Random, search: NegativeBinomialTrials | PoissonTrials) -> int:
    """How many trials a search makes; secret."""
    if isinstance(search, PoissonTrials):
        return poisson_trials(random, mean=search.mean)
    return negative_binomial_trials(random, shape=search.shape, stop=search.stop)


def noisy_score(model: Any, X: Any, y: NDArray[Any], *, noise_multiplier: float, random: Random) -> float:
    """The sum of the records' scores, with noise: one Gaussian release of `noise_multiplier`."""
    rule, found = Clip(clip=_CLIP), scores(model, X, y)
    release = Release(name="score", of="scores", bound=rule, noise_multiplier=noise_multiplier, size=1)
    known = None if model.neighbours == "add_remove" else max(len(found), 1)
    meter = Meter(Plan(releases=(release,), neighbours=model.neighbours, records=known), random=random)
    meter.open("score", count=len(found))
    total = record_sum(found[:, None], rule=rule, max_records=meter.plan.max_records("score"))
    released = float(meter.noisy("score", total)[0])
    meter.finish()
    return released


def scores(model: Any, X: Any, y: NDArray[Any]) -> Vector:
    """Each held-out record's score in [-1/2, 1/2]; 0 without a target, so that a record zeroed out counts nothing."""
    if not len(y):
        return np.zeros(0)
    if is_classifier(model):
        place = places(y, model.classes_)
        right = places(_predicted(model, X), model.classes_) == place
        return np.where(np.isnan(place), 0.0, np.where(right, _CLIP, -_CLIP))
    low, high = model.target_range_
    with np.errstate(all="ignore"):
        error = np.abs(np.clip(vector(y), low, high) - _predicted(model, X)) / ((high - low) / 2)
    return np.where(np.isnan(error), 0.0, _CLIP - np.minimum(error, 1.0))


def _predicted(model: Any, X: Any) -> NDArray[Any]:
    """What the model predicts, in blocks of one size: no last bit depends on how many rows are held out beside it."""
    if sparse.issparse(X):  # whose products are a row at a time
        return np.asarray(model.predict(X))
    found = []
    for first in range(0, len(X), _ROWS):
        block = np.zeros((_ROWS, X.shape[1]), dtype=X.dtype)
        here = X[first : first + _ROWS]
        block[: len(here)] = here
        found.append(model.predict(block)[: len(here)])
    return np.concatenate(found)
