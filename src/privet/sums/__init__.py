"""Exact sums over bounded records: gradients, second moments, counts. Private until noise is added."""

from privet.sums.glm import glm_sum, gram_sum, scalar_sum, scores
from privet.sums.per_record import record_sum
from privet.sums.person_means import People, people_scalar_sum, people_sum, row_weights, split_people
from privet.sums.sandwich import curvature_sum, norm_counts, sandwich_sums
from privet.sums.table import Table, bounded_table

__all__ = [
    "People",
    "Table",
    "bounded_table",
    "curvature_sum",
    "glm_sum",
    "gram_sum",
    "norm_counts",
    "people_scalar_sum",
    "people_sum",
    "record_sum",
    "row_weights",
    "sandwich_sums",
    "scalar_sum",
    "scores",
    "split_people",
]
