"""The lectures' own prescriptions, as printed, next to the explicit ones, with what they cost.

For comparison and teaching: a `LecturePrescription` is no `Prescription`. It runs as it stands, and the guarantee of
that run is what its noise truly gives. The lectures have the "replace_one" relation throughout. Logs are natural;
Λ = ln(1/δ).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from privet.errors import InvalidParameter
from privet.lectures.noise_rules import Rule, rule
from privet.lectures.running import run_prescribed
from privet.privacy import Budget
from privet.problems import Problem
from privet.randomness import Random
from privet.solvers.solver import Result, Start
from privet.theory import average_iterate_bound, last_iterate_bound, nikolov_bound, rank_bound, second_moment
from privet.theory.planner import plan_for
from privet.theory.prescription import Method, Prescription, Schedule
from privet.theory.risk import RiskBound, positive, whole

Theorem = Literal["theorem_2_6", "theorem_4_1", "shamir_zhang", "nikolov"]

_MOST = 2.0**62


@dataclass(frozen=True, kw_only=True, slots=True)
class LecturePrescription:
    """Steps, step size and noise as a lecture prints them, with what they prove and what they cost.

    Made by `lectures_prescription`. `noise_stddev` is that of the mean gradient, `bound` what these T, η, σ prove
    with every constant, `printed_risk` what the lecture prints, constants dropped by an O(·) taken as 1.

    Examples
    --------
    >>> from privet import Budget
    >>> found = lectures_prescription("theorem_2_6", n=1000, d=10, radius=1.0, diameter=1.0, lipschitz=1.0,
    ...                               budget=Budget(epsilon=1, delta=1e-5))
    >>> found.steps, f"{found.bound.value:.4f}", f"{found.explicit.excess_risk:.4f}"
    (100000, '0.0488', '0.0334')
    >>> f"{found.times_the_risk:.2f} {found.times_the_steps:.1f}", found.private
    ('1.46 55.6', True)

    The run itself, on a problem of so many records; `max_steps` above caps it:

    >>> from privet import glm, l2_ball
    >>> printed = lectures_prescription("theorem_2_6", n=500, d=2, radius=1.0, lipschitz=1.0, max_steps=50,
    ...                                 budget=Budget(epsilon=1, delta=1e-5))
    >>> result = printed.run(glm("logistic", [[0.6, 0.8]] * 500, [1] * 500, row_norm=1.0, domain=l2_ball(radius=1)))
    >>> result.plan.event
    Gaussian(noise_multiplier=67.8...) * 49
    """

    theorem: Theorem
    lecture: str
    steps: int
    step_size: float
    schedule: Schedule
    clip: float
    """G, the bound on one record's gradient norm that the noise is for."""
    noise_stddev: float
    noise_rule: str
    """Name of the rule in `privet.theory.RULES` that sets the noise."""
    bound: RiskBound
    printed_risk: float
    true_epsilon: float
    """What the printed noise really gives at the budget's delta."""
    private: bool
    """Whether the printed noise certainly meets the budget."""
    explicit: Prescription
    """What `plan_for` prescribes for the same problem."""
    remark: str

    @property
    def times_the_risk(self) -> float:
        """The proven risk ÷ that of the explicit prescription."""
        return self.bound.value / self.explicit.excess_risk

    @property
    def times_the_steps(self) -> float:
        """The steps ÷ those of the explicit prescription."""
        return self.steps / (self.explicit.steps or 1)

    def run(self, problem: Problem, *, start: Start = None, random: Random | None = None) -> Result:
        """Run it on a problem of the n records it is for: printed T, η and σ, and the guarantee these truly have.

        An average of T iterates, the start among them, takes T − 1 gradients. A problem whose gradients are longer
        than G is clipped to it. For theorem 4.1 the problem must be free: its theorem is without projection.
        """
        return run_prescribed(self, problem, start=start, random=random)


def lectures_prescription(
    theorem: Theorem,
    *,
    n: int,
    d: int,
    radius: float,
    lipschitz: float | None = None,
    budget: Budget,
    diameter: float | None = None,
    rank: int | None = None,
    max_steps: int | None = None,
) -> LecturePrescription:
    """Return a lecture's T, η and σ as printed, next to the explicit ones.

    T is rounded up to a whole number, at least 1; the rest is as printed, so the noise may be too little (`private`,
    `true_epsilon`) or far too much.

    Parameters
    ----------
    theorem :
        "theorem_2_6" (Wu, claim 31): T = ε²n²/d, η = Rεn/(TG√(dΛ)), σ of lemma 1.1, R the *diameter*;
        "theorem_4_1" (Brown, claim 49): T = n²ε², σ of claim 3.2, "an appropriate learning rate": the best one;
        "shamir_zhang" (Razaviyayn, claims 86 to 89): η_t = c/√t, σ by advanced composition, T by "optimizing T";
        "nikolov" (claims 115 to 117): σ by the ρ rule; T is left open there, and taken as ε²n²/((d+1)Λ), where its
        two terms are equal
    n, d, radius, lipschitz, budget, diameter, rank, max_steps : as in `plan_for`; `max_steps` caps both sides

    Examples
    --------
    >>> from privet import Budget
    >>> found = lectures_prescription("theorem_4_1", n=1000, d=500, radius=1.0, lipschitz=1.0, rank=5,
    ...                               budget=Budget(epsilon=1, delta=1e-5))
    >>> found.steps, found.private, f"{found.true_epsilon:.4f}"
    (1000000, False, '1.1099')
    """
    if theorem not in get_args(Theorem):
        raise InvalidParameter(f"""Expected one of {", ".join(get_args(Theorem))}, got {theorem!r}: the lectures
            prescribe nothing under it.""")
    text = _TEXTS[theorem]
    explicit = plan_for(
        n=n,
        d=d,
        radius=radius,
        lipschitz=lipschitz,
        budget=budget,
        neighbours="replace_one",
        method=text.method,
        diameter=diameter,
        rank=rank,
        max_steps=max_steps,
    )
    problem = _Printed(
        n=n,
        d=whole("rank", rank or 0) if theorem == "theorem_4_1" else d,
        radius=float(radius),
        diameter=float(2.0 * radius if diameter is None else diameter),
        gradient=math.sqrt(d + 1.0) if theorem == "nikolov" else explicit.clip,
        epsilon=positive("epsilon of the lectures' rules", budget.epsilon),
        delta=budget.delta,
        most=_MOST if max_steps is None else float(max_steps),
        rule=rule(text.rule),
    )
    steps, step_size, bound, printed_risk = text.prescribe(problem)
    return LecturePrescription(
        theorem=theorem,
        lecture=text.lecture,
        steps=steps,
        step_size=step_size,
        schedule="inverse_sqrt" if theorem == "shamir_zhang" else "constant",
        clip=problem.gradient,
        noise_stddev=problem.noise(steps),
        noise_rule=text.rule,
        bound=bound,
        printed_risk=printed_risk,
        true_epsilon=problem.rule.true_epsilon(epsilon=problem.epsilon, delta=problem.delta, steps=steps),
        private=problem.rule.is_true(epsilon=problem.epsilon, delta=problem.delta, steps=steps),
        explicit=explicit,
        remark=_REMARKS[theorem],
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Printed:
    """The problem in the lectures' letters."""

    n: int
    d: int
    radius: float
    diameter: float
    gradient: float
    epsilon: float
    delta: float
    most: float
    rule: Rule

    @property
    def log(self) -> float:
        return -math.log(self.delta)

    def whole(self, steps: float) -> int:
        if self.most == _MOST and not steps < _MOST:
            raise InvalidParameter("""Expected a theorem that prescribes fewer than 2**62 steps, got more: no run has
                that many. Pass max_steps.""")
        # A product that should be whole may be a rounding above: do not count that as one more step.
        return max(1, math.ceil(min(steps, self.most) * (1.0 - 2e-15)))

    def noise(self, steps: int) -> float:
        given = 2.0 * self.gradient / self.n
        return self.rule.printed_noise(epsilon=self.epsilon, delta=self.delta, steps=steps, sensitivity=given)

    def moment(self, steps: int, d: int) -> float:
        return second_moment(steps=steps, lipschitz=self.gradient, d=d, noise_stddev=self.noise(steps))


_Prescribed = tuple[int, float, RiskBound, float]
"""Steps, step size, what they prove, and what is printed."""


def _theorem_2_6(p: _Printed) -> _Prescribed:
    steps = p.whole((p.epsilon * p.n) ** 2 / p.d)
    eta, sigma = p.diameter * p.epsilon * p.n / (steps * p.gradient * math.sqrt(p.d * p.log)), p.noise(steps)
    bound = average_iterate_bound(
        steps=steps, distance=p.diameter, lipschitz=p.gradient, d=p.d, noise_stddev=sigma, step_size=eta
    )
    return steps, eta, bound, p.diameter * p.gradient * math.sqrt(p.d * p.log) / (p.epsilon * p.n)


def _theorem_4_1(p: _Printed) -> _Prescribed:
    steps = p.whole((p.epsilon * p.n) ** 2)
    bound = rank_bound(steps=steps, seminorm=p.radius, lipschitz=p.gradient, rank=p.d, noise_stddev=p.noise(steps))
    printed = p.gradient * p.radius * math.sqrt(1.0 + 2.0 * p.d * p.log) / (p.epsilon * p.n)
    return steps, p.radius / math.sqrt(steps * p.moment(steps, p.d)), bound, printed


def _shamir_zhang(p: _Printed) -> _Prescribed:
    # The best T among whole numbers spaced by 1 %, which is as good as the best to 1e-4 of the bound.
    top = math.log(min(p.most, 1e18))
    spaces = math.ceil(100.0 * top)
    grid = sorted({int(math.exp(top * i / max(1.0, spaces))) for i in range(spaces + 1)})
    steps = min(grid, key=lambda t: math.sqrt(p.moment(t, p.d) / t) * (2.0 + math.log(t)))
    bound = last_iterate_bound(
        steps=steps, diameter=p.diameter, lipschitz=p.gradient, d=p.d, noise_stddev=p.noise(steps)
    )
    printed = p.gradient * p.diameter * min(1.0, math.sqrt(p.d) / (p.epsilon * p.n))
    return steps, p.diameter / math.sqrt(p.moment(steps, p.d)), bound, printed


def _nikolov(p: _Printed) -> _Prescribed:
    steps = p.whole((p.epsilon * p.n) ** 2 / ((p.d + 1.0) * p.log))
    bound = nikolov_bound(steps=steps, radius=p.radius, d=p.d, noise_stddev=p.noise(steps))
    printed = p.radius * (math.sqrt(p.d / steps) + p.d * math.sqrt(p.log) / (p.epsilon * p.n))
    return steps, p.radius / math.sqrt(steps * p.moment(steps, p.d + 1)), bound, printed


class _Text(NamedTuple):
    """What a lecture says, what it is compared with, and how it prescribes."""

    lecture: str
    rule: str
    method: Method
    prescribe: Callable[[_Printed], _Prescribed]


_TEXTS: dict[Theorem, _Text] = {
    "theorem_2_6": _Text("Wu, lecture 13, theorem 2.6", "lemma_1_1", "average", _theorem_2_6),
    "theorem_4_1": _Text("Brown, lecture 13, theorem 4.1", "claim_3_2", "rank", _theorem_4_1),
    "shamir_zhang": _Text(
        "Razaviyayn, lecture 11, excess risk of DP-GD", "advanced_composition", "last", _shamir_zhang
    ),
    "nikolov": _Text("Nikolov, CSC2412, private gradient descent", "rho", "nikolov", _nikolov),
}
_REMARKS: dict[Theorem, str] = {
    "theorem_2_6": "the O(·) hides (9 + 1/Λ)/2; R is the diameter, where a start at the centre needs the radius only",
    "theorem_4_1": "claim 3.2 lacks a √2; its noise gives 4 rank Λ where 2 rank Λ is printed, enough noise 8",
    "shamir_zhang": "advanced composition wastes noise, the last iterate with c/√t a logarithm; use 'last_linear'",
    "nikolov": "noise by kρ + √(2kρΛ) = ε, not by the printed ≈; G = √(d+1), where the ball gives a little less",
}
