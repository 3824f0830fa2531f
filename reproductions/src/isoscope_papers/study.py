"""`Study`: the setups of a paper, how to run one, how to test the claims, and the page of results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from isoscope.errors import InputError
from isoscope.io import write_json
from isoscope_papers.catalogue import Claim, claims_table, with_findings
from isoscope_papers.page import Section, as_html, as_markdown, make_folder, write_text
from isoscope_papers.rows import Row
from isoscope_papers.runs import read_all
from isoscope_papers.verdict import Finding, Verdict

STUDIES = (
    "classifiers", "theory", "contrastive", "dynamics", "manifolds", "istar", "corrections", "layers",
    "collapse", "predicts",
)  # fmt: skip


class Setup(Protocol):
    """One experiment of a study."""

    @property
    def name(self) -> str:
        """Return the name on the command line."""
        ...


S = TypeVar("S", bound=Setup)
R = TypeVar("R")


@dataclass(frozen=True)
class Place:
    """The data folder, the device and the folder of runs.

    Attributes:
        data: folder of the corpora; None means ISOSCOPE_DATA.
        download: download texts and models that are not on this machine.
        device: "cpu" or "cuda"; None chooses.
        runs: folder to save runs in; None saves none.
    """

    data: Path | None = None
    download: bool = False
    device: str | None = None
    runs: Path | None = None


@dataclass(frozen=True)
class Study(Generic[S, R]):
    """The experiments of one paper, or a part of them.

    Attributes:
        name: name on the command line; the package is `isoscope_papers.NAME`.
        title: title of the page.
        intro: introduction of the page, or a function of the runs that returns it.
        setups: the setups by name, in the order of the paper.
        default: names of the setups to run by default.
        own: a function that returns the setup of another model, from its name, what to load, and whether
            that is a file of word vectors.
        choose: a function that returns the setups for names and options; by default those of `setups`, and
            one for each model in the options.
        run: a function that runs a setup and returns its runs.
        kind: the class of a run.
        keep: a function that saves the runs of a setup; None where `run` saves them.
        load: a function that reads the runs of a folder; by default, the files STUDY-SETUP.json.
        findings: a function that tests the papers' claims on the runs.
        sections: a function that returns the sections of the page after the claims.
        rows: a function that returns our values and the published ones, for the terminal and the exit code.
        results: a function that returns further unrounded values for the JSON file.
        tables: a function that returns further files of numbers, by name.
        notes: a function that returns notes on the runs, for the terminal.
        stem: stem of the file names; by default the name of the study.
        claims_at: number of sections before the claims.
    """

    name: str
    title: str
    intro: str | Callable[[Sequence[R]], str]
    setups: Mapping[str, S]
    run: Callable[[S, Any, Place], Sequence[R]]
    findings: Callable[[Sequence[R]], Iterable[Finding]]
    sections: Callable[[Sequence[R]], list[Section]]
    rows: Callable[[Sequence[R]], list[Row]] = lambda _: []
    results: Callable[[Sequence[R]], dict[str, Any]] = lambda _: {}
    tables: Callable[[Sequence[R]], dict[str, str]] = lambda _: {}
    notes: Callable[[Sequence[R]], Sequence[str]] = lambda _: []
    kind: type[R] | None = None
    keep: Callable[[R, Path], object] | None = None
    load: Callable[[Path], list[R]] | None = None
    default: Sequence[str] = ("all",)
    own: Callable[[str, str, bool], S] | None = None
    choose: Callable[[Sequence[str], Any], list[S]] | None = None
    stem: str = ""
    claims_at: int = 0

    def chosen(self, names: Sequence[str], options: Any) -> list[S]:
        """Return the setups with these names, comma-separated or one by one, in the order of the paper."""
        asked = split_names(names)
        if self.choose is not None:
            return self.choose(asked or self.default, options)
        models = [self.own_setup(model) for model in options.model or ()] if self.own else []
        chosen = [*chosen_setups(self.setups, asked or ([] if models else self.default)), *models]
        by_name = {setup.name: setup for setup in chosen}
        if twice := next((setup.name for setup in chosen if by_name[setup.name] != setup), None):
            raise InputError(
                f"Two models are called {twice!r}, and runs are saved by name", wanted="different names"
            )
        return list(by_name.values())

    def own_setup(self, model: str) -> S:
        """Return the declared setup of a model, or a new one; a file is read as word vectors."""
        for setup in self.setups.values():
            if getattr(setup, "model", None) == model:
                return setup
        path = Path(model)
        assert self.own is not None
        return self.own(path.name, model, path.is_file() and path.suffix.lower() != ".gguf")

    def run_and_keep(self, setup: S, options: Any, place: Place) -> Sequence[R]:
        """Run a setup, and save its runs if there is a folder for them."""
        runs = self.run(setup, options, place)
        if self.keep is not None and place.runs is not None:
            for run in runs:
                self.keep(run, place.runs / f"{self.name}-{setup.name}.json")
        return runs

    def read(self, folder: Path) -> list[R]:
        """Read the runs of a folder."""
        if self.load is not None:
            return self.load(folder)
        assert self.kind is not None
        return read_all(folder, self.name, self.kind, self.setups)

    def claims(self, runs: Sequence[R]) -> list[Claim]:
        """Return the claims that these runs test, with findings, those of the study's own paper first."""
        claims = with_findings(replace(one, study=self.name) for one in self.findings(runs))
        return sorted(claims, key=lambda claim: claim.paper != self.name)

    def as_dict(self, runs: Sequence[R]) -> dict[str, Any]:
        """Return rows, claims and results, unrounded, JSON-ready."""
        return {
            "rows": [row.to_dict() for row in self.rows(runs)],
            "claims": [claim.to_dict() for claim in self.claims(runs)],
            **self.results(runs),
        }

    def as_text(self, runs: Sequence[R]) -> str:
        """Return lines for the terminal: our values beside the published ones, then each claim."""
        return "\n\n".join(block for block in (self.rows_text(runs), self.claims_text(runs)) if block)

    def rows_text(self, runs: Sequence[R]) -> str:
        """Return our values beside the published ones for the terminal, with notes on the runs."""
        return "\n".join([*_rows_lines(self.rows(runs)), *self.notes(runs)])

    def claims_text(self, runs: Sequence[R]) -> str:
        """Return the answer of the study, if it has one, then every claim with its findings."""
        answer = [self.intro(runs), ""] if callable(self.intro) else []
        return "\n".join([*answer, *_claims_lines(self.claims(runs))])

    def differs(self, runs: Sequence[R]) -> bool:
        """Return whether a comparable published value was not reproduced."""
        return any(row.verdict is Verdict.NOT_HELD for row in self.rows(runs))

    def write(self, runs: Sequence[R], folder: Path, *, page: Path | None = None) -> list[Path]:
        """Write the JSON file, the Markdown page (to `page` where given), the HTML page and the figures."""
        make_folder(folder)
        stem = self.stem or self.name
        markdown = page or folder / f"{stem}.md"
        intro = self.intro(runs) if callable(self.intro) else self.intro
        sections = self.sections(runs)
        claims = self.claims(runs)
        if claims:
            heads, cells = claims_table(claims)
            sections.insert(self.claims_at, Section("The claims", tallied(claims), (), heads, cells))
        command = f"isoscope reproduce {self.name}"
        figures = os.path.relpath(folder, markdown.parent)
        text = as_markdown(self.title, intro, sections, command=command, figures=figures)
        for drawing in (one for section in sections for one in section.figures):
            drawing.save(folder)
        for name, table in self.tables(runs).items():
            write_text(folder / name, table)
        return [
            write_json(folder / f"{stem}.json", self.as_dict(runs), indent=2),
            write_text(markdown, text),
            write_text(folder / f"{stem}.html", as_html(self.title, intro, sections, figures=folder)),
        ]


def study(name: str) -> Study[Any, Any]:
    """Import a study by its name."""
    return import_module(f"isoscope_papers.{name}.study").STUDY


def split_names(names: Sequence[str]) -> list[str]:
    """Split comma-separated names into a list."""
    return [part.strip() for name in names for part in name.split(",") if part.strip()]


def chosen_setups(setups: Mapping[str, S], names: Sequence[str]) -> list[S]:
    """Return the setups with these names, in their order; "all" means all setups."""
    unknown = [name for name in names if name != "all" and name not in setups]
    if unknown:
        raise InputError(argument="setup", got=unknown[0], wanted=f"all, or some of {', '.join(setups)}")
    return [setup for name, setup in setups.items() if "all" in names or name in names]


def tallied(claims: Sequence[Claim]) -> str:
    """Return a sentence with the number of claims for each verdict."""
    counts = {verdict: sum(claim.verdict is verdict for claim in claims) for verdict in Verdict}
    parts = [f"{n} {verdict} {verdict.mark}" for verdict, n in counts.items() if n]
    return f"Of {len(claims)} claims: {', '.join(parts)}."


def _rows_lines(rows: Sequence[Row]) -> list[str]:
    lines: list[str] = []
    for setup in dict.fromkeys(row.setup for row in rows):
        lines += ["", setup]
        for row in rows:
            if row.setup == setup:
                theirs = "" if row.verdict is None else f"paper {row.published_shown:>12}"
                verdict = "" if row.verdict is None else f"{row.verdict.mark} {row.verdict}"
                lines.append(f"  {row.quantity:<20}{row.ours_shown:>12}   {theirs:<20}{verdict}".rstrip())
    return lines[1:]


def _claims_lines(claims: Sequence[Claim]) -> list[str]:
    lines: list[str] = []
    for claim in claims:
        lines.append(claim.statement)
        lines += [f"  {one.shown} [{one.subject}]: {one.ours}" for one in claim.findings]
    return [*lines, tallied(claims)] if lines else []
