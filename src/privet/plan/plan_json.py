"""Plans as JSON text and back, unchanged: what was reserved yesterday can be run, and checked, tomorrow.

The text is `{"privet_plan": 1, "plan": {...}, "digest": "..."}`. The digest is of the plan, so that a plan that was
edited by hand is refused: its noise would no longer be what somebody signed.
"""

import hashlib
import json
import math
from dataclasses import fields
from typing import Any

from privet.accounting import from_json, to_json
from privet.clipping import Adaptive, Automatic, Clip, Declared, PerLayer
from privet.errors import InvalidParameter, PlanFormat
from privet.noise import Banded, InverseBanded
from privet.plan.influence import Bounded, Computed, Histograms, MomentSums, Presences, SecondMoments
from privet.plan.plan import Plan
from privet.plan.release import Release
from privet.privacy import Budget
from privet.sampling import (
    Cyclic,
    CyclicPoisson,
    FixedSize,
    FullBatch,
    OneRecord,
    Passes,
    Poisson,
    Strided,
    TruncatedPoisson,
)

VERSION = 1
_BOUNDS = (
    Adaptive,
    Automatic,
    Clip,
    Declared,
    PerLayer,
    Bounded,
    Computed,
    Histograms,
    MomentSums,
    Presences,
    SecondMoments,
)
_SAMPLING = (Cyclic, CyclicPoisson, FixedSize, FullBatch, OneRecord, Passes, Poisson, Strided, TruncatedPoisson)
_STRATEGIES = (Banded, InverseBanded)


def plan_to_json(plan: Plan) -> str:
    """Write `plan` as JSON that `plan_from_json` reads back as an equal plan.

    Examples
    --------
    >>> from privet.clipping import Clip
    >>> from privet.plan import gradient_plan
    >>> plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=5.0, steps=9, records=100, neighbours="zero_out")
    >>> plan_from_json(plan_to_json(plan)) == plan
    True
    """
    body = {
        "records": plan.records,
        "neighbours": plan.neighbours,
        "unit": plan.unit,
        "budget": None if plan.budget is None else {"epsilon": plan.budget.epsilon, "delta": plan.budget.delta},
        "releases": [_release(release) for release in plan.releases],
    }
    return json.dumps({"privet_plan": VERSION, "plan": body, "digest": _digest(body)}, indent=1, ensure_ascii=False)


def plan_from_json(text: str) -> Plan:
    """Read the plan that `plan_to_json` wrote; refuse one of another version, and one that was edited.

    Examples
    --------
    >>> plan_from_json('{"privet_plan": 9}')
    Traceback (most recent call last):
        ...
    privet.errors.PlanFormat: Expected a plan of version 1, got version 9: it may not mean the same. \
Use the version of privet that wrote it.
    """
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict) or "privet_plan" not in document:
        raise PlanFormat("""Expected the JSON of a plan, got something else: neither a run nor its epsilon follows from
            it. Use what plan_to_json, or `privet plan --json`, wrote.""")
    if document["privet_plan"] != VERSION:
        raise PlanFormat(f"""Expected a plan of version {VERSION}, got version {document["privet_plan"]!r}: it may not
            mean the same. Use the version of privet that wrote it.""")
    body: Any = document.get("plan")
    if document.get("digest") != _digest(body):
        raise PlanFormat("""Expected a plan as it was written, got one that was edited: its releases are no longer those
            that its guarantee covers. Make the plan anew.""")
    try:
        return Plan(
            releases=tuple(_read_release(release) for release in body["releases"]),
            records=body["records"],
            neighbours=body["neighbours"],
            unit=body["unit"],
            budget=None if body["budget"] is None else Budget(**body["budget"]),
        )
    except (KeyError, TypeError, InvalidParameter):
        raise PlanFormat("""Expected the JSON of a plan, got one with fields missing or of other kinds: it could not be
            run as it was meant. Make the plan anew.""") from None


def _digest(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _release(release: Release) -> dict[str, Any]:
    correlation = release.correlation
    more = {} if correlation is None else {"correlation": _value(correlation, _STRATEGIES, "strategy")}
    return more | {
        "name": release.name,
        "of": release.of,
        "bound": _value(release.bound, _BOUNDS, "bound"),
        "noise_multiplier": None if math.isnan(release.noise_multiplier) else release.noise_multiplier,
        "times": release.times,
        "sampling": _value(release.sampling, _SAMPLING, "sampling scheme"),
        "size": release.size,
        "mechanism": None if release.mechanism is None else json.loads(to_json(release.mechanism)),
    }


def _read_release(body: dict[str, Any]) -> Release:
    known = dict(body)
    noise, mechanism = known.pop("noise_multiplier"), known.pop("mechanism")
    if (correlation := known.pop("correlation", None)) is not None:  # plans of independent noise have no such line
        known["correlation"] = _read_value(correlation, _STRATEGIES)
    return Release(
        **{
            **known,
            "bound": _read_value(known["bound"], _BOUNDS),
            "sampling": _read_value(known["sampling"], _SAMPLING),
            "noise_multiplier": math.nan if noise is None else noise,
            "mechanism": None if mechanism is None else from_json(json.dumps(mechanism)),
        }
    )


def _value(value: Any, known: tuple[type, ...], what: str) -> dict[str, Any]:
    if type(value) not in known:
        raise PlanFormat(
            f"Expected a {what} of privet, got {type(value).__name__}: nobody could read it back. Keep the plan in "
            "Python, or use one of " + ", ".join(kind.__name__ for kind in known) + "."
        )
    return {"kind": type(value).__name__} | {field.name: getattr(value, field.name) for field in fields(value)}


def _read_value(body: dict[str, Any], known: tuple[type, ...]) -> Any:
    given = dict(body)
    return {kind.__name__: kind for kind in known}[given.pop("kind")](**given)
