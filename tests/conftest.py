from __future__ import annotations

import importlib.util
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import isoscope.corrections  # noqa: F401 - which binds `Moments.of` when imported, and is not counted
from isoscope.arrays import as_matrix
from isoscope.statistics.directions import Directions
from isoscope.statistics.groups import GroupMoments
from isoscope.statistics.moments import Moments
from isoscope.statistics.neighbors import Neighbors
from isoscope.statistics.pairs import Separation

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


class Passes:
    """What statistics were computed from which vectors."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, Any]] = []

    def over(self, X: Any) -> Counter[str]:
        """How often each statistic was computed from just these vectors."""
        rows = torch.as_tensor(X).double()
        return Counter(
            name for name, seen in self.taken if seen.shape == rows.shape and seen.double().equal(rows)
        )


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    """Count what `of` computes, statistic by statistic; one that is given passes through uncounted."""
    counted = Passes()

    def count(kind: Any) -> None:
        compute = kind.of

        def of(X: Any, *args: Any, **options: Any) -> Any:
            if not isinstance(X, kind):
                name = " ".join(filter(None, (kind.__name__, options.get("metric"))))
                counted.taken.append((name, as_matrix(X).detach()))
            return compute(X, *args, **options)

        monkeypatch.setattr(kind, "of", of)

    for kind in (Moments, Directions, GroupMoments, Separation, Neighbors):
        count(kind)
    return counted
