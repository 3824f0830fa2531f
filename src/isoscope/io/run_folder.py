"""`RunFolder`: a folder that belongs to one run, known by what the run was asked; another's is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from isoscope.errors import FileError, InputError, Setting
from isoscope.io.locks import only_user
from isoscope.io.sealed import identity, read_json, write_json

_CONFIG = "config.json"
_FREE = ("isoscope", "torch", "device")  # of the configuration: noted, not compared


class RunFolder:
    """The folder of one configuration; `open` makes it or finds the same run in it."""

    def __init__(self, path: Path, configuration: Mapping[str, Any]) -> None:
        self.path = path
        self.configuration = dict(configuration)

    @classmethod
    @contextmanager
    def open(
        cls, path: str | os.PathLike[str] | None, configuration: Mapping[str, Any], *, resume: bool
    ) -> Iterator[Self | None]:
        """Yield a new folder, or the one of the same configuration to continue; None where no path is given.

        Until the block ends, no other process may use the folder.
        """
        if path is None:
            yield None
            return
        folder = cls(Path(path), configuration)
        with only_user(folder.path, what="run folder"):
            folder._begin(resume=resume)
            yield folder

    @property
    def identity(self) -> str:
        """What the files of this run are known by."""
        return identity({name: self.configuration[name] for name in self.configuration if name not in _FREE})

    def owner(self, part: str) -> str:
        """Return what the file of one part of this run is known by."""
        return f"{self.identity} {part}"

    def _begin(self, *, resume: bool) -> None:
        config = self.path / _CONFIG
        if config.exists():
            if not resume:
                raise InputError(
                    f"run folder {self.path} holds a run already, done or cut short",
                    hint=[Setting("resume", True, to="continue it"), "choose another folder"],
                )
            self._check_same(config)
            return
        others = sorted(entry.name for entry in self.path.iterdir() if not entry.name.startswith("."))
        if others:
            raise InputError(
                f"run folder {self.path} holds other files ({', '.join(others[:3])}); choose an empty one"
            )
        write_json(config, self.configuration, indent=2)

    def _check_same(self, config: Path) -> None:
        try:
            found = read_json(config, sealed=False)  # a change to one without is a change of settings
        except FileError as error:
            raise FileError(f"{error}, so it is unknown which run it is of; choose another folder") from error
        wanted = json.loads(json.dumps(self.configuration))
        names = sorted((set(found) | set(wanted)) - set(_FREE))
        differing = [name for name in names if found.get(name) != wanted.get(name)]
        if differing:
            shown = "; ".join(
                f"{name} was {_short(found.get(name))}, now {_short(wanted.get(name))}"
                for name in differing[:4]
            )
            raise InputError(
                f"run folder {self.path} holds a run of another configuration ({shown}); "
                "choose another folder"
            )


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "…"
