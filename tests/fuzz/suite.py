"""Seeds made once, cases run one after another or by several workers, verdicts collected."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.fuzz import judges
from tests.fuzz.case import Case
from tests.fuzz.cases import FAMILIES, build, family_of
from tests.fuzz.judges import REFUSED, Verdict
from tests.fuzz.oracle import readings
from tests.fuzz.processes import Ended, forked
from tests.fuzz.scenarios import QUICK, SCENARIOS, command, environment, import_listed, write_scenario
from tests.fuzz.vector_seeds import vectors


@dataclass(frozen=True)
class Result:
    """One case, how its command ended and what the judges say."""

    number: int
    case: Case
    verdict: Verdict
    cpu_seconds: float
    peak_mb: float


def write_seeds(seeds: Path, quick: bool = False) -> None:
    """Everything that cases damage; each piece in a child, so that this process starts no threads."""
    from tests.fuzz import model_seeds, vector_seeds

    def listing(work: Callable[[], None]) -> Callable[[], None]:
        def both() -> None:
            work()
            (seeds / "modules.txt").write_text("\n".join(sys.modules))

        return both

    pieces: list[tuple[str, Callable[[Path], None]]] = [
        ("vectors", vector_seeds.write_vectors), ("shards", vector_seeds.write_shards),
        ("rows", vector_seeds.write_row_files), ("texts", vector_seeds.write_texts), ("bombs", vector_seeds.write_bombs),
    ]  # fmt: skip
    if not quick:
        pieces.append(("models", model_seeds.write_models))
    for name, write in pieces:
        ended = forked(listing(lambda write=write, name=name: write(seeds / name)), seeds)
        import_listed(seeds / "modules.txt")
        if ended.code:
            raise RuntimeError(f"{name}: {ended.err.decode()[-3000:]}")
    for name in SCENARIOS:
        if not quick or name in QUICK:
            write_scenario(name, seeds)


def present_families(seeds: Path) -> list[str]:
    """The families whose seeds could be made here."""
    return [
        name for name, (_, _, needs) in FAMILIES.items() if all((seeds / need).exists() for need in needs)
    ]


class Suite:
    """Runs cases by number, below a folder of seeds."""

    def __init__(self, seeds: Path, seed: int) -> None:
        from isoscope import registered

        self.seeds, self.seed = seeds, seed
        self.present = present_families(seeds)
        self._ranges = {name: metric.range for name, metric in registered().items()}
        self._clean = readings(vectors().astype("longdouble"))
        gc.freeze()

    def has(self, number: int, family: str = "") -> bool:
        """Whether a case can be run here, and is of a family whose name contains `family`."""
        name = family_of(self.seed, number)
        return name in self.present and family in name

    def run(self, number: int, home: Path | None = None) -> Result:
        """One case in a fresh folder, or in `home`, which is kept."""
        where = home or Path(tempfile.mkdtemp(prefix="isoscope-fuzz-"))
        try:
            return self._run(number, where)
        finally:
            if home is None:
                shutil.rmtree(where, ignore_errors=True)

    def _run(self, number: int, where: Path) -> Result:
        folder = where / "folder"
        folder.mkdir(parents=True)
        aside = where / "case.json"
        ended = forked(lambda: self._work(number, folder, aside), folder, environment(folder))
        if not (where / "ready").exists():
            family = family_of(self.seed, number)
            verdict = Verdict(
                "harness",
                (ended.over or ended.err.decode(errors="replace").strip().splitlines() or ["?"])[-1][:300],
            )
            return Result(number, Case(family, []), verdict, ended.cpu_seconds, ended.peak_mb)
        (where / "shown").write_bytes(ended.out + ended.err)
        told = json.loads(aside.read_text())
        case = Case(**told["case"])
        verdict = self._judged(case, ended, folder, set(told["files"]))
        return Result(number, case, verdict, ended.cpu_seconds, ended.peak_mb)

    def _work(self, number: int, folder: Path, aside: Path) -> None:
        """In the child: write the case, say what it is, call the command."""
        tempfile.tempdir = None
        family = family_of(self.seed, number)
        case = build(family, random.Random(f"{self.seed} {number}"), self.seeds, folder)
        aside.write_text(json.dumps({"case": asdict(case), "files": sorted(_files(folder))}))
        (aside.parent / "ready").touch()
        command(case.argv)()

    def _judged(self, case: Case, ended: Ended, folder: Path, before: set[str]) -> Verdict:
        fault = judges.judge_ending(ended, case.may_fail) or judges.judge_folder(
            before, _files(folder), folder.parent / "tmp"
        )
        if fault:
            return fault
        if ended.code == 2:
            if case.expect == "accept":
                return Verdict("wrong answer", f"a good file refused: {ended.err.decode()[:250]}")
            return Verdict(REFUSED)
        if "--json" not in case.argv or case.argv[0] == "metrics":
            return Verdict(judges.PLAUSIBLE)
        try:
            found = judges.parsed(ended.out)
        except ValueError as error:
            return Verdict("wrong answer", f"no JSON: {error}: {ended.out[:100]!r}")
        return judges.judge_numbers(found, self._ranges) or self._compared(case, found, folder)

    def _compared(self, case: Case, found: dict[str, Any], folder: Path) -> Verdict:
        if case.expect == "same":
            home = self.seeds / "scenarios" / case.scenario
            answer = judges.parsed((home / "answer.json").read_bytes())
            return judges.judge_same(found, answer, folder / "out.npy", home / "out.npy")
        if case.expect not in ("file", "accept", "rows"):
            return Verdict(judges.PLAUSIBLE)
        told = folder.parent / "verdict.json"

        def work() -> None:
            clean = {} if case.family in ("hostile numbers", "tables of odd columns") else self._clean
            if case.expect == "rows":
                verdict = judges.judge_rows(found, folder / case.path, case.family.split()[0], vectors())
            else:
                verdict = judges.judge_file(case.argv[0], found, folder / case.path, clean)
            told.write_text(json.dumps(asdict(verdict)))

        ended = forked(work, folder)
        if told.exists():
            return Verdict(**json.loads(told.read_text()))
        if ended.over:  # too large for the oracle, and yet isoscope read it
            return Verdict(judges.PLAUSIBLE, f"the oracle ran out of {ended.over}")
        return Verdict(
            "harness", f"the oracle failed: {ended.code} {ended.err.decode(errors='replace')[-300:]}"
        )


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def results(
    suite: Suite, numbers: Iterable[int], workers: int = 1, until: float | None = None
) -> Iterator[Result]:
    """Run cases, each worker a fork of this process; stop at the time `until` (monotonic)."""
    if workers == 1:
        for number in numbers:
            if until is not None and time.monotonic() > until:
                return
            yield suite.run(number)
        return
    context = multiprocessing.get_context("fork")
    queue: Any = context.SimpleQueue()
    listed = list(numbers)

    def work(share: list[int]) -> None:
        for number in share:
            if until is not None and time.monotonic() > until:
                break
            queue.put(suite.run(number))
        queue.put(None)

    children = [context.Process(target=work, args=(listed[i::workers],)) for i in range(workers)]
    for child in children:
        child.start()
    left = workers
    while left:
        found = queue.get()
        if found is None:
            left -= 1
        else:
            yield found
    for child in children:
        child.join()


def prepare() -> None:
    """Settings of this process, before torch and others are imported."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # isoscope sees to it, but onnxruntime is imported before
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    # a library may start a thread when it is imported; those are idle
    warnings.filterwarnings("ignore", "This process .* is multi-threaded, use of fork", DeprecationWarning)
