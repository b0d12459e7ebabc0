"""Settings for all tests: in CI, generated examples are the same in every run, so that a red run is about the change."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
