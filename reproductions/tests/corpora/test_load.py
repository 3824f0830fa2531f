from __future__ import annotations

import gzip
import json
import os
import sys
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.raising import raises

from isoscope.errors import FileError, InputError
from isoscope_papers.corpora import (
    corpus_names,
    load_corpus,
    load_pairs,
    load_task,
    load_texts,
    pair_names,
    rows,
    task_names,
)
from isoscope_papers.corpora.registry import REGISTRY as CORPORA

DATA = os.environ.get("ISOSCOPE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="needs the corpora: set ISOSCOPE_DATA to their folder")


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOSCOPE_DATA", raising=False)


def write(folder: Path, file: str, records: list[dict[str, Any]]) -> None:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in records).encode()))


# items, distinct strings, texts an item, labels; the first seven as Mickus et al. 2024 count parameters
COUNTS = {
    "polarity": (10_662, 10_662, 1, 2),
    "snli": (9_842, 12_982, 2, 3),
    "cola": (8_551, 8_532, 1, 2),
    "sst2": (67_349, 66_978, 1, 2),
    "mrpc": (3_668, 7_052, 2, 2),
    "rte": (2_490, 4_523, 2, 2),
    "wnli": (635, 925, 2, 2),
    "qnli": (5_463, 8_011, 2, 2),
    "qqp": (23_497, 43_948, 2, 2),
    "mnli": (9_815, 13_143, 2, 3),
    "banking77": (10_003, 10_003, 1, 77),
    "stackoverflow": (20_000, 19_985, 1, 20),
    "pos": (77_503, 77_503, 1, 4),
    "supersense": (55_191, 55_191, 1, 26),
}


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_the_data_folder(name: str) -> None:
    assert DATA
    corpus = load_corpus(name, data=DATA, source="folder")
    found = (len(corpus), len(corpus.distinct()), len(corpus.columns), len(corpus.label_names))
    assert found == COUNTS[name]
    assert corpus.source in {Path(file).name for file in CORPORA[name].files.values()}


@pytest.mark.slow
@needs_data
def test_the_folder_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DATA
    monkeypatch.setenv("ISOSCOPE_DATA", DATA)
    assert load_corpus("wnli").split == "train"
    assert load_corpus("qnli").split == "dev"  # the train set is not in the folder: say so
    assert load_corpus("pos").split == "embedded"
    assert load_corpus("pos", source="folder").split == "all words"


def test_all_corpora_are_counted() -> None:
    assert set(corpus_names()) == set(COUNTS)


def test_embedded_corpora() -> None:
    pos = load_corpus("pos")
    assert (len(pos), len(pos.distinct()), len(pos.label_names)) == (11_462, 11_462, 4)
    held = dict(zip(pos.columns[0], pos.labels, strict=True))
    assert held["run"] == {"noun", "verb"}
    assert held["well"] == {"noun", "verb", "adjective", "adverb"}
    assert held["quickly"] == {"adverb"}
    supersense = load_corpus("supersense")
    assert (len(supersense), len(supersense.label_names)) == (2_275, 26)
    held = dict(zip(supersense.columns[0], supersense.labels, strict=True))
    assert held["dog"] == {"animal", "artifact", "food", "person"}
    assert held["person"] == {"Tops", "body", "communication"}
    polarity = load_corpus("polarity")
    assert (len(polarity), polarity.label_names) == (10_662, ("negative", "positive"))
    assert [polarity.labels.count(name) for name in polarity.label_names] == [5_331, 5_331]
    held = dict(zip(polarity.columns[0], polarity.labels, strict=True))
    assert held["simplistic , silly and tedious ."] == "negative"
    snli = load_corpus("snli")
    assert (len(snli), len(snli.distinct()), len(snli.label_names)) == (9_842, 12_982, 3)


def test_tables_have_their_licences_and_stay_small() -> None:
    from isoscope_papers.corpora import tables

    folder = Path(tables.__file__).parent
    assert (
        "WordNet 3.0 Copyright 2006 by Princeton University" in (folder / "WORDNET-LICENSE.txt").read_text()
    )
    assert "CC BY 4.0" in (folder / "SENTENCE-POLARITY-LICENSE.txt").read_text()
    assert "CC BY-SA 4.0" in (folder / "SNLI-LICENSE.txt").read_text()
    sizes = {path.name: path.stat().st_size for path in folder.glob("*.gz")}
    assert sizes["pos.tsv.gz"] + sizes["supersense.tsv.gz"] < 300_000
    assert sum(sizes.values()) < 900_000


def test_a_pair_task_from_a_folder(tmp_path: Path) -> None:
    rows = [
        {"premise": "a", "hypothesis": " b", "label": "neutral", "id": 1},
        {"premise": "a", "hypothesis": "c", "label": 2},
        {"premise": "x", "hypothesis": "y", "label": -1},  # annotators did not agree
    ]
    write(tmp_path, "snli/snli_dev.jsonl.gz", rows)
    corpus = load_corpus("snli", data=tmp_path)
    assert list(corpus.items) == [(("a", " b"), "neutral"), (("a", "c"), "contradiction")]
    assert corpus.split == "dev"
    assert corpus.licence.startswith("CC BY-SA")
    assert corpus.source == "snli_dev.jsonl.gz"  # what pages show: no folder of this machine


@pytest.mark.parametrize(
    ("record", "match"),
    [
        ({"sentence": "a", "label": 7}, r"cola_train.*line 2: the label '7' is not one of unacceptable"),
        ({"sentence": "a", "label": None}, "line 2: the label is None"),
        ({"sentence": "a", "label": 1.0}, r"line 2: the label is 1\.0; expected a name or a whole number"),
        ({"sentence": 3, "label": 1}, "line 2: sentence is 3; expected a text"),
        ({"label": 1}, "no 'sentence' in line 2"),
    ],
)
def test_malformed_records_are_named(tmp_path: Path, record: dict[str, Any], match: str) -> None:
    write(tmp_path, "glue/cola_train.jsonl.gz", [{"sentence": "a", "label": 1}, record])
    with pytest.raises(FileError, match=match):
        load_corpus("cola", data=tmp_path)


def test_the_papers_split_comes_first(tmp_path: Path) -> None:
    for split in ("dev", "train"):
        write(tmp_path, f"glue/cola_{split}.jsonl.gz", [{"sentence": split, "label": 0}])
    corpus = load_corpus("cola", data=tmp_path)
    assert (corpus.split, corpus.columns, corpus.labels) == ("train", (("train",),), ("unacceptable",))


@pytest.mark.slow
def test_a_folder_means_the_same_by_argument_and_by_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, label in (("pos", "n"), ("supersense", "animal")):
        path = tmp_path / next(iter(CORPORA[name].files.values()))
        path.parent.mkdir()
        path.write_bytes(gzip.compress(f"word\t{CORPORA[name].label}\nzebra\t{label}\n".encode()))
    write(tmp_path, "sentence_polarity/sentence_polarity.jsonl.gz", [{"text": "t", "label": 1}])
    names = ("pos", "supersense", "polarity")
    by_argument = [load_corpus(name, data=tmp_path) for name in names]
    folder_alone = [load_corpus(name, data=tmp_path, source="folder") for name in names]
    monkeypatch.setenv("ISOSCOPE_DATA", str(tmp_path))
    by_environment = [load_corpus(name) for name in names]
    for corpora in (by_argument, by_environment):
        assert [len(corpus) for corpus in corpora] == [11_462, 2_275, 1]
    assert [len(corpus) for corpus in folder_alone] == [1, 1, 1]


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with raises(InputError, argument="corpus", got="colla", wanted="one of polarity, snli, cola"):
        load_corpus("colla")
    with pytest.raises(
        InputError, match=r"ISOSCOPE_DATA names no folder with glue/cola_train.*download=True"
    ):
        load_corpus("cola")
    with pytest.raises(
        FileError, match=r"has no glue/cola_train.jsonl.gz, .*fields sentence, label\. Pass `download=True`"
    ):
        load_corpus("cola", data=tmp_path)
    with pytest.raises(FileError, match=r"`data` names .*nowhere, which is no folder"):
        load_corpus("cola", data=tmp_path / "nowhere")
    with pytest.raises(InputError, match="does not come with isoscope-papers"):
        load_corpus("cola", source="embedded")
    with pytest.raises(InputError, match="ISOSCOPE_DATA names no folder with glue/cola_train"):
        load_corpus("cola", source="folder")
    with pytest.raises(InputError, match="Pass `download=True`"):
        load_corpus("cola", source="hub")
    with pytest.raises(InputError, match="It is not on the hub"):
        load_corpus("stackoverflow", source="hub", download=True)
    monkeypatch.setenv("ISOSCOPE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileError, match=r"ISOSCOPE_DATA` names .*nowhere"):
        load_corpus("polarity")
    monkeypatch.setenv("ISOSCOPE_DATA", str(tmp_path))
    assert load_corpus("polarity").split == "embedded"
    with pytest.raises(FileError, match="sentence_polarity"):
        load_corpus("polarity", data=tmp_path)


class Table(list[dict[str, Any]]):
    """As much of a Dataset as is used."""

    @property
    def column_names(self) -> list[str]:
        return list(self[0])

    def select_columns(self, fields: list[str]) -> Iterator[dict[str, Any]]:
        return ({field: row[field] for field in fields} for row in self)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str | None, str], Table]:
    """A stand-in for the `datasets` package, with the tables a test puts into it."""
    tables: dict[tuple[str, str | None, str], Table] = {}
    package = types.ModuleType("datasets")

    def load_dataset(path: str, name: str | None = None, *, split: str) -> Table:
        if (path, name, split) not in tables:
            raise ConnectionError(f"no {path}\nand much more")
        return tables[path, name, split]

    package.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", package)
    return tables


def test_from_the_hub(hub: dict[tuple[str, str | None, str], Table]) -> None:
    hub["nyu-mll/glue", "rte", "train"] = Table(
        [
            {"sentence1": "a", "sentence2": "b ", "label": 1, "idx": 0},
            {"sentence1": "c", "sentence2": "a", "label": 0, "idx": 1},
        ]
    )
    corpus = load_corpus("rte", download=True)
    assert list(corpus.items) == [(("a", "b "), "not_entailment"), (("c", "a"), "entailment")]
    assert corpus.source == "Hugging Face's hub, nyu-mll/glue, rte"


def test_a_folder_without_the_corpus_is_followed_by_the_hub(
    hub: dict[tuple[str, str | None, str], Table], tmp_path: Path
) -> None:
    hub["nyu-mll/glue", "cola", "train"] = Table([{"sentence": "from the hub", "label": 1}])
    assert load_corpus("cola", data=tmp_path, download=True).columns == (("from the hub",),)
    write(tmp_path, "glue/cola_train.jsonl.gz", [{"sentence": "from the folder", "label": 1}])
    assert load_corpus("cola", data=tmp_path, download=True).columns == (("from the folder",),)
    with pytest.raises(FileError, match=r"has no short_text/stackoverflow.jsonl.gz, .*text, label\.$"):
        load_corpus("stackoverflow", data=tmp_path, download=True)  # the hub does not have it
    with pytest.raises(InputError, match="rotten_tomatoes cannot be fetched"):  # and not another in its place
        load_corpus("polarity", data=tmp_path, download=True)


def test_splits_of_the_hub_are_joined(hub: dict[tuple[str, str | None, str], Table]) -> None:
    for i, split in enumerate(("train", "validation", "test")):
        rows = Table([{"text": split, "label": i % 2}])
        hub["cornell-movie-review-data/rotten_tomatoes", None, split] = rows
    corpus = load_corpus("polarity", download=True)
    assert corpus.columns == (("train", "validation", "test"),)
    assert corpus.labels == ("negative", "positive", "negative")
    assert load_corpus("polarity").split == "embedded"  # not without leave


def test_another_label_column_on_the_hub(hub: dict[tuple[str, str | None, str], Table]) -> None:
    hub["mteb/banking77", None, "train"] = Table([{"text": "t", "label": 3, "label_text": "card_arrival"}])
    assert load_corpus("banking77", download=True).labels == ("card_arrival",)


def test_the_hub_fails_in_one_line(hub: dict[tuple[str, str | None, str], Table]) -> None:
    with pytest.raises(InputError, match=r"nyu-mll/glue cannot be fetched: no nyu-mll/glue. Pass `data`"):
        load_corpus("cola", download=True)
    hub["nyu-mll/glue", "cola", "train"] = Table([{"text": "a"}])
    with pytest.raises(FileError, match="nyu-mll/glue has no column 'sentence'; it has text"):
        load_corpus("cola", download=True)
    hub["nyu-mll/glue", "cola", "train"] = Table([{"sentence": "a", "label": 5}])
    with pytest.raises(FileError, match="nyu-mll/glue, row 0: the label '5' is not one of"):
        load_corpus("cola", download=True)


def test_a_long_refusal_of_the_hub_is_cut(
    hub: dict[tuple[str, str | None, str], Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, name: str | None = None, *, split: str) -> Table:
        raise ConnectionError("no way. " * 100)

    monkeypatch.setattr(sys.modules["datasets"], "load_dataset", refuse)
    with pytest.raises(InputError, match=r"cannot be fetched: (no way\. ){19}no way. Pass") as refusal:
        load_corpus("cola", download=True)
    assert len(str(refusal.value)) < 300


def test_without_the_datasets_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install 'isoscope-papers\[hub\]'"):
        load_corpus("cola", download=True)


def test_the_extra_that_the_message_names_brings_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert [wanted.partition(">=")[0] for wanted in project["optional-dependencies"]["hub"]] == ["datasets"]


def test_a_real_datasets_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"sentence": ["a ", "b"], "label": [1, 0], "idx": [0, 1]}), path)
    local = datasets.load_dataset(
        "parquet", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
    )
    monkeypatch.setattr(datasets, "load_dataset", lambda path, name, split: local)
    assert list(load_corpus("cola", download=True).items) == [
        (("a ",), "acceptable"),
        (("b",), "unacceptable"),
    ]


@pytest.mark.parametrize("name", CORPORA)
def test_declarations_hold_together(name: str) -> None:
    declared = CORPORA[name]
    assert declared.columns
    assert declared.licence
    assert declared.files
    assert len(set(declared.label_names.values())) == len(declared.label_names)
    assert not set(declared.unlabelled) & declared.label_names.keys()


def test_an_unknown_source_is_refused() -> None:
    with raises(InputError, argument="source", got="zzz", wanted="one of folder, hub, embedded"):
        load_corpus("pos", source="zzz")


def scored(folder: Path, *records: dict[str, Any]) -> Path:
    write(folder, "sts/sts12.jsonl.gz", list(records))
    return folder


def test_scored_pairs_of_a_folder(tmp_path: Path) -> None:
    folder = scored(
        tmp_path,
        {"sentence1": "A cat. ", "sentence2": "A dog.", "score": 2.5},
        {"sentence1": "A dog.", "sentence2": "A car.", "score": "0"},
    )
    pairs = load_corpus("sts12", data=folder)
    assert pairs.columns == (("A cat.", "A dog."), ("A dog.", "A car."))
    assert pairs.labels == (2.5, 0.0)
    assert pairs.distinct() == ("A cat.", "A dog.", "A car.")
    assert (len(pairs), pairs.split, pairs.source) == (2, "test", "sts12.jsonl.gz")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"sentence1": "A", "sentence2": " ", "score": 1}, "line 1: sentence2 is ' '; expected a text"),
        ({"sentence1": "A", "sentence2": 3, "score": 1}, "line 1: sentence2 is 3; expected a text"),
        ({"sentence1": "A", "sentence2": "B", "score": None}, "the score is None"),
        ({"sentence1": "A", "sentence2": "B", "score": "nan"}, "finite"),
        ({"sentence1": "A", "sentence2": "B"}, "has no 'score'"),
    ],
)
def test_broken_pairs(tmp_path: Path, record: dict[str, Any], said: str) -> None:
    with pytest.raises(FileError, match=said):
        load_corpus("sts12", data=scored(tmp_path, record))


def test_no_other_split_stands_for_that_of_pairs_and_texts(tmp_path: Path) -> None:
    write(tmp_path, "sts/stsb_en_dev.jsonl.gz", [{"sentence1": "a", "sentence2": "b", "score": 1}])
    with pytest.raises(FileError, match="has no sts/stsb_en_test"):
        load_corpus("stsb", data=tmp_path)
    with raises(InputError, argument="split", got="dev", wanted="one of test of sts12"):
        load_corpus("sts12", data=tmp_path, split="dev")


def test_wikitext_is_its_lines_that_are_not_blank(tmp_path: Path) -> None:
    path = tmp_path / "wikitext2" / "wikitext2_valid.txt.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(b" \n = Title = \n \n A line , of <unk> . \n"))
    texts = load_texts("wikitext2", data=tmp_path, split="valid")
    assert list(texts) == ["= Title =", "A line , of <unk> ."]
    assert (len(texts), texts.split, texts.source) == (2, "valid", "wikitext2_valid.txt.gz")
    with pytest.raises(FileError, match=r"has no wikitext2/wikitext2_test\.txt\.gz"):
        load_texts("wikitext2", data=tmp_path)
    with raises(InputError, argument="texts", got="men", wanted="one of stsb, wikitext2"):
        load_texts("men")


def test_texts_and_pairs_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fetch(hub: Any, splits: tuple[str, ...], fields: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        asked.append((hub.path, splits, fields))
        for text in ("", " from the hub "):
            yield "row", dict.fromkeys(fields, text)

    monkeypatch.setattr(rows, "hub_rows", fetch)
    with pytest.raises(FileError):
        load_texts("wikitext2", data=tmp_path)
    assert not asked
    assert list(load_texts("wikitext2", data=tmp_path, split="valid", download=True)) == ["from the hub"]
    with pytest.raises(FileError, match="sentence1 is ''"):
        load_corpus("stsb", data=tmp_path, download=True)
    assert asked == [
        ("Salesforce/wikitext", ("validation",), ("text",)),
        ("mteb/stsbenchmark-sts", ("test",), ("sentence1", "sentence2", "score")),
    ]
    with pytest.raises(InputError, match="not on this machine"):
        load_corpus("sick", data=tmp_path, download=True)  # is on no hub


def test_entailment_of_several_corpora_each_pair_once(tmp_path: Path) -> None:
    for name in ("snli/snli_dev", "snli/snli_test", "glue/mnli_dev_matched"):
        items = [
            {"premise": f" {name} ", "hypothesis": "follows", "label": "entailment"},
            {"premise": "same", "hypothesis": "everywhere", "label": "entailment"},
            {"premise": name, "hypothesis": "does not", "label": "neutral"},
            {"premise": name, "hypothesis": " ", "label": "entailment"},
        ]
        write(tmp_path, f"{name}.jsonl.gz", items)
    found = load_pairs("nli", data=tmp_path)
    assert list(zip(*found.columns, strict=True)) == [
        ("snli/snli_dev", "follows"),
        ("same", "everywhere"),
        ("snli/snli_test", "follows"),
        ("glue/mnli_dev_matched", "follows"),
    ]
    assert found.source == "snli_dev.jsonl.gz, snli_test.jsonl.gz, mnli_dev_matched.jsonl.gz"
    assert found.split == "snli dev + snli test + mnli dev matched"
    assert "CC BY-SA" in found.licence
    assert [len(load_pairs(name, data=tmp_path)) for name in ("snli", "mnli")] == [3, 2]
    with raises(InputError, argument="pairs", got="x", wanted="one of mnli, nli, snli"):
        load_pairs("x", data=tmp_path)
    assert pair_names() == ["mnli", "nli", "snli"]


def glue(folder: Path, file: str, n: int) -> None:
    fields = {"sentence2": "b", "sentence": "c", "question": "q"}
    write(
        folder,
        f"glue/{file}.jsonl.gz",
        [{"sentence1": f"{file} {i}", **fields, "label": i % 2} for i in range(n)],
    )


def test_a_task_is_trained_on_train_and_scored_on_dev(tmp_path: Path) -> None:
    for name in ("mrpc", "cola"):
        glue(tmp_path, f"{name}_train", 4)
        glue(tmp_path, f"{name}_dev", 2)
    found = load_task("mrpc", data=tmp_path)
    assert found["texts"][0] == "mrpc_train 0"
    assert found["pairs"] == ("b",) * 4
    assert found["test"] == (("mrpc_dev 0", "mrpc_dev 1"), ("b", "b"), ("not_equivalent", "equivalent"))
    assert found["metric"] == "accuracy"
    cola = load_task("cola", data=tmp_path)
    assert (cola["metric"], cola["pairs"], len(cola["test"])) == ("matthews", None, 2)
    glue(tmp_path, "qnli_dev", 2)
    assert "test" not in load_task("qnli", data=tmp_path)  # a share is held out
    glue(tmp_path, "rte_train", 2)
    with pytest.raises(FileError, match="has no glue/rte_dev"):
        load_task("rte", data=tmp_path)
    with raises(InputError, argument="split", got="validation", wanted="one of train, dev"):
        load_corpus("rte", data=tmp_path, split="validation")
    with raises(InputError, argument="task", got="pos", wanted="one of banking77"):
        load_task("pos", data=tmp_path)
    assert {"sst2", "rte", "mrpc", "cola"} <= set(task_names())


@pytest.mark.slow
@needs_data
def test_published_sizes() -> None:
    sizes = {"stsb": 1379, "sts12": 3108, "sts16": 1186, "men": 3000, "simlex999": 999, "rare_words": 2034}
    sizes["google_analogies"] = 19_544
    assert {name: len(load_corpus(name, data=DATA)) for name in sizes} == sizes
    assert sum(len(text.split()) for text in load_texts("wikitext2", data=DATA)) == 241_211
    assert len(load_pairs("nli", data=DATA)) == 10_174
    tasks = {"sst2": (67_349, 872), "rte": (2_490, 277), "mrpc": (3_668, 408), "cola": (8_551, 1_043)}
    for name, expected in tasks.items():
        task = load_task(name, data=DATA)
        assert (len(task["labels"]), len(task["test"][-1])) == expected
        assert set(task["labels"]) == set(task["test"][-1])
