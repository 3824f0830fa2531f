"""The study of contrastive training: its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import stdev
from typing import Any

from isoscope.errors import InputError
from isoscope_papers.contrastive.study import change_section
from isoscope_papers.dynamics import bounds, picture
from isoscope_papers.dynamics import run as training
from isoscope_papers.dynamics.figures import bounds_figure, trajectories_figure
from isoscope_papers.dynamics.findings import findings, shown
from isoscope_papers.dynamics.options import Options
from isoscope_papers.dynamics.picture import Picture
from isoscope_papers.dynamics.run import Dynamics, Material, run_path
from isoscope_papers.dynamics.setups import BASE, SETUPS, STARTS, Setup, chosen_runs, variants
from isoscope_papers.dynamics.views import LEAST, RAW, TITLES, View, is_defined, views
from isoscope_papers.figures import Drawing
from isoscope_papers.options import seed_list
from isoscope_papers.page import Section
from isoscope_papers.runs import keep, read, read_all
from isoscope_papers.study import Place, Study
from isoscope_papers.verdict import Finding

_INTRO = (
    "Contrastive training followed on the sentences of STS-B (Xiao, Long and Al Moubayed 2023, section 4 and "
    "appendices A, B and D), and what the paper says of models before and after it, put to trainings of our "
    f"own. A difference of cosines under {LEAST}, or of norms under {100 * LEAST:g} %, counts as none: one "
    "seed cannot tell it from chance. The second view of a model with attention sinks is of the same runs, "
    "and leaves those out. The trained encoders of the paper are in `isoscope reproduce contrastive`."
)
_HEADS = ("start", "", *TITLES.values(), "self-similarity", "intra-sentence", "loss", "STS-B ρ")
_PARTS = {
    "temperatures": ("Temperature", "Section 4 and appendix A.", "τ = {:g}"),
    "batches": (
        "Batch size",
        "Appendix B: τ = 0.05; as many pairs and one learning rate for every size.",
        "{}, {:,} updates",
    ),
    "poolings": ("Pooling", "Appendix D: τ = 0.05, batches of 64.", "{}"),
}
_TAUS, _SIZES, _POSITIVES = (0.025, 0.05, 0.1, 1.0), (4, 64, 256), (0.95, 0.9, 0.8)  # of equation 17


_material = cache(Material)  # models and texts are loaded once for all runs of a call


def _run(setup: Setup, options: Options, place: Place) -> list[Dynamics]:
    """Run a setup with each seed; one that the folder holds is not run again."""
    asked: dict[str, Any] = {"epochs": options.epochs, "precision": options.precision}
    found = []
    for seed in seed_list(options.seeds):
        path = place.runs and run_path(place.runs, setup, seed)
        if path is None or not path.exists():
            found.append(training.run_dynamics(setup, _material(place), seed=seed, **asked))
            if path is not None:
                keep(found[-1], path)
            continue
        found.append(read(path, Dynamics))
        for name, now in asked.items():
            if (was := getattr(found[-1], name)) != now:
                raise InputError(
                    f"{path} was run with {name} {was}, now {now}; delete it, or choose another folder"
                )
    if setup.variant == BASE and place.runs is not None and picture.can_picture():
        path = place.runs / f"{picture.PREFIX}{setup.start.name}.json"
        if not path.exists():
            keep(picture.take_picture(setup, _material(place)), path)
    return found


def _read(folder: Path) -> list[Dynamics | Picture]:
    pictures = [read(path, Picture) for path in sorted(folder.glob(f"{picture.PREFIX}*.json"))]
    return [*read_all(folder, "dynamics", Dynamics), *pictures]


def _split(runs: Sequence[Dynamics | Picture]) -> tuple[list[Dynamics], list[Picture]]:
    trained = [run for run in runs if isinstance(run, Dynamics)]
    return trained, [run for run in runs if isinstance(run, Picture)]


def _findings(runs: Sequence[Dynamics | Picture]) -> Iterator[Finding]:
    trained, pictures = _split(runs)
    yield from findings(trained)
    yield from picture.picture_findings(pictures)


def sections(both: Sequence[Dynamics | Picture]) -> list[Section]:
    """Return one section for each question, with its figures."""
    runs, pictures = _split(both)
    shown_views = views(runs)
    found = [_trainings(runs), *([picture.picture_section(pictures)] if pictures else [])]
    for part, (title, text, label) in _PARTS.items():
        by_view = [(view, getattr(view, part)()) for view in shown_views]
        rows = [
            (view, {label.format(key, view.runs[name].steps): name for key, name in own.items()})
            for view, own in by_view
            if len(own) > 1
        ]
        if rows:
            found.append(_ends(title, text, rows, trajectories_figure(part, [view for view, _ in rows])))
    if layered := [view for view in shown_views if view.has_layers]:
        found.append(_layers(layered))
    if changes := {view.runs[BASE].title: view.changes for view in shown_views if view.changes}:
        about = "From the untrained start to the end of the base run, without attention sinks."
        found.append(change_section(changes, about))
    return [*found, _bounds()]


def _trainings(runs: Sequence[Dynamics]) -> Section:
    text = (
        "Section 4 of the paper follows the last layer of mpnet-base through contrastive training, 4,912 "
        "updates on 314,000 entailment pairs with a checkpoint every 200. Neither that model nor those pairs "
        "could be installed: here the same training (InfoNCE both ways, cosines, AdamW, 10 % warm-up, then "
        f"down to 0) runs from the starts below, on the {runs[0].n_pairs:,} entailment pairs of SNLI's dev "
        f"and test and MNLI's dev, and is followed on the {runs[0].n_sentences:,} first sentences of STS-B's "
        "test pairs. Readings are by the clean definitions: exact mean cosine for anisotropy, special "
        "tokens left out. ρ is Spearman's correlation of cosines with the scores of STS-B's test pairs."
    )
    heads = ("start", "model", "learning rate", "epochs", "updates at batch 64", "every", "seeds",
             "precision")  # fmt: skip
    cells, notes = [], []
    for start in dict.fromkeys(run.start for run in runs):
        own = [run for run in runs if run.start == start]
        first = next((run for run in own if run.variant == BASE), own[0])
        cells.append((
            first.title, first.model, f"{first.learning_rate:g}", str(first.epochs), f"{first.steps:,}",
            f"{int(first.rows['step'][1] or 0)}", str(len({run.seed for run in own})),
            ", ".join(sorted({run.precision for run in own})),
        ))  # fmt: skip
        notes += [f"{first.title}: {note}" for note in _notes(first, own)]
    return Section("The trainings", text, tuple(notes), heads, tuple(cells))


def _notes(first: Dynamics, own: Sequence[Dynamics]) -> Iterator[str]:
    """Say what a start is, what was declared of it and not run, and how far its seeds are apart."""
    if first.start in STARTS:
        yield STARTS[first.start].note
    if about := first.pretraining:
        yield (
            f"{about['steps']:,} updates of {about['batch_size']} windows of {about['window']} tokens over "
            f"{about['n_tokens']:,} tokens of WikiText-2; on its validation part a masked token costs "
            f"{about['held_out_loss']:.3f} nats, and {about['unigram_loss']:.3f} by frequency"
        )
    declared = [setup.variant for setup in variants(STARTS[first.start])] if first.start in STARTS else []
    if missing := [name for name in declared if name not in {run.variant for run in own}]:
        yield f"declared but not run: {', '.join(missing)}"
    if undefined := [f"{run.variant} of seed {run.seed}" for run in own if not is_defined(run)]:
        yield f"left out, since a metric has no value at some update: {', '.join(undefined)}"
    seeds = [run for run in own if run.variant == BASE and is_defined(run)]
    if len(seeds) < 2:
        yield "one seed a run: how much of a small difference is chance is not known"
        return
    spreads = {title: stdev(run.rows[metric][-1] or 0.0 for run in seeds) for metric, title in TITLES.items()}
    listed = ", ".join(f"{title} {spread:.4f}" for title, spread in spreads.items())
    yield f"standard deviation of the base run's end over {len(seeds)} seeds: {listed}"


def _ends(title: str, text: str, rows: Sequence[tuple[View, Mapping[str, str]]], figure: Drawing) -> Section:
    def readings(view: View, name: str, place: int) -> Iterator[str]:
        yield from (shown(view.curve(name, metric)[place]) for metric in (*TITLES, *RAW))
        loss = view.runs[name].rows["loss"][place]
        yield "—" if loss is None else shown(loss)

    cells = []
    for view, own in rows:
        cells.append((view.title, "start", *readings(view, next(iter(own.values())), 0), "—"))
        for label, name in own.items():
            task = view.runs[name].task
            score = f"{task['before']:.3f} → {task['after']:.3f}"
            cells.append((view.title, label, *readings(view, name, -1), score))
    about = f"{text} Start, and the end of each run; ρ before and after, pooled as in training."
    return Section(title, about, (), _HEADS, tuple(cells), (figure,))


def _layers(shown_views: Sequence[View]) -> Section:
    heads = ("model, layer", *(f"{title}{then}" for title in TITLES.values() for then in ("", ", after")))
    cells, notes = [], []
    for view in shown_views:
        title = view.runs[BASE].title
        notes += [f"{title}: without attention sinks"] if view.suffix else []
        columns = [view.layers(when, metric) for metric in TITLES for when in ("before", "after")]
        n = len(columns[0])
        for layer in sorted({0, *range(0, n, max(1, n // 6)), n - 2, n - 1}):
            cells.append((f"{title}, {layer}", *(shown(column[layer]) for column in columns)))
    text = "The base run (τ = 0.05, batches of 64, mean pooling), before its training and after."
    return Section("Every layer", text, tuple(notes), heads, tuple(cells))


def _bounds() -> Section:
    heads = ("τ", "batch n", "ℓ_upper(τ), s = 1", "ℓ_lower(2τ), s = 1",
             *(f"ratio, s = {s:g}" for s in _POSITIVES), "attainable ℓ(2τ)")  # fmt: skip
    cells = tuple(
        (
            f"{tau:g}", str(n), f"{bounds.upper_loss(tau, n):.4g}", f"{bounds.lower_loss(2 * tau, n):.4g}",
            *(f"{bounds.doubling_ratio(tau, n, positive=s):.3f}" for s in _POSITIVES),
            f"{bounds.attainable_loss(2 * tau, n):.4g}",
        )
        for tau in _TAUS
        for n in _SIZES
    )  # fmt: skip
    text = (
        "Equation 12 with the positive at cosine s and all n − 1 negatives at c is log(1 + (n − 1)·"
        "e^{−(s − c)/τ}). The paper sets c = 0 (upper) and c = −1 (lower) and concludes ℓ_lower(2τ) ≈ "
        "ℓ_upper(τ). At s = 1 that is an identity, for every τ and n. Below, the ratio of the two is "
        "e^{−(1 − s)/(2τ)} while both are small, whatever n is: within 10 % for 1 − s ≤ "
        f"{bounds.equation_17_room():g}·τ."
    )
    notes = (
        "All negatives of one anchor can be opposite to it, but not those of all anchors at once: n unit "
        "vectors have a mean cosine of at least −1/(n − 1). The last column is the loss at that cosine, "
        "the lowest a batch can reach",
    )
    return Section("Equation 17", text, notes, heads, cells, (bounds_figure(),))


def _said(runs: Sequence[Dynamics | Picture]) -> list[str]:
    """Say where each run began and ended."""
    lines = []
    for run in _split(runs)[0]:
        lines.append(
            f"{run.title}, {run.variant}: τ = {run.temperature:g}, batches of {run.batch_size}, "
            f"{run.pooling} pooling; {run.steps:,} updates in {run.seconds:,.0f} s, seed {run.seed}; STS-B ρ "
            f"{run.task['before']:.3f} → {run.task['after']:.3f}"
        )
        for view in views([run]):
            ends = (
                f"{title} {shown(view.start(metric))} → {shown(view.end(run.variant, metric))}"
                for metric, title in TITLES.items()
            )
            lines.append(f"  {view.title}: {', '.join(ends)}")
    return lines


STUDY: Study[Setup, Dynamics | Picture] = Study(
    name="dynamics",
    title="Contrastive training: its dynamics reproduced",
    intro=_INTRO,
    setups=SETUPS,
    choose=lambda names, options: chosen_runs(names, options.model),
    run=_run,
    load=_read,
    findings=_findings,
    sections=sections,
    notes=_said,
)
