"""`RunFolder`: a folder that belongs to one run, known by what the run was asked; another's is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from isoscope.errors import FileError, InputError, Setting
from isoscope.io.locks import only_user
from isoscope.io.sealed import identity, read_json, write_json

_SHORT = 40  # characters of a setting that an error shows


class RunFolder:
    """The folder of one configuration, for one process at a time; `open` makes it or finds the run in it."""

    what: ClassVar[str] = "run folder"
    config: ClassVar[str] = "config.json"
    noted: ClassVar[tuple[str, ...]] = ("isoscope", "torch", "device")  # of the configuration, not compared
    is_empty_first: ClassVar[bool] = True  # a new one may hold no other files

    def __init__(self, path: Path, configuration: Mapping[str, Any]) -> None:
        self.path = path
        self.configuration = dict(configuration)

    @classmethod
    @contextmanager
    def open(
        cls, path: str | os.PathLike[str] | None, configuration: Mapping[str, Any], *, resume: bool
    ) -> Iterator[Self | None]:
        """Yield a new folder, or the one of the same configuration to continue; None without a path."""
        if path is None:
            yield None
            return
        with cls(Path(path), configuration).held(resume=resume) as folder:
            yield folder

    @contextmanager
    def held(self, *, resume: bool) -> Iterator[Self]:
        """Make the folder or find the same run in it, and lock out other processes until the block ends."""
        with only_user(self.path, what=self.what):
            self._begin(resume=resume)
            yield self

    @cached_property
    def identity(self) -> str:
        """What the files of this run are known by."""
        return identity(
            {name: self.configuration[name] for name in self.configuration if name not in self.noted}
        )

    def owner(self, part: str) -> str:
        """Return what the file of one part of this run is known by."""
        return f"{self.identity} {part}"

    def _begin(self, *, resume: bool) -> None:
        config = self.path / self.config
        if config.exists():
            if not resume:
                raise InputError(
                    f"{self.what} {self.path} holds a run already, done or cut short",
                    hint=[Setting("resume", True, to="continue it"), "choose another folder"],
                )
            self._check_same(config)
            return
        others = sorted(entry.name for entry in self.path.iterdir() if not entry.name.startswith("."))
        if others and self.is_empty_first:
            raise InputError(
                f"{self.what} {self.path} holds other files ({', '.join(others[:3])})",
                hint="choose an empty one",
            )
        write_json(config, self.configuration, indent=2)

    def _check_same(self, config: Path) -> None:
        try:
            found = read_json(config, sealed=not self.is_empty_first)  # runs of earlier versions have no seal
        except FileError as error:
            raise FileError(
                f"{error.problem}, so it is unknown which run it is of", hint="choose another folder"
            ) from error
        wanted = json.loads(json.dumps(self.configuration))
        names = sorted((set(found) | set(wanted)) - set(self.noted))
        differing = [name for name in names if found.get(name) != wanted.get(name)]
        if differing:
            shown = "; ".join(_change(name, found.get(name), wanted.get(name)) for name in differing[:4])
            raise FileError(
                f"{self.what} {self.path} holds a run of another configuration ({shown})",
                hint="choose another folder",
            )


def _change(name: str, *values: object) -> str:
    """Return how a setting changed, where its values are short enough to be shown."""
    was, now = (json.dumps(value) for value in values)
    return f"{name} was {was}, now {now}" if max(len(was), len(now)) <= _SHORT else f"{name} differ"
