"""The cache folder, for vectors of texts and for models assembled from packages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

CACHE_VARIABLE = "ISOSCOPE_CACHE"


def cache_folder() -> Path:
    """Return the folder named by ISOSCOPE_CACHE, by default `isoscope` in the platform's cache folder."""
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
