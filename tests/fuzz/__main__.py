"""The long run: python -m tests.fuzz --cases 20000 --workers 2, or --minutes 30; --case 1234 replays one."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from itertools import count, islice
from pathlib import Path

from tests.fuzz.suite import prepare

prepare()

from tests.fuzz.suite import Suite, results, write_seeds  # noqa: E402
from tests.fuzz.tally import Tally  # noqa: E402

import isoscope.cli  # noqa: E402, F401 - once, before the forks


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, help="how many cases [default: 2000, or what --minutes allow]")
    parser.add_argument("--minutes", type=float, help="stop after so long")
    parser.add_argument("--workers", type=int, default=1, help="processes that run cases at once")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases")
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--family", default="", help="only the cases of families whose names contain this")
    parser.add_argument("--quick", action="store_true", help="leave out models and runs, to start sooner")
    parser.add_argument("--case", type=int, help="replay one case and show what it printed")
    parser.add_argument(
        "--keep", type=Path, help="with --case: write its files into this folder, which must not exist"
    )
    parser.add_argument(
        "--seeds", type=Path, help="folder of valid inputs, made where absent [default: a temporary one]"
    )
    parser.add_argument("--json", type=Path, help="write the table and every fault to this file")
    parser.add_argument("--page", type=Path, help="put the table into this page, docs/security.md")
    return parser.parse_args()


def main() -> int:
    """Run; exit code 1 where there was a fault."""
    asked = arguments()
    seeds = (asked.seeds or Path(tempfile.mkdtemp(prefix="isoscope-fuzz-seeds-"))).resolve()
    try:
        if not (seeds / "complete").exists():
            seeds.mkdir(parents=True, exist_ok=True)
            write_seeds(seeds, quick=asked.quick)
            (seeds / "complete").touch()
        else:
            from tests.fuzz.scenarios import import_listed

            import_listed(seeds / "modules.txt")
        suite = Suite(seeds, asked.seed)
        if asked.case is not None:
            return _replay(suite, asked.case, asked.keep)
        return _run(suite, asked)
    finally:
        if asked.seeds is None:
            shutil.rmtree(seeds, ignore_errors=True)


def _run(suite: Suite, asked: argparse.Namespace) -> int:
    from tests.fuzz.cases import FAMILIES

    absent = [name for name in FAMILIES if name not in suite.present]
    if absent:
        print(f"left out: {', '.join(absent)}")
    n = asked.cases if asked.cases is not None else (200_000 if asked.minutes else 2000)
    here = (number for number in count(asked.start) if suite.has(number, asked.family))
    numbers = islice(here, n)
    until = time.monotonic() + 60 * asked.minutes if asked.minutes else None
    tally = Tally(suite.seed)
    for result in results(suite, numbers, asked.workers, until):
        tally.add(result)
    print(f"{tally.table()}\n{tally.summary()}")
    if asked.json:
        tally.write_json(asked.json)
    if asked.page:
        tally.write_page(asked.page)
    return int(bool(tally.faults))


def _replay(suite: Suite, number: int, keep: Path | None) -> int:
    home = (keep or Path(tempfile.mkdtemp(prefix="isoscope-fuzz-case-"))).resolve()
    home.mkdir(parents=True, exist_ok=True)
    result = suite.run(number, home)
    shown = (home / "shown").read_text(errors="backslashreplace") if (home / "shown").exists() else ""
    print(ascii(shown[-3000:]).replace("\\n", "\n"))
    print(
        f"isoscope {' '.join(result.case.argv)!a}\n{result.case.what!a}\n{result.verdict.kind}: {result.verdict.detail}"
    )
    if keep is None:
        shutil.rmtree(home)
    else:
        print(f"the files as the command left them: {home / 'folder'}")
    return int(result.verdict.is_fault)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # without the farewells of libraries that were only imported
