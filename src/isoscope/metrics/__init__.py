"""Formulas over statistics. Each module lists its metrics; the registry gathers them."""

from isoscope.metrics import isotropy

ALL = (*isotropy.METRICS,)
