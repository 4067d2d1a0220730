"""From arrays to problems: generalised linear models, and any loss by its per-record gradients."""

import math
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privet._independence import check_alone, user_supplied
from privet.data import matrix, vector
from privet.errors import InvalidParameter
from privet.geometry import ConvexSet, whole_space
from privet.losses import FeatureMap, Loss, RecordLoss, Ridge, loss_named
from privet.problems.grouped import GroupedProblem, numbered
from privet.problems.linear_model import LinearProblem
from privet.problems.records import RecordProblem
from privet.sums import bounded_table

_ROWS = 256  # rows that a feature map sees at a time


@overload
def glm(
    loss: str | Loss,
    X: Any,
    y: Any,
    *,
    row_norm: float,
    domain: ConvexSet | None = None,
    ridge: float = 0.0,
    features: FeatureMap | None = None,
    groups: None = None,
) -> LinearProblem: ...


@overload
def glm(
    loss: str | Loss,
    X: Any,
    y: Any,
    *,
    row_norm: float,
    domain: ConvexSet | None = None,
    ridge: float = 0.0,
    features: FeatureMap | None = None,
    groups: Any,
) -> GroupedProblem: ...


def glm(
    loss: str | Loss,
    X: Any,
    y: Any,
    *,
    row_norm: float,
    domain: ConvexSet | None = None,
    ridge: float = 0.0,
    features: FeatureMap | None = None,
    groups: Any = None,
) -> LinearProblem | GroupedProblem:
    """A generalised linear model on private records.

    Rows longer than `row_norm` are shortened to it; a record with a value that is not finite, or a label outside the
    declared set, is zeroed out: it counts as zero, in every step, and nothing tells.

    Parameters
    ----------
    loss : a loss, or its name, e.g. "logistic", "squared"
    X : (n, d) numbers, dense, CSR, a data frame, or a list of rows, whose usual length is taken as public; private
    y : (n,) labels; private
    row_norm : public bound on ‖x‖, chosen without the data; with `features`, on the rows before the map
    domain : the set to stay in; the whole space by default
    ridge : strength of the penalty (ridge/2)‖θ‖², which is public and stays outside the clip
    features : a public map φ, e.g. `AppendOne()` for an intercept; the norm of φ(x) is what counts
    groups : (n,) labels, numbers or texts: whose row it is; private. Then what is bounded is a person's whole
        contribution, the mean over its rows, and the guarantee is for a person with all rows; see `GroupedProblem`.
        A row without a label counts as nothing

    Examples
    --------
    >>> problem = glm("logistic", [[0.6, 0.8], [1.0, 0.0]], [0, 1], row_norm=1.0)
    >>> problem
    LinearProblem(private records, LogisticLoss(labels='zero_one'), row_norm=1, domain=whole_space())
    >>> problem.lipschitz
    1.0
    """
    chosen = loss if isinstance(loss, Loss) else loss_named(loss)
    rows = matrix(X)
    more: tuple[str, ...] = ()
    if features is not None:
        more = _tried(features, rows)
        rows, row_norm = _mapped(features, rows), features.output_norm(row_norm)
    labels = vector(y, rows.shape[0])
    keep = np.asarray(chosen.admissible(labels), dtype=bool)
    table = bounded_table(rows, row_norm=row_norm, keep=keep)
    labels = np.where(keep, labels, 0.0)
    place = domain if domain is not None else whole_space()
    problem: LinearProblem | GroupedProblem
    if groups is None:
        problem = LinearProblem(chosen, table, labels, domain=place, ridge=Ridge(alpha=ridge))
    else:
        people = numbered(groups, rows.shape[0])
        problem = GroupedProblem(chosen, table, labels, people, domain=place, ridge=Ridge(alpha=ridge))
    problem.assumptions += more
    _check_domain(problem.domain, math.prod(problem.shape))
    return problem


def per_record(
    loss: RecordLoss,
    X: Any,
    y: Any = None,
    *,
    shape: int | tuple[int, ...],
    domain: ConvexSet | None = None,
    ridge: float = 0.0,
) -> RecordProblem:
    """Any loss on private records, through one gradient a record; clipping carries the privacy claim alone.

    Parameters
    ----------
    loss : values and gradients of records; each must depend on its own record only
    X, y : the records: arrays of numbers of any shape, one entry a record, or what `privet.data` reads as a matrix and
        as a vector; private. A record with nothing but NaN in X is empty, and adds nothing to any sum
    shape : the shape of θ
    domain, ridge : as in `glm`

    Examples
    --------
    >>> from privet.losses import LinearRecords, SquaredLoss
    >>> per_record(LinearRecords(loss=SquaredLoss(factor=2)), [[1.0, 2.0]], [1.0], shape=2).shape
    (2,)
    """
    rows = X if _is_numeric(X) else matrix(X)
    labels = np.zeros(rows.shape[:1]) if y is None else y if _is_numeric(y) else vector(y)
    if sparse.issparse(rows) or rows.ndim == 0 or labels.shape[:1] != rows.shape[:1]:
        raise InvalidParameter("""Expected X and y to be arrays of equally many records, got unequal lengths or no
            array: records and labels would be paired wrongly. Pass dense arrays with one row and one label a
            record.""")
    full = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(side, int) and side >= 1 for side in full):
        raise InvalidParameter(f"""Expected shape to be whole numbers of at least 1, got {shape!r}: it is the shape of
            the coefficients. Pass e.g. shape=3.""")
    chosen = domain if domain is not None else whole_space()
    _check_domain(chosen, math.prod(full))
    return RecordProblem(loss, rows, labels, shape=full, domain=chosen, ridge=Ridge(alpha=ridge))


def _is_numeric(data: Any) -> bool:
    """Whether it is an array that is declared to hold numbers, of any shape."""
    return isinstance(data, np.ndarray) and data.dtype.kind in "fiub" and not np.ma.isMaskedArray(data)


def _tried(features: FeatureMap, rows: Any) -> tuple[str, ...]:
    """Refuse a map of the user's that couples rows; what is assumed of it all the same."""
    if not user_supplied(features):
        return ()
    form = sparse.csr_matrix if sparse.issparse(rows) else np.asarray

    def image(block: NDArray[Any]) -> NDArray[Any]:
        found = features.transform(form(block))
        return np.asarray(found.toarray() if sparse.issparse(found) else found)

    return (check_alone("the feature map", image, (rows.shape[1:], "f")),)


def _mapped(features: FeatureMap, rows: Any) -> Any:
    """φ of each row, in blocks of one size: no last bit of a row's image depends on how many others there are."""
    count = rows.shape[0]
    if sparse.issparse(rows):
        return matrix(features.transform(rows))
    images = []
    with np.errstate(all="ignore"):
        for first in range(0, max(count, 1), _ROWS):
            block = np.zeros((_ROWS, rows.shape[1]), dtype=rows.dtype)
            here = rows[first : first + _ROWS]
            block[: len(here)] = here
            image = matrix(features.transform(block))
            if image.shape[0] != _ROWS:
                raise InvalidParameter("""Expected a feature map with one image a row, got another number of them:
                    records and labels would be paired wrongly. Map each row by itself.""")
            images.append(image[: len(here)])
    return sparse.vstack(images, format="csr") if sparse.issparse(images[0]) else np.vstack(images)


def _check_domain(domain: ConvexSet, dimension: int) -> None:
    try:
        ok = domain.contains(domain.centre(dimension), tolerance=1e-9)
    except ValueError:  # a set of another dimension says so, as InvalidParameter or as NumPy does
        ok = False
    if not ok:
        raise InvalidParameter(f"""Expected a domain of dimension {dimension}, got {domain!r}: the coefficients would
            not fit in it. Count an appended 1, and all classes of a multinomial model.""")
