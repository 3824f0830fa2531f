"""`Trajectory`: the measurements of a training run, for each seed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from isoscope.engine.readings import Reading, Readings, View
from isoscope.errors import FileError, UndefinedError
from isoscope.io.atomic import write_atomically
from isoscope.io.files import reading
from isoscope.io.sealed import check, digest
from isoscope.io.targets import check_target
from isoscope.results import plain
from isoscope.tables import Cell, Grid
from isoscope.tracking.correlation import Correlation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_METADATA = b"isoscope.trajectory"
_CHECKSUM = b"isoscope.checksum"
_FORMAT = 2  # with a checksum
_KEYS = ("seed", "step")
_INTERVALS = ("_low", "_high")
_FEW_POINTS = 5  # below it a correlation is not printed
_NO_VALUE = "no value at this step"


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(View):
    """Loss, accuracy and metrics of every seed, at each step that was measured.

    Attributes:
        columns: arrays of equal length, sorted by seed and step: seed, step, loss, accuracy, one for each
            metric, and the ends of its interval where it is an estimate. NaN is an undefined value.
        configuration: the settings of the run, its data and the versions of libraries.
        n_parameters: the number of trained parameters of one seed.
        tables: (seeds, n, d) the vectors at the end, where they are available; not saved to files.
    """

    columns: Mapping[str, np.ndarray]
    configuration: Mapping[str, Any]
    n_parameters: int
    tables: Tensor | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        order = np.lexsort((self.columns["step"], self.columns["seed"]))
        sorted_columns = {name: np.asarray(values)[order] for name, values in self.columns.items()}
        object.__setattr__(self, "columns", MappingProxyType(sorted_columns))
        object.__setattr__(self, "configuration", MappingProxyType(dict(self.configuration)))

    def __len__(self) -> int:
        return len(self.columns["seed"])

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise KeyError(f"{name!r} is not a column; the columns are {', '.join(self.columns)}")
        return self.columns[name]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The columns of metrics: all but seed, step, loss, accuracy and the ends of intervals."""
        known = {*_KEYS, "loss", "accuracy"}
        return tuple(
            name
            for name in self.columns
            if name not in known
            and not any(name.endswith(end) and name.removesuffix(end) in self.columns for end in _INTERVALS)
        )

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, in ascending order."""
        return tuple(np.unique(self.columns["seed"]).tolist())

    @cached_property
    def steps(self) -> np.ndarray:
        """The steps at which every seed was measured."""
        steps, counts = np.unique(self.columns["step"], return_counts=True)
        return steps[counts == len(self.seeds)]

    def curves(self, name: str) -> np.ndarray:
        """Return the (seeds, steps) curves of a column, over the steps that all seeds have."""
        shared = np.isin(self["step"], self.steps)
        return self[name][shared].reshape(len(self.seeds), len(self.steps))

    def mean(self) -> dict[str, np.ndarray]:
        """Return every column averaged over the seeds, by step."""
        names = [name for name in self.columns if name not in _KEYS]
        return {"step": self.steps} | {name: self.curves(name).mean(axis=0) for name in names}

    def correlation(
        self, first: str = "isoscore", second: str = "silhouette", *, from_step: int = 0
    ) -> Correlation:
        """Return the correlation of two columns over the steps; see `Correlation`."""
        kept = self.steps >= from_step
        return Correlation.of(first, second, self.curves(first)[:, kept], self.curves(second)[:, kept])

    def max_standard_deviation(self, name: str) -> float:
        """Return the largest standard deviation over the seeds at any step (divisor n_seeds − 1).

        Steps at which a seed has no value are left out; the result is NaN where none is left.
        """
        if len(self.seeds) < 2:
            raise UndefinedError(f"the standard deviation of {name} needs at least 2 seeds; there is 1")
        spread = self.curves(name).std(axis=0, ddof=1)
        known = spread[~np.isnan(spread)]
        return float(known.max()) if len(known) else math.nan

    def to_arrow(self) -> Any:
        """Return a pyarrow table: seed, step, loss, accuracy, and one column for each metric.

        `to_pandas` and `to_polars` return the same columns; `readings` is the long table.
        """
        import pyarrow as pa

        return pa.table({name: pa.array(values) for name, values in self.columns.items()})

    @property
    def readings(self) -> Readings:
        """All values by `seed` and `step`, and by `layer` and `view` where there are several."""
        keys = [dict(zip(_KEYS, key, strict=True)) for key in zip(*map(self._list, _KEYS), strict=True)]
        rows = []
        for name in ("loss", "accuracy", *self.metrics):
            metric, group = _parts(name)
            ends = [name + end for end in _INTERVALS]
            known = all(end in self.columns for end in ends)
            intervals = zip(*map(self._list, ends), strict=True) if known else repeat(None)
            for key, value, interval in zip(keys, self._list(name), intervals, strict=False):
                rows.append(Reading(metric, value, meaning=_NO_VALUE, interval=interval, group=key | group))
        return Readings(rows)

    def _list(self, name: str) -> list[Any]:
        return self.columns[name].tolist()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a .parquet file, atomically, with the configuration in its metadata."""
        return write_atomically(check_target(path, (".parquet",)), self.write_parquet)

    def write_parquet(self, path: Path) -> None:
        """Write the Parquet file of `save` directly, not atomically."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        about = {"configuration": dict(self.configuration), "n_parameters": self.n_parameters}
        held = json.dumps({"format": _FORMAT, **about})
        table = pa.table({name: pa.array(values, from_pandas=True) for name, values in self.columns.items()})
        checksum = digest(_arrays(table), {"": held})
        pq.write_table(table.replace_schema_metadata({_METADATA: held, _CHECKSUM: checksum}), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, sealed: bool = False) -> Trajectory:
        """Read a file that `save` has written.

        Args:
            path: the file.
            sealed: raise an error if the file has no checksum, as in files of earlier versions.

        Raises:
            FileError: the file is not a trajectory, or its checksum does not match.
        """
        import pyarrow.parquet as pq

        with reading(Path(path)):
            table = pq.read_table(path)
            metadata = table.schema.metadata or {}
            columns = _arrays(table)
        if _METADATA not in metadata:
            raise FileError(f"{path} is not a trajectory", wanted="a file written by Trajectory.save")
        with reading(Path(path)):
            held = metadata[_METADATA].decode()
            about = json.loads(held)
            if sealed or "format" in about or _CHECKSUM in metadata:
                check(Path(path), metadata.get(_CHECKSUM, b"").decode() or None, digest(columns, {"": held}))
            return cls(columns, about["configuration"], int(about["n_parameters"]))

    def plot(self, metric: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Plot one column against the step: the mean and the range over seeds.

        Args:
            metric: the column: a metric, "loss" or "accuracy"; by default the first metric.
            ax: the Axes to draw on; by default those of a new figure.

        >>> columns = {"seed": np.array([0, 0]), "step": np.array([0, 1]), "loss": np.array([2.0, 1.0])}
        >>> Trajectory(columns, {}, 4).plot("loss").get_ylabel()
        'loss'
        """
        from isoscope.tracking.trajectory_figure import draw_curve

        return draw_curve(self, metric, ax=ax)

    def figure(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Figure:
        """Draw two metrics against the step with the range over seeds, and against each other; see `draw`."""
        from isoscope.tracking.trajectory_figure import draw

        return draw(self, path, **options)

    def _instead_of(self, name: str) -> str:
        columns = [column for column in self.columns if column.partition("@")[0] == name]
        return f"Use trajectory[{columns[0]!r}]." if columns else super()._instead_of(name)

    @property
    def title(self) -> str:
        """The size of the run in one line."""
        n_seeds = len(self.seeds)
        seeds = f"{n_seeds} seed{'s' if n_seeds > 1 else ''}"
        trained = (f"{int(self.steps[-1]):,} updates", seeds, f"{self.n_parameters:,} parameters")
        return ", ".join([*_shape(self.configuration), *trained])

    def ends(self) -> dict[str, dict[str, float]]:
        """Return for each column its mean over seeds at the start and the end, and the largest deviation."""
        mean, several = self.mean(), len(self.seeds) > 1
        return {
            name: {
                "start": float(mean[name][0]),
                "end": float(mean[name][-1]),
                "max_standard_deviation": self.max_standard_deviation(name) if several else math.nan,
            }
            for name in ("loss", "accuracy", *self.metrics)
        }

    @property
    def main_pair(self) -> tuple[str, str] | None:
        """isoscore and silhouette if both were measured, otherwise the first two metrics; None for fewer."""
        if {"isoscore", "silhouette"} <= set(self.metrics):
            return "isoscore", "silhouette"
        return (self.metrics[0], self.metrics[1]) if len(self.metrics) > 1 else None

    def _main_correlation(self) -> Correlation | None:
        try:
            return None if self.main_pair is None else self.correlation(*self.main_pair)
        except UndefinedError:
            return None

    def to_dict(self) -> dict[str, Any]:
        """Return start, end, deviation, correlation and configuration as JSON-ready values."""
        return {
            "n_parameters": self.n_parameters,
            "seeds": list(self.seeds),
            "steps": int(self.steps[-1]),
            "columns": plain(self.ends()),
            "correlation": plain(self._main_correlation()),
            "configuration": dict(self.configuration),
        }

    def grids(self) -> Iterable[Grid]:
        """Return each column at the start and at the end of the run."""
        rows: list[list[Cell]] = [[name, *values.values()] for name, values in self.ends().items()]
        yield Grid("", ("", "start", "end", "largest sd over seeds"), rows)

    def lines(self) -> list[str]:
        """Return the correlation of the main pair of metrics; fewer points than 5 say too little."""
        correlation = self._main_correlation()
        if correlation is None or correlation.n_points < _FEW_POINTS:
            return []
        return [correlation.title, correlation.sentence]


def _parts(column: str) -> tuple[str, dict[str, Any]]:
    """Return the metric of a column, and its layer and view.

    >>> _parts("isoscore_without_sinks@4"), _parts("hidden1_isoscore")
    (('isoscore', {'layer': 4, 'view': 'without sinks'}), ('isoscore', {'layer': 'hidden1'}))
    """
    metric, _, layer = column.partition("@")
    if column.startswith("hidden") and "_" in column:
        layer, _, metric = column.partition("_")
    group: dict[str, Any] = {"layer": int(layer) if layer.isdecimal() else layer} if layer else {}
    if metric.endswith("_without_sinks"):
        metric, group["view"] = metric.removesuffix("_without_sinks"), "without sinks"
    return metric, group


def _shape(about: Mapping[str, Any]) -> list[str]:
    """Return the numbers of vectors and dimensions, as ranges where layers differ."""
    shapes = about.get("shapes") or ([[about["n"], about["d"]]] if "n" in about else [])
    if shapes:
        n, d = (_range(sizes) for sizes in zip(*shapes, strict=True))
        return [f"{n} vectors × {d}"]
    return [f"{about['n_items']:,} items"] if "n_items" in about else []


def _range(sizes: Sequence[int]) -> str:
    least, most = min(sizes), max(sizes)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _arrays(table: Any) -> dict[str, np.ndarray]:
    """Return the columns of an Arrow table as arrays."""
    return {name: np.array(table[name].to_numpy()) for name in table.column_names}
