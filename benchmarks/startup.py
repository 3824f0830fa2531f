"""How long it takes until `import isoscope` is done, or a command answers that computes nothing."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

from benchmarks.timing import take_turns

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import isoscope": ["-c", "import isoscope"],
    "isoscope --version": ["-m", "isoscope", "--version"],
    "isoscope --help": ["-m", "isoscope", "--help"],
    "isoscope measure --help": ["-m", "isoscope", "measure", "--help"],
    "isoscope measure --nonsense": ["-m", "isoscope", "measure", "--nonsense"],
    "isoscope measure absent.npy": ["-m", "isoscope", "measure", "absent.npy"],
    "isoscope measure benchmarks -m nonsense": ["-m", "isoscope", "measure", "benchmarks", "-m", "nonsense"],
    "isoscope correct absent.npy": ["-m", "isoscope", "correct", "absent.npy", "--method", "center"],
    "import torch": ["-c", "import torch"],
}
WANTED_S = {"import isoscope": 0.3} | dict.fromkeys(
    (name for name in COMMANDS if name.startswith("isoscope")), 0.4
)


def run() -> list[dict[str, Any]]:
    """Time each in a process of its own; the best of seven counts."""
    calls = {
        name: partial(subprocess.run, [sys.executable, *words], capture_output=True)
        for name, words in COMMANDS.items()
    }
    best = take_turns(calls)
    return [
        {"what": name, "seconds": seconds, "wanted": WANTED_S.get(name)} for name, seconds in best.items()
    ]
