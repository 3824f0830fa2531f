"""Corrections as modules of sentence-transformers, so that a model returns corrected vectors by itself."""

from __future__ import annotations

from typing import Any

import torch
from sklearn.utils.validation import check_is_fitted

from isoscope.corrections.correction import Correction
from isoscope.corrections.maps import UnitLength, flat
from isoscope.errors import InputError


def modules_of(correction: Correction) -> list[Any]:
    """`Dense` for what is affine, `Normalize` for unit length: the library's own, so that they save and load.

    A Dense computes Wx + b in float32; where all vectors share a large offset it loses digits that
    `transform` and `to_module` keep.
    """
    check_is_fitted(correction)
    step = correction.to_module(dtype=torch.float64)
    return [_module(part) for part in flat([step])]


def _module(step: Any) -> Any:
    try:
        from sentence_transformers.sentence_transformer.modules import Dense, Normalize
    except ImportError:
        raise InputError(
            "to_sentence_transformers needs sentence-transformers: pip install 'isoscope[text]'"
        ) from None
    if isinstance(step, UnitLength):
        return Normalize()
    affine = step.affine()
    if affine is None:
        raise InputError(
            "to_sentence_transformers takes corrections that are affine or Normalize; "
            "one by clusters goes into a model of your own through to_module()"
        )
    center, matrix, offset = affine
    dense = Dense(len(center), matrix.shape[1], bias=True, activation_function=torch.nn.Identity())
    with torch.no_grad():
        dense.linear.weight.copy_(matrix.T)
        dense.linear.bias.copy_(offset - center @ matrix)
    return dense
