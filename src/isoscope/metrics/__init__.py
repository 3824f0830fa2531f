"""Formulas over statistics. Each module lists its metrics; the registry gathers them."""

from isoscope.metrics import (
    clusters,
    contextual,
    cosine,
    dimensions,
    frontier,
    informativity,
    isotropy,
    manifold,
    objectives,
    separability,
    silhouette,
    spectrum,
)

# in the order tables show them
ALL = (
    *isotropy.METRICS,
    *cosine.METRICS,
    *spectrum.METRICS,
    *dimensions.METRICS,
    *informativity.METRICS,
    *silhouette.METRICS,
    *clusters.METRICS,
    *separability.METRICS,
    *frontier.METRICS,
    *manifold.METRICS,
    *contextual.METRICS,
    *objectives.METRICS,
)
