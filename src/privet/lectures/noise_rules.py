"""The lectures' rules for how much Gaussian noise a run of gradient descent needs, each with its range of truth.

`steps` noisy gradients of l2 sensitivity Δ (for an average of n gradients of norm at most G under "replace_one":
Δ = 2G/n), each with noise of standard deviation σ, are together exactly one Gaussian release with μ = √steps Δ/σ. So
a rule σ = Δ × m(ε, δ, steps) is true at (ε, δ, steps) exactly when √steps / m is at most the largest μ that is
(ε, δ)-private; :mod:`privet.accounting.theorems.gaussian_profile` decides that. All but the two quadratic rules have
μ = cε, and are true up to one `frontier` and false beyond: along μ = cε the exact δ(ε) only grows, since its
derivative is φ(u) (c − m(1/c + cε/2)) with u = ε/μ − μ/2, and Mills' ratio m(x) = Φ(−x)/φ(x) is below 1/x. Logs are
natural.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from privet.accounting.numerics import bracketed_root, upward
from privet.accounting.theorems.gaussian_profile import delta_bounds, epsilon_bounds
from privet.errors import InvalidParameter, RuleOutOfRange
from privet.theory.least_noise import check_run, exact_noise


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A calibration rule as printed, which refuses to be used where it is false.

    Examples
    --------
    >>> lemma = rule("lemma_1_1")
    >>> f"{lemma.noise(epsilon=1.0, delta=1e-5, steps=100, sensitivity=2 / 1000):.6f}"
    '0.095971'
    >>> f"{lemma.frontier(delta=1e-5):.2f}", lemma.is_true(epsilon=10.0, delta=1e-5)
    ('7.97', False)
    """

    name: str
    lecture: str
    formula: str
    stated_for: str
    multiplier: Callable[[float, float, int], float]
    """σ/Δ as printed, of (epsilon, delta, steps)."""
    always: str = ""
    """The proof that the rule is true everywhere, if it is."""

    def printed_noise(self, *, epsilon: float, delta: float, steps: int = 1, sensitivity: float) -> float:
        """Return the noise standard deviation as printed, true or not: for comparison and teaching only.

        Examples
        --------
        >>> f"{rule('claim_3_2').printed_noise(epsilon=1.0, delta=1e-5, steps=100, sensitivity=0.002):.6f}"
        '0.067861'
        """
        check_run(epsilon, delta, steps, sensitivity)
        return sensitivity * self.multiplier(_positive(epsilon), delta, steps)

    def mu(self, *, epsilon: float, delta: float, steps: int = 1) -> float:
        """Return the μ = √steps Δ/σ of a run with this rule's noise, rounded upwards: what it really gives away.

        Examples
        --------
        >>> f"{rule('lemma_1_1').mu(epsilon=1.0, delta=1e-5):.6f}"
        '0.208397'
        """
        check_run(epsilon, delta, steps, 1.0)
        return upward(math.sqrt(steps) / self.multiplier(_positive(epsilon), delta, steps))

    def is_true(self, *, epsilon: float, delta: float, steps: int = 1) -> bool:
        """Return whether this rule's noise certainly is (epsilon, delta)-private for `steps` steps.

        Theorem: Balle and Wang 2018, theorem 8 (exact Gaussian profile), rounding included.

        Examples
        --------
        >>> rule("claim_3_2").is_true(epsilon=1.0, delta=1e-5, steps=100)
        False
        """
        mu = self.mu(epsilon=epsilon, delta=delta, steps=steps)
        return bool(self.always) or delta_bounds(mu, epsilon)[1] <= delta

    def true_epsilon(self, *, epsilon: float, delta: float, steps: int = 1) -> float:
        """Return the epsilon that this rule's noise, asked for `epsilon`, really gives at `delta`, rounded upwards.

        Examples
        --------
        >>> f"{rule('claim_3_2').true_epsilon(epsilon=1.0, delta=1e-5):.6f}"
        '1.109870'
        """
        return epsilon_bounds(self.mu(epsilon=epsilon, delta=delta, steps=steps), delta)[1]

    def frontier(self, *, delta: float, steps: int = 1) -> float:
        """Return the largest epsilon for which this rule is certainly true at `delta` and `steps`; ∞ if it always is.

        Examples
        --------
        >>> f"{rule('classical').frontier(delta=1e-5):.2f}", rule("rho").frontier(delta=1e-5)
        ('8.42', inf)
        """
        check_run(1.0, delta, steps, 1.0)
        if self.always:
            return math.inf

        def excess(epsilon: float) -> float:
            return delta_bounds(self.mu(epsilon=epsilon, delta=delta, steps=steps), epsilon)[1] / delta - 1.0

        high = 1.0
        while excess(high) <= 0.0:
            high *= 2.0
        low = high / 2.0
        while excess(low) > 0.0:  # as epsilon falls to 0 so does mu, and with it delta: this ends
            high, low = low, low / 2.0
        return bracketed_root(excess, low, high, tolerance=1e-13)[0]

    def noise(self, *, epsilon: float, delta: float, steps: int = 1, sensitivity: float) -> float:
        """Return this rule's noise standard deviation, rounded upwards; refuse where the rule is false.

        Parameters
        ----------
        epsilon, delta : what the whole run shall satisfy
        steps : how many noisy gradients are released
        sensitivity : l2, of one noiseless gradient, for the neighbours meant: 2G/n for an average under "replace_one"

        Raises
        ------
        RuleOutOfRange : with what the noise would really give, where the rule is true, and what to use instead

        Examples
        --------
        >>> rule("claim_3_2").noise(epsilon=1.0, delta=1e-5, steps=100, sensitivity=0.002)
        Traceback (most recent call last):
            ...
        privet.errors.RuleOutOfRange: claim_3_2 is false at epsilon = 1, delta = 1e-05, 100 step(s): its noise \
0.0678614 gives epsilon = 1.10987 at that delta (delta = 4.28435e-05 at that epsilon). At this delta it is true up to \
epsilon = 0.3244. Use exact_noise, here 0.0746126.
        """
        printed = self.printed_noise(epsilon=epsilon, delta=delta, steps=steps, sensitivity=sensitivity)
        if not self.is_true(epsilon=epsilon, delta=delta, steps=steps):
            mu = self.mu(epsilon=epsilon, delta=delta, steps=steps)
            enough = exact_noise(epsilon=epsilon, delta=delta, steps=steps, sensitivity=sensitivity)
            raise RuleOutOfRange(f"""{self.name} is false at epsilon = {epsilon:g}, delta = {delta:g}, {steps} step(s):
                its noise {printed:.6g} gives epsilon = {epsilon_bounds(mu, delta)[1]:.6g} at that delta (delta =
                {delta_bounds(mu, epsilon)[1]:.6g} at that epsilon). At this delta it is true up to epsilon =
                {self.frontier(delta=delta, steps=steps):.6g}. Use exact_noise, here {enough:.6g}.""")
        return upward(printed)


def rule(name: str) -> Rule:
    """Return the rule of that name, or say which there are.

    Examples
    --------
    >>> rule("lemma_1_1").formula
    'σ = 2G √(2T ln(1/δ)) / (nε)'
    """
    for known in RULES:
        if known.name == name:
            return known
    raise InvalidParameter(f"""Expected one of the lectures' rules ({", ".join(known.name for known in RULES)}), got
        {name!r}: there is no such rule. Use exact_noise to calibrate in earnest.""")


def _positive(epsilon: float) -> float:
    if epsilon == 0.0:
        raise InvalidParameter("""Expected epsilon above 0, got 0: the rules of the lectures divide by it. Use
            exact_noise for epsilon = 0.""")
    return epsilon


def _log(delta: float) -> float:
    return -math.log(delta)


def _quadratic(linear: float, epsilon: float) -> float:
    """Return the x >= 0 with x² + linear · x = epsilon, without cancellation."""
    return 2.0 * epsilon / (linear + math.sqrt(linear * linear + 4.0 * epsilon))


RULES: tuple[Rule, ...] = (
    Rule(
        name="lemma_1_1",
        lecture="Wu, lecture 13, lemma 1.1",
        formula="σ = 2G √(2T ln(1/δ)) / (nε)",
        stated_for="no range stated",
        multiplier=lambda e, d, t: math.sqrt(2.0 * t * _log(d)) / e,
    ),
    Rule(
        name="claim_3_2",
        lecture="Brown, lecture 13, claim 3.2",
        formula="σ = 2L √(T ln(1/δ)) / (nε)",
        stated_for="no range stated; lacks the √2 of lemma 1.1",
        multiplier=lambda e, d, t: math.sqrt(t * _log(d)) / e,
    ),
    Rule(
        name="basic_composition",
        lecture="Brown, lecture 4, claim 2.3",
        formula="λ = 2CT √(2 ln(2T/δ)) / (εn)",
        stated_for="ε <= 1, δ <= 1/2",
        multiplier=lambda e, d, t: t * math.sqrt(2.0 * (_log(d) + math.log(2.0 * t))) / e,
    ),
    Rule(
        name="advanced_composition",
        lecture="Razaviyayn, lecture 11, privacy analysis",
        formula="σ = 8L √T (ln(1.25/δ) + ln(T + 1)) / (εn)",
        stated_for="ε < 1",
        multiplier=lambda e, d, t: 4.0 * math.sqrt(t) * (_log(d) + math.log(1.25 * (t + 1))) / e,
    ),
    Rule(
        name="advanced_composition_unsimplified",
        lecture="Razaviyayn, lecture 11, privacy analysis, before the last simplification",
        formula="σ = 8L √(T ln(1/δ) ln(1.25(T + 1)/δ)) / (εn)",
        stated_for="ε < 1; prints ln(1/δ) where its proof needs ln((T + 1)/δ)",
        multiplier=lambda e, d, t: 4.0 * math.sqrt(t * _log(d) * (_log(d) + math.log(1.25 * (t + 1)))) / e,
    ),
    Rule(
        name="rho",
        lecture="Nikolov, advanced composition of the Gaussian mechanism",
        formula="kρ + √(2kρ ln(1/δ)) = ε, σ = 2G/(n√ρ)",
        stated_for="everywhere; this ρ is twice zCDP's",
        multiplier=lambda e, d, t: math.sqrt(t) / _quadratic(math.sqrt(2.0 * _log(d)), e),
        always="kρ = μ², and zCDP proves less: μ²/2 + μ √(2 ln(1/δ)) <= ε",
    ),
    Rule(
        name="rho_as_equality",
        lecture="Nikolov, the same page, its ≈ read as =",
        formula="ρ = ε² / (k ln(1/δ)), σ = 2G/(n√ρ)",
        stated_for="meant as an order of magnitude; equals claim_3_2",
        multiplier=lambda e, d, t: math.sqrt(t * _log(d)) / e,
    ),
    Rule(
        name="classical",
        lecture="Razaviyayn, lecture 11, Gaussian mechanism",
        formula="σ = Δ √(2 ln(1.25/δ)) / ε",
        stated_for="one step; no range stated, its proof has ε < 1",
        multiplier=lambda e, d, t: math.sqrt(2.0 * math.log(1.25 / d)) / e,
    ),
    Rule(
        name="single_step_log",
        lecture="Wu, lecture 13, section 1.3",
        formula="σ = 2G ln(1/δ) / ε",
        stated_for="one step whose batch is known",
        multiplier=lambda e, d, t: _log(d) / e,
    ),
    Rule(
        name="zcdp",
        lecture="Bun and Steinke 2016, for reference",
        formula="ρ + 2√(ρ ln(1/δ)) = ε, σ = (2G/n) √(T/(2ρ))",
        stated_for="everywhere",
        multiplier=lambda e, d, t: math.sqrt(t / 2.0) / _quadratic(2.0 * math.sqrt(_log(d)), e),
        always="Bun and Steinke 2016, proposition 1.3",
    ),
)
"""The rules of the lectures, and zCDP's for reference."""
