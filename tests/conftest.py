from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window; required where ISOSCOPE_BROWSER says so, as in CI."""
    missing = "chromium" if CHROMIUM is None else None
    if importlib.util.find_spec("playwright") is None:
        missing = "playwright"
    if missing:
        if os.environ.get("ISOSCOPE_BROWSER") == "required":
            pytest.fail(f"ISOSCOPE_BROWSER is required, and {missing} is not installed")
        pytest.skip(f"needs a browser: {missing} is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # a root account, as in a container, has no sandbox
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()
