"""Run a piece of work in a child of this process: what it printed, how it ended, what it took.

Everything is imported once in the parent, so that a child starts in milliseconds. The parent must never start
threads: what uses them (pyarrow, zarr, torch) runs in children only.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

SECONDS = 20.0  # of CPU time, so that a busy machine changes nothing
_WALL_SECONDS = 90.0  # asleep or locked, however busy the machine
MEGABYTES = 2048.0
_FILE_BYTES = 2**30
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Ended:
    """How a child ended; `code` is negative for a signal, `over` is "time" or "memory" where it was killed."""

    code: int
    out: bytes
    err: bytes
    cpu_seconds: float
    peak_mb: float
    over: str = ""


def forked(work: Callable[[], None], folder: Path, environment: dict[str, str] | None = None) -> Ended:
    """Run `work` in a child whose current folder is `folder`, within the limits on time and memory."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _be_child(work, folder, environment or {}, out, err)
        over = _watch(child)
        _, status, usage = os.wait4(child, 0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # what the child may have started
        out.seek(0), err.seek(0)
        return Ended(
            os.waitstatus_to_exitcode(status),
            out.read(),
            err.read(),
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss / 1024,
            over,
        )


def _watch(child: int) -> str:
    """Wait until the child has ended, or kill it once it is over a limit."""
    start = time.monotonic()
    pause = 0.001
    while True:
        found = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is not None:
            return ""
        megabytes, cpu_seconds = _usage(child)
        over = ""
        if megabytes > MEGABYTES:
            over = "memory"
        elif cpu_seconds > SECONDS or time.monotonic() - start > _WALL_SECONDS:
            over = "time"
        if over:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            os.kill(child, signal.SIGKILL)
            return over
        time.sleep(pause)
        pause = min(0.02, pause * 1.3)


def _usage(child: int) -> tuple[float, float]:
    """Resident megabytes and CPU seconds of a process; nothing where it has just ended."""
    try:
        pages = int(Path(f"/proc/{child}/statm").read_text().split()[1])
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    except (OSError, IndexError):
        return 0.0, 0.0
    return pages * _PAGE / 2**20, (int(fields[11]) + int(fields[12])) / _TICKS


def _be_child(
    work: Callable[[], None], folder: Path, environment: dict[str, str], out: BinaryIO, err: BinaryIO
) -> None:
    code = 70
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        os.environ.update(environment)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
        sys.stdout = sys.__stdout__ = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)))
        sys.stderr = sys.__stderr__ = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(2, "w", closefd=False)),
            line_buffering=True,
            errors="backslashreplace",
        )
        code = _exit_code(work)
        temporary = os.environ.get("TMPDIR")
        if temporary and os.listdir(temporary):  # else there is nothing to tidy up, and it takes a while
            threading._shutdown()
            atexit._run_exitfuncs()
        sys.stdout.flush(), sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        with contextlib.suppress(BaseException):
            sys.stderr.flush()
    finally:
        os._exit(code)


def _exit_code(work: Callable[[], None]) -> int:
    """The exit code that Python would give to a program of this work alone."""
    try:
        work()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
