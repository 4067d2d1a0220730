"""What all tests share: how hypothesis runs."""

from __future__ import annotations

from hypothesis import settings

# On a shared machine one slow example says nothing of the code; time is measured by the benchmarks.
settings.register_profile("house", deadline=None)
settings.load_profile("house")
