"""The one reader: frames, arrays and CSV files to columns, cells to numbers and names, rows to people."""

from __future__ import annotations

from privet.data.groups import group_indices

__all__ = ["group_indices"]
