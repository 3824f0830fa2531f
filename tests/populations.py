"""What metrics are of populations: the oracles of docs/bias_tables.py, for all tests."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_spec = spec_from_file_location("bias_tables", Path(__file__).parent.parent / "docs/bias_tables.py")
assert _spec is not None
assert _spec.loader is not None
_tables = module_from_spec(_spec)
_spec.loader.exec_module(_tables)

collapse_truth, rank_truth = _tables.collapse_truth, _tables.rank_truth
