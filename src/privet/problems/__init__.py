"""What is minimised: an average loss over private records, a public penalty and a public set."""

from privet.problems.facts import Facts, facts_of
from privet.problems.grouped import GroupedProblem
from privet.problems.linear_model import LinearProblem
from privet.problems.make import glm, per_record
from privet.problems.protocol import Problem
from privet.problems.records import RecordProblem

__all__ = ["Facts", "GroupedProblem", "LinearProblem", "Problem", "RecordProblem", "facts_of", "glm", "per_record"]
