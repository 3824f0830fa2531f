from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from isoscope.errors import FileError, InputError
from isoscope_papers.corpora import load_corpus, load_task, task_names

DATA = os.environ.get("ISOSCOPE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="needs the corpora: set ISOSCOPE_DATA to their folder")


def write(folder: Path, file: str, n: int) -> None:
    rows = [{"sentence1": f"{file} {i}", "sentence2": "b", "sentence": "c", "label": i % 2} for i in range(n)]
    path = folder / "glue" / f"{file}.jsonl.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))


def test_train_and_dev(tmp_path: Path) -> None:
    write(tmp_path, "mrpc_train", 4)
    write(tmp_path, "mrpc_dev", 2)
    found = load_task("mrpc", data=tmp_path).arguments()
    assert found["texts"][0] == "mrpc_train 0"
    assert found["pairs"] == ("b",) * 4
    assert found["test"] == (("mrpc_dev 0", "mrpc_dev 1"), ("b", "b"), ("not_equivalent", "equivalent"))
    assert found["metric"] == "accuracy"
    write(tmp_path, "cola_train", 2)
    write(tmp_path, "cola_dev", 2)
    cola = load_task("cola", data=tmp_path).arguments()
    assert (cola["metric"], cola["pairs"], len(cola["test"])) == ("matthews", None, 2)


def test_a_corpus_without_a_test_set_holds_out_a_share(tmp_path: Path) -> None:
    write(tmp_path, "qnli_dev", 2)
    rows = {"question": "q", "sentence": "s", "label": 0}
    (tmp_path / "glue" / "qnli_dev.jsonl.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))
    assert "test" not in load_task("qnli", data=tmp_path).arguments()


def test_splits(tmp_path: Path) -> None:
    write(tmp_path, "rte_train", 2)
    with pytest.raises(FileError, match="has no glue/rte_dev"):
        load_corpus("rte", data=tmp_path, split="dev")
    assert load_corpus("rte", data=tmp_path, split="train").split == "train"
    with pytest.raises(InputError, match="split is 'validation'; wanted one of train, dev"):
        load_corpus("rte", data=tmp_path, split="validation")
    with pytest.raises(InputError, match="task 'pos' is not known; wanted one of banking77"):
        load_task("pos", data=tmp_path)
    assert {"sst2", "rte", "mrpc", "cola"} <= set(task_names())


@needs_data
@pytest.mark.parametrize(
    ("name", "sizes"),
    [("sst2", (67_349, 872)), ("rte", (2_490, 277)), ("mrpc", (3_668, 408)), ("cola", (8_551, 1_043))],
)
def test_sizes_of_the_data_folder(name: str, sizes: tuple[int, int]) -> None:
    task = load_task(name, data=DATA)
    assert task.test is not None
    assert (len(task.train), len(task.test)) == sizes
    assert task.train.label_names == task.test.label_names
