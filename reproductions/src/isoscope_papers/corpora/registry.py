"""The declarations of the corpora in registry.toml."""

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
    """A table in isoscope-papers, with a description."""

    table: str
    source: str
    licence: str


@dataclass(frozen=True)
class Declaration:
    """One corpus; registry.toml describes each field."""

    kind: str
    name: str
    columns: tuple[str, ...]
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
        """Return the names of the fields to read."""
        return (*self.columns, self.label) if self.label else self.columns

    @property
    def is_scored(self) -> bool:
        """Return whether the label is a number."""
        return self.kind == "pairs"

    def part(self, split: str | None) -> str | None:
        """Return the full name of a split; by default the first, and for labelled texts any that exists.

        "dev" may stand for "dev matched".
        """
        if split is None:
            return None if self.kind == "corpora" else next(iter(self.files))
        known = next((one for one in self.files if split in (one, one.split()[0])), None)
        if known is None:
            raise InputError(
                argument="split", got=split, wanted=f"one of {', '.join(self.files)} of {self.name}"
            )
        return known

    def on_hub(self, part: str | None) -> Sequence[str]:
        """Return the names of a split on the hub; by default those declared."""
        assert self.hub is not None
        return self.hub.splits if part is None else (_ON_HUB.get(part, part),)


def _declarations(text: str) -> dict[str, Declaration]:
    found = {}
    kinds: list[tuple[str, Any]] = [("hub", Hub), ("embedded", Embedded)]
    for section, entries in tomllib.loads(text).items():
        for name, entry in entries.items():
            parts = {key: kind(**entry[key]) for key, kind in kinds if key in entry}
            columns = tuple(entry["columns"])
            found[name] = Declaration(section, name, **entry | parts | {"columns": columns})
    return found


REGISTRY = _declarations(files(__package__).joinpath("registry.toml").read_text(encoding="utf-8"))


def declared(name: str) -> Declaration:
    """Return the declaration of a corpus by name."""
    check_name("corpus", name, REGISTRY)
    return REGISTRY[name]


def check_name(what: str, name: str, known: Sequence[str] | Mapping[str, Any]) -> None:
    """Raise InputError unless a name is known."""
    if name not in known:
        raise InputError(argument=what, got=name, wanted=f"one of {', '.join(known)}")
