"""From per-record gradients to a sum whose sensitivity is known exactly."""

from __future__ import annotations

from privet.clipping.curvature import curvature_sum
from privet.clipping.glm import glm_sum, gram_sum, scalar_sum
from privet.clipping.lattice import LatticeSum, lattice_step
from privet.clipping.people import People, people_scalar_sum, people_sum, row_weights, split_people
from privet.clipping.records import record_sum
from privet.clipping.rules import Adaptive, Automatic, Bounding, Clip, Declared
from privet.clipping.sandwich import norm_counts, sandwich_sums
from privet.clipping.table import Table, bounded_table

__all__ = [
    "Adaptive",
    "Automatic",
    "Bounding",
    "Clip",
    "Declared",
    "LatticeSum",
    "People",
    "Table",
    "bounded_table",
    "curvature_sum",
    "glm_sum",
    "gram_sum",
    "lattice_step",
    "norm_counts",
    "people_scalar_sum",
    "people_sum",
    "record_sum",
    "row_weights",
    "sandwich_sums",
    "scalar_sum",
    "split_people",
]
