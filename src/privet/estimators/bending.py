"""Coefficients of columns and of their bent images, kept side by side."""

from typing import TYPE_CHECKING

import numpy as np

from privet.arrays import Vector
from privet.preprocessing.scaling import Scaling

if TYPE_CHECKING:
    from privet.estimators.linear import PrivateLinearModel


def keep_scaling(model: "PrivateLinearModel", scaling: Scaling) -> None:
    """Keep what is public of the features of a fitted model; `tail_coef_` is what `coef_` had of bent columns."""
    model._scale, model.ranges_ = scaling, scaling.ranges
    columns, maps = len(scaling.ranges[0]), dict(scaling.roots)
    model.transforms_ = tuple(maps.get(place) for place in range(columns))
    every = np.asarray(model.coef_)
    model.coef_ = every[..., :columns]
    model.tail_coef_ = np.zeros_like(model.coef_)
    model.tail_coef_[..., list(maps)] = every[..., columns:]


def whole_coef(model: "PrivateLinearModel") -> Vector:
    """Coefficients of all features, those of bent columns behind; (outputs, features)."""
    maps, coef = [place for place, _ in model._scale.roots], np.atleast_2d(model.coef_)
    return np.hstack([coef, np.atleast_2d(model.tail_coef_)[:, maps]]) if maps else coef
