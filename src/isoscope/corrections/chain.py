"""`Chain`: corrections one after another, fitted, saved and applied as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from isoscope.corrections.border import as_rows, blocks_of
from isoscope.corrections.correction import Correction, Solution
from isoscope.corrections.maps import Map, fused
from isoscope.errors import InputError


def _all_lead_back(chain: Any) -> bool:
    return all(hasattr(step, "inverse_transform") for step in getattr(chain, "steps_", chain.steps))


class Chain(Correction):
    """Corrections one after another: each is fitted on what those before it return.

        Chain([Whiten(128), Normalize()])

    Saved as one file; as a torch module, steps that are affine become one product.

    Args:
        steps: corrections, first to last. They are copied, and stay as they are.

    Attributes:
        steps_: the fitted corrections.

    >>> from isoscope.corrections import Center, Normalize
    >>> Chain([Center(), Normalize()]).fit_transform([[1.0, 0.0], [5.0, 0.0]]).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """

    def __init__(self, steps: Sequence[Correction] = ()) -> None:
        self.steps = steps

    @classmethod
    def of(cls, steps: Sequence[Correction]) -> Chain:
        """A chain of corrections that are fitted already."""
        chain = cls([clone(step) for step in steps])
        chain.steps_ = list(steps)
        chain.n_features_in_ = steps[0].n_features_in_
        chain._solution = Solution({})
        return chain

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn each step from what the steps before it make of X."""
        rows = as_rows(self, X, reset=True)
        self._begin(rows)
        steps = self._copies()
        for step in steps[:-1]:
            rows = step.fit(rows, y)._corrected(rows)
        steps[-1].fit(rows, y)
        return self._settle(steps)

    def fit_blocks(self, source: Any, *, use_labels: bool = False) -> Self:
        """Learn from a stream that can be read again: once for each step that learns."""
        self._forget()
        done: list[Correction] = []
        for step in self._copies():
            before = list(done)

            def blocks(before: list[Correction] = before) -> Iterator[Any]:
                for block in blocks_of(source):
                    for earlier in before:
                        block = earlier.transform(block)
                    yield block

            step.fit_blocks(blocks, use_labels=use_labels)
            done.append(step)
        self.n_features_in_ = done[0].n_features_in_
        return self._settle(done)

    @property
    def partial_fit(self) -> Any:
        """There is none: a step cannot be fitted before those ahead of it have seen all blocks."""
        raise AttributeError("Chain has no partial_fit: use fit, or fit_blocks, which reads the blocks again")

    @available_if(_all_lead_back)  # type: ignore[untyped-decorator]
    def inverse_transform(self, X: Any) -> Any:
        """The vectors before; there where every step has a way back."""
        check_is_fitted(self)
        for step in reversed(self.steps_):
            X = step.inverse_transform(X)
        return X

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the dimensions that come out of the last step."""
        check_is_fitted(self)
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", None)
        for step in self.steps_:
            input_features = step.get_feature_names_out(input_features)
        return input_features

    def _copies(self) -> list[Correction]:
        steps = list(self.steps)
        if not steps:
            raise InputError(
                "is empty; wanted at least one correction, such as [Whiten(), Normalize()]", argument="steps"
            )
        for step in steps:
            if not isinstance(step, Correction):
                raise InputError(
                    f"has a {type(step).__name__}; wanted corrections of isoscope", argument="steps"
                )
        return [clone(step) for step in steps]

    def _settle(self, steps: list[Correction]) -> Self:
        self.steps_ = steps
        self._solution = Solution({})
        return self

    def _needs_float64(self) -> bool:
        return any(step._needs_float64() for step in self.steps_)

    def _map(self, solution: dict[str, Tensor]) -> Map:  # noqa: ARG002 - each step has its own
        return fused([step._map(step._solved()) for step in self.steps_])
