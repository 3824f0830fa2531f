"""Labelled texts and words: the corpora the papers classify.

    load_corpus(name)   a Corpus, from a data folder, the hub or what comes with isoscope-papers
    corpus_names()      those with labels
    load_texts(name)    texts without labels, for language models to read
    load_pairs(name)    texts that belong together, for contrastive training
    load_task(name)     a corpus to train on and one to score on, as `finetune` takes them

`registry.toml` declares them; `tables/` holds those that come with isoscope-papers, with their licences.
"""

from __future__ import annotations

from isoscope_papers.corpora.corpus import Corpus
from isoscope_papers.corpora.load import (
    corpus_names,
    load_corpus,
    load_pairs,
    load_task,
    load_texts,
    pair_names,
    task_names,
    text_names,
)

__all__ = [
    "Corpus",
    "corpus_names",
    "load_corpus",
    "load_pairs",
    "load_task",
    "load_texts",
    "pair_names",
    "task_names",
    "text_names",
]
