"""*Should I whiten?*: the study of corrections on tasks, its claims and its page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isoscope.advice import DESCRIPTIONS
from isoscope.advice import Outcome as Tried
from isoscope_papers.corrections import run, tallies
from isoscope_papers.corrections.figures import gains_figure
from isoscope_papers.corrections.findings import findings, mean_figure
from isoscope_papers.corrections.options import DEFAULT
from isoscope_papers.corrections.run import Outcome
from isoscope_papers.corrections.setups import LABELS, PROBE, SETUPS, TASKS, Setup
from isoscope_papers.corrections.tallies import GROUPS, WHITEN, Tally, tally
from isoscope_papers.page import Section
from isoscope_papers.study import Study
from isoscope_papers.words import between, number, signed

_LEAVE = "leave it alone"
_METHOD = (
    "Every correction of isoscope by cross-validation: fitted without labels or scores on training folds, "
    "and scored on what is held out. Scored pairs of sentences or words are graded tasks, ranked by cosine "
    "(Spearman's ρ); labels make a linear probe, 5 nearest neighbours, k-means (V-measure) and retrieval "
    "(mean average precision). A correction helps or hurts where its gain over none is significant at 5 % "
    "after Holm's adjustment over the corrections of a task, with an error that allows for folds sharing "
    "rows (Nadeau and Bengio 2003). A claim on whitening holds where most sets, or their mean, go its way "
    "and none the other; one on rank correlations or paired differences where the 95 % interval over the "
    "data sets does (cluster-wise against global corrections: after Bonferroni's). Data sets are few and "
    "not drawn at random. "
    "Settings: d // 100 directions or dimensions taken out, at least 1; 8 clusters. Where the vectors do "
    "not span all dimensions, as MiniLM's do not, whitening shrinks the covariance (Ledoit and Wolf). "
    "For pairs, corrections are fitted on at most 5,000 of the sentences (or words) of all sets that are "
    "in no held-out pair, and for GloVe's words among its 20,000 most frequent as well; for labels, on "
    "the training folds. The linear probe is scaled by one number and chooses its penalty, 1, 10 or 100, "
    "inside the training folds, so that a correction gains nothing by the scale of its output."
)
_ASIDE = (
    "A linear classifier without a penalty gives the same answers before and after an invertible linear map, "
    "so what whitening does to a probe is what it does to the penalty and to noise in weak directions. The "
    f"wide probe therefore chooses its penalty by leave-one-out among {run.PENALTIES[2]} values from "
    f"{run.PENALTIES[0]:g} to {run.PENALTIES[1]:g} (a ridge classifier, solved exactly); whiten_shrunk "
    "first takes the covariance a tenth of the way to equal variances, and whiten_reduced keeps the "
    "strongest half of the directions; where whiten and whiten_reduced differ, both near an IsoScore of 1, "
    "weak directions make the difference, not isotropy. "
    f"Under noise, {run.NOISE_POWER:g} of the variance and equal in all directions, the share of the "
    f"{run.N_NEIGHBORS} nearest by cosine that stay is counted; the noise is added after the correction, or "
    "before it; without a correction the vectors are centred only. Analogies are answered by b − a + c and "
    f"cosines among GloVe's {run.ANALOGY_WORDS:,} most frequent words, less those of the question."
)


def _main(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if one.setup.part == TASKS]


def sections(outcomes: Sequence[Outcome]) -> list[Section]:
    """Return what to do, what each correction gains, the scores of every data set, and how it was done."""
    main = _main(outcomes)
    text = (
        "For each encoder and kind of task: of the corrections that help on some data set and hurt "
        f"on none, the one with the largest mean gain; where there is none, {_LEAVE}. It is the best of ten "
        "on these very sets, so its gain is a little flattered."
    )
    cells = tuple((one.title, *(_advice(one, group) for group in GROUPS)) for one in main)
    figures = (gains_figure(main),) if main else ()
    found = [Section("What to do", text, (), ("encoder", *GROUPS), cells, figures)]
    for one in main:
        found += [_gains(one), _scores(one)]
    aside = [one for one in outcomes if one.setup.part != TASKS]
    if aside:
        found.append(_aside(aside))
    notes = tuple(f"{name}: {words}" for name, words in DESCRIPTIONS.items())
    return [*found, Section("How it was done", _METHOD, notes)]


def _advice(found: Outcome, group: str) -> str:
    if not any(tally(found, group, name).n for name in tallies.corrections_of(found)):
        return "—"
    best = tallies.best_of(found, group)
    if best is None:
        return _LEAVE
    name, one = best
    return f"{name} {signed(one.mean)} (helps on {len(one.helped)} of {one.n})"


def _gains(found: Outcome) -> Section:
    cells = tuple(
        (
            name,
            number(mean_figure(found, name, "isoscore")),
            number(mean_figure(found, name, "mean_cosine")),
            *("" if name == "none" else _counts(tally(found, group, name)) for group in GROUPS),
        )
        for name in ("none", *tallies.corrections_of(found))
    )
    text = (
        "Mean gain over the data sets, and on how many the correction helps ▲ and hurts ▼; IsoScore and mean "
        f"cosine are means over the data sets. {found.setup.model}: {found.setup.note or 'own model'}; "
        f"{tallies.settings_of(found)}."
    )
    lost = [f"{one.n_left} of {one.title}" for one in found.results if one.n_left]
    notes = (f"Left out, since no word of theirs is in the table: {', '.join(lost)}",) if lost else ()
    heads = ("correction", "IsoScore", "mean cosine", *GROUPS)
    return Section(f"{found.title}: gains", text, notes, heads, cells)


def _scores(found: Outcome) -> Section:
    heads = ("data set", "task", "items", "none", f"gain of {WHITEN}", "best that helps", "hurt by")
    cells = []
    for result in found.results:
        for name, task in result.tasks.items():
            tried = task.corrections.values()
            helping = [one for one in tried if one.verdict == tallies.HELPS]
            best = max(helping, key=lambda one: one.gain or 0.0, default=None)
            hurting = sum(one.verdict == tallies.HURTS for one in tried)
            cells.append(
                (
                    result.title,
                    name if result.kind == LABELS else "similarity",
                    f"{task.n_items:,}",
                    f"{task.baseline:.3f}",
                    _with_interval(task.corrections.get(WHITEN)),
                    _LEAVE if best is None else f"{best.correction} {_with_interval(best)}",
                    f"{hurting} of {len(tried)}",
                )
            )
    text = "Scores without a correction, and gains over it with their 95 % intervals, each by itself."
    return Section(f"{found.title}: every data set", text, (), heads, tuple(cells))


def _aside(outcomes: Sequence[Outcome]) -> Section:
    """Return the runs on single questions: a probe with a wide range of penalties, noise, analogies."""
    heads = ("encoder", "data set", "task", "items", "correction", "IsoScore", "penalty", "score", "gain")
    cells = []
    for found in outcomes:
        for result in found.results:
            for name, task in result.tasks.items():
                scores = {"none": (task.baseline, "")} | {
                    each: (one.score, _with_interval(one)) for each, one in task.corrections.items()
                }
                for correction, (score, gain) in scores.items():
                    figures = result.geometry.get(correction, {})
                    penalty = figures.get("penalty")
                    cells.append(
                        (
                            found.title, result.title, name.replace("_", " "), f"{task.n_items:,}",
                            correction, number(figures.get("isoscore")),
                            "" if penalty is None else f"{penalty:,.1f}", number(score), gain,
                        )
                    )  # fmt: skip
    return Section("Probe, noise and analogies", _ASIDE, (), heads, tuple(cells))


def _counts(one: Tally) -> str:
    if one.mean is None:
        return "—"
    return f"{signed(one.mean)} ▲{len(one.helped)} ▼{len(one.hurt)} of {one.n}"


def _with_interval(one: Tried | None) -> str:
    if one is None or one.gain is None or one.interval is None:
        return "—"
    return f"{signed(one.gain)} ({between(*one.interval)})"


def _answer(outcomes: Sequence[Outcome]) -> str:
    probes = {one.title: tally(one, "linear probe", WHITEN) for one in outcomes if one.setup.part == PROBE}
    return tallies.answer(_main(outcomes), probes)


def _results(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the answer, the runs' facts, and the best correction of each encoder and kind of task."""
    return {
        "answer": _answer(outcomes),
        "runs": {one.setup.name: dict(one.about) for one in outcomes},
        "best": {
            one.setup.name: {group: (tallies.best_of(one, group) or (None,))[0] for group in GROUPS}
            for one in _main(outcomes)
        },
    }


STUDY: Study[Setup, Outcome] = Study(
    name="corrections",
    title="Should I whiten?",
    intro=_answer,
    setups=SETUPS,
    default=DEFAULT,
    own=lambda name, model, is_static: Setup(name, name, model, is_static),
    run=lambda setup, options, place: [run.run_setup(setup, options, place)],
    kind=Outcome,
    keep=run.keep_outcome,
    findings=findings,
    sections=sections,
    results=_results,
    stem="should-i-whiten",
    claims_at=1,
)
