"""Bounds, scales and categories: declared in public by a schema, or learnt privately and charged."""

from typing import TYPE_CHECKING, Any

from privet.preprocessing.categories import LearntCategories, NameFinder, private_categories
from privet.preprocessing.dates import Date
from privet.preprocessing.encoding import decode_target, encode_target
from privet.preprocessing.learning import LearntSchema, SchemaLearner, learn_schema
from privet.preprocessing.moments import Moments, private_moments
from privet.preprocessing.ranges import LearntRanges, RangeFinder, private_ranges
from privet.preprocessing.schema import Category, Number, Schema, Target
from privet.preprocessing.schema_files import dump_schema, parse_schema, read_schema, write_schema
from privet.preprocessing.skeleton import schema_skeleton

if TYPE_CHECKING:
    from privet.preprocessing.encoder import TableEncoder

__all__ = [
    "Category",
    "Date",
    "LearntCategories",
    "LearntRanges",
    "LearntSchema",
    "Moments",
    "NameFinder",
    "Number",
    "RangeFinder",
    "Schema",
    "SchemaLearner",
    "TableEncoder",
    "Target",
    "decode_target",
    "dump_schema",
    "encode_target",
    "learn_schema",
    "parse_schema",
    "private_categories",
    "private_moments",
    "private_ranges",
    "read_schema",
    "schema_skeleton",
    "write_schema",
]


def __getattr__(name: str) -> Any:
    if name == "TableEncoder":  # scikit-learn takes a second to import, and only the encoder needs it
        from privet.preprocessing.encoder import TableEncoder

        return TableEncoder
    raise AttributeError(f"module 'privet.preprocessing' has no attribute {name!r}")
