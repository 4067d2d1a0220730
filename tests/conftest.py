"""What all tests share: how hypothesis runs."""

from __future__ import annotations

import os

from hypothesis import settings

# On a shared machine one slow example says nothing of the code; time is measured by the benchmarks.
# The same examples every time, so that a red run means a changed project; HYPOTHESIS_PROFILE=search looks for new ones.
settings.register_profile("house", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))
