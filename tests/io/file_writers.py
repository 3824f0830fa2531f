"""How to write the same vectors in every format."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import torch
from safetensors.numpy import save_file

N, D = 11, 4


def lists(X: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])


def write_csv(path: Path, X: np.ndarray, delimiter: str = ",", header: bool = True) -> None:
    lines = [delimiter.join(f"x{j}" for j in range(X.shape[1]))] if header else []
    lines += [delimiter.join(map(repr, row)) for row in X.tolist()]
    write_text(path, "\n".join(lines) + "\n")


def write_text(path: Path, text: str) -> None:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_words(path: Path, X: np.ndarray, header: bool = False) -> None:
    lines = [f"{X.shape[0]} {X.shape[1]}"] if header else []
    lines += [f"w{i} " + " ".join(map(repr, row)) for i, row in enumerate(X.tolist())]
    write_text(path, "\n".join(lines) + "\n")


def write_word2vec(path: Path, X: np.ndarray, newline: bytes = b"\n") -> None:
    data = f"{X.shape[0]} {X.shape[1]}\n".encode()
    for i, row in enumerate(X.astype("<f4")):
        data += f"w{i} ".encode() + row.tobytes() + newline
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_stream(path: Path, table: pa.Table, max_chunksize: int = 3) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=max_chunksize)


def table(X: np.ndarray) -> pa.Table:
    return pa.table({"vector": lists(X)})


def write_zarr(path: Path, X: np.ndarray, zarr_format: int, group: bool = False) -> None:
    import zarr

    if group:
        root = zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
        root.create_array("vectors", data=X, chunks=(min(3, len(X)), X.shape[1]))
        root.create_array("labels", data=np.arange(len(X)) % 3)
        return
    zarr.create_array(str(path), data=X, chunks=(3, X.shape[1]), zarr_format=zarr_format)


def write_fvecs(path: Path, X: np.ndarray) -> None:
    lengths = np.full((len(X), 1), X.shape[1], "<i4").view("<f4")
    np.hstack([lengths, X.astype("<f4")]).tofile(path)


def write_hdf5(path: Path, X: np.ndarray) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("data/vectors", data=X, chunks=(min(3, len(X)), X.shape[1]))
        file.create_dataset("labels", data=[f"l{i % 3}" for i in range(len(X))])


def write_faiss(path: Path, X: np.ndarray, recipe: str = "Flat") -> None:
    import faiss

    index = faiss.index_factory(X.shape[1], recipe)
    index.train(X)
    index.add_with_ids(X, np.arange(len(X)) + 100) if "IDMap" in recipe else index.add(X)
    faiss.write_index(index, str(path))


def write_lance(path: Path, X: np.ndarray) -> None:
    import lance

    lance.write_dataset(table(X), str(path), mode="overwrite", max_rows_per_file=4)


def write_duckdb(path: Path, X: np.ndarray) -> None:
    import duckdb

    rows = table(X)  # which the statement names
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE OR REPLACE TABLE items AS SELECT * FROM rows")
    assert len(rows) == len(X)


WRITERS: dict[str, Callable[[Path, np.ndarray], object]] = {
    "two.zarr": lambda path, X: write_zarr(path, X, 2),
    "three.zarr": lambda path, X: write_zarr(path, X, 3),
    "group.zarr": lambda path, X: write_zarr(path, X, 3, group=True),
    "a.npy": lambda path, X: np.save(path, X),
    "fortran.npy": lambda path, X: np.save(path, np.asfortranarray(X)),
    "a.npz": lambda path, X: np.savez(path, X),
    "small.npz": lambda path, X: np.savez_compressed(path, vectors=X, other=np.arange(3)),
    "fortran.npz": lambda path, X: np.savez(path, X=np.asfortranarray(X)),
    "a.safetensors": lambda path, X: save_file({"v": X}, path),
    "a.pt": lambda path, X: torch.save(torch.from_numpy(X), path),
    "dict.pth": lambda path, X: torch.save({"state": {"w": torch.from_numpy(X), "b": torch.ones(3)}}, path),
    "a.parquet": lambda path, X: pq.write_table(table(X), path, row_group_size=4),
    "list.parquet": lambda path, X: pq.write_table(
        pa.table({"v": pa.array(X.tolist(), pa.list_(pa.float32()))}), path
    ),
    "wide.parquet": lambda path, X: pq.write_table(pa.table({f"x{j}": c for j, c in enumerate(X.T)}), path),
    "a.feather": lambda path, X: pyarrow.feather.write_feather(table(X), str(path), chunksize=4),
    "plain.arrow": lambda path, X: pyarrow.feather.write_feather(
        table(X), str(path), compression="uncompressed"
    ),
    "stream.arrow": lambda path, X: write_stream(path, table(X)),
    "a.csv": write_csv,
    "a.csv.gz": write_csv,
    "bare.csv": lambda path, X: write_csv(path, X, header=False),
    "semicolon.csv": lambda path, X: write_csv(path, X, delimiter=";"),
    "savetxt.csv": lambda path, X: np.savetxt(path, X),
    "a.tsv": lambda path, X: write_csv(path, X, delimiter="\t"),
    "a.json": lambda path, X: write_text(path, json.dumps(X.tolist())),
    "a.jsonl": lambda path, X: write_text(path, "".join(json.dumps({"v": row}) + "\n" for row in X.tolist())),
    "a.txt": write_words,
    "a.glove.gz": write_words,
    "a.vec": lambda path, X: write_words(path, X, header=True),
    "a.bin": write_word2vec,
    "nonewline.bin": lambda path, X: write_word2vec(path, X, newline=b""),
    "a.bin.gz": write_word2vec,
    "a.fvecs": write_fvecs,
    "a.h5": write_hdf5,
    "a.hdf5": write_hdf5,
    "a.faiss": write_faiss,
    "graph.faiss": lambda path, X: write_faiss(path, X, "HNSW4,Flat"),
    "a.index": lambda path, X: write_faiss(path, X, "IDMap,Flat"),
    "a.lance": write_lance,
    "a.duckdb": write_duckdb,
}
