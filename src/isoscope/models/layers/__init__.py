"""Every layer of a language model, measured as texts pass through it.

    layers(model, texts)                a LayerProfile: tables, JSON, figures
    LayerComparison.of(before, after)   two of them side by side, and the tokens that changed most
    measure_checkpoints(folder, texts)  a LayerTrajectory: the layers of a model over its training
    layer_similarity(model, texts)      how alike the layers of one or two models are, as a matrix

Only sums and a sample of the states are stored, so that memory does not grow with the texts.
"""

from __future__ import annotations

from isoscope.models.layers.checkpoints import LayerTrajectory, measure_checkpoints
from isoscope.models.layers.comparison import LayerComparison
from isoscope.models.layers.layer_profile import LayerProfile
from isoscope.models.layers.run import layers, measure_layers
from isoscope.models.layers.similarity import layer_similarity

__all__ = [
    "LayerComparison",
    "LayerProfile",
    "LayerTrajectory",
    "layer_similarity",
    "layers",
    "measure_checkpoints",
    "measure_layers",
]
