"""`Space`: vectors with the labels, texts and weights of their rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.arrays import as_matrix, as_tensor, block_rows, digest
from isoscope.errors import InputError, ShapeError
from isoscope.labels import Labels, as_labels

_LARGEST_COUNT = 2**53  # whole numbers up to here are exact in float64


@dataclass(frozen=True, eq=False)
class Space:
    """Vectors, one a row, with their labels, texts, weights and other columns.

    Every function of isoscope takes a Space in place of an array. `vectors` may be any array and is checked
    once, here. Labels, token types and sentences may be any sequence with one entry a row.

    Attributes:
        vectors: (n, d) tensor; shares the caller's memory where it can and is never changed.
        labels: the cluster or class of each row.
        token_types: the word or token each row is an occurrence of.
        sentences: the sentence each row comes from.
        partners: (n, d) the vector each row is matched with (a translation, another view).
        weights: (n,) how often each row counts, float64; None if each counts once.
        texts: the text each row encodes.
        layer: which layer of a model the rows come from.
        name: what to call the space in tables and figures.

    >>> space = Space([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], labels=["a", "b", "b"])
    >>> space
    Space(3 × 2, float64, 2 labels)
    >>> space.labels.names
    ('a', 'b')
    >>> space.X.shape, space.y.tolist()
    ((3, 2), ['a', 'b', 'b'])
    """

    vectors: Tensor
    labels: Labels | None = None
    token_types: Labels | None = None
    sentences: Labels | None = None
    partners: Tensor | None = None
    weights: Tensor | None = None
    texts: Sequence[str] | None = None
    layer: int | str | None = None
    name: str | None = None

    def __init__(
        self,
        vectors: Any,
        labels: Any = None,
        *,
        token_types: Any = None,
        sentences: Any = None,
        partners: Any = None,
        weights: Any = None,
        texts: Sequence[str] | None = None,
        layer: int | str | None = None,
        name: str | None = None,
    ) -> None:
        matrix = as_matrix(vectors, name="vectors")
        n = matrix.shape[0]
        if texts is not None and len(texts) != n:
            raise ShapeError(
                f"has {len(texts)} entries for {n} vectors", argument="texts", wanted="one for each vector"
            )
        matched = None if partners is None else as_matrix(partners, name="partners")
        if matched is not None and matched.shape != matrix.shape:
            raise ShapeError(
                f"has shape {tuple(matched.shape)}",
                argument="partners",
                wanted=f"the shape of the vectors, {tuple(matrix.shape)}",
            )
        fields = {
            "vectors": matrix,
            "labels": _named(labels, n, "labels"),
            "token_types": _named(token_types, n, "token_types"),
            "sentences": _named(sentences, n, "sentences"),
            "partners": matched,
            "weights": None if weights is None else as_counts(weights, n=n).to(matrix.device),
            "texts": texts,
            "layer": layer,
            "name": name,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __len__(self) -> int:
        return int(self.vectors.shape[0])

    def __repr__(self) -> str:
        parts = [f"{len(self):,} × {self.n_dims}", str(self.vectors.dtype).removeprefix("torch.")]
        parts += [self.name] if self.name else []
        parts += [f"{self.labels.n_labels} labels"] if self.labels else []
        parts += [f"{self.token_types.n_labels} token types"] if self.token_types else []
        parts += [f"{self.sentences.n_labels} sentences"] if self.sentences else []
        parts += ["partners"] if self.partners is not None else []
        parts += ["weights"] if self.weights is not None else []
        return f"Space({', '.join(parts)})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.X, dtype=dtype) if copy else np.asarray(self.X, dtype=dtype)

    @property
    def X(self) -> np.ndarray:  # noqa: N802 - scikit-learn's name
        """(n, d) vectors as a NumPy array, in the same memory where possible."""
        vectors = self.vectors.detach().cpu()
        return (vectors.float() if vectors.dtype == torch.bfloat16 else vectors).numpy()

    @property
    def y(self) -> np.ndarray | None:
        """(n,) names of the labels as a NumPy array, or None."""
        return None if self.labels is None else np.asarray(self.labels)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return len(self), self.n_dims

    @property
    def n_dims(self) -> int:
        """d, the number of dimensions."""
        return int(self.vectors.shape[1])

    @property
    def device(self) -> torch.device:
        """Device of the vectors."""
        return self.vectors.device

    @property
    def n_rows(self) -> int:
        """n, the number of vectors."""
        return len(self)

    @property
    def n_bytes(self) -> int:
        """Bytes of the vectors as float32."""
        return 4 * self.vectors.numel()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names that `column` takes."""
        known = ("labels", "token_types", "sentences", "weights", "texts")
        return tuple(name for name in known if vars(self)[name] is not None)

    def column(self, name: str) -> Sequence[Any]:
        """Return one value a row: labels, token types, sentences, weights or texts."""
        if name not in self.columns:
            names = ", ".join(self.columns) or "none"
            raise InputError(f"{self.title} has no column {name!r}; its columns: {names}")
        known = vars(self)[name]
        if isinstance(known, Labels):
            return [known.names[code] for code in known.codes.tolist()]
        values: Sequence[Any] = known.tolist() if isinstance(known, Tensor) else known
        return values

    @property
    def identity(self) -> list[Any]:
        """The title, the shape and a digest of the vectors."""
        return [self.title, list(self.vectors.shape), digest(self.vectors)]

    @property
    def title(self) -> str:
        """Name for messages."""
        return self.name or "X"

    @property
    def notes(self) -> tuple[str, ...]:
        """No notes: the caller made the space."""
        return ()

    def parts(self, n_rows: int) -> list[Space]:
        """Return the space as its only part, since its rows are in memory."""
        del n_rows
        return [self]

    def load(self) -> Space:
        """Return the space itself."""
        return self

    def with_vectors(self, vectors: Any) -> Space:
        """Return the same rows with other vectors: corrected, trained, or of another layer."""
        return replace(self, vectors=vectors)

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Yield blocks of rows, each a Space with all names of the labels."""
        if n_rows is not None and n_rows < 1:
            raise InputError(argument="n_rows", got=n_rows, wanted="at least 1")
        n_rows = n_rows or block_rows(self.n_dims)
        for start in range(0, len(self), n_rows):
            yield self.rows(start, min(start + n_rows, len(self)))

    def take(self, index: Tensor) -> Space:
        """Return the rows of an index, with their columns and all names of the labels."""
        texts = None if self.texts is None else [self.texts[row] for row in index.tolist()]
        return self._picked(lambda known: known[index.to(known.device)], texts)

    def rows(self, start: int, stop: int) -> Space:
        """Return rows start … stop−1, in the same memory, with their columns and all names of the labels."""
        texts = None if self.texts is None else self.texts[start:stop]
        return self._picked(lambda known: known[start:stop], texts)

    def _picked(self, pick: Callable[[Tensor], Tensor], texts: Sequence[str] | None) -> Space:
        fields = dict(vars(self), texts=texts)
        for name, known in vars(self).items():
            if isinstance(known, Labels):
                fields[name] = Labels(pick(known.codes), known.names)
            elif isinstance(known, Tensor):
                fields[name] = pick(known)
        return unchecked(fields)


def weighted(space: Space, weights: Tensor) -> Space:
    """Return a checked space with these weights, which may all be zero in a block."""
    return unchecked({**vars(space), "weights": weights.to(space.device)})


def unchecked(fields: dict[str, Any]) -> Space:
    """Return a space of fields that are already checked."""
    space = object.__new__(Space)
    for field, value in fields.items():
        object.__setattr__(space, field, value)
    return space


def as_weights(weights: Any, *, n: int, name: str = "weights") -> Tensor:
    """Return weights as (n,) float64, checked: finite, none negative, not all zero, and their sum exact."""
    values = as_tensor(weights, name=name).detach().double().flatten()
    if len(values) != n:
        raise ShapeError(
            f"has {len(values)} entries for {n} vectors", argument=name, wanted="one for each vector"
        )
    bad = ~(torch.isfinite(values) & (values >= 0))
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        raise InputError(
            f"has {float(values[row]):g} in row {row}",
            argument=name,
            wanted="how often each row counts, 0 or more",
        )
    if not bool((values > 0).any()):
        raise InputError("is 0 for every row", argument=name, wanted="at least one row that counts")
    if (total := float(values.sum())) > _LARGEST_COUNT:
        raise InputError(
            f"adds up to {total:g}",
            argument=name,
            wanted=f"how often each row counts, at most {_LARGEST_COUNT:,} in all",
            hint="divide them by the smallest",
        )
    return values


def as_counts(weights: Any, *, n: int, name: str = "weights") -> Tensor:
    """Return the weights of a whole space; weights that are shares of 1 are an error."""
    counts = as_weights(weights, n=n, name=name)
    total = float(counts.sum())
    if total < 2 and int((counts > 0).sum()) > 1:
        raise InputError(
            f"adds up to {total:g} over {n:,} rows",
            argument=name,
            wanted="how often each row counts, at least 2 in all",
            hint="multiply shares by the number of rows",
        )
    return counts


def whole(number: float) -> Any:
    """Return a sum of weights as an int if it is a whole number."""
    return int(number) if number == int(number) else number


def _named(values: Any, n: int, name: str) -> Labels | None:
    return None if values is None else as_labels(values, n=n, name=name).to(torch.device("cpu"))


def known_rows(X: Any, given: Any, field: str) -> Any:
    """Return one value a row: the given values, the column they name, or the column of the Space."""
    if isinstance(given, str | os.PathLike):
        # by name, since readers are built on this module
        return import_module("isoscope.io.sources").row_values(X, given, field)
    known = getattr(X, field) if given is None and isinstance(X, Space) else given
    if known is None:
        raise InputError(
            "is missing",
            argument=field,
            wanted="one entry for each vector",
            hint=[f"pass {field}=…", f"pass a Space with {field}"],
        )
    return known
