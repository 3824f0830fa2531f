"""Two models on the same texts, before and after: how each layer moved, and which tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoscope.metrics.contextual_change import N_TYPES, changes_by_type, extremes
from isoscope.models.layers.layer_profile import LayerProfile
from isoscope.models.layers.quantities import ALL_QUANTITIES

if TYPE_CHECKING:
    from rich.table import Table

_SHOWN = (  # as many as fit a terminal of 80 columns
    "mean_cosine",
    "adjusted_self_similarity",
    "adjusted_intra_similarity",
    "isoscore_debiased",
    "effective_rank",
)


@dataclass(frozen=True, eq=False)
class LayerComparison:
    """A model before and after: both profiles, and the tokens' change in the last layer.

    Attributes:
        before, after: the profiles.
        changes: self-similarity change by token type, the most frequent first: adjusted self-similarity
            in the last layer of `after` less that of `before`.
    """

    before: LayerProfile
    after: LayerProfile
    changes: Mapping[str, float]

    @classmethod
    def of(cls, before: LayerProfile, after: LayerProfile, *, n_types: int = N_TYPES) -> LayerComparison:
        """Compare two profiles of the same texts; token types that only one has are left out."""
        changes = changes_by_type(before.adjusted_by_type(), after.adjusted_by_type(), n_types=n_types)
        return cls(before, after, changes)

    def to_dict(self) -> dict[str, Any]:
        """Both profiles and the changes, unrounded, JSON-ready."""
        return {
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "self_similarity_change": dict(self.changes),
        }

    def table(self, *, sinks: bool = True) -> Table:
        """A row a layer, before → after; layers of models of unequal depth are matched from both ends."""
        from rich import box
        from rich.table import Table

        title = f"{self.before.model} → {self.after.model}" + ("" if sinks else ", without sinks")
        table = Table(
            title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1)
        )
        table.add_column("layer", justify="right")
        shown = [quantity for quantity in ALL_QUANTITIES if quantity.name in _SHOWN]
        for quantity in shown:
            table.add_column(quantity.title, justify="right", vertical="bottom")
        for first, second in self.pairs:
            label = str(first) if first == second else f"{first} → {second}"
            values = [
                [profile.readings[layer][0 if sinks else 1].get(q.name) for q in shown]
                for profile, layer in ((self.before, first), (self.after, second))
            ]
            cells = (_moved(a, b, q.digits) for a, b, q in zip(*values, shown, strict=True))
            table.add_row(label, *cells)
        return table

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Which layer stands beside which: all where both have as many, else at the same depth."""
        first, second = self.before.layers, self.after.layers
        longer = max(len(first), len(second))
        depth = [i / max(longer - 1, 1) for i in range(longer)]
        return [(first[round(t * (len(first) - 1))], second[round(t * (len(second) - 1))]) for t in depth]

    def words(self, n: int = 10) -> tuple[dict[str, float], dict[str, float]]:
        """The n tokens whose self-similarity rises most, and those whose falls most; fewer where few do."""
        highest, lowest = extremes(self.changes, n)
        rising = {name: value for name, value in highest.items() if value > 0}
        return rising, {name: value for name, value in lowest.items() if value < 0}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of the comparison."""
        found = []
        if self.before.type_names != self.after.type_names:
            shared = len(set(self.before.type_names) & set(self.after.type_names))
            found.append(
                f"the tokenizers differ: changes are of the {len(self.changes):,} most frequent tokens, and "
                f"{shared:,} of {self.before.n_types:,} and {self.after.n_types:,} types are in both"
            )
        if self.before.n_texts != self.after.n_texts:
            found.append(
                f"{self.before.n_texts:,} and {self.after.n_texts:,} texts were read: not quite the same ones"
            )
        return tuple(found)


def _moved(before: float | None, after: float | None, digits: int) -> str:
    a, b = ("—" if value is None else f"{value:.{digits}f}" for value in (before, after))
    return f"{a} → {b}"
