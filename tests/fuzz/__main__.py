"""The long run: python -m tests.fuzz --cases 20000 --workers 2, or --minutes 30; --case 1234 replays one."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from itertools import count, islice
from pathlib import Path

from tests.fuzz.suite import prepare

prepare()

from tests.fuzz.judges import FAULTS, PLAUSIBLE, REFUSED, RIGHT, UNREAD  # noqa: E402
from tests.fuzz.suite import Result, Suite, results, write_seeds  # noqa: E402

import isoscope.cli  # noqa: E402, F401 - once, before the forks

_COLUMNS = (RIGHT, PLAUSIBLE, REFUSED, UNREAD, *FAULTS)


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
    start = time.monotonic()
    until = start + 60 * asked.minutes if asked.minutes else None
    counts: dict[str, Counter[str]] = {}
    faults: list[Result] = []
    slowest, largest, n_done = 0.0, 0.0, 0
    for result in results(suite, numbers, asked.workers, until):
        counts.setdefault(result.case.family, Counter())[result.verdict.kind] += 1
        slowest, largest, n_done = max(slowest, result.cpu_seconds), max(largest, result.peak_mb), n_done + 1
        if result.verdict.is_fault:
            faults.append(result)
            print(
                f"{result.number}: {result.verdict.kind}: {' '.join(result.case.argv)!a}: {result.case.what!a}: {result.verdict.detail}"
            )
        if n_done % 500 == 0:
            print(
                f"{n_done} cases, {len(faults)} faults, {time.monotonic() - start:.0f} s",
                file=sys.stderr,
                flush=True,
            )
        sys.stdout.flush()
    table = table_of(counts)
    print(table)
    print(
        f"{n_done} cases of seed {suite.seed}, {len(faults)} faults; slowest {slowest:.1f} s of CPU, largest {largest:.0f} MB"
    )
    if asked.json:
        record = {
            "seed": suite.seed,
            "cases": n_done,
            "counts": counts,
            "slowest_seconds": slowest,
            "largest_mb": largest,
            "table": table,
        }
        asked.json.write_text(json.dumps({**record, "faults": [asdict(fault) for fault in faults]}, indent=1))
    return int(bool(faults))


def table_of(counts: dict[str, Counter[str]]) -> str:
    """The verdicts of every family, as a table in Markdown; columns of faults only where there are any, else one of 0."""
    total: Counter[str] = sum(counts.values(), Counter())
    shown = [name for name in _COLUMNS if total[name] or name in (RIGHT, PLAUSIBLE, REFUSED, UNREAD)]
    rows = ["| input | cases | " + " | ".join(shown) + " | faults |", "|---|" + "---:|" * (len(shown) + 2)]
    for name, counted in [*sorted(counts.items()), ("all", total)]:
        n_faults = sum(counted[fault] for fault in FAULTS)
        cells = [str(sum(counted.values())), *(str(counted[kind]) for kind in shown), str(n_faults)]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


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
