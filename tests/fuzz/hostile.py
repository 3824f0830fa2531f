"""Valid files of hostile numbers and odd columns, and hostile options."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.mutations import ESCAPE, STRINGS
from tests.fuzz.vector_seeds import texts

_WORDS = tuple(text for text in STRINGS if "/" not in text)
_SMALL = (
    "0",
    "-1",
    "1",
    "2",
    "x",
    "1.5",
    "nan",
    "",
    "1e3",
    "٣",
    "1²",
    ESCAPE,
    "-0",
    "+1",
    "0x2",
    "1,2",
    "9" * 30,
)
_LARGE = (*_SMALL, str(2**31), str(2**63 - 1), str(2**63), str(2**64), "-9223372036854775809")
_REAL = ("0", "-1", "1", "0.5", "nan", "inf", "-inf", "1e308", "1e400", "1e-320", "x", "", ESCAPE, "1,5")
# "../" is kept out: an option that names an output is obeyed
_PATHS = (
    "",
    ".",
    "nowhere/x",
    "/dev/full",
    "/proc/nowhere",
    "a.npy",
    "x" * 300,
    f"{ESCAPE}.npy",
    "a.npy/x",
    "labels.txt",
    " ",
)
# per command: a call that works, then options with what they may be given
_COMMANDS: dict[str, tuple[list[str], dict[str, tuple[str, ...]]]] = {
    "measure": (["a.npy", "-m", "isoscore,mean_cosine"], {
        "--labels": (*_PATHS, *_WORDS, "labels.txt:x", "labelled.npz:labels", "labelled.npz:vectors"),
        "--weights": (*_PATHS, *_WORDS, "labels.txt", "weights.txt", "labelled.npz:weights"),
        "--metrics": (*_WORDS, "isoscore,", ",", "all", "nothing", "silhouette", "isoscore_star", "alignment"),
        "--seed": _LARGE, "--memory": (*_LARGE, "1KB", "1e9", "9" * 30 + "GB", "-1GB", "1 GB", "1TBB", "0GB", "300MB"),
        "--checkpoint": _PATHS, "--key": _WORDS, "--vectors": _WORDS, "--model": (*_PATHS, *_WORDS),
        "--batch-size": _LARGE, "--pooling": _WORDS, "--device": (*_WORDS, "cuda", "cpu:9", "meta", "mps", "cuda:99"),
        "--text-column": _WORDS, "--prefix": _WORDS,
    }),
    "correct": (["a.npy", "--method", "center", "-o", "out.npy"], {
        "--method": (*_WORDS, "center,", "whiten,whiten", "normalize,center", "cluster-center"), "--output": _PATHS,
        "--components": _LARGE, "--strength": _REAL, "--dimensions": (*_LARGE, "0,1", "9,9"), "--clusters": _LARGE,
        "--labels": (*_PATHS, *_WORDS), "--fit": (*_PATHS, "labels.txt"), "--save": _PATHS, "--load": _PATHS, "--seed": _LARGE,
    }),
    "compare": (["a.npy", "a.npy", "-m", "isoscore"], {
        "--gate": (*_WORDS, "cka>=0.5", "cka>=nan", "isoscore>=1e400", "delta:x>=1", "overlap<=-1", ">=", "cka=>1", "cka >= 0"),
        "--neighbors": _LARGE, "--metric": (*_WORDS, "euclidean"), "--moved": _LARGE, "--ids": (*_PATHS, "labels.txt"),
        "--texts": (*_PATHS, "texts.csv"), "--labels": (*_PATHS, *_WORDS), "--seed": _LARGE, "--output": _PATHS, "--key": _WORDS,
    }),
    "frontier": (["a.npy", "-l", "labels.txt"], {
        "--clusters": (*_LARGE, "auto"), "--run": _PATHS, "--output": (*_PATHS, "x.png", f"{ESCAPE}.png"), "--top": _LARGE, "--seed": _LARGE,
    }),
    "report": (["a.npy", "-o", "page.html"], {
        "--title": _WORDS, "--texts": (*_PATHS, "texts.csv", "texts.csv:text"), "--labels": (*_PATHS, *_WORDS, "texts.csv:label"),
        "--run": _PATHS, "--output": (*_PATHS, f"{ESCAPE}.html"), "--seed": _LARGE,
    }),
    "train": (["a.npy", "-l", "labels.txt", "--steps", "2", "--seeds", "1"], {
        "--steps": _SMALL[:-1], "--seeds": ("0", "-1", "1,1", "x", "", ",", "1,", "2", "1.5", "-3,4", str(2**64) + ","), "--every": _LARGE,
        "--metrics": _WORDS, "--pairs": _PATHS, "--multi-label": _WORDS, "--hidden": ("0", "-1", "x", "2,2", "", str(2**63), "9" * 30),
        "--activation": _WORDS, "--objective": (*_WORDS, "triplet"), "--n-triplets": _LARGE, "--optimizer": (*_WORDS, "sgd"),
        "--learning-rate": _REAL, "--sample-above": _LARGE, "--tolerance": _REAL, "--patience": _LARGE, "--target-accuracy": _REAL,
        "--log": ("x", ESCAPE, ""), "--output": _PATHS, "--device": ("x", "cuda:99", "meta", ESCAPE),
    }),
    "layers": (["MODEL", "-t", "texts.csv", "--text-column", "text", "--no-clusters"], {
        "--window": _LARGE, "--max-tokens": _LARGE, "--layers": (*_LARGE, "0,0", "-1", "0,9"), "--sample": _LARGE, "--memory": _LARGE,
        "--seed": _LARGE, "--batch-size": _LARGE, "--text-column": _WORDS, "--data": _PATHS, "--texts": (*_PATHS, *_WORDS),
        "--output": _PATHS, "--device": ("x", "cuda:99", ESCAPE),
    }),
    "finetune": (["MODEL", "-t", "texts.csv", "-l", "label", "--epochs", "1", "--batch-size", "16", "--max-train", "4"], {
        "--task": _WORDS, "--labels": _WORDS, "--text-column": _WORDS, "--pair-column": _WORDS, "--held-out": _REAL,
        "--regularizer": (*_WORDS, "istar", "cosreg"), "--lambda": _REAL, "--zeta": _REAL, "--metric": _WORDS, "--epochs": _SMALL[:-1],
        "--batch-size": _LARGE, "--learning-rate": _REAL, "--max-length": _LARGE, "--save-every": _LARGE, "--max-train": _LARGE,
        "--output": _PATHS, "--precision": _WORDS, "--seeds": ("0", "-1", "1,1", "x", "", ","), "--data": _PATHS,
    }),
    "contrast": (["MODEL", "-p", "text-pairs.tsv", "--steps", "1", "--batch-size", "4"], {
        "--pairs": (*_PATHS, *_WORDS), "--columns": (*_WORDS, "first,second", "first", "a,b,c"), "--temperature": _REAL, "--warmup": _REAL,
        "--batch-size": _LARGE, "--learning-rate": _REAL, "--max-length": _LARGE, "--probe": _PATHS, "--every": _LARGE,
        "--layers": (*_LARGE, "0,-1"), "--seed": _LARGE, "--output": _PATHS, "--save-every": _LARGE, "--pooling": _WORDS, "--precision": _WORDS,
    }),
    "advise": (["a.npy", "-l", "labels.txt", "-t", "knn", "-c", "center", "--folds", "2", "--repeats", "1"], {
        "--tasks": (*_WORDS, "knn,", "similarity"), "--corrections": (*_WORDS, "center,center"), "--folds": _SMALL, "--repeats": _SMALL[:-1],
        "--max-rows": _LARGE, "--max-pairs": _LARGE, "--save": _PATHS, "--seed": _LARGE, "--output": _PATHS, "--pairs": _PATHS,
    }),
    "metrics": ([], {"--json": ("x",), "--nothing": ("",)}),
}  # fmt: skip


def hostile_options(rng: random.Random, model: str) -> list[str]:
    """A call that works, with one or two options given something hostile."""
    command = rng.choices(list(_COMMANDS), (8, 6, 6, 4, 3, 5, 3, 2, 2, 2, 1))[0]
    base, options = _COMMANDS[command]
    argv = [command, *(model if word == "MODEL" else word for word in base)]
    for name in rng.sample(sorted(options), min(len(options), rng.choice((1, 1, 1, 2)))):
        value = rng.choice(options[name]).replace("\x00", "")
        argv += [f"{name}={value}"] if rng.random() < 0.7 else [name, value]
    if rng.random() < 0.05:
        argv.insert(
            rng.randrange(1, len(argv) + 1),
            rng.choice(("--nothing", "-z", "extra", ESCAPE, "", "--", "--json=1")),
        )
    if rng.random() < 0.5 and command != "metrics":
        argv.append("--json")
    return argv


def hostile_numbers(rng: random.Random, folder: Path) -> tuple[str, str]:
    """Write vectors that strain arithmetic, and labels for them; what they are, and the file's name."""
    draw = np.random.default_rng(rng.randrange(2**32))
    n, d = rng.choice((1, 2, 3, 24, 24, 24, 60, 60, 300)), rng.choice((1, 2, 2, 3, 5, 5, 8, 40))
    X = draw.normal(size=(n, d))
    what = rng.choice(
        [
            "scale",
            "offset",
            "outlier",
            "constant",
            "zeros",
            "equal",
            "duplicates",
            "nan",
            "inf",
            "mixed",
            "tiny",
            "column",
            "integers",
            "alternating",
            "plain",
        ]
    )
    if what == "scale":
        X *= 10.0 ** rng.choice(
            (-320, -300, -160, -100, -44, -30, -10, 10, 18, 30, 38, 100, 150, 160, 300, 307)
        )
    elif what == "offset":
        X += 10.0 ** rng.choice((2, 4, 6, 8, 12, 15))
    elif what == "outlier":
        X[rng.randrange(n), rng.randrange(d)] = rng.choice(
            (1e5, 1e10, 1e15, 3e38, -3e38, 1e100, 1e200, 1e300)
        )
    elif what == "constant":
        X[:, rng.randrange(d)] = rng.choice((0.0, 1.0, 1e10, -1e-300))
    elif what == "zeros":
        X[draw.random(n) < rng.choice((0.01, 0.3, 1.0))] = 0
    elif what == "equal":
        X[:] = X[0]
    elif what == "duplicates":
        X = X[draw.integers(0, max(1, n // 3), n)]
    elif what in ("nan", "inf"):
        X[rng.randrange(n), rng.randrange(d)] = rng.choice((np.nan,) if what == "nan" else (np.inf, -np.inf))
    elif what == "mixed":
        X *= 10.0 ** draw.integers(-12, 12, size=(n, 1))
    elif what == "tiny":
        X = 1 + X * 10.0 ** rng.choice((-3, -7, -12, -15))
    elif what == "column":
        X[:, rng.randrange(d)] *= 10.0 ** rng.choice((3, 8, 15, 30, 120))
    elif what == "integers":
        X = np.round(X * 3)
    elif what == "alternating":
        X[1::2] = -X[: n // 2]
    kind = rng.choice(("<f4", "<f8", "<f8", "<f2", ">f4"))
    with np.errstate(over="ignore"):
        X = X.astype(kind)
    name = rng.choice(("x.npy", "x.npy", "x.npz", "x.csv", "x.parquet", "x.safetensors"))
    _write(folder / name, X)
    names = rng.choice(
        (
            ["a"] * n,
            [str(i % 2) for i in range(n)],
            [str(i) for i in range(n)],
            [f"l{i * i % 7}" for i in range(n)],
        )
    )
    (folder / "labels.txt").write_text("\n".join(names) + "\n")
    return f"{what}, {n} × {d} {kind} in {name}", name


def _write(path: Path, X: np.ndarray) -> None:
    import pyarrow.parquet as pq
    from safetensors.numpy import save_file
    from tests.io.file_writers import table, write_csv

    native = X.astype(X.dtype.newbyteorder("="))
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".npz":
        np.savez(path, X)
    elif path.suffix == ".csv":
        write_csv(path, native.astype(np.float64))
    elif path.suffix == ".parquet":
        pq.write_table(table(native), path)
    else:
        save_file({"v": native}, path)


def hostile_table(rng: random.Random, folder: Path) -> str:
    """Write a table whose columns are odd but valid; the file's name."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet as pq

    n = rng.choice((0, 1, 2, 24, 24))
    draw = np.random.default_rng(rng.randrange(2**32))
    rows = draw.normal(size=(n, 4)).round(3)
    columns: dict[str, Any] = {}
    vector = rng.choice(
        (
            "list",
            "fixed",
            "large",
            "half",
            "double",
            "uneven",
            "null",
            "nullinside",
            "strings",
            "nested",
            "wide",
            "binary",
            "struct",
            "ints",
        )
    )
    listed: Any = rows.tolist()
    kinds = {
        "large": pa.large_list(pa.float32()),
        "half": pa.list_(pa.float16()),
        "double": pa.list_(pa.float64()),
        "fixed": pa.list_(pa.float32(), 4),
    }
    if vector == "uneven" and n:
        listed[0] = listed[0][:2]
    elif vector == "null" and n:
        listed[n // 2] = None
    elif vector == "nullinside" and n:
        listed[n // 2][1] = None
    elif vector == "strings":
        listed = [[str(x) for x in row] for row in listed]
    elif vector == "nested":
        listed = [[row] for row in listed]
    elif vector == "binary":
        listed = [row.astype("<f4").tobytes() for row in rows]
    elif vector == "struct":
        listed = [dict(zip("abcd", row, strict=True)) for row in listed]
    elif vector == "ints":
        listed = draw.integers(0, 256, size=(n, 4)).astype(np.uint8).tolist()
    if vector == "wide":
        columns = {f"x{i}": rows[:, i] for i in range(4)}
    elif vector == "half":
        columns["vector"] = pa.array([list(row.astype(np.float16)) for row in rows], kinds["half"])
    else:
        columns["vector"] = (
            pa.array(listed, kinds.get(vector)) if listed else pa.array([], pa.list_(pa.float32()))
        )
    more: dict[str, Any] = {
        "id": pa.array(range(n), pa.int64()), "text": pa.array((texts() * 2)[:n], pa.string()), "when": pa.array([0] * n, pa.timestamp("us")),
        "flag": pa.array([True] * n, pa.bool_()), "none": pa.nulls(n), f"a{ESCAPE}": pa.array(["x"] * n, pa.string()),
        "price": pa.array([1] * n, pa.decimal128(9, 2)), "kind": pa.array(["a"] * n, pa.string()).dictionary_encode(),
        "": pa.array([0.5] * n, pa.float64()), "label": pa.array([STRINGS[i % len(STRINGS)] for i in range(n)], pa.string()),
    }  # fmt: skip
    for name in rng.sample(sorted(more), rng.choice((0, 0, 1, 2, 3))):
        columns[name] = more[name]
    table = pa.table(columns)
    if rng.random() < 0.1:
        table = table.append_column(table.schema.field(0), table.column(0))
    name = rng.choice(("t.parquet", "t.arrow", "t.feather", "s.arrow"))
    if name == "t.parquet":
        pq.write_table(table, folder / name)
    elif name == "s.arrow":
        from tests.io.file_writers import write_stream

        write_stream(folder / name, table, 7)
    else:
        pyarrow.feather.write_feather(table, str(folder / name))
    return name
