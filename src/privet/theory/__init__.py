"""What the lectures say, made executable: for comparison and teaching; nothing calibrates with it by default."""

from __future__ import annotations

from privet.theory.rules import RULES, Rule, exact_noise, rule

__all__ = ["RULES", "Rule", "exact_noise", "rule"]
