"""One browser for all tests of the page; none is needed for the others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.report.browser import Browser, chromium, find_chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real Chromium, or a skip that says why."""
    if find_chromium() is None:
        pytest.skip("no Chromium on the path; `apt-get install chromium` lets these tests run")
    with chromium() as opened:
        yield opened
