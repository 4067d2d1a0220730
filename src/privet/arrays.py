"""What the arrays that privet computes with are called."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
