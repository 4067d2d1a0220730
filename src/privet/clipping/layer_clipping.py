"""Clip each parameter's gradient by itself."""

from dataclasses import dataclass

from privet.clipping.lattice import check_clip
from privet.clipping.rules import FloatArray


@dataclass(frozen=True, kw_only=True, slots=True)
class PerLayer:
    """Each of the m parameters' gradients is shortened by itself, to clip ÷ √m, so that the whole is at most `clip`.

    For networks, in `privet.torch`; a convex loss has one parameter, and this is a plain clip.

    Theorem: m vectors of norm at most c/√m have together norm at most c. He et al. 2023, "Exploring the limits of
    differentially private deep learning with group-wise clipping".

    Examples
    --------
    >>> PerLayer(clip=1.0).describe()
    "each parameter's gradient is clipped by itself, all together to norm 1"
    """

    clip: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", check_clip(self.clip))

    def factor(self, norms: FloatArray) -> FloatArray | None:
        return None

    def describe(self) -> str:
        return f"each parameter's gradient is clipped by itself, all together to norm {self.clip:g}"
