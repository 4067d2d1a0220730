"""What a domain of coefficients is, and what all of ours share: shapes, feasibility, equality.

A point is an array of any shape whose entries, in C order, are its coordinates: coefficients (d, K) of K classes are
one point in dK dimensions, and a ball bounds their Frobenius norm. All arithmetic is in float64. Norms and sums are
NumPy's pairwise ones, so that the result does not depend on the number of threads.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privet._checks import positive, whole
from privet.errors import InvalidParameter

Vector: TypeAlias = NDArray[np.float64]


class ConvexSet(Protocol):
    """A closed convex set of coefficients, fixed before the data is seen.

    `project(theta)` is the nearest point, argmin over p in the set of ‖p − theta‖₂. It is feasible: `contains` says
    so with tolerance 0, so that projecting again changes no bit; and a point that is contained comes back unchanged,
    as a copy. It shortens the distance to every point of the set (lecture 13, lemma 2.2), up to rounding.
    Edges: a NaN or an infinite coordinate makes the projection all NaN, which the set does not contain; no value
    raises or warns.

    Examples
    --------
    >>> from privet.geometry import l2_ball
    >>> domain: ConvexSet = l2_ball(radius=5.0)
    >>> domain.project(np.array([6.0, 8.0])), domain.contains([3.0, 4.0])
    (array([3., 4.]), True)
    >>> domain.diameter, domain.radius, domain.centre(2), domain.support([0.0, 2.0])
    (10.0, 5.0, array([0., 0.]), 10.0)
    """

    @property
    def size(self) -> int | None:
        """The number of coordinates of its points; None if the set is there in every dimension."""

    @property
    def diameter(self) -> float:
        """The largest distance between two of its points; ∞ if unbounded."""

    @property
    def radius(self) -> float:
        """The largest distance of a point of the set from `centre`; ∞ if unbounded."""

    def centre(self, d: int, /) -> Vector:
        """A public point of the set to start from, (d,): its centre of symmetry where there is one."""

    def project(self, theta: ArrayLike, /) -> Vector:
        """The nearest point of the set, of the shape of `theta`."""

    def contains(self, theta: ArrayLike, /, tolerance: float = 0.0) -> bool:
        """Whether each inequality that defines the set holds up to `tolerance`, in the unit of theta."""

    def support(self, direction: ArrayLike, /) -> float:
        """The supremum of ⟨direction, p⟩ over p in the set; ∞ if there is none."""


class Domain(ABC):
    """What the sets of this room share; a set defines `_holds`, `_nearest` and `_reach` on flat finite vectors."""

    __slots__ = ()

    @property
    def size(self) -> int | None:
        """None: the set is there in every dimension, unless it says otherwise."""
        return None

    @abstractmethod
    def _holds(self, point: Vector, tolerance: float) -> bool: ...

    @abstractmethod
    def _nearest(self, point: Vector) -> Vector: ...

    @abstractmethod
    def _reach(self, direction: Vector) -> float: ...

    def _flat(self, name: str, value: ArrayLike) -> Vector:
        """A flat float64 copy; its type and shape are public, so they may be refused."""
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise InvalidParameter(f"""Expected {name} to hold numbers, got dtype {array.dtype}: it is a point in space.
                Convert it to floats first.""")
        if array.size != (self.size or array.size) or not array.size:
            self._fits(name, array.size)
        return array.astype(np.float64).ravel()

    def _fits(self, name: str, d: int) -> int:
        """Return d if the set has points of d coordinates."""
        if check_size(f"the number of coordinates of {name}", d) != (self.size or d):
            raise InvalidParameter(f"""Expected {name} with {self.size} coordinates, got {d}: the set lies in another
                space. Give the set and the point the same dimension.""")
        return int(d)

    def project(self, theta: ArrayLike) -> Vector:
        point = self._flat("theta", theta)
        with np.errstate(all="ignore"):
            if not np.isfinite(point).all():
                point = np.full_like(point, np.nan)
            elif not self._holds(point, 0.0):
                point = self._nearest(point)
        return point.reshape(np.shape(theta))

    def contains(self, theta: ArrayLike, tolerance: float = 0.0) -> bool:
        why, hint = "no point would qualify", "Use 0, or a few units in the last place."
        tolerance = positive("tolerance", tolerance, zero=True, infinite=True, because=why, use=hint)
        point = self._flat("theta", theta)
        with np.errstate(all="ignore"):
            return bool(np.isfinite(point).all()) and self._holds(point, tolerance)

    def support(self, direction: ArrayLike) -> float:
        """The supremum of ⟨direction, p⟩ over p in the set; ∞ if there is none, NaN for a direction not finite."""
        flat = self._flat("direction", direction)
        with np.errstate(all="ignore"):
            return self._reach(flat) if np.isfinite(flat).all() else math.nan

    def _key(self) -> tuple[object, ...]:
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]  # all are dataclasses
        return tuple(value.tobytes() if isinstance(value, np.ndarray) else value for value in values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and type(other) is type(self) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))


class Unbounded(Domain):
    """What sets without an end share."""

    __slots__ = ()

    @property
    def diameter(self) -> float:
        return math.inf

    @property
    def radius(self) -> float:
        return math.inf


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Ball(Domain):
    """What balls of a norm share: a radius, and with it a diameter."""

    radius: float

    def __post_init__(self) -> None:
        why = "the ball would be empty, a point or everything"
        object.__setattr__(self, "radius", positive("radius", self.radius, because=why, use="Use a number above 0."))

    @property
    def diameter(self) -> float:
        return 2.0 * self.radius


def length(vector: Vector) -> float:
    """Return ‖vector‖₂ without overflow or underflow on the way.

    >>> length(np.array([3e300, 4e300])), length(np.array([3e-300, 4e-300]))
    (5e+300, 5e-300)
    """
    largest = float(np.abs(vector).max())
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    if 1e-120 < largest < 1e120:
        return math.sqrt(float(np.square(vector).sum()))
    return largest * math.sqrt(float(np.sum(np.square(vector / largest))))


def pulled_in(at: Callable[[float], Vector], holds: Callable[[Vector, float], bool], inner: Vector) -> Vector:
    """Return at(s) for the first s = 1, 1 − 2⁻⁵², 1 − 2⁻⁵¹, … that is feasible, or else the inner point.

    This turns a projection that is right up to rounding into one that is feasible to the last bit; the number of
    tries is public, and all but the first few are for sets whose size is lost in the rounding of their centre.

    >>> pulled_in(lambda s: np.array([s]), lambda p, _: p[0] < 1, np.zeros(1))
    array([1.])
    """
    for exponent in (-math.inf, *range(-52, 0)):
        point = at(1.0 - 2.0**exponent)
        if holds(point, 0.0):
            return point
    return inner


check_size = partial(whole, because="it is a number of coordinates", use="Pass a plain integer.")
"""Return a number of coordinates as an int of at least 1, else say why not."""


def frozen_vector(name: str, value: ArrayLike, *, infinite: bool = False) -> Vector:
    """Return a public vector as a read-only flat copy; refuse other shapes, NaN, and infinities unless allowed.

    >>> frozen_vector("normal", [1, 2])
    array([1., 2.])
    """
    array = np.asarray(value)
    allowed = array.dtype.kind in "biuf" and array.ndim == 1 and array.size > 0
    if not allowed or np.isnan(array).any() or (not infinite and np.isinf(array).any()):
        kind = "numbers" if infinite else "finite numbers"
        raise InvalidParameter(f"""Expected {name} to be a flat array of {kind}, got {value!r}: it describes no set.
            Pass one number a coordinate.""")
    vector = array.astype(np.float64) + 0.0  # no −0, so that equal vectors have equal bytes
    vector.setflags(write=False)
    return vector
