"""Adam whose private gradients are scaled before they are clipped, by what was released before."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

_LEAST = 0.1  # of the root mean square of all coordinates: none counts more than ten times as much as a typical one


class ScaledAdam(torch.optim.Adam):
    """Adam by "scale, then privatise": gradients are divided by the root of its second moment *before* the clip.

    Plain Adam divides after noise was added, so that noise, alike in all coordinates, drowns those where gradients are
    small. Here each example's gradient is divided coordinate by coordinate, by √v̂ of the steps before, then clipped
    and noised, and what comes out is multiplied again. Where v̂ says that gradients are small, noise is.
    Theorem: v̂ is computed from what was released, so the scale is public, and the clip bounds the scaled gradient:
    post-processing on both sides. Ganesh, McMahan and Thakurta 2025 (arXiv 2507.01129).

    The scales keep the energy of a typical gradient, Σ v̂ s² = Σ v̂, so that a clip means what it meant. Gradients of
    single examples are formed, which takes memory and time. Parameters as of `torch.optim.Adam`; a `PrivateTraining`
    or `PrivateGradient` that has it does the rest.

    Examples
    --------
    >>> weight = nn.Parameter(torch.zeros(2))
    >>> optimizer = ScaledAdam([weight], lr=0.1)
    >>> optimizer.scales([weight]) is None                    # nothing was released yet
    True
    >>> weight.grad = torch.tensor([1.0, 0.25]); optimizer.step()
    >>> [round(scale, 2) for scale in optimizer.scales([weight])[0].tolist()]
    [0.79, 2.63]
    """

    @torch.no_grad()
    def scales(self, parameters: Sequence[nn.Parameter]) -> list[Tensor] | None:
        """What to multiply each coordinate of a gradient by, before it is clipped; None before the first step."""
        moments = []
        for parameter in parameters:
            state = self.state.get(parameter, {})
            if "exp_avg_sq" not in state:
                return None
            _, keep = next(g for g in self.param_groups if any(p is parameter for p in g["params"]))["betas"]
            moments.append(state["exp_avg_sq"].float() / (1 - keep ** float(state["step"])))
        energy = sum(float(moment.sum(dtype=torch.float64)) for moment in moments)
        count = sum(moment.numel() for moment in moments)
        if not 0 < energy < float("inf"):
            return None
        least = _LEAST * (energy / count) ** 0.5
        found = [1 / (moment.sqrt() + least) for moment in moments]
        scaled = sum(float((m * s.square()).sum(dtype=torch.float64)) for m, s in zip(moments, found, strict=True))
        return [scale * (energy / scaled) ** 0.5 for scale in found]
