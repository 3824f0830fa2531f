"""Texts and words to vectors.

    encode(texts)               one vector a text, through sentence-transformers
    static_vectors(words)       one vector a word, from a table of word vectors
    resolve_model(name)         the folder a model lies in

What is encoded is kept on disk: see `isoscope.encoders.cache`.
"""

from __future__ import annotations

from isoscope.encoders.folders import cache_folder
from isoscope.encoders.models import resolve_model
from isoscope.encoders.sentences import encode
from isoscope.encoders.static import static_vectors

__all__ = ["cache_folder", "encode", "resolve_model", "static_vectors"]
