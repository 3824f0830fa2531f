from __future__ import annotations

import sys
from pathlib import Path

import pytest

from isoscope.models import cache_folder


@pytest.mark.parametrize(
    ("platform", "settings", "wanted"),
    [
        ("linux", {"ISOSCOPE_CACHE": "/here"}, "/here"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/isoscope"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/isoscope"),
        ("linux", {}, "/home/me/.cache/isoscope"),
        ("darwin", {}, "/home/me/Library/Caches/isoscope"),
        ("win32", {}, "/home/me/AppData/Local/isoscope"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/isoscope"),
    ],
)
def test_where_the_cache_lies(
    platform: str, settings: dict[str, str], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ISOSCOPE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **settings}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == Path(wanted)
