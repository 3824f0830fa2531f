"""Encode texts by the mean of their word vectors."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import torch
from torch import Tensor

from isoscope.models.static import GLOVE, static_vectors
from isoscope.models.texts import checked_texts

_WORD = re.compile(r"\w+")


def averaged_vectors(texts: Sequence[str], *, model: str | os.PathLike[str] = GLOVE) -> tuple[Tensor, Tensor]:
    """Return the mean word vector of each text that has a known word; words are converted to lower case.

    Args:
        texts: strings.
        model: a table of word vectors, as in `static_vectors`.

    Returns:
        vectors: (m, d) float32, one for each text with a known word, in the order of `texts`.
        kept: (m,) int64, the positions of these texts in `texts`.
    """
    words = [_WORD.findall(text.lower()) for text in checked_texts(texts)]
    distinct = list(dict.fromkeys(word for line in words for word in line)) or [""]
    table, places = static_vectors(distinct, model=model)
    at = {distinct[place]: row for row, place in enumerate(places.tolist())}
    known = [[at[word] for word in line if word in at] for line in words]
    kept = [place for place, line in enumerate(known) if line]
    flat = torch.tensor([row for line in known for row in line])
    lengths = torch.tensor([len(known[place]) for place in kept])
    return torch.segment_reduce(table[flat], "mean", lengths=lengths, axis=0), torch.tensor(kept)
