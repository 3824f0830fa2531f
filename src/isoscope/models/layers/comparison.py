"""`LayerComparison`: the layers of two models on the same texts, such as before and after fine-tuning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from isoscope.engine.readings import Readings, View
from isoscope.metrics.contextual_change import N_TYPES, changes_by_type, extremes
from isoscope.models.layers.layer_profile import SELF_SIMILARITY, LayerProfile
from isoscope.models.layers.quantities import Quantity
from isoscope.tables import Grid, shown

_SHOWN = (  # as many as fit a terminal of 80 columns
    "mean_cosine",
    "adjusted_self_similarity",
    "adjusted_intra_similarity",
    "isoscore_debiased",
    "effective_rank",
)


@dataclass(frozen=True, eq=False, repr=False)
class LayerComparison(View):
    """Two profiles of the same texts, and the change of token types in the last layer.

    Attributes:
        before, after: the profiles.
        changes: the self-similarity change of each token type, the most frequent first: its adjusted
            self-similarity in the last layer of `after` minus that in the last layer of `before`.
    """

    before: LayerProfile
    after: LayerProfile
    changes: Mapping[str, float]

    @classmethod
    def of(cls, before: LayerProfile, after: LayerProfile, *, n_types: int = N_TYPES) -> LayerComparison:
        """Compare two profiles of the same texts.

        Token types that only one profile has are left out. Without mean_cosine among the metrics, there are
        no changes by token type.
        """
        if not all("mean_cosine" in profile.metrics for profile in (before, after)):
            return cls(before, after, {})
        changes = changes_by_type(before.adjusted_by_type(), after.adjusted_by_type(), n_types=n_types)
        return cls(before, after, changes)

    def to_dict(self) -> dict[str, Any]:
        """Return both profiles and the changes as JSON-ready values, not rounded."""
        return {
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "self_similarity_change": dict(self.changes),
        }

    @property
    def readings(self) -> Readings:
        """The readings of both models, by `side`, `layer` and `view`."""
        sides = {"before": self.before, "after": self.after}
        return Readings(
            [
                replace(reading, group={"side": side, **reading.group})
                for side, profile in sides.items()
                for reading in profile.readings
            ]
        )

    @property
    def title(self) -> str:
        """The names of the models, and whether attention sinks are left out."""
        return f"{self.before.model} → {self.after.model}{', without sinks' if self._without_sinks else ''}"

    @property
    def _without_sinks(self) -> bool:
        return bool(self.before.sinks or self.after.sinks)

    def grids(self) -> Iterable[Grid]:
        """Return a table with a row for each layer: before → after, without attention sinks."""
        columns = self._columns_shown
        view = 1 if self._without_sinks else 0
        rows = []
        for first, second in self.pairs:
            before, after = self.before.by_layer[first][view], self.after.by_layer[second][view]
            pairs = ((shown(values.get(q.name), q.digits) for values in (before, after)) for q in columns)
            label = str(first) if first == second else f"{first} → {second}"
            rows.append((label, *(" → ".join(pair) for pair in pairs)))
        heads = ("layer", *(quantity.head for quantity in columns))
        yield Grid("", heads, rows, heads)

    @property
    def _columns_shown(self) -> list[Quantity]:
        names = _SHOWN if self.before.has_default_metrics else self.before.metrics
        return [Quantity.named(name) for name in names]

    def lines(self) -> list[str]:
        """Return the meaning of each column, the notes, and the tokens that changed most."""
        lines = [f"{one.title}: {one.meaning}" for one in self._columns_shown]
        lines += [f"note: {note}" for note in self.notes]
        for verb, words in zip(("rises", "falls"), self.words(), strict=True) if self._has_words else ():
            tokens = "  ".join(f"{name} {value:+.2f}" for name, value in words.items())
            lines.append(f"self-similarity {verb} most: {tokens or 'none'}")
        return lines

    @property
    def _has_words(self) -> bool:
        """Whether the changes of token types are printed: where a self-similarity was asked for."""
        return bool(self.changes) and any(SELF_SIMILARITY in name for name in self.before.metrics)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The layers that are compared: those with the same number, or at the same relative depth."""
        first, second = self.before.layers, self.after.layers
        longer = max(len(first), len(second))
        depth = [i / max(longer - 1, 1) for i in range(longer)]
        return [(first[round(t * (len(first) - 1))], second[round(t * (len(second) - 1))]) for t in depth]

    def words(self, n: int = 10) -> tuple[dict[str, float], dict[str, float]]:
        """Return the (at most n) tokens whose self-similarity rises most, and those whose falls most."""
        highest, lowest = extremes(self.changes, n)
        rising = {name: value for name, value in highest.items() if value > 0}
        return rising, {name: value for name, value in lowest.items() if value < 0}

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user."""
        notes = []
        before, after = _counted_types(self.before), _counted_types(self.after)
        if before != after:
            of_changes = (
                f"; changes are those of {len(self.changes):,} frequent types" if self._has_words else ""
            )
            notes.append(
                f"the tokens differ: of {len(before):,} and {len(after):,} token types, "
                f"{len(before & after):,} are in both models{of_changes}"
            )
        if self.before.n_texts != self.after.n_texts:
            notes.append(
                f"{self.before.n_texts:,} and {self.after.n_texts:,} texts were read, which are not the same"
            )
        return tuple(notes)


def _counted_types(profile: LayerProfile) -> set[str]:
    """Return the token types that are counted; special tokens, which may have other names, are not."""
    counts = profile.type_counts.tolist()
    return {name for name, count in zip(profile.type_names, counts, strict=True) if count}
