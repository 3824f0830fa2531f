"""Texts and words to vectors.

    encode(texts)               one vector a text, through sentence-transformers
    open_texts(file)            the texts of a file as vectors, for `measure`
    static_vectors(words)       one vector a word, from a table of word vectors
    averaged_vectors(texts)     one vector a text, the mean of its words' in such a table
    vocabulary()                the words of such a table, most frequent first
    token_states(texts)         one vector a token and layer, of any language model
    States(texts)               the same as a source for `measure`, nothing kept
    BatchStates(batches)        the states of any model on batches, as such a source
    hidden_states(model, …)     the states of any model on batches, as they pass
    measure_layers(texts)       every layer of a language model, measured on texts
    layer_similarity(model, …)  how alike the layers of one or two models are
    measure_checkpoints(folder, texts)  the same at each checkpoint of a training
    load_language_model(name)   a transformer with its tokenizer; load_tokenizer the tokenizer alone
    load_model(name, kind)      a model of images or recordings with its processor
    resolve_model(name)         the folder or file a model lies in
    best_device(name)           the device asked for, or the best there is

What is encoded is kept on disk: see `isoscope.models.cache`.
"""

from __future__ import annotations

from isoscope.models.averaged import averaged_vectors
from isoscope.models.batch_states import BatchStates
from isoscope.models.folders import cache_folder
from isoscope.models.forward import hidden_states
from isoscope.models.input_models import InputModel, load_model
from isoscope.models.language_models import LanguageModel, best_device, load_language_model, load_tokenizer
from isoscope.models.layers import (
    LayerComparison,
    LayerProfile,
    LayerTrajectory,
    layer_similarity,
    measure_checkpoints,
    measure_layers,
)
from isoscope.models.resolve import resolve_model
from isoscope.models.sentences import encode
from isoscope.models.states import States
from isoscope.models.static import GLOVE, static_vectors, vocabulary
from isoscope.models.text_source import TextFile, open_texts
from isoscope.models.token_states import TokenStates, token_states
from isoscope.models.tokens import TokenRows

__all__ = [
    "GLOVE",
    "BatchStates",
    "InputModel",
    "LanguageModel",
    "LayerComparison",
    "LayerProfile",
    "LayerTrajectory",
    "States",
    "TextFile",
    "TokenRows",
    "TokenStates",
    "averaged_vectors",
    "best_device",
    "cache_folder",
    "encode",
    "hidden_states",
    "layer_similarity",
    "load_language_model",
    "load_model",
    "load_tokenizer",
    "measure_checkpoints",
    "measure_layers",
    "open_texts",
    "resolve_model",
    "static_vectors",
    "token_states",
    "vocabulary",
]
