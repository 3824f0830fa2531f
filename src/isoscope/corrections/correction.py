"""`Correction`, the base class of all corrections: a scikit-learn transformer that computes with torch.

Fitting has three stages. A statistic is merged block by block. A solution is computed from it: named float64
tensors, which are the fitted attributes and the content of a saved file. A map, a torch module, is built from
the solution and transforms vectors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from isoscope.arrays import as_matrix, as_tensor, block_rows, like, working_dtype
from isoscope.corrections.border import as_rows, blocks_of
from isoscope.corrections.maps import Map, UnitLength, flat
from isoscope.engine.source import Source, Wrapped
from isoscope.errors import InputError, ShapeError, not_installed
from isoscope.io.sealed import digest
from isoscope.kernels.precision import full_precision
from isoscope.kernels.workers import in_order
from isoscope.space import Space

# on the CPU: rows of one task; measured on two cores: 512 rows of 384 beat 1,024 to 4,096 by a third
_BLOCK_NUMBERS = 512 * 384
_WHOLE_NUMBERS = 2**20  # up to here one call on all cores beats tasks on one core each


@dataclass(eq=False)
class Solution:
    """The fitted float64 tensors by name, and the maps built from them by type and device."""

    tensors: dict[str, Tensor]
    maps: dict[tuple[torch.dtype, torch.device], Map] = field(default_factory=dict)


class Fitted:
    """A fitted attribute: a tensor of the solution as a NumPy array."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, correction: Any, owner: type) -> Any:
        if correction is None:
            return self
        if not correction.__sklearn_is_fitted__():
            raise AttributeError(f"{owner.__name__} has no {self.name} before fit")
        return correction._solved()[self.name].cpu().numpy()


class Correction(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformation of vectors that is fitted to vectors.

    The output has the kind and the number type of the input: NumPy, torch on the same device, or a Space with
    its labels and texts. Fitted attributes are float64.
    """

    # fitted attributes and the letters of their axes: d is n_features_in_, others must agree with each other
    _axes: ClassVar[dict[str, str]] = {}
    _statistic_of: Callable[[Tensor], Any]

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn passes targets along
        """Fit on (n, d) vectors and discard any earlier fit. `y` is ignored."""
        rows = as_rows(self, X, reset=True)
        self._check_parameters(rows.shape[1])
        self._begin(rows)
        self._gather(rows)
        self._solved()
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Fit on one more block. All blocks together give the same result as `fit`."""
        rows = self._next_block(X)
        self._gather(rows)
        return self

    def fit_blocks(self, source: Any, *, use_labels: bool = False) -> Self:  # noqa: ARG002 - for clusters
        """Fit on a stream of blocks.

        Args:
            source: an opened file (`open_vectors`), a list of blocks, or a function that returns an iterator.
            use_labels: use the labels of the blocks as clusters; only corrections by cluster need it.
        """
        self._forget()
        for block in blocks_of(source):
            self.partial_fit(block)
        self._solved()
        return self

    def transform(self, X: Any) -> Any:
        """Correct (n, d) vectors. For a single vector, use `transform_one`."""
        check_is_fitted(self)
        return _as_given(X, as_rows(self, X, reset=False), self._corrected)

    def transform_one(self, x: Any) -> Any:
        """Correct one vector (d,), such as a query.

        >>> from isoscope.corrections import Center
        >>> Center().fit([[1.0, 0.0], [3.0, 4.0]]).transform_one([3.0, 3.0]).tolist()
        [1.0, 1.0]
        """
        vector = as_tensor(x, name="x")
        if vector.ndim != 1:
            raise ShapeError(
                f"has shape {tuple(vector.shape)}",
                argument="x",
                wanted="one vector (d,)",
                hint="use transform(X) for several",
            )
        return self.transform(vector[None] if isinstance(x, Tensor) else vector.detach().numpy()[None])[0]

    def to_module(self, *, dtype: torch.dtype = torch.float32) -> Map:
        """Return the correction as a torch module for (…, d) vectors, to use within a model.

        Consecutive affine steps of a chain become one matrix product. The module works with `torch.export`
        and passes gradients.
        """
        check_is_fitted(self)
        return self._map(self._solved()).to(dtype)

    def to_sentence_transformers(self) -> list[Any]:
        """Return modules to append to a sentence-transformers model, which then saves and loads them.

        They are the library's own: `Dense` for an affine step, `Normalize` for unit length. A Dense computes
        Wx + b in float32: if all vectors share a large offset, it loses digits that `transform` and
        `to_module` keep.
        """
        return [_sentence_module(step) for step in flat([self.to_module(dtype=torch.float64)])]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted correction to a .safetensors file and return its path."""
        from isoscope.corrections.files import save_correction

        return save_correction(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_solution") or getattr(self, "_statistic", None) is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32", "float16"]
        return tags

    # defined by each correction

    def _check_parameters(self, n_dims: int) -> None:
        """Raise InputError for parameters that are invalid for vectors of d dimensions."""

    def _solve(self, statistic: Any) -> dict[str, Tensor]:
        """Compute the fitted tensors from the statistic."""
        raise NotImplementedError

    def _map(self, solution: dict[str, Tensor]) -> Map:
        """Build the map from the fitted tensors, in float64."""
        raise NotImplementedError

    # shared by all corrections

    def _forget(self) -> None:
        for name in ("_solution", "_statistic"):
            if hasattr(self, name):
                delattr(self, name)

    def _begin(self, rows: Tensor) -> None:  # noqa: ARG002 - for those that need a first look
        self._forget()

    def _next_block(self, X: Any) -> Tensor:
        """Return the rows of a block; the first block begins a new fit."""
        first = getattr(self, "_statistic", None) is None
        if first and hasattr(self, "_solution"):
            raise InputError(
                f"{type(self).__name__} was loaded from a file, which has no statistics to continue from",
                hint="fit a new one",
            )
        rows = as_rows(self, X, reset=first)
        if first:
            self._check_parameters(rows.shape[1])
            self._begin(rows)
        return rows

    def _gather(self, rows: Tensor) -> None:
        """Merge a block into the statistic, in float64, a few rows at a time."""
        for block in rows.detach().split(block_rows(rows.shape[1])):
            part = type(self)._statistic_of(block.double())
            known = getattr(self, "_statistic", None)
            self._statistic = part if known is None else known.merge(part)
        if hasattr(self, "_solution"):
            del self._solution  # solved again on next use, so that a block costs no decomposition

    def _solved(self) -> dict[str, Tensor]:
        if not hasattr(self, "_solution"):
            self._solution = Solution(self._solve(self._statistic))
        return self._solution.tensors

    def _mapped(self, rows: Tensor) -> Map:
        """Return the map in the working type and on the device of these rows."""
        solution, place = self._solved(), (working_dtype(rows.dtype), rows.device)
        maps = self._solution.maps
        if place not in maps:
            step = self._map(solution).to(device=place[1])
            maps[place] = step if place[0] == torch.float64 or self._needs_float64() else step.to(place[0])
        return maps[place]

    def _needs_float64(self) -> bool:
        """Whether the map would be too inaccurate in float32."""
        return False

    def _corrected(self, rows: Tensor) -> Tensor:
        return through(self._mapped(rows), rows)

    def _undone(self, X: Any, backwards: Callable[[dict[str, Tensor]], Map]) -> Any:
        """Apply the inverse map to X."""
        check_is_fitted(self)
        rows, step = as_matrix(X), backwards(self._solved())
        if rows.shape[1] != step.n_out:
            raise ShapeError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting {step.n_out} "
                "features as input. Wanted vectors that it has transformed"
            )
        if not self._needs_float64():
            step = step.to(working_dtype(rows.dtype))
        step = step.to(rows.device)
        return _as_given(X, rows, lambda vectors: through(step, vectors))


def _as_given(X: Any, rows: Tensor, change: Callable[[Tensor], Tensor]) -> Any:
    """Return the changed rows as the kind of X; in a Space, the partners are changed as well."""
    if not isinstance(X, Space):
        return like(change(rows), X)
    return replace(X, vectors=change(rows), partners=None if X.partners is None else change(X.partners))


@full_precision
def through(step: Map, rows: Tensor) -> Tensor:
    """Apply a map to rows: on the CPU in blocks that fit into the cache; with a gradient, all at once."""
    kind = step.dtype or working_dtype(rows.dtype)
    if rows.requires_grad and torch.is_grad_enabled():
        return step(rows.to(kind)).to(rows.dtype)
    rows = rows.detach()
    out = rows.new_empty(len(rows), step.n_out)
    whole = rows.is_cuda or rows.numel() <= _WHOLE_NUMBERS
    n_rows = len(rows) if whole else max(128, _BLOCK_NUMBERS // rows.shape[1])
    pairs = zip(out.split(n_rows), rows.split(n_rows), strict=True)
    tasks = (partial(_write, step, kind, target, block) for target, block in pairs)
    for _ in in_order(tasks, n_workers=1 if whole else torch.get_num_threads()):
        pass
    return out


def _write(step: Map, kind: torch.dtype, target: Tensor, block: Tensor) -> None:
    room = torch.empty(block.shape, dtype=kind, device=block.device)
    if target.dtype == kind:
        step.into(target, block, room)
    else:
        wide = torch.empty(target.shape, dtype=kind, device=block.device)
        step.into(wide, block.to(kind), room)
        target.copy_(wide)


def _sentence_module(step: Map) -> Any:
    try:
        from sentence_transformers.sentence_transformer.modules import Dense, Normalize
    except ImportError:
        raise not_installed("to_sentence_transformers", "sentence-transformers", extra="text") from None
    if isinstance(step, UnitLength):
        return Normalize()
    affine = step.affine()
    if affine is None:
        raise InputError(
            "to_sentence_transformers supports affine corrections and Normalize only",
            hint="use to_module() for corrections by cluster",
        )
    center, matrix, offset = affine
    dense = Dense(len(center), matrix.shape[1], bias=True, activation_function=torch.nn.Identity())
    with torch.no_grad():
        dense.linear.weight.copy_(matrix.T)
        dense.linear.bias.copy_(offset - center @ matrix)
    return dense


class Corrected(Wrapped):
    """A source of corrected vectors, computed from another source block by block."""

    def __init__(self, source: Source, correction: Correction) -> None:
        super().__init__(source)
        self.correction = correction
        self._module = correction.to_module(dtype=torch.float64)

    @property
    def n_dims(self) -> int:
        """The number of dimensions after the correction."""
        return self._module.n_out

    @property
    def n_bytes(self) -> int | None:
        """The size of the corrected vectors in memory."""
        return None if self.n_rows is None else 4 * self.n_rows * self.n_dims

    @property
    def identity(self) -> list[Any]:
        """The identity of the source and of the correction."""
        return [*self.source.identity, digest(self._module.state_dict(), {"": repr(self.correction)})]

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        """Iterate over the corrected rows, one Space for each block."""
        return (self.correction.transform(block) for block in self.source.blocks(n_rows))

    def load(self) -> Space:
        """Return all corrected rows."""
        space: Space = self.correction.transform(self.source.load())
        return space
