"""What ran, and what it cost: events, accountants, calibration.

>>> from privet.accounting import Gaussian, epsilon
>>> run = Gaussian(noise_multiplier=1.1).poisson(rate=256 / 60_000) * 14_062
>>> round(epsilon(run, delta=1e-5, neighbours="add_remove"), 6)
2.381597
"""

from privet.accounting.accountants import Bounds
from privet.accounting.calibrate import calibrate
from privet.accounting.compare import Comparison, Row, compare
from privet.accounting.event_json import from_json, to_json
from privet.accounting.events import (
    Allocated,
    Approximate,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    ExponentialMechanism,
    FixedSizeSampled,
    Gaussian,
    KaryResponse,
    Laplace,
    NegativeBinomialTrials,
    PoissonSampled,
    PoissonTrials,
    Pure,
    RandomizedResponse,
    Repeated,
    Under,
    ZeroConcentrated,
)
from privet.accounting.filters import RenyiFilter, ZeroConcentratedFilter
from privet.accounting.foreign_events import from_dp_accounting, from_opacus
from privet.accounting.matrix_mechanism import matrix_mechanism
from privet.accounting.privacy_profile import profile
from privet.accounting.query import bounds, delta, epsilon, guarantee
from privet.accounting.selection import mean_trials, random_trials
from privet.accounting.toeplitz_mechanism import toeplitz_mechanism, toeplitz_sensitivity
from privet.accounting.truncated_poisson import truncated_poisson

__all__ = [
    "Allocated",
    "Approximate",
    "Bounds",
    "Comparison",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "ExponentialMechanism",
    "FixedSizeSampled",
    "Gaussian",
    "KaryResponse",
    "Laplace",
    "NegativeBinomialTrials",
    "PoissonSampled",
    "PoissonTrials",
    "Pure",
    "RandomizedResponse",
    "RenyiFilter",
    "Repeated",
    "Row",
    "Under",
    "ZeroConcentrated",
    "ZeroConcentratedFilter",
    "bounds",
    "calibrate",
    "compare",
    "delta",
    "epsilon",
    "from_dp_accounting",
    "from_json",
    "from_opacus",
    "guarantee",
    "matrix_mechanism",
    "mean_trials",
    "profile",
    "random_trials",
    "to_json",
    "toeplitz_mechanism",
    "toeplitz_sensitivity",
    "truncated_poisson",
]
