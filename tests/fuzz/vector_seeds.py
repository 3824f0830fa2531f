"""Valid files of the same vectors, labels, weights, texts and pairs: what the fuzzing suite damages."""

from __future__ import annotations

import gzip
import importlib.util
import json
import random
import zipfile
from pathlib import Path

import numpy as np

N, D = 24, 5
WORDS = ("a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat")


def vectors() -> np.ndarray:
    """(24, 5) float32 of three decimals, so that text formats hold them exactly enough."""
    X = np.random.default_rng(7).normal(size=(N, D)) + 0.5
    return np.round(X, 3).astype(np.float32)


def labels() -> list[str]:
    """Three labels in turn."""
    return ["art", "law", "sea"] * (N // 3)


def weights() -> list[int]:
    """From 1 to 4 in turn."""
    return [1 + i % 4 for i in range(N)]


def texts() -> list[str]:
    """Texts of words that the small models know."""
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=rng.randint(3, 8))) for _ in range(N)]


def has(*modules: str) -> bool:
    """Whether all of these can be imported."""
    return all(importlib.util.find_spec(module) for module in modules)


def write_vectors(folder: Path) -> None:
    """The vectors in every format that the libraries at hand can write."""
    from tests.io.file_writers import WRITERS

    folder.mkdir()
    X = vectors()
    for name, write in WRITERS.items():
        if name.endswith(".zarr") and not has("zarr"):
            continue
        write(folder / name, X)
    np.save(folder / "double.npy", X.astype(np.float64))
    np.save(folder / "half.npy", X.astype(np.float16))
    np.savez(folder / "labelled.npz", vectors=X, labels=np.array(labels()), weights=np.arange(1, N + 1))
    _write_tables(folder, X)


def _write_tables(folder: Path, X: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from tests.io.file_writers import lists

    columns = {"id": [f"row {i}" for i in range(N)], "vector": lists(X), "text": texts(), "label": labels()}
    pq.write_table(pa.table(columns), folder / "named.parquet")
    rows = [{"text": text, "embedding": row} for text, row in zip(texts(), X.tolist(), strict=True)]
    (folder / "embedding.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "rows.json").write_text(json.dumps(X.tolist()))


def write_shards(folder: Path) -> None:
    """The vectors in three files each of several formats."""
    import pyarrow.parquet as pq
    from safetensors.numpy import save_file
    from tests.io.file_writers import table, write_csv

    for kind in ("npy", "parquet", "csv", "safetensors"):
        inside = folder / kind
        inside.mkdir(parents=True)
        for part in range(3):
            X, path = vectors()[8 * part : 8 * part + 8], inside / f"part-{part}.{kind}"
            if kind == "npy":
                np.save(path, X)
            elif kind == "parquet":
                pq.write_table(table(X), path)
            elif kind == "csv":
                write_csv(path, X)
            else:
                save_file({"v": np.ascontiguousarray(X)}, path)


def write_row_files(folder: Path) -> None:
    """Labels and weights in every format that holds them."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet as pq

    folder.mkdir()
    names, counts = labels(), weights()
    for stem, values in (("labels", names), ("weights", counts)):
        lines = "".join(f"{value}\n" for value in values)
        (folder / f"{stem}.txt").write_text(lines)
        (folder / f"{stem}.csv").write_text(f"{stem}\n{lines}")
        (folder / f"{stem}.tsv").write_text(f"{stem}\n{lines}")
        (folder / f"{stem}.json").write_text(json.dumps(values))
        (folder / f"{stem}.jsonl").write_text("".join(json.dumps({stem: value}) + "\n" for value in values))
        np.save(folder / f"{stem}.npy", np.array(values))
        np.savez(folder / f"{stem}.npz", **{stem: np.array(values)})
        pq.write_table(pa.table({stem: values}), folder / f"{stem}.parquet")
        pyarrow.feather.write_feather(pa.table({stem: values}), str(folder / f"{stem}.feather"))


def write_texts(folder: Path) -> None:
    """Texts and pairs of texts or rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    rows = [{"text": text, "label": label} for text, label in zip(texts(), labels(), strict=True)]
    (folder / "texts.txt").write_text("\n".join(texts()) + "\n")
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "texts.json").write_text(json.dumps(rows))
    table = "\n".join(f"{row['text']},{row['label']}" for row in rows)
    (folder / "texts.csv").write_text(f"text,label\n{table}\n")
    (folder / "texts.tsv").write_text(f"text\tlabel\n{table}\n".replace(",", "\t"))
    pq.write_table(pa.Table.from_pylist(rows), folder / "texts.parquet")
    scored = [(i, (5 * i + 3) % N, round(i / N, 2)) for i in range(N)]
    (folder / "pairs.csv").write_text(
        "first,second,score\n" + "".join(f"{a},{b},{s}\n" for a, b, s in scored)
    )
    both = list(zip(texts(), texts()[::-1], strict=True))
    (folder / "text-pairs.tsv").write_text("first\tsecond\n" + "".join(f"{a}\t{b}\n" for a, b in both))
    pairs = [{"first": a, "second": b, "score": i / N} for i, (a, b) in enumerate(both)]
    (folder / "text-pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    np.save(folder / "row-pairs.npy", np.array([(a, b) for a, b, _ in scored]))


def write_bombs(folder: Path) -> None:
    """Small files that say they are, or become, gigabytes; files nested deep."""
    from tests.io import hostile_files

    folder.mkdir()
    gigabytes = 3 * 2**30
    hostile_files.write_npz_bomb(folder / "bomb.npz", gigabytes)
    hostile_files.write_gzip_bomb(folder / "bomb.csv.gz", b"0,0,0,0\n", gigabytes)
    for kind in ("|S0", "|V0", "<f4"):
        hostile_files.write_npy(folder / f"huge-{kind.strip('|<')}.npy", (hostile_files.HUGE,), kind)
    hostile_files.write_shared_dicts(folder / "shared.pt", 28)
    (folder / "wide.csv").write_text(",".join(["0.5"] * 200_000) + "\n")
    (folder / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    (folder / "deep.jsonl").write_text("[" * 100_000 + "]" * 100_000 + "\n")
    (folder / "long.txt").write_text("word " + "1" * 3_000_000 + "\n")
    (folder / "long-label.txt").write_text("a\n" * (N - 1) + "b" * 500_000 + "\n")


def rezipped(members: list[tuple[str, bytes]], compressed: bool) -> bytes:
    """A zip file of these members, whose names may repeat."""
    import io
    import warnings

    buffer = io.BytesIO()
    with (
        warnings.catch_warnings(),
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if compressed else 0) as file,
    ):
        warnings.simplefilter("ignore")
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name or "_"), data)
    return buffer.getvalue()


def packed(data: bytes) -> bytes:
    """Gzip, the same each time."""
    return gzip.compress(data, mtime=0)
