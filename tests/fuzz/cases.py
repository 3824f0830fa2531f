"""One case by seed and number: files in a folder, a command to call there, and what is known of the answer."""

from __future__ import annotations

import random
from pathlib import Path

from tests.fuzz.case import METRICS, Builder, Case, labels_beside, named
from tests.fuzz.containers import copy, mutate_file, mutate_folder
from tests.fuzz.hostile import hostile_numbers, hostile_options, hostile_table
from tests.fuzz.row_cases import row_file
from tests.fuzz.scenarios import SCENARIOS


def build(family: str, rng: random.Random, seeds: Path, folder: Path) -> Case:
    """Write the files of a case into `folder`, which is empty, and return the case."""
    return FAMILIES[family][0](rng, seeds, folder)


def _call(rng: random.Random, file: str, seeds: Path, folder: Path) -> tuple[list[str], bool]:
    """A command that reads the vectors in a file; whether its readings are those of the whole file."""
    name = f"./{file}" if file.startswith("-") else file
    choice = rng.choices(
        (
            "measure",
            "all",
            "checkpoint",
            "memory",
            "table",
            "correct",
            "compare",
            "frontier",
            "advise",
            "report",
            "train",
        ),
        (50, 4, 3, 4, 8, 8, 8, 5, 2, 3, 2),
    )[0]
    json = [] if rng.random() < 0.1 else ["--json"]
    measure = ["measure", name, "-m", METRICS]
    if choice == "table":
        return ["measure", name], False
    if choice in ("measure", "checkpoint", "memory"):
        more = {"checkpoint": ["--checkpoint", "kept"], "memory": ["--memory", "1500MB"]}.get(
            choice, ["--no-errors"]
        )
        return [*measure, *more, *json], bool(json)
    if choice == "all":
        return ["measure", name, "-m", "all", "-l", labels_beside(seeds, folder), *json], bool(json)
    if choice == "correct":
        method = rng.choice(
            ("center", "standardize", "normalize", "whiten", "all-but-the-top", "cluster-center")
        )
        output = rng.choice(("out.npy", "out.parquet"))
        return ["correct", name, "--method", method, "-o", output, *json], bool(json)
    if choice == "compare":
        copy(seeds / "vectors" / "a.npy", folder / "other.npy")
        gate = ["--gate", "cka>=0.5"] if rng.random() < 0.3 else []
        return ["compare", name, "other.npy", "-m", METRICS, *gate, *json], bool(json)
    if choice == "frontier":
        return ["frontier", name, "-l", labels_beside(seeds, folder), *json], bool(json)
    if choice == "advise":
        few = ["-t", "knn", "-c", "center", "--folds", "2", "--repeats", "1"]
        return ["advise", name, "-l", labels_beside(seeds, folder), *few, *json], bool(json)
    if choice == "report":
        return ["report", name, "-o", "page.html", *json], False
    few = ["--steps", "2", "--seeds", "1"]
    return ["train", name, "-l", labels_beside(seeds, folder), *few, *json], False


def _vector_file(kind: str, seeds_of_kind: tuple[str, ...]) -> Builder:
    def builder(rng: random.Random, seeds: Path, folder: Path) -> Case:
        seed = rng.choice(seeds_of_kind)
        name = named(rng, seed)
        path = copy(seeds / "vectors" / seed, folder / name)
        clean = rng.random() < 0.1
        other = rng.choice(sorted(path for path in (seeds / "vectors").iterdir() if path.is_file()))
        what = (
            "as it is"
            if clean
            else (mutate_folder(path, rng) if path.is_dir() else mutate_file(path, rng, other.read_bytes()))
        )
        argv, whole = _call(rng, name, seeds, folder)
        expect = "file" if whole else "any"
        if clean and not _is_pattern(name) and name.isprintable():
            expect = "accept" if whole else "any"
        return Case(kind, argv, f"{seed}: {what}", expect, name, may_fail="--gate" in argv)

    return builder


def _is_pattern(name: str) -> bool:
    return any(mark in name for mark in "*?[")


def _odd_table(rng: random.Random, seeds: Path, folder: Path) -> Case:
    name = hostile_table(rng, folder)
    argv, whole = _call(rng, name, seeds, folder)
    return Case(
        "tables of odd columns", argv, name, "file" if whole else "any", name, may_fail="--gate" in argv
    )


def _numbers(rng: random.Random, seeds: Path, folder: Path) -> Case:
    what, name = hostile_numbers(rng, folder)
    labelled = rng.random() < 0.5
    argv = [
        "measure",
        name,
        "-m",
        rng.choice((METRICS, METRICS, f"{METRICS},spectrum,isotropy", "all")),
        "--json",
    ]
    if labelled:
        argv += ["-l", "labels.txt"]
    if rng.random() < 0.5:
        argv += ["--no-errors"]
    return Case("hostile numbers", argv, what, "file", name)


def _shards(rng: random.Random, seeds: Path, folder: Path) -> Case:
    kind = rng.choice(("npy", "parquet", "csv", "safetensors"))
    path = copy(seeds / "shards" / kind, folder / named(rng, "parts"))
    what = mutate_folder(path, rng)
    bad = ["--skip-bad"] if rng.random() < 0.3 else []
    more = rng.choice(([], [], ["--memory", "1500MB"], ["--checkpoint", "kept"]))
    name = path.name if rng.random() < 0.8 or _is_pattern(path.name) else f"{path.name}/*.{kind}"
    argv = [
        "measure",
        name if not name.startswith("-") else f"./{name}",
        "-m",
        METRICS,
        "--json",
        *bad,
        *more,
    ]
    return Case(
        "folders of files", argv, f"{kind}: {what}", "any" if bad or "*" in name else "file", path.name
    )


def _texts(rng: random.Random, seeds: Path, folder: Path) -> Case:
    source = rng.choice(sorted((seeds / "texts").glob("texts.*")))
    path = copy(source, folder / named(rng, source.name))
    what = mutate_file(path, rng)
    name = f"./{path.name}"
    model = str(seeds / "models" / rng.choice(("sentences", "bert")))
    column = [] if rng.random() < 0.7 else ["--text-column", rng.choice(("text", "label", "x"))]
    argv = rng.choice((
        ["measure", name, "--model", model, "-m", METRICS, "--json", *column],
        ["measure", name, "--model", model, *column],
        ["measure", name],
        ["layers", model, "-t", name, "--no-clusters", "--json", *column],
        ["layers", model, "-t", name, "--no-clusters", "--truncate", *column],
    ))  # fmt: skip
    return Case("texts", argv, f"{source.name}: {what}")


def _pairs(rng: random.Random, seeds: Path, folder: Path) -> Case:
    name = rng.choice(("pairs.csv", "text-pairs.tsv", "text-pairs.jsonl", "row-pairs.npy"))
    path = copy(seeds / "texts" / name, folder / named(rng, name))
    copy(seeds / "vectors" / "a.npy", folder / "a.npy")
    what = mutate_file(path, rng)
    given = f"--pairs=./{path.name}"
    models = seeds / "models"
    few = ["-t", "similarity", "-c", "center", "--folds", "2", "--repeats", "1", "--json"]
    if name == "row-pairs.npy":
        argv = [
            "train",
            "a.npy",
            given,
            "-l",
            labels_beside(seeds, folder),
            "--steps",
            "2",
            "--seeds",
            "1",
            "--json",
        ]
    elif name == "pairs.csv":
        argv = ["advise", "a.npy", given, *few]
    elif name == "text-pairs.jsonl" and (models / "sentences").exists():
        argv = ["advise", given, "--model", str(models / "sentences"), *few]
    else:
        argv = ["contrast", str(models / "bert"), given, "--steps", "1", "--batch-size", "8", "--json"]
    return Case("pairs", argv, f"{name}: {what}")


def _model(kind: str) -> Builder:
    def builder(rng: random.Random, seeds: Path, folder: Path) -> Case:
        path = copy(seeds / "models" / kind, folder / named(rng, kind))
        what = (
            mutate_file(path, rng)
            if path.is_file()
            else mutate_folder(path, rng, (".json",) if rng.random() < 0.6 else ())
        )
        copy(seeds / "texts" / "texts.txt", folder / "texts.txt")
        model = f"./{path.name}"
        layers = ["layers", model, "-t", "texts.txt", "--no-clusters", "--json"]
        measure = ["measure", "texts.txt", "--model", model, "-m", METRICS, "--json", "--no-errors"]
        if kind in ("sentences", "onnx"):
            argv = measure if rng.random() < 0.9 else layers
        elif kind == "llama.gguf":
            argv = layers
        else:
            argv = rng.choice((measure, layers, layers))
        return Case("models: " + kind.removeprefix("llama."), argv, what)

    return builder


def _scenario(names: tuple[str, ...], family: str) -> Builder:
    def builder(rng: random.Random, seeds: Path, folder: Path) -> Case:
        name = rng.choice(names)
        scenario = SCENARIOS[name]
        for path in (seeds / "scenarios" / name / "folder").iterdir():
            copy(path, folder / path.name)
        target = folder / scenario.target
        clean = rng.random() < 0.04
        what = (
            "as it is"
            if clean
            else (mutate_folder(target, rng) if target.is_dir() else mutate_file(target, rng))
        )
        return Case(family, scenario.ask.split(), f"{name}: {what}", "same", scenario=name)

    return builder


def _bomb(rng: random.Random, seeds: Path, folder: Path) -> Case:
    source = rng.choice(sorted((seeds / "bombs").iterdir()))
    path = copy(source, folder / source.name)
    if rng.random() < 0.3 and path.stat().st_size < 10**6:
        mutate_file(path, rng)
    copy(seeds / "vectors" / "a.npy", folder / "a.npy")
    argv = rng.choice((
        ["measure", path.name, "-m", METRICS, "--json"],
        ["measure", path.name, "-m", METRICS, "--memory", "1500MB", "--json"],
        ["measure", path.name],
        ["measure", "a.npy", "--labels", path.name, "--json"],
        ["measure", "a.npy", "--weights", path.name, "--json"],
        ["correct", path.name, "--method", "center", "-o", "out.npy"],
        ["compare", path.name, "a.npy"],
    ))  # fmt: skip
    return Case("bombs", argv, source.name)


def _options(rng: random.Random, seeds: Path, folder: Path) -> Case:
    for given in (
        "vectors/a.npy",
        "rows/labels.txt",
        "rows/weights.txt",
        "texts/texts.csv",
        "texts/text-pairs.tsv",
    ):
        copy(seeds / given, folder / Path(given).name)
    copy(seeds / "vectors" / "labelled.npz", folder / "labelled.npz")
    argv = hostile_options(rng, str(seeds / "models" / "bert"))
    return Case("options", argv, may_fail="--gate" in argv)


def _kept(family: str, share: float, *names: str) -> tuple[Builder, float, tuple[str, ...]]:
    return _scenario(names, family), share, tuple(f"scenarios/{name}" for name in names)


_ZARR = ("two.zarr", "three.zarr", "group.zarr")
# each with its share of the cases and what it cannot do without
FAMILIES: dict[str, tuple[Builder, float, tuple[str, ...]]] = {
    ".npy": (_vector_file(".npy", ("a.npy", "fortran.npy", "double.npy", "half.npy")), 5, ()),
    ".npz": (_vector_file(".npz", ("a.npz", "small.npz", "fortran.npz", "labelled.npz")), 5, ()),
    ".safetensors": (_vector_file(".safetensors", ("a.safetensors",)), 5, ()),
    ".pt": (_vector_file(".pt", ("a.pt", "dict.pth")), 5, ()),
    ".parquet": (_vector_file(".parquet", ("a.parquet", "list.parquet", "wide.parquet", "named.parquet")), 5, ()),
    ".arrow": (_vector_file(".arrow", ("plain.arrow", "stream.arrow")), 4, ()),
    ".feather": (_vector_file(".feather", ("a.feather",)), 3, ()),
    ".csv": (_vector_file(".csv", ("a.csv", "bare.csv", "semicolon.csv", "savetxt.csv")), 7, ()),
    ".tsv": (_vector_file(".tsv", ("a.tsv",)), 3, ()),
    ".json, .jsonl": (_vector_file(".json, .jsonl", ("rows.json", "embedding.jsonl")), 4, ()),
    ".txt, .vec": (_vector_file(".txt, .vec", ("a.txt", "a.vec")), 4, ()),
    ".bin": (_vector_file(".bin", ("a.bin", "nonewline.bin")), 3, ()),
    ".gz": (_vector_file(".gz", ("a.csv.gz", "a.glove.gz", "a.bin.gz")), 4, ()),
    ".zarr": (_vector_file(".zarr", _ZARR), 5, ("vectors/two.zarr",)),
    "tables of odd columns": (_odd_table, 4, ()),
    "hostile numbers": (_numbers, 6, ()),
    "labels beside vectors": (row_file("labels"), 5, ()),
    "weights beside vectors": (row_file("weights"), 3, ()),
    "folders of files": (_shards, 4, ()),
    "bombs": (_bomb, 1, ()),
    "options": (_options, 6, ()),
    "texts": (_texts, 3, ("models/sentences",)),
    "pairs": (_pairs, 2, ("models/bert",)),
    "models: sentences": (_model("sentences"), 4, ("models/sentences",)),
    "models: bert": (_model("bert"), 2, ("models/bert",)),
    "models: gpt": (_model("gpt"), 1, ("models/gpt",)),
    "models: onnx": (_model("onnx"), 2, ("models/onnx",)),
    "models: gguf": (_model("llama.gguf"), 2, ("models/llama.gguf",)),
    "checkpoints": _kept("checkpoints", 6, "checkpoint", "checkpoint-labels"),
    "corrections": _kept("corrections", 5, "correction", "correction-clusters"),
    "runs of train": _kept("runs of train", 3, "train-cut", "train-done", "frontier-run", "report-run"),
    "runs of finetune, contrast": _kept(
        "runs of finetune, contrast", 1.5, "finetune-cut", "finetune-done", "contrast-cut", "contrast-done"
    ),
    "caches": _kept("caches", 2, "cache"),
}  # fmt: skip


def family_of(seed: int, number: int) -> str:
    """The family of a case: the same on every machine, whichever libraries it has."""
    weights = [weight for _, weight, _ in FAMILIES.values()]
    return random.Random(f"family {seed} {number}").choices(list(FAMILIES), weights)[0]
