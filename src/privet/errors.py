"""The exceptions and warnings that a caller may want to catch.

PrivetError
├── InvalidParameter   (also a ValueError)  a number or name that promises nothing
├── NoProvenBound      (also a ValueError)  nobody has proved a bound for this pairing
├── RuleOutOfRange     (also a ValueError)  a lecture's rule, asked where it is false
├── EventFormat        (also a ValueError)  JSON that is not an event of this version
├── PlanFormat         (also a ValueError)  JSON that is not a plan of this version, or was edited
├── Overspent          (also a ValueError)  a release that an account or a filter has no budget for
└── EngineFailure      (also a RuntimeError)  a cluster, a worker or a part that failed while sums were taken
Interrupted            (a KeyboardInterrupt)  Ctrl-C during a descent; `.partial` is charged in full
FixedSeed              (a UserWarning)      noise that whoever knows the seed can subtract
LooseBound             (a UserWarning)      certified, but wider than we hold ourselves to
NetworkDrive           (a UserWarning)      an account whose file may not be locked against other machines
NoAmplification        (a UserWarning)      batches that were not drawn here, charged as if their order were known
RepeatedFit            (a UserWarning)      one fit among several on the same records, whose costs nobody adds up
SchemaMisfit           (a UserWarning)      a column, or targets, that few records can be read of, by a noisy count
SmallEffectiveSample   (a UserWarning)      a model that privacy leaves little more than a constant
UnaccountedTransformer (a UserWarning)      a pipeline that learnt from the rows before our fit saw them
"""

from typing import Any


class PrivetError(Exception):
    """Root of all errors raised on purpose by privet. A message may be written over several lines; it reads as one."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(line.strip() for line in message.split("\n")))


class InvalidParameter(PrivetError, ValueError):
    """A parameter that would make the promise empty or meaningless."""


class NoProvenBound(PrivetError, ValueError):
    """No theorem prices this event under this relation or accountant; refused, not guessed."""


class RuleOutOfRange(PrivetError, ValueError):
    """A calibration rule of the lectures, asked for noise outside the range in which it is true."""


class EventFormat(PrivetError, ValueError):
    """Text that does not describe an event that this version of privet understands."""


class PlanFormat(PrivetError, ValueError):
    """Text that does not describe a plan that this version of privet understands, or that was edited."""


class Overspent(PrivetError, ValueError):
    """A release that an account or a filter does not admit; nothing was spent, nothing released."""


class EngineFailure(PrivetError, RuntimeError):
    """A cluster, a worker or a part failed while sums were taken; what was charged stays charged."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during private work. `partial` is what was reached; its guarantee charges the whole plan."""

    def __init__(self, message: str, partial: Any) -> None:
        super().__init__(message)
        self.partial = partial


class FixedSeed(UserWarning):
    """A fit takes its noise from a fixed seed: it can be repeated, and subtracted, so nothing is promised."""


class LooseBound(UserWarning):
    """The bound returned is certified, but its bracket is wider than usual."""


class NetworkDrive(UserWarning):
    """An account's file is on a network file system, whose locks may not hold between machines."""


class NoAmplification(UserWarning):
    """Batches of a DataLoader are charged once a pass, as if their order were known. Poisson batches cost less."""


class RepeatedFit(UserWarning):
    """A fit is one among several on the same records, as in a search, and no account adds up what they cost."""


class SchemaMisfit(UserWarning):
    """Of some column, or of the targets, next to no record can be read as was declared, by a noisy count of the fit."""


class SmallEffectiveSample(UserWarning):
    """The budget is so small for so few records that the model is little more than the majority class, or the mean."""


class UnaccountedTransformer(UserWarning):
    """A scikit-learn pipeline learns from the private rows before the estimator sees them; no budget covers that."""
