"""The plan of a run: releases in order, their cost, the meter that runs them, and their form as JSON."""

from privet.plan.batch_planner import Choice, Choices, plan_training
from privet.plan.compare_noise import NoiseRow, NoiseTable, best_noise, compare_noise
from privet.plan.influence import Bounded, Computed, Histograms, Influence, MomentSums, Presences, Reach, SecondMoments
from privet.plan.meter import Meter
from privet.plan.plan import Plan, gradient_plan
from privet.plan.plan_json import plan_from_json, plan_to_json
from privet.plan.release import Release
from privet.plan.resumable_meter import ResumableMeter

__all__ = [
    "Bounded",
    "Choice",
    "Choices",
    "Computed",
    "Histograms",
    "Influence",
    "Meter",
    "MomentSums",
    "NoiseRow",
    "NoiseTable",
    "Plan",
    "Presences",
    "Reach",
    "Release",
    "ResumableMeter",
    "SecondMoments",
    "best_noise",
    "compare_noise",
    "gradient_plan",
    "plan_from_json",
    "plan_to_json",
    "plan_training",
]
