from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.engine.dask_arrays import DaskVectors
from isoscope.engine.source import MEMBERS, Wrapped, is_source
from isoscope.errors import InputError

X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
TOPICS = ["a", "b", "c"] * 10


def table(path: Path, rows: slice = slice(None)) -> Path:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"vector": list(X[rows]), "topic": TOPICS[rows], "month": np.arange(30)[rows] % 12}
    parquet.write_table(pa.table(columns), path)
    return path


def a_space(folder: Path) -> Any:
    return iso.Space(X, labels=TOPICS)


def a_file(folder: Path) -> Any:
    return iso.open_vectors(table(folder / "one.parquet"), labels="topic")


def a_part(folder: Path) -> Any:
    np.save(folder / "rows.npy", X)
    (folder / "topics.txt").write_text("\n".join(TOPICS))
    return iso.open_vectors(folder / "rows.npy", labels=folder / "topics.txt").parts(15)[0]


def shards(folder: Path) -> Any:
    (folder / "many").mkdir()
    table(folder / "many" / "0.parquet", slice(0, 15))
    table(folder / "many" / "1.parquet", slice(15, 30))
    return iso.open_vectors(folder / "many", labels="topic")


def remote(folder: Path) -> Any:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open(f"memory://{folder.name}/0.parquet", "wb") as file:
        file.write(table(folder / "0.parquet").read_bytes())
    return iso.open_vectors(f"memory://{folder.name}/0.parquet", labels="topic").parts(100)[0]


def dask_array(folder: Path) -> Any:
    da = pytest.importorskip("dask.array")
    return DaskVectors(da.from_array(X, chunks=(10, 4)), labels=TOPICS)


def dask_chunk(folder: Path) -> Any:
    return dask_array(folder).parts(10)[0]


def wrapped(folder: Path) -> Any:
    return Wrapped(a_space(folder))


SOURCES = [a_space, a_file, a_part, shards, remote, dask_array, dask_chunk, wrapped]


@pytest.mark.parametrize("make", SOURCES)
def test_every_source_has_every_member(make: Any, tmp_path: Path) -> None:
    source = make(tmp_path)
    assert is_source(source)
    found = {name: getattr(source, name) for name in MEMBERS}
    space, n = found["load"](), found["n_rows"] or len(list(found["load"]().vectors))
    assert found["n_dims"] == 4
    assert torch.equal(space.vectors, torch.as_tensor(X[:n]))
    assert torch.equal(torch.cat([block.vectors for block in source.blocks(7)]), space.vectors)
    parts = source.parts(10)
    assert torch.equal(torch.cat([block.vectors for part in parts for block in part.blocks()]), space.vectors)
    assert all(is_source(part) for part in parts)
    assert found["device"] == torch.device("cpu")
    assert isinstance(found["title"], str)
    assert found["n_bytes"] is None or found["n_bytes"] >= 16 * n
    assert found["weights"] is None
    assert [found["labels"].names[code] for code in found["labels"].codes] == TOPICS[:n]
    for name in found["columns"]:
        assert len(list(source.column(name))) == n
    with pytest.raises(InputError, match="nothing_of_the_kind"):
        source.column("nothing_of_the_kind")


def test_columns_come_in_the_order_of_rows(tmp_path: Path) -> None:
    assert list(shards(tmp_path).column("month")) == [row % 12 for row in range(30)]
    assert list(a_space(tmp_path).column("labels")) == TOPICS


def test_identity_tells_other_rows(tmp_path: Path) -> None:
    assert iso.Space(X).identity == iso.Space(X.copy()).identity
    assert iso.Space(X).identity != iso.Space(X + 1).identity


@pytest.mark.parametrize("other", [X, torch.zeros(2, 2), [[1.0]], None, "path", {"blocks": 1}])
def test_arrays_are_no_sources(other: Any) -> None:
    assert not is_source(other)


def test_no_member_is_computed_to_find_out() -> None:
    class Lazy(Wrapped):
        @property
        def labels(self) -> Any:
            raise AssertionError

    assert is_source(Lazy(iso.Space(X)))
