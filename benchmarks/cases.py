"""What is priced: the panel (true values known), hard cases by name, and random settings.

Noise is in units of the clip everywhere, as in privet. The panel states fixed-size batches in units of the
replace-one sensitivity of a sum, which is 2·clip; `load_panel` converts.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RELATIONS = {"add_or_remove_one": "add_remove", "replace_one": "replace_one", "zero_out": "zero_out"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """`steps` equal steps. `rate` is 1 without sampling; `batch` and `records` are set for fixed-size batches."""

    kind: str  # "gaussian" (sampled by Poisson if rate < 1), "fixed_size" or "laplace"
    noise: float | None  # stddev or Laplace scale ÷ clip; None where the query asks for it
    steps: int
    rate: float = 1.0
    batch: int = 0
    records: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One question: exactly one of epsilon, delta and the noise is missing from it."""

    name: str
    neighbours: str
    phases: tuple[Phase, ...]
    asks: str  # "epsilon", "delta" or "noise"
    epsilon: float | None = None
    delta: float | None = None
    lower: float | None = None  # of the true answer, where known
    upper: float | None = None

    def with_noise(self, noise: float) -> Case:
        """The same run with all unknown noise set to `noise`, and known noise multiplied by it."""
        phases = tuple(replace(p, noise=noise if p.noise is None else noise * p.noise) for p in self.phases)
        return replace(self, phases=phases)

    def nudged(self, k: int) -> Case:
        """A question that differs in the ninth digit, so that no cache can answer it."""
        if self.asks == "noise":
            assert self.epsilon is not None
            return replace(self, epsilon=self.epsilon * (1 + k * 1e-9))
        return self.with_noise(1 + k * 1e-9)

    def calibrating(self) -> Case | None:
        """The inverse question, whose true answer is this run's own noise (or 1, a factor, if it has phases)."""
        if self.truth is None or self.asks != "epsilon" or self.relative_width > 1e-6:
            return None
        single = len(self.phases) == 1
        noise = (self.phases[0].noise if single else None) or 1.0
        phases = tuple(replace(p, noise=None if single else p.noise) for p in self.phases)
        return replace(
            self, name=f"{self.name}, noise", phases=phases, asks="noise", epsilon=self.truth, lower=noise, upper=noise
        )

    @property
    def relative_width(self) -> float:
        """How well the true answer is known."""
        return 0.0 if self.lower is None or self.upper is None else (self.upper - self.lower) / self.upper

    @property
    def truth(self) -> float | None:
        """The middle of the known interval."""
        return None if self.lower is None or self.upper is None else (self.lower + self.upper) / 2

    @property
    def is_dpsgd(self) -> bool:
        """Whether every phase is Gaussian noise on Poisson batches."""
        return all(p.kind == "gaussian" and p.rate < 1 for p in self.phases)

    @property
    def is_ordinary(self) -> bool:
        """Whether the five-millisecond bar applies: Gaussian noise of at least 0.6 clip, at least one visit."""
        return all(p.kind == "gaussian" and (p.noise or 1) >= 0.6 and p.rate * p.steps >= 1 for p in self.phases)

    def describe(self) -> str:
        """The run and the question, in a table cell."""
        words = []
        for p in self.phases:
            sampled = f", {p.batch} of {p.records}" if p.batch else f", q={p.rate:.4g}" if p.rate < 1 else ""
            noise = "?" if p.noise is None else f"{p.noise:.4g}"
            words.append(f"{p.kind}({noise}{sampled})×{p.steps:g}")
        given = [f"ε={self.epsilon:g}"] if self.epsilon is not None else []
        given += [f"δ={self.delta:.3g}"] if self.delta is not None else []
        return " + ".join(words) + " at " + ", ".join(given)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def from_dict(fields: dict[str, Any]) -> Case:
    """The case that `Case.to_dict` wrote."""
    return Case(**{**fields, "phases": tuple(Phase(**p) for p in fields["phases"])})


def load_panel() -> list[Case]:
    """The panel next to the repository if there is one, else the copy kept here."""
    shared = HERE.parent.parent / "shared" / "panel.json"
    text = (shared if shared.is_file() else HERE / "panel.json").read_text(encoding="utf-8")
    return [_panel_case(c) for c in json.loads(text)["cases"]]


def _panel_case(c: dict[str, Any]) -> Case:
    query, truth = c["query"], c["truth"]
    return Case(
        name=c["name"],
        neighbours=RELATIONS[c["neighbours"]],
        phases=tuple(_panel_phase(m) for m in c["mechanism"]),
        asks={"sigma": "noise"}.get(query["type"], query["type"]),
        epsilon=query.get("epsilon"),
        delta=query.get("delta"),
        lower=truth["lower"],
        upper=truth["upper"],
    )


def _panel_phase(m: dict[str, Any]) -> Phase:
    if m["kind"] == "wor_gaussian":
        return Phase(kind="fixed_size", noise=2 * m["sigma"], steps=m["T"], batch=m["batch"], records=m["n"])
    if m["kind"] == "laplace":
        return Phase(kind="laplace", noise=m["b"], steps=m["T"])
    return Phase(kind="gaussian", noise=m["sigma"], steps=m["T"], rate=m.get("q", 1.0))


def hard_cases() -> list[Case]:
    """The corners of the range that privet promises, each by name; true values are not known in advance."""

    def run(name: str, *phases: Phase, delta: float = 1e-6, neighbours: str = "add_remove") -> Case:
        return Case(name=name, neighbours=neighbours, phases=phases, asks="epsilon", delta=delta)

    def sgd(noise: float, rate: float, steps: int) -> Phase:
        return Phase(kind="gaussian", noise=noise, rate=rate, steps=steps)

    def laplace(scale: float, steps: int) -> Phase:
        return Phase(kind="laplace", noise=scale, steps=steps)

    return [
        run("dp_accounting_below_truth", sgd(1.0, 0.01, 10_000), delta=1e-12),
        run("opacus_prv_below_truth", sgd(20.0, 0.001, 1_000_000), delta=1e-12),
        run("nearly_atomic", sgd(0.3, 1e-4, 1_000), delta=1e-5),
        run("nearly_atomic_many", sgd(0.25, 1e-5, 100_000), delta=1e-7),
        run("nearly_atomic_few", sgd(0.2, 1e-3, 100), delta=1e-5),
        run("tiny_rate", sgd(0.7, 1e-6, 1_000_000), delta=1e-9),
        run("rate_one_half", sgd(8.0, 0.5, 1_000), delta=1e-8),
        run("full_batch", sgd(30.0, 1.0, 1_000), delta=1e-10),
        run("much_noise", sgd(100.0, 0.1, 100_000), delta=1e-8),
        run("little_noise", sgd(0.4, 0.01, 100), delta=1e-6),
        run("delta_1e-18", sgd(1.0, 0.01, 5_000), delta=1e-18),
        run("epsilon_near_100", sgd(0.5, 0.05, 1_950), delta=1e-6),
        run("steps_1e9", sgd(2.0, 1e-5, 10**9), delta=1e-8),
        run("one_step", sgd(1.0, 1e-4, 1), delta=1e-8),
        run("one_step_large_rate", sgd(0.5, 0.3, 1), delta=1e-5),
        run("unlike_phases", sgd(0.6, 1e-4, 5_000), sgd(50.0, 0.5, 1_000), sgd(2.0, 0.01, 100), delta=1e-7),
        run("laplace_only", laplace(10.0, 50), delta=1e-6),
        run("laplace_once", laplace(1.0, 1), delta=1e-6),
        run("laplace_unlike", laplace(0.5, 2), laplace(100.0, 1_000), delta=1e-8),
        run("laplace_and_sgd", laplace(5.0, 5), sgd(1.1, 0.01, 1_000), delta=1e-6),
        run("replace_one_sgd", sgd(1.0, 0.005, 4_000), delta=1e-6, neighbours="replace_one"),
        run(
            "replace_one_fixed_size",
            Phase(kind="fixed_size", noise=2.2, steps=3_000, batch=256, records=60_000),
            neighbours="replace_one",
        ),
    ]


def random_cases(count: int, *, seed: int) -> Iterator[Case]:
    """`count` Poisson-Gaussian runs over the whole promised range, those with epsilon far above 100 drawn again."""
    draw = random.Random(seed)
    for index in range(count):
        while True:
            phase = Phase(
                kind="gaussian",
                noise=_log_uniform(draw, 0.2, 100),
                rate=_log_uniform(draw, 1e-6, 1),
                steps=round(_log_uniform(draw, 1, 1e6)),
            )
            delta = _log_uniform(draw, 1e-18, 1e-2)
            if renyi_epsilon(phase, delta) <= 110:
                break
        name = f"random_{index:03d}"
        yield Case(name=name, neighbours="add_remove", phases=(phase,), asks="epsilon", delta=delta)


def _log_uniform(draw: random.Random, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def renyi_epsilon(phase: Phase, delta: float) -> float:
    """A loose upper bound on epsilon, computed without privet, to keep the draws in range.

    Theorem: Mironov, Talwar and Zhang 2019 (arXiv 1908.10530), section 3.3, at whole orders; Canonne, Kamath and
    Steinke 2020 (arXiv 2004.00010), proposition 12, for the conversion.
    """
    assert phase.noise is not None
    q, sigma, best = phase.rate, phase.noise, math.inf
    for order in (2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256):
        terms = [
            math.lgamma(order + 1)
            - math.lgamma(k + 1)
            - math.lgamma(order - k + 1)
            + k * math.log(q)
            + ((order - k) * math.log1p(-q) if q < 1 else (0.0 if k == order else -math.inf))
            + k * (k - 1) / (2 * sigma**2)
            for k in range(order + 1)
        ]
        top = max(terms)
        moment = top + math.log(math.fsum(math.exp(t - top) for t in terms))
        conversion = math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        best = min(best, phase.steps * moment / (order - 1) + conversion)
    return max(best, 0.0)
