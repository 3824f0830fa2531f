"""`load_task`: a corpus to train on, one to score on, and how the score is taken."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from isoscope.errors import InputError
from isoscope_papers.corpora.corpus import Corpus
from isoscope_papers.corpora.load import corpus_names, load_corpus

# the split to score on; of the others a share is held out
_TESTS = {"banking77": "test", "cola": "dev", "mrpc": "dev", "rte": "dev", "sst2": "dev", "wnli": "dev"}
_METRICS = {"cola": "matthews"}


@dataclass(frozen=True, eq=False)
class ClassificationTask:
    """Labelled texts, or pairs of texts, to train on and to score on.

    Attributes:
        train: what is trained on.
        test: what is scored on; None where there is no split of its own.
        metric: "accuracy", or "matthews" as GLUE has it for CoLA.
    """

    train: Corpus
    test: Corpus | None
    metric: str

    def arguments(self) -> dict[str, Any]:
        """What `finetune` takes by name: texts, labels, pairs, test, metric."""
        texts, *seconds = self.train.columns
        found: dict[str, Any] = {
            "texts": texts,
            "labels": self.train.labels,
            "pairs": seconds[0] if seconds else None,
        }
        if self.test is not None:
            found["test"] = (*self.test.columns, self.test.labels)
        return found | {"metric": self.metric}


def task_names() -> list[str]:
    """The names `load_task` takes, those with a test set of their own first."""
    return [*_TESTS, *(name for name in corpus_names() if name not in (*_TESTS, "pos", "supersense"))]


def load_task(
    name: str, *, data: str | os.PathLike[str] | None = None, download: bool = False
) -> ClassificationTask:
    """A task by name: `sst2`, `rte`, `mrpc`, `cola` are trained on their train set and scored on dev.

    Args:
        name: one of `task_names()`.
        data, download: as for `load_corpus`.
    """
    if name not in task_names():
        raise InputError(f"task {name!r} is not known; wanted one of {', '.join(task_names())}")
    split = _TESTS.get(name)
    options: dict[str, Any] = {"data": data, "download": download}
    return ClassificationTask(
        train=load_corpus(name, split=None if split is None else "train", **options),
        test=None if split is None else load_corpus(name, split=split, **options),
        metric=_METRICS.get(name, "accuracy"),
    )
