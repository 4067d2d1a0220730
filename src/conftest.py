"""Examples in the code that need an extra are run where it is installed."""

import importlib.util

_NEEDED = {
    "torch": ["privet/torch/*"],
    "distributed": ["privet/engines/dask_*.py"],
    "pyarrow": ["privet/engines/plain_columns.py"],
}
collect_ignore_glob = [
    pattern for extra, patterns in _NEEDED.items() if not importlib.util.find_spec(extra) for pattern in patterns
]
