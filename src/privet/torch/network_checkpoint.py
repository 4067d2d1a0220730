"""A training run in a file: weights, optimiser, plan and steps charged; no random state, no example."""

import io
import os
import pickle
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from privet.errors import InvalidParameter, PrivetError
from privet.plan import Plan, plan_from_json, plan_to_json

_VERSION = 1


@dataclass(frozen=True, kw_only=True, repr=False)
class Checkpoint:
    """What a run needs to go on; all of it public once its steps are released.

    `made` is how many steps were charged when it was written; the journal of `run` knows of those since.

    Examples
    --------
    >>> import tempfile
    >>> from privet.clipping import Clip
    >>> from privet.plan import gradient_plan
    >>> plan = gradient_plan(bounding=Clip(clip=1.0), noise_multiplier=5.0, steps=9, records=100, neighbours="zero_out")
    >>> path = Path(tempfile.mkdtemp()) / "last.pt"
    >>> Checkpoint(plan=plan, run="a1", made=3, batch_size=100.0, model={"w": torch.ones(2)}, optimizer={}).save(path)
    >>> found = Checkpoint.load(path)
    >>> found.made, found.plan == plan, found.model
    (3, True, {'w': tensor([1., 1.])})
    """

    plan: Plan
    run: str
    made: int
    batch_size: float
    model: Mapping[str, Any]
    optimizer: Mapping[str, Any]
    clips: Mapping[str, float] = field(default_factory=dict)
    average: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def save(self, path: str | Path) -> None:
        """Write it whole or not at all: a crash leaves the file that was there before."""
        place = Path(path)
        body = {
            "privet_checkpoint": _VERSION,
            "plan": plan_to_json(self.plan),
            "run": self.run,
            "made": self.made,
            "batch_size": self.batch_size,
            "model": dict(self.model),
            "optimizer": dict(self.optimizer),
            "clips": dict(self.clips),
            "average": self.average,
            "extra": dict(self.extra),
        }
        text = _readable(body)
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        try:
            with beside.open("wb") as file:
                file.write(text.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | Path) -> "Checkpoint":
        """Read what `save` wrote: tensors and plain values alone, so that no file can run code."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of pickles of other kinds, which are refused
                body = torch.load(path, weights_only=True, map_location="cpu")
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError):
            raise _foreign() from None
        if not isinstance(body, dict) or body.get("privet_checkpoint") != _VERSION:
            raise _foreign()
        try:
            values = {name: value for name, value in body.items() if name not in ("privet_checkpoint", "plan")}
            return cls(plan=plan_from_json(body["plan"]), **values)
        except (TypeError, KeyError):
            raise _foreign() from None


def _readable(body: dict[str, Any]) -> io.BytesIO:
    """The bytes of a checkpoint that can be read back."""
    text = io.BytesIO()
    try:
        torch.save(body, text)
        text.seek(0)
        torch.load(text, weights_only=True)
    except (pickle.PickleError, AttributeError, TypeError):
        raise InvalidParameter("""Expected a checkpoint of tensors and plain values, got an object of another kind: it
            could not be read back without running code of the file. Leave it out of extra=..., or pass its
            state_dict().""") from None
    return text


def _foreign() -> PrivetError:
    return InvalidParameter("""Expected a checkpoint that run.save(...) wrote, got another file, or one with objects
        that could run code: its plan and its steps are not known. Use the file of the run.""")
