"""`correct`: a source corrected block by block and written, with its geometry before and after."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoscope.corrections.correction import Corrected, Correction
from isoscope.engine.measure import measure
from isoscope.engine.source import Source, Wrapped
from isoscope.errors import IsoscopeError
from isoscope.io import open_vectors
from isoscope.io.targets import check_targets
from isoscope.io.writers import write_blocks
from isoscope.metrics.thresholds import THRESHOLDS
from isoscope.printable import counted, listed
from isoscope.progress import Bar
from isoscope.results import Result
from isoscope.space import Space
from isoscope.tables import Grid

GEOMETRY = (
    "isoscore",
    "mean_cosine",
    "effective_rank",
    "top_dimension_share",
    "mean_norm",
    "norm_variation",
)
_Path = str | os.PathLike[str]


@dataclass(frozen=True, repr=False)
class CorrectedFile(Result):
    """A source that was corrected: what was written, and how the geometry changed.

    Attributes:
        correction: the fitted correction.
        n: vectors. d, d_corrected: dimensions before and after.
        before, after: the geometry by metric; None where a metric has no value.
        output, saved: the files written, or None.
        notes: what the reader should know.
    """

    correction: Correction
    n: int
    d: int
    d_corrected: int
    before: dict[str, float | None]
    after: dict[str, float | None]
    output: Path | None
    saved: Path | None
    notes: tuple[str, ...]

    def grids(self) -> Iterable[Grid]:
        """Return one table, a row a metric."""
        title = f"{self.n:,} vectors, {self.d} dimensions → {self.d_corrected}"
        rows = [(name, self.before[name], self.after[name]) for name in GEOMETRY]
        yield Grid(title, ("metric", "before", "after"), rows)

    def lines(self) -> list[str]:
        """Return the notes."""
        return [f"note: {note}" for note in self.notes]

    def _columns(self) -> dict[str, list[Any]]:
        sides = {"before": self.before, "after": self.after}
        return {"metric": list(GEOMETRY)} | {side: list(of.values()) for side, of in sides.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready values, unrounded."""
        return {
            "output": None if self.output is None else str(self.output),
            "saved": None if self.saved is None else str(self.saved),
            "correction": repr(self.correction),
            "n": self.n,
            "d": self.d,
            "d_corrected": self.d_corrected,
            "before": self.before,
            "after": self.after,
            "notes": list(self.notes),
        }


def correct(
    source: Source,
    correction: Correction,
    *,
    fit: Source | None = None,
    use_labels: bool = False,
    output: _Path | None = None,
    save: _Path | None = None,
    progress: bool | None = None,
) -> CorrectedFile:
    """Correct a source of any size and write the vectors, with the geometry before and after.

    Blocks are read once or more to fit, and once to correct, so the vectors need not fit in memory.

    Args:
        source: an opened file (`open_vectors`).
        correction: the correction to apply; fitted already, unless `fit` is given.
        fit: the source to fit it on.
        use_labels: take the labels of `fit` for clusters.
        output: where to write the corrected vectors: .npy or .parquet.
        save: where to save the fitted correction: .safetensors.
        progress: show a progress bar; None shows it on a terminal.

    Raises:
        InputError: there is nothing to write, or the same file is named twice.
    """
    check_targets(output, save)
    with Bar(show=progress) as bar:
        if fit is not None:
            bar.step("fitting")
            correction = correction.fit_blocks(_Watched(fit, bar).blocks, use_labels=use_labels)
        if save is not None:
            correction.save(save)
        first = correction.transform(next(iter(source.blocks(1))))  # checked before a long pass
        bar.step("measuring before")
        before, n_zero = _geometry(_Watched(source, bar))
        notes = list(source.notes)
        corrected: Source = Corrected(_Watched(source, bar), correction)
        if output is not None:
            bar.step("correcting")
            corrected = _Watched(_written(source, corrected, Path(output), first.n_dims, notes), bar)
        bar.step("measuring after")
        after, n_still_zero = _geometry(corrected)
        notes += _zero_vector_notes(n_zero - n_still_zero)
        notes += _share_notes(before, after)
    return CorrectedFile(
        correction=correction,
        n=source.n_rows if source.n_rows is not None else sum(map(len, source.blocks())),
        d=source.n_dims,
        d_corrected=first.n_dims,
        before=before,
        after=after,
        output=None if output is None else Path(output),
        saved=None if save is None else Path(save),
        notes=tuple(notes),
    )


def _written(source: Any, corrected: Source, output: Path, n_dims: int, notes: list[str]) -> Source:
    is_table = output.suffix.lower() == ".parquet"
    rows = source.table_rows()
    write_blocks(corrected.blocks(), output, table=rows if is_table else None)
    if is_table and rows is None and source.columns:
        notes.append("only vectors, labels and texts are written")
    if not is_table and rows is not None and rows.others:
        notes.append(f"{output} has the vectors alone: a .parquet file also keeps {listed(rows.others)}")
    return open_vectors(output, **(rows.where(n_dims) if is_table and rows is not None else {}))


class _Watched(Wrapped):
    """A source whose blocks move the progress bar."""

    def __init__(self, source: Source, bar: Bar) -> None:
        super().__init__(source)
        self._bar = bar

    def blocks(self, n_rows: int | None = None) -> Iterator[Space]:
        done = 0
        for block in self.source.blocks(n_rows):
            yield block
            done += len(block)
            if self.n_rows:
                self._bar.share(done / self.n_rows)


def _zero_vector_notes(n_moved: int) -> list[str]:
    """Return a note where zero vectors are no longer zero: they would pass for data."""
    if n_moved <= 0:
        return []
    what = "is no longer zero" if n_moved == 1 else "are no longer zero, and all equal"
    return [
        f"{counted(n_moved, 'zero vector')} {what}: the correction subtracts the mean from every row. Remove "
        "such rows first; `isoscope look FILE --json` lists them"
    ]


def _share_notes(before: dict[str, float | None], after: dict[str, float | None]) -> list[str]:
    """Return a note where the share of a dimension rises because little is left to share."""
    cosine, share = after["mean_cosine"], "top_dimension_share"
    has_risen = (after[share] or 0.0) > (before[share] or 0.0)
    if cosine is None or not has_risen or THRESHOLDS["common_direction"].severity(cosine) != "healthy":
        return []
    return [f"{share} is a share of the mean cosine, which is now near 0, so it says little"]


def _geometry(source: Source) -> tuple[dict[str, float | None], int]:
    """Return the geometry by metric, None for what has no value, and the number of zero vectors."""
    try:
        measured = measure(source, metrics=GEOMETRY, errors=False, progress=False)
    except IsoscopeError:
        return dict.fromkeys(GEOMETRY), 0
    return {name: measured[name] for name in GEOMETRY}, measured._kept.n_zero
