"""How one record's contribution is bounded, and the lattice on which bounded contributions are summed exactly."""

from privet.clipping.lattice import LatticeSum, lattice_step
from privet.clipping.layer_clipping import PerLayer
from privet.clipping.rules import Adaptive, Automatic, Bounding, Clip, Declared

__all__ = ["Adaptive", "Automatic", "Bounding", "Clip", "Declared", "LatticeSum", "PerLayer", "lattice_step"]
