"""The 94 values of the project's reference table (reference.json has its provenance), each computed by privet."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from privet import Budget, box, l1_ball, l2_ball
from privet.accounting.contour.integral import contour_delta
from privet.accounting.fourier.brackets import fourier_delta
from privet.accounting.pairs.mixture import MixturePair
from privet.accounting.theorems.composition import Cost, advanced
from privet.accounting.theorems.conversions import gaussian_rho, gaussian_tail, group, zcdp_epsilon, zcdp_rho
from privet.accounting.theorems.gaussian_profile import epsilon_bounds, largest_mu, profile
from privet.accounting.theorems.subsampling import SHORTCUT_LIMIT, amplified, rate_for
from privet.lectures import Finding, lectures_prescription, rule
from privet.losses import AbsoluteLoss
from privet.theory import (
    average_iterate_bound,
    exact_noise,
    exponential_mechanism_bound,
    gradient_descent_bound,
    last_iterate_bound,
    last_iterate_steps,
    logistic_lipschitz,
    noise_to_signal,
    plan_for,
    rank_bound,
    uniform_convergence_sample_size,
)

TABLE = json.loads((Path(__file__).parent / "reference.json").read_text(encoding="utf-8"))
ENTRIES = {entry["id"]: entry for entry in TABLE["entries"]}
RULES = {
    "sigma_lemma1.1": "lemma_1_1",
    "sigma_claim3.2": "claim_3_2",
    "lambda_claim2.3": "basic_composition",
    "sigma_advcomp": "advanced_composition",
    "sigma_rho_noise": "rho",
}


def numbers(entry: dict[str, Any]) -> dict[str, Any]:
    """The parameters, with exact decimals read as floats."""
    return {name: float(value) if isinstance(value, str) else value for name, value in entry["params"].items()}


def run(p: dict[str, Any]) -> dict[str, Any]:
    return {"epsilon": p["eps"], "delta": p["delta"], "steps": p["T"], "sensitivity": 2 * p["G"] / p["n"]}


def budget(p: dict[str, Any]) -> Budget:
    return Budget(epsilon=p["eps"], delta=p["delta"])


def sampled(kind: str, p: dict[str, Any]) -> float:
    """δ of one sampled Gaussian step in one direction: P(L > ε) − e^ε Q(L > ε)."""
    there, back = MixturePair(p["q"], 1 / p["sigma"], kind).above(np.array([p["eps"]]))  # type: ignore[arg-type]
    return float(there[0] - math.exp(p["eps"]) * back[0])


def tilted_median(s: float) -> float:
    """P that a tilt b ~ N(0, s²) makes the second of two points the minimiser of their mean distance."""
    sides = [
        float(AbsoluteLoss().derivative(np.array([w]), np.array([x]))[0]) for w in (50.0, 150.0) for x in (0.0, 100.0)
    ]
    left, right = -(sides[0] + sides[1]), -(sides[2] + sides[3])  # slopes of 2 × mean distance about the second point
    return float(ndtr(left / s) - ndtr(right / s))


COMPUTED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "sigma_exact": lambda p: exact_noise(**run(p)),
    "mu_exact": lambda p: largest_mu(p["eps"], p["delta"]),
    "delta_gauss": lambda p: profile(p["mu"], p["eps"]),
    "eps_gauss": lambda p: epsilon_bounds(p["mu"], p["delta"])[1],
    "sigma_classical": lambda p: rule("classical").printed_noise(epsilon=p["eps"], delta=p["delta"], sensitivity=1.0),
    "true_delta_of_claim3.2": lambda p: profile(rule("claim_3_2").mu(epsilon=p["eps"], delta=p["delta"]), p["eps"]),
    "true_eps_of_claim3.2": lambda p: rule("claim_3_2").true_epsilon(epsilon=p["eps"], delta=p["delta"]),
    "true_delta_of_lemma1.1": lambda p: profile(rule("lemma_1_1").mu(epsilon=p["eps"], delta=p["delta"]), p["eps"]),
    "amplified_eps": lambda p: amplified(p["eps"], 0.0, p["q"])[0],
    "inverse_amplification": lambda p: rate_for(p["eps"], target=p["eps_prime"]),
    "simplification_threshold": lambda p: SHORTCUT_LIMIT,
    "group_delta": lambda p: group(p["eps"], p["delta"], p["k"])[1],
    "zcdp_eps": lambda p: zcdp_epsilon(p["rho"], delta=p["delta"]),
    "zcdp_rho_of_eps": lambda p: zcdp_rho(p["eps"], delta=p["delta"]),
    "rho_gauss_zcdp": lambda p: gaussian_rho(math.sqrt(p["T"]) * p["Delta"] / p["sigma"]),
    "proj_l1": lambda p: l1_ball(radius=p["radius"]).project(np.array(p["v"], dtype=float)).tolist(),
    "proj_l2": lambda p: l2_ball(radius=p["radius"]).project(np.array(p["v"], dtype=float)).tolist(),
    "proj_cube": lambda p: box(low=-1.0, high=1.0, size=3).project(np.array(p["v"], dtype=float)).tolist(),
    "psg_remove": lambda p: sampled("remove", p),
    "psg_add": lambda p: sampled("add", p),
    "plrv_tail": lambda p: gaussian_tail(p["mu"], epsilon=p["eps"]),
    "thm2.1_bound": lambda p: gradient_descent_bound(steps=p["T"], distance=p["R"], lipschitz=p["G"]).value,
    "thm2.6_bound": lambda p: (
        lectures_prescription(
            "theorem_2_6",
            n=p["n"],
            d=p["d"],
            radius=p["R"],
            diameter=p["R"],
            lipschitz=p["G"],
            budget=budget(p),
        ).bound.value
    ),
    "excess_bound": lambda p: (
        average_iterate_bound(
            steps=p["T"], distance=p["R"], lipschitz=p["G"], d=p["d"], noise_stddev=exact_noise(**run(p))
        ).value
    ),
    "shamir_zhang": lambda p: (
        last_iterate_bound(steps=p["T"], diameter=p["D"], lipschitz=p["G"], d=1, noise_stddev=0.0).value
    ),
    "lastiter_T_star": lambda p: last_iterate_steps(
        noise_to_signal(n=p["n"], d=p["d"], budget=budget(p), neighbours="replace_one")
    ),
    "floor_bound": lambda p: math.sqrt(noise_to_signal(n=p["n"], d=p["d"], budget=budget(p), neighbours="replace_one")),
    "output_perturbation_bound": lambda p: (
        plan_for(
            n=p["n"],
            d=p["d"],
            radius=p["D"],
            lipschitz=p["L"],
            budget=budget(p),
            neighbours="replace_one",
            method="output_perturbation",
        ).excess_risk
    ),
    "exp_mech_bound": lambda p: (
        exponential_mechanism_bound(
            diameter=p["R"], lipschitz=p["G"], d=p["d"], exponent=p["eps"] * p["n"] / (2 * p["R"] * p["G"])
        ).value
    ),
    "rank_bound": lambda p: (
        rank_bound(
            steps=p["T"],
            seminorm=p["theta"],
            lipschitz=p["L"],
            rank=p["r"],
            noise_stddev=exact_noise(**run(p | {"G": p["L"]})),
        ).value
    ),
    "logistic_lipschitz_on_ball": lambda p: logistic_lipschitz(d=p["d"], radius=p["R"]),
    "lipschitz_cube": lambda p: logistic_lipschitz(d=p["d"]),
    "uniform_convergence_n": lambda p: uniform_convergence_sample_size(
        concepts=p["C"], accuracy=p["alpha"], failure_probability=p["beta"]
    ),
    "median_failure_prob": lambda p: tilted_median(p["s"]),
}
ELSEWHERE = ("advcomp_eps", "nikolov_eps", "avg_leak_ratio", "psg2_")
PLAIN = [id for id in ENTRIES if not id.startswith(ELSEWHERE)]


def computed(id: str) -> Any:
    """What privet makes of an entry."""
    p = numbers(ENTRIES[id])
    for prefix, name in RULES.items():
        if id.startswith(prefix):
            return rule(name).printed_noise(**run(p))
    name = max((name for name in COMPUTED if id.startswith(name)), key=len)
    return COMPUTED[name](p)


def test_the_table_is_whole() -> None:
    """94 entries with unique ids, a formula each, and a note of where they come from."""
    assert len(TABLE["entries"]) == len(ENTRIES) == 94
    assert all(entry["formula"] for entry in TABLE["entries"])
    assert "mpmath" in TABLE["note"]


@pytest.mark.parametrize("id", PLAIN)
def test_privet_meets_the_reference(id: str) -> None:
    """To 12 digits: all that is left are roundings to the safe side; zeros are zeros."""
    assert computed(id) == pytest.approx(ENTRIES[id]["value"], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("id", [id for id in ENTRIES if id.startswith("advcomp_eps")])
def test_advanced_composition_meets_the_reference_or_does_better(id: str) -> None:
    """The formula, or basic composition where that is smaller."""
    p = numbers(ENTRIES[id])
    found = advanced([Cost(p["eps"], 0.0, p["T"])], slack=p["delta_prime"])[0]
    assert found == pytest.approx(min(ENTRIES[id]["value"], p["T"] * p["eps"]), rel=1e-13)


@pytest.mark.parametrize("id", [id for id in ENTRIES if id.startswith("psg2_")])
def test_two_sampled_steps_bracket_the_reference(id: str) -> None:
    """The certified bracket holds the value, and its middle is the value to 9 digits or more."""
    p = numbers(ENTRIES[id])
    steps = [(MixturePair(p["q"], 1 / p["sigma"], id.split("_")[1]), p["T"])]  # type: ignore[arg-type]
    low, high = contour_delta(steps, p["eps"]) or fourier_delta(steps, p["eps"])
    value = ENTRIES[id]["value"]
    assert low * (1 - 1e-14) <= value <= high * (1 + 1e-14)
    assert (low + high) / 2 == pytest.approx(value, rel=1e-9)


def test_nikolovs_epsilon_meets_the_reference() -> None:
    """nikolov_eps: the rule asked for that epsilon gives back μ² = kρ."""
    p = numbers(ENTRIES["nikolov_eps"])
    mu = rule("rho").mu(epsilon=ENTRIES["nikolov_eps"]["value"], delta=p["delta"], steps=p["k"])
    assert mu**2 == pytest.approx(p["k"] * p["rho"], rel=1e-12)


def test_leak_of_the_average_meets_the_reference(finding: Callable[[str], Finding]) -> None:
    """avg_leak_ratio: how the library's average of 100 iterates weighs the noisy gradients."""
    assert finding("10").numbers["average_of_all"] == pytest.approx(ENTRIES["avg_leak_ratio"]["value"], rel=1e-13)
