"""Clipping rules: ways to bound what one record contributes; every one of them is enforced, none is believed."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privet._checks import between, is_number, positive
from privet.clipping.lattice import check_clip
from privet.errors import InvalidParameter

FloatArray = NDArray[np.floating]


@runtime_checkable
class Bounding(Protocol):
    """How a record's gradient is shortened before it is added.

    Whatever `factor` says, the sum shortens each record to `clip` afterwards: a rule chooses how a gradient is
    shortened, never whether.
    """

    @property
    def clip(self) -> float:
        """The l2 bound on one record's share, in the unit of a gradient norm; public."""

    def factor(self, norms: FloatArray) -> FloatArray | None:
        """What to multiply gradients of these norms by; None for min(1, clip ÷ norm), which the sum does itself."""

    def describe(self) -> str:
        """The rule as the clause of a sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Clip:
    """Shorten each record's gradient to norm at most `clip`: g · min(1, clip ÷ ‖g‖).

    Theorem: lecture 13 (Brown), section 3.(1); lecture 4, section 2.2. For a generalised linear model the clipped
    gradient is that of a convex loss again, the Huberised one.

    Examples
    --------
    >>> Clip(clip=0.5).describe()
    'each gradient is clipped to norm 0.5'
    """

    clip: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", check_clip(self.clip))

    def factor(self, norms: FloatArray) -> FloatArray | None:
        return None

    def describe(self) -> str:
        return f"each gradient is clipped to norm {self.clip:g}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """A Lipschitz constant, declared: gradients are said to be no longer. One that is, is clipped, not believed.

    Theorem: lecture 13 (Brown), assumption 3.1, "by fiat". If the constant is true nothing is ever clipped, and the
    utility theorems hold for the loss itself; if it is false, privacy holds all the same.

    Examples
    --------
    >>> Declared(lipschitz=1.0).clip
    1.0
    """

    lipschitz: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lipschitz", check_clip(self.lipschitz, name="lipschitz"))

    @property
    def clip(self) -> float:
        return self.lipschitz

    def factor(self, norms: FloatArray) -> FloatArray | None:
        return None

    def describe(self) -> str:
        return f"gradients are declared no longer than {self.lipschitz:g}, which is enforced by clipping"


@dataclass(frozen=True, kw_only=True, slots=True)
class Automatic:
    """Normalise instead of clipping: g · clip ÷ (‖g‖ + stability), so that no threshold needs tuning.

    Theorem: the result is shorter than `clip`. Bu, Wang, Zha and Karypis 2023, "Automatic clipping".

    Examples
    --------
    >>> float(Automatic(clip=1.0, stability=0.5).factor(np.array([1.5]))[0])
    0.5
    """

    clip: float = 1.0
    stability: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", check_clip(self.clip))
        hint = "Use a small part of a typical gradient norm, e.g. 0.01."
        positive("stability", self.stability, because="a gradient of zero would be divided by zero", use=hint)

    def factor(self, norms: FloatArray) -> FloatArray:
        return self.clip / (norms + self.stability)

    def describe(self) -> str:
        return f"each gradient is normalised to length below {self.clip:g} (stability {self.stability:g})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Adaptive:
    """Clip at a private estimate of a quantile of the gradient norms, learnt along the way.

    Each step also releases how many gradients were within the clip, with noise of standard deviation `count_noise`
    (in records), and moves the clip by exp(−rate × (share within − quantile)).

    Promise: the two releases of a step together are exactly one Gaussian release of noise multiplier z, if the
    gradient's own multiplier is (z⁻² − (2·count_noise)⁻²)^(−1/2); so z < 2·count_noise is required.
    Theorem: Andrew, Thakkar, McMahan and Ramaswamy 2021, theorem 1; Gaussian releases compose exactly.

    Examples
    --------
    >>> round(Adaptive(clip=1.0, count_noise=10.0).gradient_multiplier(1.0), 6)
    1.001252
    """

    clip: float
    quantile: float = 0.5
    rate: float = 0.2
    count_noise: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", check_clip(self.clip))
        why = "the clip follows the gradient norm that this share of records stays below"
        between("quantile", self.quantile, 0, 1, because=why, use="Use 0.5.")
        for name in ("rate", "count_noise"):
            value = getattr(self, name)
            if not (is_number(value) and 2.0**-20 <= value <= 2.0**28):
                raise InvalidParameter(f"""Expected {name} to be a positive number of an ordinary size, got {value!r}:
                    the clip could not be learnt privately. Use rate=0.2, and a count_noise of about a twentieth of the
                    expected batch.""")

    def factor(self, norms: FloatArray) -> FloatArray | None:
        return None

    def gradient_multiplier(self, noise_multiplier: float) -> float:
        """The gradient's own noise multiplier when both releases together cost `noise_multiplier`; rounded up."""
        if not noise_multiplier < 2 * self.count_noise:
            raise InvalidParameter(f"""Expected a noise multiplier below 2 × count_noise = {2 * self.count_noise:g}, got
                {noise_multiplier:g}: the count alone would cost more than the whole step may. Raise count_noise.""")
        left = 1 / Fraction(noise_multiplier) ** 2 - 1 / (2 * Fraction(self.count_noise)) ** 2  # exact: floats cancel
        return math.sqrt(1 / left) * (1 + 2.0**-48)

    def moved(self, clip: float, share_within: float) -> float:
        """The next clip, from the present one and the noisy share of gradients within it.

        It stays within a factor 2^40 of the first clip, which is this rule's own, and within what a clip may be.
        """
        change = -self.rate * (min(max(share_within, 0.0), 1.0) - self.quantile)
        moved = clip * math.exp(min(max(change, -60.0), 60.0))
        least, most = max(self.clip * 2.0**-40, 2.0**-400), min(self.clip * 2.0**40, 2.0**400)
        return min(max(moved, least), most)

    def describe(self) -> str:
        return (
            f"gradients are clipped at a privately learnt {self.quantile:g} quantile of their norms "
            f"(from {self.clip:g}, count noise {self.count_noise:g})"
        )
