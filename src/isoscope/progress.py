"""A progress bar on standard error, shown in terminals for work that takes over a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from isoscope.printable import printable
from isoscope.terminal import unguarded

_PATIENCE_S = 1.0  # work shorter than this shows nothing


class Bar:
    """A progress bar for named steps.

    >>> with Bar(show=False) as bar:
    ...     bar.step("silhouette")
    ...     bar.share(0.5)
    """

    def __init__(self, *, show: bool | None = None) -> None:
        self._show = unguarded(sys.stderr).isatty() if show is None else show
        self._began = time.monotonic()
        self._progress: Any = None
        self._task: Any = None
        self._name = ""

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def step(self, name: str, *, at_once: bool = False) -> None:
        """Begin a step; `at_once` shows the bar immediately."""
        self._name = name
        if at_once:
            self._began -= _PATIENCE_S
        if self._started():
            self._progress.reset(self._task, description=printable(self._name), total=1.0)

    def share(self, done: float) -> None:
        """Set the share of the current step that is done, from 0 to 1."""
        if self._started():
            self._progress.update(self._task, completed=min(done, 1.0))

    def _started(self) -> bool:
        if not self._show or time.monotonic() - self._began < _PATIENCE_S:
            return False
        if self._progress is None:
            self._open()
        return True

    def _open(self) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        from isoscope.console import Terminal

        name = TextColumn("{task.description}", markup=False)
        self._progress = Progress(
            *(name, BarColumn(), TaskProgressColumn(), TimeRemainingColumn()),
            console=Terminal(stderr=True),
            transient=True,
            redirect_stdout=False,  # rich would interpret styles in the output of others
            redirect_stderr=False,
        )
        self._task = self._progress.add_task(printable(self._name), total=1.0)
        self._progress.start()
