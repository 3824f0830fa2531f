"""Formulas over statistics. Each module lists its metrics; the registry gathers them."""

from isoscope.metrics import (
    clusters,
    contextual,
    cosine,
    dimensions,
    frontier,
    isotropy,
    manifold,
    objectives,
    removed_dimensions,
    separability,
    silhouettes,
    spectrum,
)

# in the order tables show them
ALL = (
    *isotropy.METRICS,
    *cosine.METRICS,
    *spectrum.METRICS,
    *dimensions.METRICS,
    *removed_dimensions.METRICS,
    *silhouettes.METRICS,
    *clusters.METRICS,
    *separability.METRICS,
    *frontier.METRICS,
    *manifold.METRICS,
    *contextual.METRICS,
    *objectives.METRICS,
)
