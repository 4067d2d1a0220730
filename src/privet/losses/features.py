"""Feature maps φ: what happens to a row before ⟨φ(x), θ⟩, and how long a row may then be.

A map is fixed before the data is seen (its fields are public), and treats each row by itself; then all results hold
with φ(x) for x (lecture 13, after definition 1.1), and the row norm that counts is that of φ(x).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import ndtri

from privet._checks import whole
from privet.errors import InvalidParameter
from privet.losses.loss import Array, check_number, labels


class FeatureMap(Protocol):
    """A map of rows that does not depend on the data, with a bound on what comes out.

    Examples
    --------
    >>> phi: FeatureMap = AppendOne()
    >>> phi.transform(np.array([[3.0, 4.0]])), phi.output_norm(5.0)
    (array([[3., 4., 1.]]), 5.0990195135927845)
    """

    def transform(self, X: Any, /) -> Any:
        """φ of each row: (m, d) to (m, p). Never raises on values; a row that is not finite may stay so."""

    def output_norm(self, row_norm: float, /) -> float:
        """A bound on ‖φ(x)‖₂ over all x with ‖x‖₂ ≤ row_norm."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AppendOne:
    """x ↦ (x, scale): the last coefficient becomes the intercept, and counts in the norm like any other.

    Theorem: ‖(x, scale)‖² = ‖x‖² + scale². A row of norm 1 with a 1 appended has norm √2, not 1. With a larger
    `scale` the intercept is learnt faster and the other coefficients get noisier, relative to the row.

    Examples
    --------
    >>> AppendOne(scale=2.0).output_norm(1.5)
    2.5
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("scale", self.scale)

    def transform(self, X: Any) -> Any:
        """Dense arrays and SciPy sparse matrices keep their kind; float32 stays float32."""
        if sparse.issparse(X):
            dtype = np.float32 if X.dtype == np.float32 else np.float64
            column = np.full((X.shape[0], 1), self.scale, dtype=dtype)
            return sparse.hstack([X, column], format="csr", dtype=dtype)
        rows = _rows(X)
        return np.hstack([rows, np.full((len(rows), 1), self.scale, dtype=rows.dtype)])

    def output_norm(self, row_norm: float) -> float:
        return math.hypot(check_number("row_norm", row_norm, zero=True, infinite=True), float(self.scale))


def append_one(X: Any, *, scale: float = 1.0) -> Any:
    """Return the rows with `scale` as a last entry; the row norm becomes √(row_norm² + scale²).

    Short for ``AppendOne(scale=scale).transform(X)``.

    Examples
    --------
    >>> append_one(np.array([[3.0, 4.0]]))
    array([[3., 4., 1.]])
    """
    return AppendOne(scale=scale).transform(X)


@dataclass(frozen=True, kw_only=True, slots=True)
class CustomFeatures:
    """Your own map of rows, with the norm that its results never exceed.

    The function must be chosen without the data: a scaler fitted on the private rows is not allowed here. `norm` is
    declared, not believed: row norms are taken again after the map, and longer rows are clipped like any others.

    Parameters
    ----------
    function : from (m, d) to (m, p), row by row
    norm : positive bound on ‖φ(x)‖₂

    Examples
    --------
    >>> phi = CustomFeatures(function=np.tanh, norm=math.sqrt(3))    # three features, each within ±1
    >>> phi.transform(np.array([[0.0, 1.0, 99.0]])).round(3), round(phi.output_norm(100.0), 3)
    (array([[0.   , 0.762, 1.   ]]), 1.732)
    """

    function: Callable[[Any], Any]
    norm: float

    def __post_init__(self) -> None:
        check_number("norm", self.norm)
        if not callable(self.function):
            raise InvalidParameter(f"""Expected function to be callable, got {self.function!r}: it maps rows to rows.
                Pass a function of X that was fixed before the data was seen.""")

    def transform(self, X: Any) -> Any:
        return self.function(X)

    def output_norm(self, row_norm: float) -> float:
        check_number("row_norm", row_norm, zero=True, infinite=True)
        return float(self.norm)


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomFourier:
    """x ↦ (cos Wx, sin Wx)/√frequencies: a linear model in it is nearly one in the Gaussian kernel.

    Theorem: ‖φ(x)‖ = 1 for every x, as cos² + sin² = 1; and E⟨φ(x), φ(x′)⟩ = exp(−‖x − x′‖²/(2 scale²)) over W with
    independent N(0, 1/scale²) entries (Rahimi and Recht 2007). W comes from the public seed by the bits of PCG64
    and the inverse normal distribution function, so it is the same with every version of NumPy.

    Parameters
    ----------
    inputs : number of features d
    frequencies : rows of W; there are twice as many outputs
    scale : the kernel's length, in the unit of x; chosen without the data
    seed : public; it protects nothing

    Examples
    --------
    >>> phi = RandomFourier(inputs=2, frequencies=4, scale=1.0, seed=1)
    >>> image = phi.transform(np.array([[0.0, 0.0], [30.0, 40.0]]))
    >>> image.shape, np.linalg.norm(image, axis=1).round(12), phi.output_norm(50.0)
    ((2, 8), array([1., 1.]), 1.0)
    """

    inputs: int
    frequencies: int
    scale: float
    seed: int

    def __post_init__(self) -> None:
        for name, least in (("inputs", 1), ("frequencies", 1), ("seed", 0)):
            why = "the map would not be defined"
            whole(name, getattr(self, name), least=least, because=why, use="Pass a plain integer.")
        check_number("scale", self.scale)

    def _directions(self) -> Array:
        """W transposed, (inputs, frequencies)."""
        words = np.random.PCG64(int(self.seed)).random_raw(int(self.inputs) * int(self.frequencies))
        uniforms = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        return np.asarray(ndtri(uniforms)).reshape(int(self.inputs), int(self.frequencies)) / float(self.scale)

    @np.errstate(all="ignore")
    def transform(self, X: ArrayLike) -> Array:
        rows = _rows(X)
        if rows.shape[1] != self.inputs:
            raise InvalidParameter(f"""Expected rows of {self.inputs} features, got {rows.shape[1]}: W has one row for
                each. Set inputs to the number of features.""")
        angles = rows @ self._directions().astype(rows.dtype)
        return np.hstack([np.cos(angles), np.sin(angles)]) / rows.dtype.type(math.sqrt(self.frequencies))

    def output_norm(self, row_norm: float) -> float:
        check_number("row_norm", row_norm, zero=True, infinite=True)
        return 1.0


def _rows(X: ArrayLike) -> Array:
    """X as a float matrix, float32 staying float32; else say what shape or type was expected."""
    array = labels(X)
    if array.ndim != 2:
        raise InvalidParameter(f"""Expected a matrix with one row a record, got {array.ndim} dimension(s): rows and
            features would be confused. Use X.reshape(-1, 1) for a single feature.""")
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
