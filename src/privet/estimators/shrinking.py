"""What is kept of slopes on whitened rows, where noise is known and alike in all directions: public, so it is free."""

import numpy as np

from privet.arrays import Vector
from privet.losses.ridge import Penalty
from privet.plan import Meter
from privet.solvers import DPSGD
from privet.solvers.stochastic_descent import noise_gain

_UNCUT = 0.45  # of residuals, about: what is cut pulls nothing back
_SLIGHT = 0.1  # of what the loss bends, up to which a penalty does not count


def slope_noise(solver: DPSGD, meter: Meter, *, pull: float) -> float:
    """The standard deviation of what noise adds to a slope that gradients pull back by `pull` times what it is; public.

    `pull` is the mean square of a row's value in a direction, times how much the loss bends.
    """
    return noise_gain(solver, pull=pull) * meter.noise_stddev("gradients") / meter.plan.batch_size("gradients")


def shrunk_slopes(theta: Vector, solver: DPSGD, meter: Meter, *, shrink: float, penalty: Penalty) -> Vector:
    """θ of least squares on whitened rows with less of its slopes, as James and Stein have it; public.

    With noise of one variance s² in each of d directions, (1 − (d − 2) s²/‖slopes‖²) times the slopes, or none of them,
    have a smaller squared error on average than the slopes, wherever the true ones are (James and Stein 1961; Baranchik
    1964). Whitened rows of variance 1, times `shrink`, pull a slope back; where a penalty does so too, all is kept.
    """
    slopes, pull = theta[:-1], _UNCUT * shrink * shrink
    if len(slopes) < 3 or penalty.alpha > _SLIGHT * pull:
        return theta
    lost = (len(slopes) - 2) * slope_noise(solver, meter, pull=pull) ** 2
    kept = max(0.0, 1 - lost / max(float(np.square(slopes).sum()), 2.0**-1000))
    return np.append(kept * slopes, theta[-1:])
