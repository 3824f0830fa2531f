"""Labelled texts and words: the corpora the papers classify.

    load_corpus(name)           a Corpus, from a data folder, the hub or what comes with isoscope
    corpus_names()              what there is
    load_texts(name)            texts without labels, for language models to read

`registry.py` declares them; `tables/` holds those that come with isoscope, with their licences.
"""

from __future__ import annotations

from isoscope.corpora.corpus import Corpus
from isoscope.corpora.load import corpus_names, load_corpus
from isoscope.corpora.running_text import Texts, load_texts, text_names

__all__ = ["Corpus", "Texts", "corpus_names", "load_corpus", "load_texts", "text_names"]
