"""Convex sets of coefficients: project, contain, diameter, support. Each is named by its constructor."""

from privet.geometry.box import box
from privet.geometry.convex_set import ConvexSet
from privet.geometry.half_space import half_space
from privet.geometry.l1_ball import l1_ball
from privet.geometry.l2_ball import l2_ball
from privet.geometry.product import product
from privet.geometry.simplex import simplex
from privet.geometry.whole_space import whole_space

__all__ = ["ConvexSet", "box", "half_space", "l1_ball", "l2_ball", "product", "simplex", "whole_space"]
