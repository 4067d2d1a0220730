"""Which descents on batches have a proven excess risk, and how large it is; from public facts alone."""

import math
from dataclasses import dataclass

from privet.clipping import Bounding, Clip, Declared
from privet.errors import InvalidParameter
from privet.problems import Facts
from privet.sampling import FixedSize, FullBatch, OneRecord, Poisson, Sampling
from privet.solvers.updates import StepSize
from privet.theory.sampled_bounds import sampled_descent_bound, sampled_moment


def convex_as_bounded(facts: Facts, gradient_norm: float) -> bool:
    """Whether the gradients, as bounded, are those of a convex loss: clipping keeps that only for one output."""
    if facts.loss is None or facts.row_norm is None or not facts.loss.convex or facts.ridge.alpha != 0:
        return False
    proven = facts.lipschitz
    one = facts.unit == "record" and facts.loss.outputs == 1  # and one row a record
    return one or (proven is not None and gradient_norm >= proven)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampled:
    """The public facts of a run of DP-SGD that its theorem reads."""

    steps: int
    sampling: Sampling
    bounding: Bounding
    facts: Facts
    noise_stddev: float
    """Of a coordinate of the estimated gradient."""
    radius: float | None
    """A public bound on the distance of the minimiser from the start; of the domain from its centre if None."""
    last: bool
    """Whether the last iterate is released, and not the average."""

    @property
    def distance(self) -> float:
        return self.facts.domain.radius if self.radius is None else self.radius

    @property
    def _norm(self) -> float | None:
        """The bound on gradient norms, if the rule keeps gradients of a convex loss gradients of one."""
        if not isinstance(self.bounding, (Clip, Declared)):
            return None
        clip = self.bounding.clip
        known = self.facts.lipschitz
        return clip if known is None else min(clip, known)

    @property
    def _batch(self) -> dict[str, float]:
        rate = {"sampling_rate": self.sampling.sampling_rate} if isinstance(self.sampling, Poisson) else {}
        return {"batch": self.sampling.batch_size(self.facts.records), **rate}

    def step_size(self) -> StepSize:
        """The theorem's η, constant for the average and falling linearly for the last iterate."""
        reach, norm = self.distance, self._norm
        if not (math.isfinite(reach) and reach > 0 and norm is not None):
            raise InvalidParameter(
                "Expected a bounded domain or radius=..., and a clip, for a step size by theorem, got neither or "
                "another rule: the theorem needs how far the minimiser may be. Pass them, or step_size=..."
            )
        moment = sampled_moment(
            steps=self.steps, lipschitz=norm, d=self.facts.dimension, noise_stddev=self.noise_stddev, **self._batch
        )
        eta, iterates = reach / math.sqrt((self.steps + 1) * moment), self.steps + 1
        return (lambda t: eta * (1.0 - t / iterates)) if self.last else eta

    def bound(self, step_size: float | None) -> float | None:
        """The proven excess risk at a constant η, or at `step_size()` if None; None where no theorem applies."""
        facts, norm = self.facts, self._norm
        drawn_afresh = isinstance(self.sampling, (FullBatch, Poisson, FixedSize, OneRecord))
        reach = self.distance
        if norm is None or not drawn_afresh or facts.unit != "record" or not (math.isfinite(reach) and reach > 0):
            return None
        if not convex_as_bounded(facts, self.bounding.clip) or (self.last and step_size is not None):
            return None
        return sampled_descent_bound(
            steps=self.steps,
            distance=reach,
            lipschitz=norm,
            d=facts.dimension,
            noise_stddev=self.noise_stddev,
            step_size=step_size,
            release="last" if self.last else "average",
            **self._batch,
        ).value
