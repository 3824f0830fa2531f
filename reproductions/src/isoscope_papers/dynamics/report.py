"""What comes out of the contrastive paper's training dynamics: sections of its page, text, JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median, stdev
from typing import Any

from isoscope.metrics.contextual_change import extremes
from isoscope.training.tracker import WITHOUT_SINKS
from isoscope_papers.claims import claims_table
from isoscope_papers.contrastive.comparison import word
from isoscope_papers.dynamics.bounds import (
    attainable_loss,
    doubling_ratio,
    lower_loss,
    lower_loss_approximation,
    thrust,
    upper_loss,
)
from isoscope_papers.dynamics.claims import all_claims, shown, tallies
from isoscope_papers.dynamics.figures import draw_figures
from isoscope_papers.dynamics.run import Dynamics
from isoscope_papers.dynamics.setups import BASE, EPOCHS, STARTS, variants
from isoscope_papers.dynamics.views import LEAST, TITLES, View, averaged, views
from isoscope_papers.pages import Section, in_folder

_HEADS = ("start", "", *TITLES.values(), "self-similarity", "intra-sentence", "loss", "STS-B ρ")
_RAW = ("self_similarity", "intra_similarity")
_BOUND_TAUS, _BOUND_SIZES, _BOUND_POSITIVES = (0.025, 0.05, 0.1, 1.0), (4, 64, 256), (1.0, 0.95, 0.9, 0.8)


def sections(runs: Sequence[Dynamics], folder: Path | None = None) -> list[Section]:
    """One section a question, with its figures where a folder is given."""
    drawn, undrawn = in_folder(lambda place: draw_figures(runs, place), folder)
    found = [_training_section(runs, undrawn)]
    kinds: dict[str, tuple[str, str, Callable[[View], Mapping[Any, str]], str]] = {
        "temperatures": ("Temperature", "Section 4 and appendix A.", View.temperatures, "τ = {:g}"),
        "batches": (
            "Batch size",
            "Appendix B: τ = 0.05; as many pairs and one learning rate for every size.",
            View.batches,
            "{}, {:,} updates",
        ),
        "poolings": ("Pooling", "Appendix D: τ = 0.05, batches of 64.", View.poolings, "{}"),
    }
    for part, (title, text, chosen, label) in kinds.items():
        rows = [
            (view, {label.format(key, view.runs[name].steps): name for key, name in chosen(view).items()})
            for view in views(runs)
            if len(chosen(view)) > 1
        ]
        if rows:
            found.append(_ends_section(f"Dynamics: {title.lower()}", text, rows, drawn.get(part, {})))
    bases = [run for run in averaged(runs) if run.variant == BASE]
    if any(run.layers for run in bases):
        found.append(_layers_section([run for run in bases if run.layers]))
    if any(run.change for run in bases):
        found.append(_change_section([run for run in bases if run.change]))
    found.append(_bounds_section(drawn.get("bounds", {})))
    claims = all_claims(runs)
    if claims:
        heads, cells = claims_table(claims)
        text = (
            "What the paper says of training, put to our runs; bounds are in the claim. A difference of "
            f"cosines under {LEAST}, or of norms under {100 * LEAST:g} %, counts as none, and what rests on "
            "it depends. The second view of a model with attention sinks is of the same runs, and leaves "
            "those out."
        )
        notes = (*tallies(claims), *_seed_notes(runs))
        found.append(Section("Dynamics: the claims", text, notes, heads, cells, {}))
    return found


def _seed_notes(runs: Sequence[Dynamics]) -> list[str]:
    """How far the ends of the base run are apart over its seeds, where there are several."""
    notes = []
    for start in dict.fromkeys(run.start for run in runs):
        own = [run for run in runs if run.start == start and run.variant == BASE]
        if len(own) > 1:
            spreads = {
                title: stdev(run.rows[metric][-1] or 0.0 for run in own) for metric, title in TITLES.items()
            }
            listed = ", ".join(f"{title} {spread:.4f}" for title, spread in spreads.items())
            notes.append(
                f"{own[0].title}: standard deviation of the base run's end over {len(own)} seeds: {listed}"
            )
    return notes or ["One seed a run: how much of a small difference is chance is not known"]


def _training_section(runs: Sequence[Dynamics], notes: tuple[str, ...]) -> Section:
    text = (
        "Section 4 of the paper follows the last layer of mpnet-base through contrastive training, 4,912 "
        "updates on 314,000 entailment pairs with a checkpoint every 200. Neither that model nor those pairs "
        "could be installed: here the same training (InfoNCE both ways, cosines, AdamW, 10 % warm-up, then "
        f"down to 0) runs from the starts below, on the {runs[0].n_pairs:,} entailment pairs of SNLI's dev "
        f"and test and MNLI's dev, and is followed on the {runs[0].n_sentences:,} first sentences of STS-B's "
        "test pairs. Readings are by the clean definitions: exact mean cosine for anisotropy, special "
        "tokens left out. ρ is Spearman's correlation of cosines with the scores of STS-B's test pairs."
    )
    heads = (
        "start", "model", "learning rate", "epochs", "updates at batch 64", "every", "seeds", "precision",
    )  # fmt: skip
    cells, more = [], []
    for start in dict.fromkeys(run.start for run in runs):
        own = [run for run in runs if run.start == start]
        first = next((run for run in own if run.variant == BASE), own[0])
        cells.append(
            (
                first.title,
                first.model,
                f"{first.learning_rate:g}",
                str(first.epochs),
                f"{first.steps:,}",
                f"{int(first.rows['step'][1] or 0)}",
                str(len({run.seed for run in own})),
                ", ".join(sorted({run.precision for run in own})),
            )
        )
        if start in STARTS and STARTS[start].note:
            more.append(f"{first.title}: {STARTS[start].note}")
        if first.pretraining:
            more.append(_pretrained(first))
        more += _shorter(first, own)
    return Section("Training dynamics", text, (*more, *notes), heads, tuple(cells), {})


def _shorter(first: Dynamics, own: Sequence[Dynamics]) -> list[str]:
    """What was declared of a start and not run: epochs, and whole runs."""
    notes = []
    if first.epochs < EPOCHS:
        whole = EPOCHS * (first.steps // first.epochs)
        notes.append(
            f"{first.title}: {first.epochs} of {EPOCHS} epochs, {first.steps:,} updates of {whole:,}, to "
            f"save device time: {median(run.seconds for run in own):,.0f} s a run (median), readings "
            "included. Its ends are not to be set beside those of other starts"
        )
    declared = [setup.variant for setup in variants(STARTS[first.start])] if first.start in STARTS else []
    missing = [name for name in declared if name not in {run.variant for run in own}]
    if missing:
        notes.append(f"{first.title}: declared but not run: {', '.join(missing)}")
    return notes


def _pretrained(run: Dynamics) -> str:
    about = run.pretraining
    return (
        f"{run.title}: {about['steps']:,} updates of {about['batch_size']} windows of {about['window']} "
        f"tokens over {about['n_tokens']:,} tokens of WikiText-2; on its validation part a masked token "
        f"costs {about['held_out_loss']:.3f} nats, and {about['unigram_loss']:.3f} by frequency"
    )


def _ends_section(
    title: str, text: str, rows: Sequence[tuple[View, Mapping[str, str]]], figures: Mapping[str, Path]
) -> Section:
    cells = []
    for view, own in rows:
        cells.append((view.title, "start", *_readings(view, next(iter(own.values())), 0), "—"))
        cells += [
            (view.title, label, *_readings(view, name, -1), _scores(view.runs[name]))
            for label, name in own.items()
        ]
    about = f"{text} Start, and the end of each run; ρ before and after, pooled as in training."
    return Section(title, about, (), _HEADS, tuple(cells), figures)


def _readings(view: View, name: str, place: int) -> tuple[str, ...]:
    run = view.runs[name]
    metrics = [view.curve(name, metric)[place] for metric in (*TITLES, *_RAW)]
    loss = run.rows["loss"][place]
    return (*map(shown, metrics), "—" if loss is None else shown(loss))


def _scores(run: Dynamics) -> str:
    return f"{run.task['before']:.3f} → {run.task['after']:.3f}"


def _layers_section(runs: Sequence[Dynamics]) -> Section:
    heads = ("model, layer", *(f"{title}{then}" for title in TITLES.values() for then in ("", ", after")))
    cells, notes = [], []
    for run in runs:
        suffix = WITHOUT_SINKS if any(run.layers["before"]["sink_share"]) else ""
        if suffix:
            notes.append(f"{run.title}: without attention sinks")
        n = len(run.layers["before"]["mean_cosine"])
        for layer in sorted({0, *range(0, n, max(1, n // 6)), n - 2, n - 1}):
            values = (
                run.layers[when][f"{metric}{suffix}"][layer] for metric in TITLES for when in run.layers
            )
            cells.append(
                (f"{run.title}, {layer}", *("—" if value is None else shown(value) for value in values))
            )
    text = "The base run (τ = 0.05, batches of 64, mean pooling), before its training and after."
    return Section("Dynamics: every layer", text, tuple(notes), heads, tuple(cells), {})


def _change_section(runs: Sequence[Dynamics]) -> Section:
    cells = []
    for run in runs:
        high, low = extremes(dict(zip(run.change["name"], run.change["change"], strict=True)), 15)
        cells.append((run.title, " · ".join(map(word, high)), " · ".join(map(word, low))))
    text = (
        "The change of each token's adjusted self-similarity in the last layer from the untrained start to "
        f"the end of the base run, of the {len(runs[0].change['name'])} most frequent tokens, without "
        "attention sinks. The paper's: rising are onion, piano, cow, chair; falling are has, is, are, that."
    )
    heads = ("model", "rising most", "falling most")
    return Section("Dynamics: self-similarity change", text, (), heads, tuple(cells), {})


def _bounds_section(figures: Mapping[str, Path]) -> Section:
    heads = (
        "τ", "batch n", "ℓ_upper(τ), s = 1", "ℓ_lower(2τ), s = 1",
        *(f"ratio, s = {s:g}" for s in _BOUND_POSITIVES[1:]), "attainable ℓ(2τ)",
    )  # fmt: skip
    cells = tuple(
        (
            f"{tau:g}",
            str(n),
            f"{upper_loss(tau, n):.4g}",
            f"{lower_loss(2 * tau, n):.4g}",
            *(f"{doubling_ratio(tau, n, positive=s):.3f}" for s in _BOUND_POSITIVES[1:]),
            f"{attainable_loss(2 * tau, n):.4g}",
        )
        for tau in _BOUND_TAUS
        for n in _BOUND_SIZES
    )
    text = (
        "Equation 12 with the positive at cosine s and all n − 1 negatives at c is log(1 + (n − 1)·"
        "e^{−(s − c)/τ}). The paper sets c = 0 (upper) and c = −1 (lower) and concludes ℓ_lower(2τ) ≈ "
        "ℓ_upper(τ). At s = 1 that is an identity, for every τ and n. Below, the ratio of the two is "
        "e^{−(1 − s)/(2τ)} while both are small, whatever n is: within 10 % for 1 − s ≤ 0.21·τ."
    )
    tau, s = 0.05, 0.9
    exact, written = lower_loss(tau, 64, positive=s), lower_loss_approximation(tau, 64, positive=s)
    push = [thrust(0.05, 64), thrust(0.1, 64, negative=-1.0)]
    notes = (
        f"The step (s + 1)/τ ≈ 2s/τ within equation 16 is where it is lost: at τ = {tau}, n = 64, s = {s} it "
        f"makes {written:.2e} of {exact:.2e}",
        f"Equal losses are not equal forces: at s = 1 the negatives are pushed with {push[0]:.2e} at "
        f"τ = 0.05 and c = 0, and with {push[1]:.2e} at τ = 0.1 and c = −1, half of it",
        "All negatives of one anchor can be opposite to it, but not those of all anchors at once: n unit "
        "vectors have a mean cosine of at least −1/(n − 1). The last column is the loss at that cosine, "
        "the lowest a batch can reach",
    )
    return Section("Dynamics: equation 17", text, notes, heads, cells, figures)


def as_dict(runs: Sequence[Dynamics]) -> dict[str, Any]:
    """Everything, unrounded, JSON-ready."""
    return {
        "claims": [claim.to_dict() for claim in all_claims(runs)],
        "dynamics": [asdict(run) for run in runs],
    }


def as_text(run: Dynamics) -> str:
    """A run for the terminal: start and end of what is followed."""
    lines = [
        f"{run.title}, {run.variant}: τ = {run.temperature:g}, batches of {run.batch_size}, {run.pooling} "
        f"pooling; {run.steps:,} updates in {run.seconds:,.0f} s, seed {run.seed}"
    ]
    if run.pretraining:
        lines.append(f"  {_pretrained(run)}")
    for view in views([run]):
        lines += [
            f"  {view.title:<24}{title:<26}{shown(view.start(metric)):>10} → "
            f"{shown(view.end(run.variant, metric)):>8}"
            for metric, title in TITLES.items()
        ]
    lines.append(f"  {'STS-B ρ':<50}{run.task['before']:>10.3f} → {run.task['after']:>8.3f}")
    return "\n".join(lines)
