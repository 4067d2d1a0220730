"""Theorems about numbers: from privacy parameters to privacy parameters, each rounded to the safe side."""
