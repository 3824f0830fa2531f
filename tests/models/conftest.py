"""A cache of its own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

TEXTS = ["a cat sat", "the dog ran to the cat", "dog", "", "a a a a a a a a a", "the cat", "dog"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ISOSCOPE_CACHE", str(tmp_path / "cache"))
    # no test may reach a network, whatever the code does
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path / "cache"
