"""`Wide`: the spaces of a table, with their metrics and scores as columns."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd
from scipy import stats

from isoscope_papers.predicts.setups import CHECKPOINTS, CORRECTIONS, LAYERS, SETUPS

UNCORRECTED, CORRECTED, ACROSS = "layers and checkpoints", "corrections", "across models"
VIEWS = (UNCORRECTED, CORRECTED, ACROSS)
FEWEST = 5  # spaces from which on a model has a rank correlation
DRAWS = 2000
DIMENSIONS = "n_dims"  # the number of dimensions, beside the metrics
ALPHA_FROM_1 = "alpha_req_from_1"  # |α − 1|: an α of 1 is said to be best


def lineage(model: str) -> str:
    """Return the model that a training run begins from, or the model itself: they are one cluster."""
    setup = SETUPS.get(model)
    return model if setup is None else setup.lineage


class Wide:
    """The spaces of a table, with the metrics of each corpus and the scores of each task.

    Attributes:
        about: model, family, layer, … of each space.
    """

    def __init__(self, rows: pd.DataFrame) -> None:
        about = rows.drop_duplicates("space").set_index("space")
        self.about = about[
            ["model", "family", "layer", "depth", "pooling", "step", "correction", "strength", "n_dims"]
        ]
        place = rows["space"].map({name: row for row, name in enumerate(about.index)}).to_numpy()
        self._columns: dict[tuple[str, str], np.ndarray] = {}
        values = rows["value"].to_numpy(dtype=float)
        for key, own in rows.groupby(["corpus", "name"], sort=False).indices.items():
            column = np.full(len(about), np.nan)
            column[place[own]] = values[own]
            self._columns[key] = column
        self._views: dict[str, dict[str, np.ndarray]] = {}
        self._controls: dict[tuple[str, str], np.ndarray | None] = {}

    def metric(self, name: str, corpus: str, spaces: np.ndarray) -> np.ndarray:
        """Return a metric of some spaces on the texts of a corpus; NaN where it has no value."""
        if name == DIMENSIONS:
            return self.about[DIMENSIONS].to_numpy(dtype=float)[spaces]
        if name == ALPHA_FROM_1:
            return np.abs(self.metric("alpha_req", corpus, spaces) - 1)
        if (corpus, name) not in self._columns:
            return np.full(len(spaces), np.nan)
        return self._columns[corpus, name][spaces]

    def score(self, task: tuple[str, str], spaces: np.ndarray) -> np.ndarray:
        """Return the scores of some spaces in a task."""
        return self._columns[task][spaces]

    def of_view(self, view: str) -> dict[str, np.ndarray]:
        """Return the places of the spaces of a view, by model; across models there is one of each."""
        if view not in self._views:
            self._views[view] = self._of_view(view)
        return self._views[view]

    @cached_property
    def draws(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the spaces across models: draws of lineages with one model of each, and shuffled orders."""
        models = self.about["model"].iloc[self.of_view(ACROSS)[ACROSS]]
        lines = np.array([lineage(str(model)) for model in models])
        members = [np.flatnonzero(lines == name) for name in dict.fromkeys(lines.tolist())]
        source = np.random.default_rng(0)
        of_each = np.stack([source.choice(own, DRAWS * len(members)) for own in members])
        chosen = source.integers(len(members), size=DRAWS * len(members))
        drawn = of_each[chosen, np.arange(len(chosen))].reshape(DRAWS, len(members))
        return drawn, source.permuted(np.tile(np.arange(len(lines)), (DRAWS, 1)), axis=1)

    def controls(self, view: str, model: str) -> np.ndarray | None:
        """Return what is held constant within a model: see `controls_of`."""
        if (view, model) not in self._controls:
            self._controls[view, model] = controls_of(self.about.iloc[self.of_view(view)[model]])
        return self._controls[view, model]

    def _of_view(self, view: str) -> dict[str, np.ndarray]:
        families = self.about["family"]
        last = self.last()
        if view == ACROSS:
            return {ACROSS: last}
        chosen = families.isin([LAYERS, CHECKPOINTS]).to_numpy(copy=True)
        if view == CORRECTED:
            chosen = (families == CORRECTIONS).to_numpy(copy=True)
            chosen[last] = True
        places = {model: np.flatnonzero(chosen & self.of_model(model)) for model in self.models}
        return {model: spaces for model, spaces in places.items() if len(spaces) >= FEWEST}

    @property
    def models(self) -> list[str]:
        """The names of the models."""
        return [str(model) for model in self.about["model"].unique()]

    def of_model(self, model: str) -> np.ndarray:
        """Return which spaces are of a model."""
        return (self.about["model"] == model).to_numpy()

    def last(self) -> np.ndarray:
        """Return the place of each model's own space: uncorrected, last layer, last step, first pooling."""
        found = []
        for model in self.models:
            own = self.about[self.of_model(model) & (self.about["correction"] == "none").to_numpy()]
            own = own[own["pooling"] == own_pooling(model, own)]
            own = own[own["step"] == own["step"].max()]
            found.append(self.about.index.get_loc(own.index[own["layer"].argmax()]))
        return np.array(found)


def own_pooling(model: str, about: pd.DataFrame) -> str:
    """Return the pooling that a model is made for."""
    return SETUPS[model].poolings[0] if model in SETUPS else str(about["pooling"].iloc[0])


def controls_of(about: pd.DataFrame) -> np.ndarray | None:
    """Return what is held constant: ranks of depth, step, dimensions and the square of depth, and pooling."""
    columns = [
        stats.rankdata(about[name]) / len(about)
        for name in ("depth", "step", "n_dims")
        if about[name].nunique() > 1
    ]
    if about["depth"].nunique() > 1:
        columns.append(about["depth"].to_numpy(dtype=float) ** 2)
    for pooling in about["pooling"].unique()[1:]:
        columns.append((about["pooling"] == pooling).to_numpy(dtype=float))
    return np.column_stack(columns) if columns else None
