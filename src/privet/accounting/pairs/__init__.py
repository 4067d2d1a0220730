"""Dominating pairs: the privacy loss of one step in one direction."""
