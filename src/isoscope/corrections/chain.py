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


def _ends_in_codes(chain: Any) -> bool:
    steps = getattr(chain, "steps_", chain.steps)
    return bool(steps) and hasattr(steps[-1], "encode")


class Chain(Correction):
    """A sequence of corrections, each fitted on the output of the one before.

        Chain([Whiten(128), Normalize()])

    It is saved as one file. As a torch module, consecutive affine steps become one matrix product.

    Args:
        steps: corrections in the order of their application. They are copied, not changed.

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
        """Return a chain of corrections that are already fitted."""
        chain = cls([clone(step) for step in steps])
        chain.steps_ = list(steps)
        chain.n_features_in_ = steps[0].n_features_in_
        chain._solution = Solution({})
        return chain

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit each step on X as transformed by the steps before it."""
        rows = as_rows(self, X, reset=True)
        self._begin(rows)
        steps = self._copies()
        for step in steps[:-1]:
            rows = step.fit(rows, y)._corrected(rows)
        steps[-1].fit(rows, y)
        return self._settle(steps)

    def fit_blocks(self, source: Any, *, use_labels: bool = False) -> Self:
        """Fit on a stream, which is read once for each step."""
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
        """Not available: each step needs the steps before it fitted on all blocks."""
        raise AttributeError("Chain has no partial_fit: use fit, or fit_blocks, which reads the blocks again")

    @available_if(_all_lead_back)  # type: ignore[untyped-decorator]
    def inverse_transform(self, X: Any) -> Any:
        """Return the original vectors. Available if every step can be inverted."""
        check_is_fitted(self)
        for step in reversed(self.steps_):
            X = step.inverse_transform(X)
        return X

    @available_if(_ends_in_codes)  # type: ignore[untyped-decorator]
    def encode(self, X: Any) -> Any:
        """Return the codes of the last step. Available if that is a quantizer."""
        check_is_fitted(self)
        for step in self.steps_[:-1]:
            X = step.transform(X)
        return self.steps_[-1].encode(X)

    @available_if(_ends_in_codes)  # type: ignore[untyped-decorator]
    def decode(self, codes: Any) -> Any:
        """Return the vectors after the last step that codes stand for."""
        check_is_fitted(self)
        return self.steps_[-1].decode(codes)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the dimensions after the last step."""
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
                "is empty",
                argument="steps",
                wanted="at least one correction, such as [Whiten(), Normalize()]",
            )
        for step in steps:
            if not isinstance(step, Correction):
                raise InputError(
                    f"has a {type(step).__name__}", argument="steps", wanted="corrections of isoscope"
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
