"""Training with a record of the geometry.

train_embeddings(X, y)      train vectors and a classifier (Mickus, Grönroos and Attieh 2024) -> Trajectory
finetune(model, texts, y)   train a model to classify texts, with a penalty on its states -> FineTuned
contrast(model, pairs)      train a sentence encoder on pairs of texts -> Contrasted
train_masked_lm(texts)      train a small BERT with random weights -> MaskedLM
trade_off(X, y)             optimise vectors for isotropy and clusters at once -> TradeOff
predict_collapse(X, y)      predict where training takes IsoScore, without training -> CollapsePrediction
"""

from __future__ import annotations

from isoscope.tracking import (
    Correlation,
    GeometryTracker,
    Trajectory,
    geometry_callback,
    geometry_evaluator,
    lightning_callback,
)
from isoscope.training.collapse import Assumption, CollapsePrediction, predict_collapse
from isoscope.training.contrast import Contrasted, contrast
from isoscope.training.embeddings import train_embeddings
from isoscope.training.finetune import FineTuned, finetune
from isoscope.training.held_out import some_examples
from isoscope.training.masked import MaskedLM, train_masked_lm
from isoscope.training.trade_off import TradeOff, TradeOffPoint, trade_off

__all__ = [
    "Assumption",
    "CollapsePrediction",
    "Contrasted",
    "Correlation",
    "FineTuned",
    "GeometryTracker",
    "MaskedLM",
    "TradeOff",
    "TradeOffPoint",
    "Trajectory",
    "contrast",
    "finetune",
    "geometry_callback",
    "geometry_evaluator",
    "lightning_callback",
    "predict_collapse",
    "some_examples",
    "trade_off",
    "train_embeddings",
    "train_masked_lm",
]
