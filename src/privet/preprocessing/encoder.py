"""`TableEncoder`: the encoding as a scikit-learn transformer. Nothing is learnt from the rows."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from privet._checks import one_of
from privet.arrays import Vector
from privet.data.tables import check_header
from privet.errors import InvalidParameter
from privet.preprocessing.encoded_rows import EncodedRows
from privet.preprocessing.encoding import (
    check_extra,
    check_known,
    decode_target,
    encode,
    encode_target,
    feature_bounds,
    feature_names,
    row_scale,
    shares_of,
)
from privet.preprocessing.schema import Schema


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Rows of a table as bounded features, by a schema alone.

    A number goes to [-1, 1] by its public range, 0 staying 0 where the range holds it; a category to a 0/1 block by its
    public code book; a date to time within its public range, and to what of the calendar the schema asks for; a value
    that is missing, unlisted or unreadable to zeros. A constant 1 is appended, and the row is scaled by `scale`.

    Promise: the norm of every row is at most 1, exactly; a row depends on its own record only; no error and no warning
    depends on a cell. `fit` reads the header, never a row, so the transformer costs no privacy.
    Theorem: each column's share of a row has norm at most 1 before scaling, so the norm is at most
    √(columns + 1) · scale ≤ 1, where a date counts as several; docs/proofs/preprocessing.md, section 1.

    Parameters
    ----------
    schema : public facts; every column with its range or code book
    extra : "ignore" columns of the table that the schema does not mention, or "refuse" them
    as_csr : give CSR rows, for wide code books

    Examples
    --------
    >>> from privet.preprocessing import Category, Number, Schema
    >>> schema = Schema(columns={"age": Number(low=0, high=100), "sex": Category(values=("f", "m"))})
    >>> encoder = TableEncoder(schema)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'sex=f', 'sex=m', '(constant)']
    >>> encoder.transform({"sex": ["m", "Jane Doe"], "age": [75, "unknown"]}).round(4).tolist()
    [[0.433, 0.0, 0.5774, 0.5774], [0.0, 0.0, 0.0, 0.5774]]
    """

    def __init__(self, schema: Schema, *, extra: Literal["ignore", "refuse"] = "ignore", as_csr: bool = False) -> None:
        self.schema = schema
        self.extra = extra
        self.as_csr = as_csr

    def fit(self, table: Any, y: Any = None) -> Self:
        """Check the header against the schema; no row is read."""
        self._check(table)
        return self

    def transform(self, table: Any) -> Any:
        """(records, features) float64 rows of norm at most 1; CSR if `as_csr`. Private."""
        self._check(table)
        return encode(self.schema, table, as_csr=self.as_csr)

    def encode_target(self, data: Any) -> Vector:
        """As `encode_target` with the schema's target: from the table or from the column itself."""
        return encode_target(self._schema().known_target, data)

    def decode_target(self, predictions: Any) -> NDArray[Any]:
        """As `decode_target` with the schema's target: predictions in the table's own terms."""
        return decode_target(self._schema().known_target, predictions)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features; public."""
        check_known(self._schema())
        return np.array(feature_names(self.schema), dtype=object)

    def features(self, table: Any) -> Vector:
        """(records, features) in their own units, for an estimator with `bounds=encoder.bounds`. Private."""
        return self.rows(table).whole()

    def rows(self, table: Any) -> EncodedRows:
        """As `features`, made as they are asked for. Private."""
        self._check(table)
        return EncodedRows(self.schema, table)

    @property
    def bounds(self) -> tuple[Vector, Vector]:
        """The public ranges of `features`."""
        return feature_bounds(self._schema())

    @property
    def scale(self) -> float:
        """What every feature is multiplied by; also the value of the constant feature."""
        return row_scale(shares_of(self._schema()))

    @property
    def row_norm(self) -> float:
        """The public bound on the norm of a row."""
        return 1.0

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _schema(self) -> Schema:
        if not isinstance(self.schema, Schema):
            raise InvalidParameter(
                f"Expected a Schema, got {type(self.schema).__name__}: the encoder knows nothing else of the table. "
                "Use read_schema(path), or Schema(columns={...})."
            )
        return self.schema

    def _check(self, table: Any) -> None:
        schema = self._schema()
        check_known(schema)
        because = "nothing says what to do with columns that the schema does not mention"
        if one_of("extra", self.extra, ("ignore", "refuse"), because=because, use="Use 'ignore'.") == "refuse":
            check_extra(schema, table)
        check_header(table, list(schema.columns))
