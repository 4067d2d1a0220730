"""The one reader: frames, arrays and CSV files to columns, cells to numbers and names, rows to people.

A cell that cannot be read counts as missing, the same everywhere, and nothing is said of it; what is refused is refused
on declared types and shapes, which are public.
"""

from privet.data.classes import class_list, labels, places
from privet.data.csv_files import CsvFile
from privet.data.floats import MadeRows, matrix, vector
from privet.data.people import grouped_by, one_row_each, person_numbers
from privet.data.tables import header, read

__all__ = [
    "CsvFile",
    "MadeRows",
    "class_list",
    "grouped_by",
    "header",
    "labels",
    "matrix",
    "one_row_each",
    "person_numbers",
    "places",
    "read",
    "vector",
]
