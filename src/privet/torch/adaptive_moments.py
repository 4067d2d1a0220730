"""Adam that knows how much of its second moment is noise."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim import Optimizer

from privet._checks import between, positive


class AdamBC(Optimizer):
    """Adam whose second moment is corrected for the noise of a private gradient, which is known.

    The noise adds its variance to the mean of squared gradients, and it is far larger than they are: Adam then divides
    all coordinates by nearly the same number. Here it is taken away: √max(v̂ − stddev², floor²) is divided by.
    Theorem: v̂ of a gradient plus independent noise is that of the gradient plus stddev², in expectation. Tang,
    Shpilevskiy and Lécuyer 2023, "DP-AdamBC". It works on what is released, and costs no privacy.

    Parameters
    ----------
    params : as of any optimiser
    lr : step size; since small denominators are no longer hidden by noise, smaller than of Adam
    betas : decay of the two moments
    floor : least denominator, in the unit of the mean gradient; None for a tenth of the noise's standard deviation, but
        what suits depends on the problem
    noise_stddev : of each coordinate of the gradient; `PrivateTraining` sets it, from the plan, at each step

    Examples
    --------
    >>> weight = torch.nn.Parameter(torch.zeros(2))
    >>> optimizer = AdamBC([weight], lr=0.1, floor=1e-3, noise_stddev=0.5)
    >>> weight.grad = torch.tensor([1.0, 0.1])
    >>> optimizer.step()
    >>> [round(value, 3) for value in weight.tolist()]  # √(1 − 0.25), and the floor
    [-0.115, -10.0]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        floor: float | None = None,
        noise_stddev: float = 0.0,
    ) -> None:
        positive("lr", lr, because="without a step nothing is learnt", use="Use e.g. 0.001.")
        for beta in betas:
            because = "it is how much of a moment a step keeps"
            between("betas", beta, 0, 1, closed=(True, False), because=because, use="Use (0.9, 0.999).")
        if floor is not None:
            positive("floor", floor, because="a denominator may not vanish", use="Leave it out, or use e.g. 1e-4.")
        self.noise_stddev = positive(
            "noise_stddev", noise_stddev, zero=True, because="it is a standard deviation", use="Leave it to the run."
        )
        super().__init__(params, {"lr": lr, "betas": betas, "floor": floor})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step on the gradients as they are."""
        for group in self.param_groups:
            (keep, keep_squares), lr = group["betas"], group["lr"]
            floor = group["floor"] if group["floor"] is not None else max(0.1 * self.noise_stddev, 1e-8)
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["step"], state["noise"] = 0, 0.0
                    state["mean"] = torch.zeros_like(parameter)
                    state["squares"] = torch.zeros_like(parameter)
                state["step"] += 1
                # The noise may change from step to step: its variance is averaged as the squares are.
                state["noise"] = keep_squares * state["noise"] + (1 - keep_squares) * self.noise_stddev**2
                state["mean"].lerp_(parameter.grad, 1 - keep)
                state["squares"].mul_(keep_squares).addcmul_(parameter.grad, parameter.grad, value=1 - keep_squares)
                seen = 1 - keep_squares ** state["step"]
                signal = (state["squares"] - state["noise"]).div_(seen).clamp_(min=floor**2).sqrt_()
                parameter.addcdiv_(state["mean"], signal, value=-lr / (1 - keep ** state["step"]))
