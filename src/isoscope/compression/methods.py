"""Names of methods, such as "pca:128+int8", and the corrections that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from sklearn.base import clone
from torch import Tensor

from isoscope.corrections import (
    AllButTheTop,
    Center,
    Chain,
    Correction,
    HalfPrecision,
    Normalize,
    ProductQuantizer,
    Quantizer,
    RaBitQuantizer,
    ScalarQuantizer,
    SignQuantizer,
    Standardize,
    Truncate,
    Whiten,
)
from isoscope.corrections.product import N_CENTERS
from isoscope.errors import InputError, check_choice
from isoscope.printable import listed

FLOAT = "float32"
# what a step is called, and the correction it stands for, from the number after the colon
_PLAIN: dict[str, Callable[[], Correction]] = {
    "center": Center,
    "standardize": Standardize,
    "normalize": Normalize,
}
_COUNTED: dict[str, Callable[[int], Correction]] = {
    "truncate": Truncate,
    "pca": lambda k: Whiten(k, strength=0),
    "whiten": lambda k: Whiten(k),
    "all-but-the-top": AllButTheTop,
}
_STORED: dict[str, Callable[[], Quantizer]] = {
    "float16": HalfPrecision,
    "int8": ScalarQuantizer,
    "int4": lambda: ScalarQuantizer(4),
    "binary": SignQuantizer,
    "binary-asymmetric": lambda: SignQuantizer(asymmetric=True),
    "rabitq": RaBitQuantizer,
}
_STORED_COUNTED: dict[str, Callable[[int], Quantizer]] = {"pq": ProductQuantizer}
STEPS = (*_PLAIN, *_COUNTED, FLOAT, *_STORED, *_STORED_COUNTED)


def default_methods(n_dims: int, n_fit: int) -> list[str]:
    """Return the methods to try on vectors of d dimensions, with so many rows to fit on."""
    half, quarter = n_dims // 2, n_dims // 4
    names = ["float16", "int8", "int4", "binary", "center+binary", "rabitq"]
    for k in (half, quarter):
        if k >= 2 and k < n_fit:
            names += [f"truncate:{k}", f"pca:{k}", f"pca:{k}+int8"]
    if n_fit >= N_CENTERS:
        names += [f"pq:{m}" for m in (half, quarter, n_dims // 8) if m >= 1 and n_dims % m == 0]
    return list(dict.fromkeys(names))


def built(name: str, *, cosine: bool, seed: int) -> Chain:
    """Return the corrections that a name stands for, not fitted.

    >>> built("pca:2+int8", cosine=True, seed=0)
    Chain(steps=[Normalize(), Whiten(n_components=2, strength=0), ScalarQuantizer()])
    """
    steps: list[Correction] = [Normalize()] if cosine else []
    words = [word.strip().lower().replace("_", "-") for word in name.split("+")]
    for place, word in enumerate(words):
        kind, colon, number = word.partition(":")
        check_choice("methods", kind, STEPS)
        counted = kind in _COUNTED or kind in _STORED_COUNTED
        if bool(colon) != counted or (counted and not number.isdecimal()):
            wanted = f"{kind}:K with a whole number K" if counted else f"{kind} without a number"
            raise InputError(argument="methods", got=name, wanted=wanted)
        if kind in (FLOAT, *_STORED, *_STORED_COUNTED) and place < len(words) - 1:
            raise InputError(f"has {name!r}, where {kind} is not the last step", argument="methods")
        if kind == "truncate":
            steps += [Truncate(int(number)), *([Normalize()] if cosine else [])]
        elif kind in _COUNTED:
            steps.append(_COUNTED[kind](int(number)))
        elif kind in _STORED_COUNTED:
            steps.append(_STORED_COUNTED[kind](int(number)))
        elif kind != FLOAT:
            steps.append((_PLAIN | _STORED)[kind]())
    for step in steps:
        if "seed" in step.get_params():
            step.set_params(seed=seed)
    return Chain(steps or [Truncate()])


def chosen_methods(
    methods: Iterable[str] | Mapping[str, Any] | None, *, n_dims: int, n_fit: int, cosine: bool, seed: int
) -> dict[str, Correction]:
    """Return the corrections to try by name, not fitted; all vectors in float32 are always among them."""
    if isinstance(methods, Mapping):
        found: dict[str, Correction] = {}
        for name, correction in methods.items():
            if not isinstance(correction, Correction):
                raise InputError(
                    f"has a {type(correction).__name__}", argument="methods", wanted="corrections of isoscope"
                )
            found[name] = Chain([*([Normalize()] if cosine else []), clone(correction)])
        if not found:
            raise InputError("is empty", argument="methods", wanted="corrections by name")
        return found
    if methods is not None and not isinstance(methods, Iterable):
        raise InputError(argument="methods", got=methods, wanted=f"names made of {listed(STEPS)}")
    if methods is None:
        names = default_methods(n_dims, n_fit)
    else:
        given = [methods] if isinstance(methods, str) else list(methods)
        names = [one.strip() for name in given for one in name.split(",") if one.strip()]
    if not names:
        raise InputError("is empty", argument="methods", wanted=f"names made of {listed(STEPS)}")
    return {name: built(name, cosine=cosine, seed=seed) for name in dict.fromkeys(names)}


@dataclass(frozen=True, eq=False)
class Codec:
    """A fitted method, as a search uses it.

    Attributes:
        chain: all corrections, fitted.
        n_bytes: the bytes that one vector takes.
    """

    chain: Chain
    n_bytes: int

    @classmethod
    def of(cls, chain: Chain) -> Codec:
        """Return the codec of a fitted chain."""
        last = chain.steps_[-1]
        if isinstance(last, Quantizer):
            return cls(chain, last.n_bytes_)
        return cls(chain, 4 * chain.to_module().n_out)

    def queries(self, rows: Tensor) -> Tensor:
        """Return queries as the search compares them with stored vectors, float32."""
        last = self.chain.steps_[-1]
        before = self._before(rows)
        return last._quantizer().queries(before) if isinstance(last, Quantizer) else before

    def stored(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return vectors y and numbers b: a query q is nearest where b − 2 queries(q)·y is least."""
        last = self.chain.steps_[-1]
        before = self._before(rows)
        if isinstance(last, Quantizer):
            return last._quantizer().stored(before)
        return before, before.square().sum(dim=1)

    def _before(self, rows: Tensor) -> Tensor:
        """Return the rows before their last step, if that is a quantizer; else after all steps."""
        for step in self.chain.steps_:
            if not isinstance(step, Quantizer):
                rows = step.transform(rows)
        return rows.to(torch.float32)
