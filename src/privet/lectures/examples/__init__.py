"""Worked examples and exercises of the lectures: short modules to read, each a function that returns its numbers."""
