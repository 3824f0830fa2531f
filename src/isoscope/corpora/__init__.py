"""Labelled texts and words: the corpora the papers classify.

    load_corpus(name)           a Corpus, from a data folder, the hub or what comes with isoscope
    corpus_names()              what there is

`registry.py` declares them; `tables/` holds those that come with isoscope, with their licences.
"""

from __future__ import annotations

from isoscope.corpora.corpus import Corpus
from isoscope.corpora.load import corpus_names, load_corpus

__all__ = ["Corpus", "corpus_names", "load_corpus"]
