"""What registry.toml declares of each corpus."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from isoscope.errors import InputError

_ON_HUB = {"dev": "validation", "valid": "validation", "dev matched": "validation_matched"}


@dataclass(frozen=True)
class Hub:
    """A dataset on Hugging Face's hub."""

    path: str
    splits: Sequence[str] = ("train",)
    config: str | None = None
    label: str | None = None


@dataclass(frozen=True)
class Embedded:
    """A table that comes with isoscope-papers, with a sentence on what it is."""

    table: str
    source: str
    licence: str


@dataclass(frozen=True)
class Declaration:
    """One corpus; registry.toml says what each field is."""

    name: str
    columns: Sequence[str]
    files: Mapping[str, str]
    licence: str
    label: str = "label"
    label_names: Mapping[str, str] = field(default_factory=dict)
    unlabelled: Sequence[str] = ()
    is_set: bool = False
    hub: Hub | None = None
    embedded: Embedded | None = None
    prefers_embedded: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields of a record that are read."""
        return (*self.columns, self.label) if self.label else tuple(self.columns)

    def check_split(self, split: str) -> str:
        """Return the full name of a split; "dev" may stand for "dev matched"."""
        known = next((one for one in self.files if split in (one, one.split()[0])), None)
        if known is None:
            raise InputError(f"split is {split!r}; wanted one of {', '.join(self.files)} of {self.name}")
        return known


def on_hub(split: str) -> str:
    """Return what a split is called on the hub."""
    return _ON_HUB.get(split, split)


def _declaration(name: str, entry: dict[str, Any]) -> Declaration:
    parts = {key: kind(**entry[key]) for key, kind in (("hub", Hub), ("embedded", Embedded)) if key in entry}
    return Declaration(name, **entry | parts)


REGISTRY: dict[str, dict[str, Declaration]] = {
    kind: {name: _declaration(name, entry) for name, entry in entries.items()}
    for kind, entries in tomllib.loads(
        files(__package__).joinpath("registry.toml").read_text(encoding="utf-8")
    ).items()
}


def declared(kind: str, name: str) -> Declaration:
    """Return the declaration of a corpus, of texts or of pairs by name."""
    if name not in REGISTRY[kind]:
        what = "corpus {!r} is" if kind == "corpora" else f"{kind} {{!r}} are"
        raise InputError(f"{what.format(name)} not known; wanted one of {', '.join(REGISTRY[kind])}")
    return REGISTRY[kind][name]
