"""A lecture's prescription, run as it is printed: its T, η and σ, and the guarantee that these truly have."""

import math
from typing import TYPE_CHECKING

from privet.clipping import Declared
from privet.errors import InvalidParameter
from privet.geometry.whole_space import WholeSpace
from privet.plan import gradient_plan
from privet.problems import Problem
from privet.randomness import Random
from privet.solvers import GradientStep, Result, follow
from privet.solvers.solver import Start

if TYPE_CHECKING:
    from privet.lectures.prescriptions import LecturePrescription


def run_prescribed(
    printed: "LecturePrescription", problem: Problem, *, start: Start = None, random: Random | None = None
) -> Result:
    """Run what is printed on a problem of as many records; see `LecturePrescription.run`."""
    last, records = printed.schedule == "inverse_sqrt", printed.explicit.divisor
    gradients = printed.steps if last else printed.steps - 1
    if gradients == 0:
        raise InvalidParameter("""Expected a prescription of at least two iterates, got one: it releases the start and
            reads nothing. Use a larger budget, or more records.""")
    if printed.theorem == "theorem_4_1" and not isinstance(problem.domain, WholeSpace):
        raise InvalidParameter(f"""Expected the whole space as domain for theorem 4.1, got {problem.domain!r}: a
            projection mixes noise into the span of the records. Leave the domain out.""")
    plan = gradient_plan(
        bounding=Declared(lipschitz=printed.clip),
        noise_multiplier=printed.noise_stddev * records / printed.clip,
        steps=gradients,
        records=records,
        neighbours="replace_one",
    )
    size = printed.step_size
    update = GradientStep(step_size=(lambda t: size / math.sqrt(t)) if last else size)
    delta = printed.explicit.budget.delta
    return follow(
        plan, problem, delta=delta, update=update, release="last" if last else "average", start=start, random=random
    )
