"""What to try next: a command to paste where the vectors are a file, else a line of Python."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TABLES = {".csv", ".tsv", ".parquet", ".arrow", ".feather", ".jsonl"}  # their other columns are kept
_ENCODED = "vectors.npy"  # where vectors of texts are written before they are corrected
_CLASSES = {"center": "Center", "normalize": "Normalize", "standardize": "Standardize", "whiten": "Whiten"}
_PAST = {"center": "centered", "normalize": "normalized", "standardize": "standardized", "whiten": "whitened"}


def output_of(file: str, name: str) -> str:
    """Return where to write corrected vectors: a table stays one, and FILE is never written over.

    >>> output_of("v.npy", "centered"), output_of("t.csv", "centered"), output_of("centered.npy", "centered")
    ('centered.npy', 'centered.parquet', 'centered-2.npy')
    """
    suffix = ".parquet" if Path(file).suffix in _TABLES else ".npy"
    path = Path(f"{name}{suffix}")
    return f"{name}-2{suffix}" if path.resolve() == Path(file).resolve() else str(path)


@dataclass(frozen=True)
class Step:
    """A command of the shell, or a line of Python."""

    line: str
    is_command: bool

    def __str__(self) -> str:
        return self.line


@dataclass(frozen=True)
class NextSteps:
    """Writes the next steps for one input.

    Attributes:
        file: the words after the command: the file and how it is read; empty for an array in memory.
        texts: further words, of the model that encodes texts and of the device; `correct` takes neither.
        labels: the labels as the command line takes them; None for none.
        has_labels: whether the rows have labels at all.
        can_correct: whether `isoscope correct` takes the file: not where a model encodes texts.
    """

    file: Sequence[str] = ()
    texts: Sequence[str] = ()
    labels: str | None = None
    has_labels: bool = False
    can_correct: bool = True

    def __call__(self, kind: str, what: str = "", **settings: Any) -> Step:
        """Return a step: "measure" (metrics), "correct" (a method), "look", "audit", "sweep", "advise", …."""
        if not self.file:
            return Step(self._python(kind, what, settings), is_command=False)
        if kind == "correct" and not self.can_correct:
            encode = shlex.join(["isoscope", "encode", *self.file, *self.texts, "-o", _ENCODED])
            return Step(f"{encode} && {NextSteps((_ENCODED,))(kind, what, **settings)}", is_command=True)
        command = "audit" if kind == "sweep" else kind
        words = ["isoscope", command, *self.file, *(() if kind == "correct" else self.texts)]
        if kind == "measure":
            words += ["-m", what]
        elif kind == "correct":
            words += ["--method", what]
            words += [word for name, value in settings.items() for word in (f"--{name}", str(value))]
            words += ["-o", output_of(self.file[0], "-".join(_PAST[name] for name in what.split(",")))]
        elif kind == "look":
            words += ["--json"]
        elif kind == "audit":
            words += ["--rows", "rows.csv"]
        elif kind == "sweep":
            words += ["--sweep", "faiss"]
        elif self.labels is not None:
            words += ["--labels", self.labels]
        return Step(
            shlex.join([*words, *(("-o", "report.html") if kind == "report" else ())]), is_command=True
        )

    def _python(self, kind: str, what: str, settings: dict[str, Any]) -> str:
        labels = ", labels=labels" if self.has_labels else ""
        if kind == "measure":
            return f"iso.measure(X, metrics={what!r})"
        if kind == "correct":
            given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
            made = [f"iso.corrections.{_CLASSES[name]}({given})" for name in what.split(",")]
            if len(made) > 1:  # to be looked at in a line of its own
                return f"iso.corrections.Chain([{', '.join(made)}]).fit_transform(X)"
            return f"iso.look({made[0]}.fit_transform(X){labels})"
        if kind == "look":
            return "iso.look(X)['rows'].listed"
        if kind == "audit":
            return "iso.audit(X).rows()"
        if kind == "sweep":
            return "isoscope.audit.sweep(X, 'faiss')"
        if kind == "advise":
            return f"iso.advise(X{labels})"
        return f"iso.report(X{labels}, path='report.html')"
