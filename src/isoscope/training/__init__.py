"""Training that is watched: vectors trained with a classifier, measured at every update.

train_embeddings(X, y)      the experiment of Mickus, Grönroos and Attieh 2024 -> Trajectory
Trajectory                  what was measured: curves, correlations, figure, file
"""

from __future__ import annotations

from isoscope.training.correlation import Correlation
from isoscope.training.embeddings import train_embeddings
from isoscope.training.trajectory import Trajectory

__all__ = ["Correlation", "Trajectory", "train_embeddings"]
