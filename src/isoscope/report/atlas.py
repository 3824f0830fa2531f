"""`save_atlas`: a table that Embedding Atlas opens, with places in the plane, neighbours, texts, labels."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isoscope.engine.inputs import as_input
from isoscope.engine.source import Source
from isoscope.errors import FileError, check_choice, check_seed, check_whole
from isoscope.frames import as_frame
from isoscope.io.atomic import write_atomically
from isoscope.io.files import reason
from isoscope.io.shards import VectorShards
from isoscope.io.sources import row_values
from isoscope.io.targets import check_target
from isoscope.io.vector_files import LateFile, VectorFile
from isoscope.report.projections import projection as project
from isoscope.space import Space
from isoscope.statistics.directions import has_direction
from isoscope.statistics.neighbors import METRICS, Neighbors
from isoscope.statistics.principal import Principal

PRINCIPAL = "principal"
PROJECTIONS = (PRINCIPAL, "UMAP", "PaCMAP")
_X, _Y, _NEIGHBORS, _TEXT, _LABEL = "projection_x", "projection_y", "neighbors", "text", "label"


def save_atlas(
    X: Any,
    path: str | os.PathLike[str],
    *,
    labels: Any = None,
    texts: Any = None,
    projection: str = PRINCIPAL,
    k: int = 15,
    metric: str = "cosine",
    seed: int = 0,
    vectors: str | None = None,
) -> Path:
    """Write a space as a .parquet file that Embedding Atlas opens; `atlas_command` returns the command.

    The columns are `text` and `label` where they are known, `projection_x` and `projection_y`, the place of
    each row in the plane, and `neighbors`, its nearest rows as {"ids": […], "distances": […]}. By cosine, a
    zero vector has no neighbours and is none. Of a table or data frame, the other columns are written too,
    with "_" after a name that is one of these.

    Args:
        X: (n, d) vectors in any array, a Space, or an opened file.
        path: the file to write, .parquet.
        labels: one label for each row.
        texts: the text of each row.
        projection: "principal", the two strongest principal directions; "UMAP" (needs umap-learn) or "PaCMAP"
            (needs pacmap).
        k: neighbours of each row, exact; 0 leaves the column out.
        metric: "cosine" or "euclidean", the distance of the neighbours.
        seed: the seed of UMAP and PaCMAP.
        vectors: the column of a table that holds the vectors, where it has several.

    >>> import tempfile
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atlas_command(save_atlas(X, f"{folder}/atlas.parquet")).replace(folder, "folder")
    'embedding-atlas folder/atlas.parquet --x projection_x --y projection_y --neighbors neighbors'
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = check_target(path, (".parquet",))
    check_choice("projection", projection, PROJECTIONS)
    check_choice("metric", metric, METRICS)
    check_whole("k", k, least=0)
    check_seed(seed)
    source = as_input(X, {"labels": labels}, vectors=vectors).source
    space = source.load()
    if texts is not None:
        space = replace(space, texts=row_values(X if as_frame(X) else source, texts, "texts"))
    columns: dict[str, Any] = {}
    if space.texts is not None:
        columns[_TEXT] = pa.array(list(space.texts), pa.string())
    if space.labels is not None:
        names = [space.labels.names[code] for code in space.labels.codes.tolist()]
        columns[_LABEL] = pa.array([str(name) for name in names])
    places = _places(space, projection, seed)
    columns |= {name: pa.array(places[:, axis].numpy()) for axis, name in enumerate((_X, _Y))}
    if k and len(space) > 1:
        columns[_NEIGHBORS] = _neighbors(space.vectors, k, metric)
    own = {_TEXT: texts, _LABEL: labels}
    replaced = {
        name for name, given in own.items() if given is None or (isinstance(given, str) and given == name)
    }
    try:
        table = pa.table(_columns_beside(X, source, vectors, taken=columns, replaced=replaced) | columns)
        return write_atomically(place, lambda beside: pq.write_table(table, beside))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FileError(f"a column cannot be written to Parquet: {reason(error)}") from error


def atlas_command(path: str | os.PathLike[str]) -> str:
    """Return the command that opens a file of `save_atlas` in Embedding Atlas."""
    import pyarrow.parquet as pq

    names = pq.read_schema(path).names
    words = ["embedding-atlas", os.fspath(path)]
    for option, name in {"--text": _TEXT, "--x": _X, "--y": _Y, "--neighbors": _NEIGHBORS}.items():
        words += [option, name] if name in names else []
    return shlex.join(words)


def n_without_neighbors(path: str | os.PathLike[str]) -> int:
    """Return how many rows of a file of `save_atlas` have no neighbours, though others have."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if _NEIGHBORS not in pq.read_schema(path).names:
        return 0
    column = pq.read_table(path, columns=[_NEIGHBORS])[_NEIGHBORS]
    sizes = pc.list_value_length(pc.struct_field(column, "ids"))
    return int(pc.sum(pc.equal(sizes, 0)).as_py())


def _columns_beside(
    X: Any, source: Source, vectors: str | None, *, taken: Collection[str], replaced: Collection[str]
) -> dict[str, Any]:
    """Return the columns of a table that are not its vectors.

    A column whose name is `taken` is left out where it is `replaced`, and has "_" after its name elsewhere.
    """
    columns = {}
    for name, values in _all_beside(X, source, vectors).items():
        if name not in taken:
            columns[name] = values
        elif name not in replaced:
            new = name
            while new in taken or new in columns:
                new += "_"
            columns[new] = values
    return columns


def _all_beside(X: Any, source: Source, vectors: str | None) -> dict[str, Any]:
    import pyarrow as pa

    frame = as_frame(X)
    if frame is not None:
        return frame.beside(vectors)
    rows = source.table_rows() if isinstance(source, VectorFile | LateFile | VectorShards) else None
    if rows is None or len(rows.names) == len(rows.vectors):
        return {}
    table = pa.Table.from_batches(list(rows.read()))
    return {name: table.column(name) for name in table.column_names}


def _places(space: Space, projection: str, seed: int) -> Tensor:
    """Return (n, 2) float64 places in the plane; a space along one direction has 0 in the second."""
    if len(space) == 1:
        return torch.zeros(1, 2, dtype=torch.float64)
    if projection != PRINCIPAL:
        return torch.as_tensor(project(space.vectors, method=projection, seed=seed)).cpu()
    coordinates = Principal.of(space.vectors).coordinates(space.vectors)[:, :2].cpu()
    return torch.nn.functional.pad(coordinates, (0, 2 - coordinates.shape[1]))


def _neighbors(vectors: Tensor, k: int, metric: str) -> Any:
    """Return the nearest rows of each row; a row without direction has empty lists, by cosine."""
    import pyarrow as pa

    rows = torch.arange(len(vectors), device=vectors.device)
    if metric == "cosine":
        rows = rows[has_direction(vectors)]
    k = min(k, max(0, len(rows) - 1))
    ids, distances = torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.float64)
    if k:
        nearest = Neighbors.of(vectors[rows], k=k, metric=metric)
        ids, distances = rows[nearest.indices].flatten(), nearest.distances.flatten()
    sizes = torch.zeros(len(vectors) + 1, dtype=torch.int32)
    sizes[rows.cpu() + 1] = k
    ends = pa.array(sizes.cumsum(0, dtype=torch.int32).numpy())
    lists = [pa.ListArray.from_arrays(ends, pa.array(values.cpu().numpy())) for values in (ids, distances)]
    return pa.StructArray.from_arrays(lists, names=["ids", "distances"])
