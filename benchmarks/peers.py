"""The peers, each asked through its own public interface, and privet asked in the same way.

An `Adapter` answers a `Case` with a number, or raises `Unsupported` when the library has no such question.
Libraries are imported inside the functions, so that each runs in a process of its own that holds nothing else.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from cases import Case, Phase

FINE_GRID = 1e-5


class Unsupported(Exception):
    """The library offers no way to ask this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Adapter:
    """How one library, at one setting, is asked."""

    label: str
    settings: str
    answer: Callable[[Case], float]
    promises: bool = True  # whether what it returns is meant as an upper bound


def _need(condition: bool, reason: str) -> None:
    if not condition:
        raise Unsupported(reason)


def _delta(case: Case) -> float:
    assert case.delta is not None
    return case.delta


# ---- privet ---------------------------------------------------------------------------------------------------------


def privet_event(case: Case) -> Any:
    """The case as a privet event."""
    events = importlib.import_module("privet.accounting")
    parts = []
    for p in case.phases:
        if p.kind == "laplace":
            one = events.Laplace(scale=p.noise)
        else:
            one = events.Gaussian(noise_multiplier=p.noise)
        if p.kind == "fixed_size":
            one = one.without_replacement(batch=p.batch, records=p.records)
        elif p.rate < 1:
            one = one.poisson(rate=p.rate)
        parts.append(one * p.steps)
    run = parts[0]
    for part in parts[1:]:
        run = run + part
    return run


def privet_answer(case: Case, *, accountant: str = "auto") -> float:
    """The certified upper bound, or the noise that `calibrate` returns."""
    accounting = importlib.import_module("privet.accounting")
    if case.asks == "noise":
        _need(accountant == "auto", "calibration chooses its accountant")
        family = lambda noise: privet_event(case.with_noise(noise))  # noqa: E731  # one line, used once
        noise = accounting.calibrate(family, epsilon=case.epsilon, delta=_delta(case), neighbours=case.neighbours)
        return float(noise)
    how = {"neighbours": case.neighbours, "accountant": accountant}
    if case.asks == "delta":
        return float(accounting.delta(privet_event(case), epsilon=case.epsilon, **how))
    return float(accounting.epsilon(privet_event(case), delta=_delta(case), **how))


def privet_bounds(case: Case, *, accountant: str = "auto") -> tuple[float, float]:
    """The certified bracket of the answer; for noise, the bracket of epsilon at the noise that is returned."""
    accounting = importlib.import_module("privet.accounting")
    how: dict[str, Any] = {"neighbours": case.neighbours, "accountant": accountant}
    if case.asks == "noise":
        event = privet_event(case.with_noise(privet_answer(case)))
        lower, upper = accounting.bounds(event, delta=_delta(case), **how)
    elif case.asks == "delta":
        lower, upper = accounting.bounds(privet_event(case), epsilon=case.epsilon, **how)
    else:
        lower, upper = accounting.bounds(privet_event(case), delta=_delta(case), **how)
    return float(lower), float(upper)


# ---- dp_accounting --------------------------------------------------------------------------------------------------


def _google_event(dp: Any, case: Case) -> Any:
    def one(p: Phase) -> Any:
        if p.kind == "laplace":
            return dp.LaplaceDpEvent(p.noise)
        if p.kind == "fixed_size":  # its unit is the replace-one sensitivity, which is 2·clip
            assert p.noise is not None
            return dp.SampledWithoutReplacementDpEvent(p.records, p.batch, dp.GaussianDpEvent(p.noise / 2))
        gaussian = dp.GaussianDpEvent(p.noise)
        return dp.PoissonSampledDpEvent(p.rate, gaussian) if p.rate < 1 else gaussian

    return dp.ComposedDpEvent([dp.SelfComposedDpEvent(one(p), p.steps) for p in case.phases])


def google(case: Case, *, method: str, grid: float = 1e-4) -> float:
    """dp_accounting's answer by its PLD or its RDP accountant."""
    dp = importlib.import_module("dp_accounting")
    relation = {"add_remove": "ADD_OR_REMOVE_ONE", "replace_one": "REPLACE_ONE", "zero_out": "REPLACE_SPECIAL"}
    neighbours = dp.NeighboringRelation[relation[case.neighbours]]
    if method == "pld":
        fresh = partial(dp.pld.PLDAccountant, neighbours, grid)
    else:
        fresh = partial(dp.rdp.RdpAccountant, None, neighbours)
    probe = case.with_noise(1.0) if case.asks == "noise" else case
    _need(fresh().supports(_google_event(dp, probe)), "no such event")
    if case.asks == "noise":
        found = dp.calibrate_dp_mechanism(
            fresh, lambda noise: _google_event(dp, case.with_noise(noise)), case.epsilon, _delta(case)
        )
        return float(found)
    accountant = fresh().compose(_google_event(dp, case))
    return float(accountant.get_delta(case.epsilon) if case.asks == "delta" else accountant.get_epsilon(_delta(case)))


# ---- prv-accountant -------------------------------------------------------------------------------------------------


def microsoft(case: Case, *, eps_error: float) -> float:
    """prv_accountant's upper bound."""
    prv = importlib.import_module("prv_accountant")
    variables = importlib.import_module("prv_accountant.privacy_random_variables")
    _need(case.neighbours == "add_remove", "add/remove only")
    if case.asks == "noise":
        _need(case.is_dpsgd and len(case.phases) == 1, "calibrates Poisson-sampled Gaussians only")
        dpsgd = importlib.import_module("prv_accountant.dpsgd")
        p = case.phases[0]
        return float(dpsgd.find_noise_multiplier(p.rate, p.steps, case.epsilon, _delta(case), eps_error))

    def one(p: Phase) -> Any:
        assert p.noise is not None
        _need(p.kind != "fixed_size", "no such event")
        if p.kind == "laplace":
            return variables.LaplaceMechanism(mu=1 / p.noise)
        if p.rate < 1:
            return variables.PoissonSubsampledGaussianMechanism(sampling_probability=p.rate, noise_multiplier=p.noise)
        return variables.GaussianMechanism(noise_multiplier=p.noise)

    counts = [p.steps for p in case.phases]
    accountant = prv.PRVAccountant(
        prvs=[one(p) for p in case.phases],
        max_self_compositions=counts,
        eps_error=eps_error,
        delta_error=(case.delta if case.delta is not None else 1e-6) / 1000,
    )
    if case.asks == "delta":
        return float(accountant.compute_delta(case.epsilon, counts)[2])
    return float(accountant.compute_epsilon(_delta(case), counts)[2])


# ---- opacus ---------------------------------------------------------------------------------------------------------


def opacus(case: Case, *, method: str) -> float:
    """Opacus' answer by one of its accountants, "rdp", "prv" or "gdp"."""
    accountants = importlib.import_module("opacus.accountants")
    _need(case.neighbours == "add_remove", "add/remove only")
    _need(case.asks != "delta", "answers epsilon only")
    _need(all(p.kind == "gaussian" for p in case.phases), "Gaussian noise only")
    if case.asks == "noise":
        _need(len(case.phases) == 1, "calibrates one phase only")
        utils = importlib.import_module("opacus.accountants.utils")
        p = case.phases[0]
        found = utils.get_noise_multiplier(
            target_epsilon=case.epsilon,
            target_delta=_delta(case),
            sample_rate=p.rate,
            steps=p.steps,
            accountant=method,
            epsilon_tolerance=1e-3,
        )
        return float(found)
    _need(method != "gdp" or len(case.phases) == 1, "one phase only")
    accountant = accountants.create_accountant(mechanism=method)
    accountant.history = [(p.noise, p.rate, p.steps) for p in case.phases]
    return float(accountant.get_epsilon(delta=_delta(case)))


ADAPTERS: dict[str, Adapter] = {
    "privet": Adapter(label="privet", settings="auto", answer=privet_answer),
    "privet_fourier": Adapter(
        label="privet, Fourier", settings="accountant='fourier'", answer=partial(privet_answer, accountant="fourier")
    ),
    "google_pld": Adapter(
        label="dp_accounting PLD", settings="default grid, 1e-4", answer=partial(google, method="pld")
    ),
    "google_pld_fine": Adapter(
        label="dp_accounting PLD, fine",
        settings=f"value_discretization_interval={FINE_GRID:g}",
        answer=partial(google, method="pld", grid=FINE_GRID),
    ),
    "google_rdp": Adapter(label="dp_accounting RDP", settings="default orders", answer=partial(google, method="rdp")),
    "microsoft": Adapter(
        label="prv_accountant",
        settings="eps_error=0.01, delta_error=δ/1000, its upper bound",
        answer=partial(microsoft, eps_error=0.01),
    ),
    "microsoft_fine": Adapter(
        label="prv_accountant, fine",
        settings="eps_error=0.001, delta_error=δ/1000, its upper bound",
        answer=partial(microsoft, eps_error=0.001),
    ),
    "opacus_prv": Adapter(label="opacus PRV", settings="default", answer=partial(opacus, method="prv")),
    "opacus_rdp": Adapter(label="opacus RDP", settings="default orders", answer=partial(opacus, method="rdp")),
    "opacus_gdp": Adapter(
        label="opacus GDP",
        settings="a central limit, not a bound",
        answer=partial(opacus, method="gdp"),
        promises=False,
    ),
}
PEERS = tuple(name for name in ADAPTERS if not name.startswith("privet"))
FAST_PEERS = ("google_pld", "google_rdp", "microsoft", "opacus_prv", "opacus_rdp", "opacus_gdp")
