"""Training that is watched: vectors trained with a classifier, measured at every update.

train_embeddings(X, y)      the experiment of Mickus, Grönroos and Attieh 2024 -> Trajectory
finetune(model, texts, y)   a model trained to classify texts, with a penalty on its states -> FineTuned
contrast(model, pairs)      a sentence encoder trained on pairs, its geometry followed -> Contrasted
train_masked_lm(texts)      a small BERT trained from nothing, to start from -> MaskedLM
trade_off(X, y)             vectors optimised for isotropy and clusters at once -> TradeOff
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
from isoscope.training.contrast import Contrasted, contrast
from isoscope.training.embeddings import train_embeddings
from isoscope.training.finetune import FineTuned, finetune
from isoscope.training.held_out import some_examples
from isoscope.training.masked import MaskedLM, train_masked_lm
from isoscope.training.trade_off import TradeOff, TradeOffPoint, trade_off

__all__ = [
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
    "some_examples",
    "trade_off",
    "train_embeddings",
    "train_masked_lm",
]
