"""Every algorithm of the lectures, run on a problem with its lecture's own parameters, in one line.

Where a lecture prescribes steps, step size and noise, these are taken, up to `max_steps`; where it leaves one of them
open, the caller gives it or the lemma's best one is used. The guarantee is what the run truly has: where the printed
noise is too little, epsilon is above the budget, and says so.
"""

import math
from typing import Any, Literal, get_args

from privet.clipping import Clip, Declared
from privet.errors import InvalidParameter
from privet.lectures.noise_rules import rule
from privet.lectures.prescriptions import Theorem, lectures_prescription
from privet.plan import gradient_plan
from privet.privacy import Budget
from privet.problems import Problem, facts_of
from privet.randomness import Random
from privet.sampling import OneRecord
from privet.solvers import (
    GradientStep,
    Result,
    exponential_mechanism,
    follow,
    objective_perturbation,
    output_perturbation,
)
from privet.solvers.noisy_descent import proven_lipschitz

Algorithm = Literal[
    "wu_noisy_descent",
    "wu_dp_sgd",
    "brown_noisy_descent",
    "brown_dp_gd",
    "razaviyayn_dp_gd",
    "nikolov_descent",
    "exponential_mechanism",
    "output_perturbation",
    "objective_perturbation",
]
"""What `run_lecture` runs; the name begins with the lecturer where one lecture alone prescribes it."""

_PRINTED: dict[str, Theorem] = {
    "wu_noisy_descent": "theorem_2_6",
    "brown_noisy_descent": "theorem_4_1",
    "razaviyayn_dp_gd": "shamir_zhang",
    "nikolov_descent": "nikolov",
}


def run_lecture(
    algorithm: Algorithm,
    problem: Problem,
    *,
    budget: Budget,
    max_steps: int = 1_000,
    radius: float | None = None,
    rank: int | None = None,
    clip: float | None = None,
    step_size: float | None = None,
    candidates: Any = None,
    random: Random | None = None,
) -> Result:
    """Run an algorithm of the lectures on a problem, one record replaced, with the lecture's own parameters.

    Parameters
    ----------
    algorithm :
        "wu_noisy_descent": algorithm 2 with theorem 2.6 (claim 31);
        "wu_dp_sgd": section 1.3, one record a step, σ = 2G ln(1/δ)/ε, T = n², the best η of lemma 2.7;
        "brown_noisy_descent": algorithm 1 with claim 3.2 and theorem 4.1 (claim 49), for a problem without domain;
        "brown_dp_gd": lecture 4, clipped gradients, noise by basic composition, all iterates released, T = `max_steps`;
        "razaviyayn_dp_gd": c/√t, advanced composition, the last iterate (claims 86 to 89);
        "nikolov_descent": the ρ rule; the problem's last feature is the appended 1 (claims 115 to 117);
        "exponential_mechanism" (claim 32), with `candidates` as in `exponential_mechanism`;
        "output_perturbation" (claim 77); "objective_perturbation" (claim 81)
    problem : what is minimised; public facts of it set radius and gradient bound
    budget : what the lecture's formula is given; the guarantee may differ
    max_steps : a cap on T, as a lecture's T grows like n²
    radius : public bound on the distance of the minimiser from the start, where the domain does not give it
    rank : for "brown_noisy_descent"; the number of coefficients by default
    clip : for "brown_dp_gd", 1 by default; elsewhere a gradient bound, if the problem proves none
    step_size : for "brown_dp_gd", which leaves it open, 1 by default

    Examples
    --------
    >>> from privet import glm, l2_ball
    >>> problem = glm("logistic", [[0.6, 0.8]] * 400, [1] * 400, row_norm=1.0, domain=l2_ball(radius=1))
    >>> for name in ("wu_noisy_descent", "brown_dp_gd", "razaviyayn_dp_gd", "output_perturbation"):
    ...     result = run_lecture(name, problem, budget=Budget(epsilon=1, delta=1e-5), max_steps=20)
    ...     print(f"{name:20} epsilon {result.guarantee.epsilon:.3f}")
    wu_noisy_descent     epsilon 0.738
    brown_dp_gd          epsilon 0.127
    razaviyayn_dp_gd     epsilon 0.059
    output_perturbation  epsilon 1.000
    """
    if algorithm not in get_args(Algorithm):
        raise InvalidParameter(f"""Expected one of {", ".join(get_args(Algorithm))}, got {algorithm!r}: the lectures
            have no such algorithm. Use one of them.""")
    if algorithm == "exponential_mechanism":
        return exponential_mechanism(problem, epsilon=budget.epsilon, candidates=candidates, random=random)
    if algorithm == "output_perturbation":
        return output_perturbation(problem, budget=budget, random=random)
    if algorithm == "objective_perturbation":
        return objective_perturbation(problem, budget=budget, radius=radius, random=random)
    if algorithm == "brown_dp_gd":
        return _clipped_descent(problem, budget, max_steps, clip or 1.0, step_size or 1.0, random)
    reach = problem.domain.radius if radius is None else radius
    if algorithm == "wu_dp_sgd":
        return _one_record(problem, budget, max_steps, reach, clip, random)
    facts = facts_of(problem, "replace_one")
    nikolov, glm = algorithm == "nikolov_descent", algorithm == "brown_noisy_descent"
    printed = lectures_prescription(
        _PRINTED[algorithm],
        n=problem.records,
        d=facts.dimension - 1 if nikolov else facts.dimension,
        radius=reach,
        lipschitz=None if nikolov else proven_lipschitz(facts, clip),
        budget=budget,
        rank=(rank or facts.dimension) if glm else None,
        max_steps=max_steps,
    )
    return printed.run(problem, random=random)


def _clipped_descent(
    problem: Problem, budget: Budget, steps: int, clip: float, step_size: float, random: Random | None
) -> Result:
    """Brown, lecture 4, section 2.2, with the noise of claim 2.3: T steps of (ε/T, δ/T) each."""
    given = rule("basic_composition").printed_noise(
        epsilon=budget.epsilon, delta=budget.delta, steps=steps, sensitivity=2.0 * clip / problem.records
    )
    plan = gradient_plan(
        bounding=Clip(clip=clip),
        noise_multiplier=given * problem.records / clip,
        steps=steps,
        records=problem.records,
        neighbours="replace_one",
    )
    return follow(
        plan, problem, delta=budget.delta, update=GradientStep(step_size=step_size), release="all", random=random
    )


def _one_record(
    problem: Problem, budget: Budget, max_steps: int, radius: float, clip: float | None, random: Random | None
) -> Result:
    """Wu, section 1.3: σ = 2G ln(1/δ)/ε on the gradient of one record, T = n²; η = R/√(T(G² + dσ²)) of lemma 2.7."""
    facts = facts_of(problem, "replace_one")
    gradient, steps = proven_lipschitz(facts, clip), min(max_steps, problem.records**2)
    multiplier = -2.0 * math.log(budget.delta) / budget.epsilon
    moment = gradient**2 * (1.0 + facts.dimension * multiplier**2)
    plan = gradient_plan(
        bounding=Declared(lipschitz=gradient),
        sampling=OneRecord(),
        noise_multiplier=multiplier,
        steps=steps,
        records=problem.records,
        neighbours="replace_one",
    )
    update = GradientStep(step_size=radius / math.sqrt((steps + 1) * moment))
    return follow(plan, problem, delta=budget.delta, update=update, release="average", random=random)
