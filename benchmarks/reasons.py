"""Why a figure is missed, by case, once several ways have been tried; shown under its table while it is."""

from __future__ import annotations

REASONS: dict[str, str] = {}
