"""How a claim finds its check, and how a check proves that it is not vacuous.

A check is a function in one of the files of `privet.lectures.checks`, marked with `@check("12", mutant={...})`. It
takes what the lecture claims as keyword parameters, whose defaults are what is printed, runs the library, and returns
a `Finding`. Its mutant gives other values to some of them; the tests demand that the finding then turns round. What a
check varies, and how close it comes, is in `reach.toml` beside.
"""

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from pkgutil import iter_modules

from privet.errors import InvalidParameter
from privet.lectures.claim import Finding, look_up


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """A claim's check: call it to run it. Made by the decorator `check`.

    Examples
    --------
    >>> lemma = check_for("12")
    >>> lemma().verdict, lemma.mutated().verdict, dict(lemma.mutant)
    ('holds_within', 'fails', {'constant': 0.5})
    """

    id: str
    function: Callable[..., Finding]
    mutant: Mapping[str, float]

    def __call__(self, *, full: bool = False) -> Finding:
        """Run the check on what is printed; `full` asks for the long simulation, where there is one."""
        return self.function(full=True) if full and self.longer else self.function()

    def mutated(self) -> Finding:
        """Run the check on the mutant of the claim, about which it must change its mind."""
        return self.function(**self.mutant)

    @property
    def method(self) -> str:
        """What the check does, in a sentence."""
        return " ".join((self.function.__doc__ or "").split("\n\n")[0].split())

    @property
    def varies(self) -> str:
        """What the check varies.

        Examples
        --------
        >>> check_for("31").varies
        'n of 15 to 120, d of 1 to 16, epsilon of 0.5 to 2, delta of 1e-9 to 1e-2'
        """
        return _reach()[self.id][0]

    def close(self, finding: Finding) -> str:
        """How close the check came to the claim, in its finding's numbers; and how loose the claim is, where it is.

        Examples
        --------
        >>> check_for("105").close(check_for("105")())
        'loose: the chance of a miss is up to 0.161 of beta'
        """
        return _reach()[self.id][1].format(**finding.numbers)

    @property
    def far_because(self) -> str:
        """Why the mutant is no constant halved or doubled, and no exponent off by a half; empty where it is one.

        Examples
        --------
        >>> check_for("12").far_because, check_for("43").far_because
        ('', 'no constant and no order is claimed')
        """
        return "".join(_reach()[self.id][2:])

    @property
    def longer(self) -> bool:
        """Whether there is a longer form of it, for `full`."""
        return "full" in inspect.signature(self.function).parameters


def check(id: str, *, mutant: Mapping[str, float]) -> Callable[[Callable[..., Finding]], Check]:
    """Mark a function as the check of the claim of that id.

    Parameters
    ----------
    id : of the claim, two digits or more
    mutant : other values for some of the function's parameters: the constant halved, the sign flipped; or for a claim
        that fails as printed, the corrected one. With them the finding must turn from accepted to refused, or back

    Examples
    --------
    >>> @check("05", mutant={"divisor": 2.0})
    ... def mean_of_losses(divisor: float = 1.0) -> Finding:
    ...     '''Average two losses.'''
    ...     return Finding.judged((1 + 3) / 2 / divisor == 2, "The average of 1 and 3 is 2.")
    >>> mean_of_losses().verdict, mean_of_losses.mutated().verdict
    ('holds', 'fails')
    """

    def marked(function: Callable[..., Finding]) -> Check:
        parameters = inspect.signature(function).parameters
        for name, value in mutant.items():
            if name not in parameters or parameters[name].default == value:
                raise InvalidParameter(f"""Expected the mutant of check {id} to change a parameter of its function, got
                    {name} = {value!r}: it would run the same check twice. Give the parameter a default, what is
                    printed, and the mutant another value.""")
        if not mutant or not function.__doc__:
            raise InvalidParameter(f"""Expected a mutant and a docstring for check {id}, got none: nobody could tell
                what it tests. Add mutant={{...}}, and a sentence.""")
        return Check(id=id, function=function, mutant=mutant)

    return marked


@cache
def all_checks() -> dict[str, Check]:
    """Return the checks of all claims, by id, from all files of `privet.lectures.checks`.

    Examples
    --------
    >>> all_checks()["01"].method
    'Run algorithm 1 on a quadratic in a box, step by step against the library.'
    """
    package = import_module("privet.lectures.checks")
    found: dict[str, Check] = {}
    for module in sorted(info.name for info in iter_modules(package.__path__)):
        for value in vars(import_module(f"privet.lectures.checks.{module}")).values():
            if isinstance(value, Check):
                if value.id in found and found[value.id] is not value:
                    raise InvalidParameter(f"Expected one check for claim {value.id}, got two: remove one of them.")
                found[look_up(value.id).id] = value
    return dict(sorted(found.items(), key=lambda item: int(item[0])))


@cache
def _reach() -> dict[str, list[str]]:
    return tomllib.loads(resources.files("privet.lectures").joinpath("reach.toml").read_text(encoding="utf-8"))


def check_for(id: str) -> Check:
    """Return the check of the claim of that id.

    Examples
    --------
    >>> f"{check_for('18')().numbers['epsilon']:.6g}"
    '6.48719e-06'
    """
    known = look_up(id).id
    if known not in all_checks():
        raise InvalidParameter(f"Expected a claim that has a check, got {known}: nobody has written its check yet.")
    return all_checks()[known]
