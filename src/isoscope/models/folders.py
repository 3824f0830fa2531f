"""Where isoscope keeps what it can make again: vectors of texts, models put together from their parts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

CACHE_VARIABLE = "ISOSCOPE_CACHE"


def cache_folder() -> Path:
    """The folder named by ISOSCOPE_CACHE, else `isoscope` in the platform's folder for caches."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen).expanduser() if chosen else _platform_caches() / "isoscope"


def _platform_caches() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    named = os.environ.get("XDG_CACHE_HOME", "")
    # the XDG specification has relative paths ignored
    return Path(named) if os.path.isabs(named) else Path.home() / ".cache"
