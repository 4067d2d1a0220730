"""The space that data span: for the rank bound, on data that are declared public.

Rank, projector and seminorm of *private* records are private: computing them here and acting on them would leak.
Lecture: Brown, definitions 4.2 and 4.3, claim 4.4 (claims 50 to 52).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privet.errors import InvalidParameter
from privet.theory.risk import at_least_zero


def projector(X_public: ArrayLike, *, tol: float | None = None) -> NDArray[np.float64]:
    """Return M, the orthogonal projector on the span of the rows of `X_public`; (d, d).

    M = Σ u u^T over the right singular vectors whose singular value is above `tol` × the largest. Lecture: claim 50,
    by singular values instead of eigenvalues of X^T X, which would lose half of the digits.

    Parameters
    ----------
    X_public : (n, d) finite numbers, declared public
    tol : relative; max(n, d) × 2.2e-16 by default

    Examples
    --------
    >>> projector([[3.0, 4.0], [6.0, 8.0]]).round(2)
    array([[0.36, 0.48],
           [0.48, 0.64]])
    """
    basis = _basis(X_public, tol)
    return np.asarray(basis.T @ basis)


def rank(X_public: ArrayLike, *, tol: float | None = None) -> int:
    """Return the rank of the rows of `X_public`, data declared public; `tol` as in `projector`.

    Examples
    --------
    >>> rank([[3.0, 4.0], [6.0, 8.0]])
    1
    """
    return int(_basis(X_public, tol).shape[0])


def seminorm(v: ArrayLike, M: ArrayLike) -> float:
    """Return |v|_M = √(v^T M v), the length of v within the range of the projector M (lecture: claim 51).

    Examples
    --------
    >>> M = projector([[3.0, 4.0]])
    >>> round(seminorm([3.0, 4.0], M), 12), round(seminorm([-4.0, 3.0], M), 12)
    (5.0, 0.0)
    """
    vector, matrix = np.asarray(v, dtype=float), np.asarray(M, dtype=float)
    if vector.ndim != 1 or matrix.shape != (vector.size, vector.size):
        raise InvalidParameter(f"""Expected a vector (d,) and a projector (d, d), got shapes {vector.shape} and
            {matrix.shape}: there is no such length. Use `projector` for the second.""")
    return float(np.linalg.norm(matrix @ vector))  # M = M² = M^T, so |Mv|² = v^T M v, without a root of a negative


def _basis(X_public: ArrayLike, tol: float | None) -> NDArray[np.float64]:
    data = np.asarray(X_public, dtype=float)
    if data.ndim != 2 or data.size == 0 or not np.isfinite(data).all():
        raise InvalidParameter(f"""Expected a non-empty (n, d) array of finite public numbers, got shape {data.shape}:
            it spans no space. Pass public data without missing values.""")
    relative = max(data.shape) * float(np.finfo(float).eps) if tol is None else at_least_zero("tol", tol)
    _, values, rows = np.linalg.svd(data, full_matrices=False)
    return np.asarray(rows[values > relative * values[0]], dtype=float)
