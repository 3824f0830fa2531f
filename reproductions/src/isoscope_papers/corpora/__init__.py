"""Labelled texts and words: the corpora the papers classify.

    load_corpus(name)           a Corpus, from a data folder, the hub or what comes with isoscope-papers
    corpus_names()              what there is
    load_texts(name)            texts without labels, for language models to read
    load_pairs(name)            texts that belong together, for contrastive training
    load_similarity_pairs(name) pairs of sentences or words with how alike people found them
    load_task(name)             a corpus to train on and one to score on

`registry.toml` declares them; `tables/` holds those that come with isoscope-papers, with their licences.
"""

from __future__ import annotations

from isoscope_papers.corpora.corpus import Corpus
from isoscope_papers.corpora.load import corpus_names, load_corpus
from isoscope_papers.corpora.similarity import SimilarityPairs, load_similarity_pairs, similarity_names
from isoscope_papers.corpora.tasks import ClassificationTask, load_task, task_names
from isoscope_papers.corpora.texts import Texts, load_pairs, load_texts, pair_names, text_names

__all__ = [
    "ClassificationTask",
    "Corpus",
    "SimilarityPairs",
    "Texts",
    "corpus_names",
    "load_corpus",
    "load_pairs",
    "load_similarity_pairs",
    "load_task",
    "load_texts",
    "pair_names",
    "similarity_names",
    "task_names",
    "text_names",
]
