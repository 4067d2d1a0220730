"""Examples in the code that need an extra are run where it is installed."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["privet/torch/*"]
