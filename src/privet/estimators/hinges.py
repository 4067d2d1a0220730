"""The loss of a support vector machine for labels that are places in a list of classes; a value that can be sent."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.losses import CustomLoss, Loss, SmoothedHingeLoss


@dataclass(frozen=True, slots=True)
class Hinges:
    """The hinge, which wants labels ±1, for labels 0 and 1; for more, the sum of each class's against the rest."""

    hinge: SmoothedHingeLoss
    classes: int

    def signs(self, y: Any) -> Any:
        places = np.asarray(y, dtype=np.float64)
        two = self.classes == 2
        return 2 * places - 1 if two else np.where(places[:, None] == np.arange(self.classes), 1.0, -1.0)

    def value(self, z: Any, y: Any) -> Any:
        losses = self.hinge.value(z, self.signs(y))
        return losses if self.classes == 2 else losses.sum(axis=1)

    def derivative(self, z: Any, y: Any) -> Any:
        return self.hinge.derivative(z, self.signs(y))

    def curvature(self, z: Any, y: Any) -> Any:
        bends = self.hinge.curvature(z, self.signs(y))
        return bends if self.classes == 2 else bends.max(axis=1)

    def labels(self, y: Any) -> Any:
        return np.isin(y, np.arange(self.classes))


def hinges(hinge: SmoothedHingeLoss, classes: int) -> Loss:
    """That loss. As each prediction has its own hinge, the curvature is at most one hinge's, the slope √classes times.

    Examples
    --------
    >>> hinges(SmoothedHingeLoss(width=1.0), 3).outputs
    3
    """
    parts, outputs = Hinges(hinge, classes), 1 if classes == 2 else classes
    return CustomLoss(
        value=parts.value,
        derivative=parts.derivative,
        curvature=parts.curvature,
        lipschitz_constant=math.sqrt(outputs),
        smoothness_constant=hinge.smoothness(),
        convex=True,
        label_set=parts.labels,
        outputs=outputs,
    )
