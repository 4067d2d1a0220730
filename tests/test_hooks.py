"""No code of the user's sees what is not released, but what has to: losses, maps and rules (docs/footguns.md, 54)."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
from typing import Any

import numpy as np
import pytest

import privet
from privet import Budget, glm
from privet.plan import Meter
from privet.solvers import DPSGD, solve

# Parameters of public names that take a function, and what it sees; beside `step_size`, which sees the number of the
# step. Another one needs a line, and a reason.
SEEN = {
    "CustomLoss.value": "records, to compute their losses; its results are clipped",
    "CustomLoss.derivative": "as above",
    "CustomLoss.curvature": "as above",
    "CustomLoss.label_set": "labels, to say which are admissible",
    "CustomFeatures.function": "rows, to map them; their norms are clipped afterwards",
    "bounded_table.prepare": "rows, as above; by the library's own scaling",
    "calibrate.family": "a public number",
    "NoiseFilter.zeros": "a shape, which is public",
    "RenyiFilter.admits.cost": "a public number",
    "RenyiFilter.spend.cost": "a public number",
    "best_attack.profile": "a public number",
    "best_guess.profile": "a public number",
    "LinearProblem.curvature_sum.curvature": "records, to compute their curvatures, which are cut; by the solvers",
    "Engine.run.job": "the library's own work on parts; whoever writes an engine carries it out",
    "Stream.run.job": "as above",
    "SparkEngine.run.job": "as above",
    "Meter.chosen.choose": "a source of random words; by the library's own draws",
    "ResumableMeter.chosen.choose": "as above",
    "Cache.made.make": "a folder, to fill it; by the library's own encoders",
}
_LOSSES = "examples, to compute their losses, whose gradients are clipped; tried on made-up ones"
OF_NETWORKS = {  # `fit` passes on what `PrivateTraining` takes
    "AdamBC.step.closure": "nothing: it is never called, and there for torch's signature",
    "Augment.change": "examples, to change copies of them; gradients are clipped afterwards",
    "ClippedGradients.per_example": _LOSSES,
    "clipped_sum.per_example": _LOSSES,
    "Examples.collate": "examples, to put them together",
    "fit.metrics": "public examples",
    "PrivateGradient.per_example": _LOSSES,
    "PrivateTraining.collate": "examples, to put them together",
    "PrivateTraining.loss": _LOSSES,
    "PrivateTraining.per_example": _LOSSES,
}
WITH_TORCH = importlib.util.find_spec("torch") is not None
WORDS = ("hook", "callback", "on_step", "monitor", "inspect")


def public() -> dict[str, Any]:
    """Every name that some room exports, but those of the lectures, which run on made-up data."""
    found: dict[str, Any] = {}
    for room in pkgutil.iter_modules(privet.__path__):
        if room.name not in ("lectures", "cli", "__main__") and (room.name != "torch" or WITH_TORCH):
            module = importlib.import_module(f"privet.{room.name}")
            found |= {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    return found


def parameters(name: str, thing: Any) -> list[tuple[str, str]]:
    """Its parameters, and those of its public methods, with what is declared of each."""
    things = {name: thing}
    if inspect.isclass(thing) and not getattr(thing, "_is_protocol", False):
        things |= {f"{name}.{part}": vars(thing)[part] for part in vars(thing) if not part.startswith("_")}
    listed = []
    for owner, one in things.items():
        if callable(one):
            try:
                signature = inspect.signature(one)
            except ValueError:  # a type without one, e.g. an alias
                continue
            known = vars(inspect.getmodule(one) or inspect)
            for p in signature.parameters.values():  # aliases, such as StepSize, by what they stand for
                words = [known.get(word, "") for word in re.findall(r"\w+", str(p.annotation))]
                listed.append((f"{owner}.{p.name}", f"{p.annotation} {' '.join(map(str, words))}"))
    return listed


def test_every_function_that_a_user_may_pass_is_listed() -> None:
    """A parameter that takes a function, or is named like a hook, is one of the few that must be there."""
    listed = [pair for name, thing in public().items() for pair in parameters(name, thing)]
    assert len(listed) > 500
    taking = {name for name, declared in listed if "Callable" in declared and not name.endswith(".step_size")}
    assert taking == set(SEEN) | (set(OF_NETWORKS) if WITH_TORCH else set())
    assert not [name for name, _ in listed if any(word in name.rsplit(".", 1)[-1] for word in WORDS)]


class Spy:
    """An update rule that remembers all that it is shown."""

    def __init__(self) -> None:
        self.shown: list[np.ndarray] = []

    def start(self) -> Any:
        def move(theta: Any, gradient: Any, variance: float) -> Any:
            self.shown.append(np.array(gradient))
            return theta - 0.1 * gradient

        return move


def test_an_update_rule_sees_released_gradients_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is shown is a function of the noisy sums alone: with the same noisy sums, other records show the same."""
    released: list[np.ndarray] = []
    genuine = Meter.noisy

    def kept(self: Meter, name: str, total: Any) -> Any:
        released.append(genuine(self, name, total))
        return released[-1]

    X = np.random.default_rng(0).normal(size=(100, 2)) / 4
    spies = Spy(), Spy()
    settings: Any = {"budget": Budget(epsilon=1, delta=1e-6), "neighbours": "zero_out"}

    def run(spy: Spy, rows: Any) -> None:
        problem = glm("logistic", rows, rows[:, 0] > 0, row_norm=1.0)
        solve(DPSGD(clip=1.0, steps=3, update=spy), problem, **settings)

    monkeypatch.setattr(Meter, "noisy", kept)
    run(spies[0], X)
    replayed = iter(list(released))

    def again(self: Meter, name: str, total: Any) -> Any:
        genuine(self, name, total)
        return next(replayed)

    monkeypatch.setattr(Meter, "noisy", again)
    run(spies[1], -3 * X)
    assert len(spies[0].shown) == 3
    assert np.array_equal(spies[0].shown, spies[1].shown)
