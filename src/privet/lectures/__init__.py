"""The lectures, executable: every claim as a value, and a check that runs the library and says where it is true.

>>> from privet.lectures import check_for, look_up
>>> look_up("12").place, check_for("12")().verdict
('Lemma 1.1', 'holds_within')

No verdict is stored anywhere: each is computed when it is asked for. Every check takes what the lecture claims (a
constant, a sign, an exponent) as a parameter, and names a mutant of it under which its answer must turn round.
"""

from privet.lectures.algorithms import Algorithm, run_lecture
from privet.lectures.claim import Claim, Finding, Kind, Lecture, Verdict, all_claims, all_lectures, look_up, select
from privet.lectures.noise_rules import RULES, Rule, rule
from privet.lectures.prescriptions import LecturePrescription, lectures_prescription
from privet.lectures.registry import Check, all_checks, check, check_for

__all__ = [  # noqa: RUF022 - plain order, as everywhere in the house; ruff would put RULES first
    "Algorithm",
    "Check",
    "Claim",
    "Finding",
    "Kind",
    "Lecture",
    "LecturePrescription",
    "RULES",
    "Rule",
    "Verdict",
    "all_checks",
    "all_claims",
    "all_lectures",
    "check",
    "check_for",
    "lectures_prescription",
    "look_up",
    "rule",
    "run_lecture",
    "select",
]
