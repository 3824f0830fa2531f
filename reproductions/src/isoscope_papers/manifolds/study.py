"""The study of clusters and manifolds in contextual embeddings: its claims and its page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isoscope.cli import parse_numbers
from isoscope_papers.manifolds.figures import draw_figures
from isoscope_papers.manifolds.findings import findings, lid_row, mean_dimensions
from isoscope_papers.manifolds.layers import LayerFigures
from isoscope_papers.manifolds.options import DEFAULT, Options
from isoscope_papers.manifolds.run import Outcome, keep, read_outcomes, run_setup
from isoscope_papers.manifolds.setups import (
    CONTEXTUAL,
    LID_NEIGHBORS,
    LID_POINTS,
    PUBLISHED,
    SETUPS,
    STATIC,
    Setup,
    own_setup,
)
from isoscope_papers.page import Section, drawn
from isoscope_papers.rows import Row, number
from isoscope_papers.runs import as_plain
from isoscope_papers.study import Place, Study, chosen_setups
from isoscope_papers.verdict import ranges

_SMALL, _MOSTLY = 0.05, 0.7  # shares: a small cluster of all tokens; what it mostly is
_INTRO = (
    "Cosines between tokens of different types (S_inter) and of the same type (S_intra) in every layer, "
    "before and after each cluster is centred on its own mean, and the local intrinsic dimension (Cai, "
    "Huang, Bian and Church 2021). The paper's own models were BERT, DistilBERT, GPT, GPT-2 and ELMo; those "
    "below are others unless they bear these names, so its claims are tested in direction, by the bounds "
    "stated. LID is compared where it is the paper's own model: "
    "✓ within a tenth of the paper's figure, ✗ not, ≠ fewer tokens than half the paper's."
)
_TESTS = (
    "A claim about layers holds where it does in every block; the embedding layer is left out, since the "
    "paper's layer 0 is the first block. What the paper says of GPT models is judged on the causal model "
    "alone; the first layers are the first quarter, at least two. R² is that of the mean over the 20 tokens "
    "nearest on the three components. Tokens of one type lie together and share its frequency, so that R² of "
    "tokens (the figure, and the claim on frequency) is high where R² among one token of each type (the "
    "tables) is low. Figures are the range over layers. How many vectors and dimensions each space has, "
    "which moves LID, is in the table of dimensions."
)
_HEADS = (
    "layer", "S_inter", "S_intra", "K", "silhouette", "S_inter, centred", "S_intra, centred",
    "LID", "LID, squared", "LID, 1 − cos", "variance of 3", "frequency R², types", "position R², tokens",
)  # fmt: skip
_PARTS_HEADS = (
    "layer", "IsoScore", "IsoScore in clusters", "K", "S_inter", "S_inter, mean taken off",
    "S_inter, clusters centred", "silhouette of symbols and words", "probe",
)  # fmt: skip


def _choose(names: Sequence[str], options: Options) -> list[Setup]:
    """Return the setups, and one for each further model; where only models are asked for, no others."""
    models = [own_setup(model) for model in options.model or ()]
    only_models = bool(models) and tuple(names) == DEFAULT
    return [*([] if only_models else chosen_setups(SETUPS, names)), *models]


def _run(setup: Setup, options: Options, place: Place) -> list[Outcome]:
    layers = None if options.layers is None else parse_numbers("layers", options.layers)
    found = run_setup(
        setup, data=place.data, download=place.download, device=place.device, split=options.split,
        max_tokens=options.max_tokens, layers=layers, seed=options.seed,
    )  # fmt: skip
    if place.runs is not None:
        keep(found, place.runs)
    return [found]


def sections(outcomes: Sequence[Outcome], folder: Path | None = None) -> list[Section]:
    """Return figures, dimensions beside the published ones, and each model's layers."""
    figures, undrawn = drawn(lambda place: draw_figures(outcomes, place), folder)
    found = [Section("How they were tested", _TESTS, undrawn, figures=figures), _dimensions(outcomes)]
    for outcome in outcomes:
        found += _layer_sections(outcome)
    return found + [_parts(one) for one in outcomes if one.parts]


def _spaces(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if not one.parts]


def _dimensions(outcomes: Sequence[Outcome]) -> Section:
    text = (
        f"Mean over {LID_POINTS:,} random points (and over the layers of a model, the embedding layer left "
        f"out) of the local intrinsic dimension by maximum likelihood, {LID_NEIGHBORS} neighbours among all. "
        "The paper's code takes squared distances, which halves it, and its table 1 − cos, a squared chord, "
        "which does too: 1 − cos is the column to compare. The paper's own lines stand below ours."
    )
    cells = []
    for one in _spaces(outcomes):
        size = one.static and (one.static.n_vectors, one.static.n_dims)
        n, d = size or (one.about["n_tokens"], one.about["n_dims"])
        euclidean, squared, _ = mean_dimensions(one)
        cells.append(
            (one.title, f"{n:,}", str(d), number(euclidean, 1), number(squared, 1), lid_row(one).cell)
        )
    for name in (*CONTEXTUAL, *STATIC):
        line = PUBLISHED[name]
        cells.append(
            (f"paper: {line.title}", f"{line.n_vectors:,}", str(line.n_dims), "—", "—", f"{line.lid:.1f}")
        )
    heads = ("space", "vectors", "dimensions", "LID", "LID, squared", "LID, 1 − cos")
    return Section("Local intrinsic dimension (table 3)", text, (), heads, tuple(cells))


def _layer_sections(found: Outcome) -> list[Section]:
    views = [(found.title, found.layers)]
    if found.without_sinks:
        views = [
            (f"{found.title}, all tokens", found.layers),
            (f"{found.title}, without sinks", found.without_sinks),
        ]
    parts = []
    for place, (title, layers) in enumerate(views):
        if layers:
            numbers = found.about["layers"]
            cells = tuple(_cells(number, one) for number, one in zip(numbers, layers, strict=True))
            notes = [*_notes(found, layers)] if place == 0 else []
            notes += [*_small_clusters(numbers, layers), _gap(layers, found.about.get("seed", 0))]
            parts.append(Section(title, _about(found) if place == 0 else "", tuple(notes), _HEADS, cells))
    return parts


def _about(found: Outcome) -> str:
    about = found.about
    seconds = f"{about['seconds']:,.0f} s" if about.get("seconds") is not None else "time not noted"
    return (
        f"{about['n_tokens']:,} tokens of {about['n_types']:,} types, {about.get('source', 'texts')}, "
        f"windows of {about.get('window', '—')} tokens, special tokens left out; on {about['device']}, "
        f"{seconds}."
    )


def _notes(found: Outcome, layers: Sequence[LayerFigures]) -> list[str]:
    note = SETUPS[found.setup].note if found.setup in SETUPS else ""
    notes = [f"{found.model}: {note}"] if note else []
    notes += [f"Attention sinks: {name}" for name in found.sinks] or ["No attention sinks"]
    skipped = sum(one.n_skipped for one in layers)
    if skipped:
        notes.append(f"{skipped} clusters, over all layers, have one token type or none twice: left out")
    return notes


def _small_clusters(numbers: Sequence[int], layers: Sequence[LayerFigures]) -> list[str]:
    """Name the layers whose smallest cluster is mostly sinks, or mostly one token type."""
    sinks: list[str] = []
    of_token: dict[str, list[tuple[str, float]]] = {}
    for number_, one in zip(numbers, layers, strict=True):
        if one.smallest is None or one.n_clusters < 2 or one.smallest.share > _SMALL:
            continue
        if one.smallest.sinks >= _MOSTLY:
            sinks.append(str(number_))
        elif one.smallest.of_token >= _MOSTLY:
            of_token.setdefault(one.smallest.token, []).append((str(number_), one.smallest.of_token))
    notes = [f"Layers {ranges(sinks)}: the smallest cluster is the attention sinks"] if sinks else []
    for token, found in of_token.items():
        least = min(share for _, share in found)
        where = ranges([number_ for number_, _ in found])
        notes.append(
            f"Layers {where}: at least {int(100 * least)} % of the smallest cluster are one token, {token!r}"
        )
    return notes


def _gap(layers: Sequence[LayerFigures], seed: int) -> str:
    """Say how far the paper's draws come from the exact means."""
    gaps = [
        abs(exact - sampled)
        for one in layers
        for part in (one.cosines, one.adjusted)
        for exact, sampled in ((part.s_inter, part.s_inter_sampled), (part.s_intra, part.s_intra_sampled))
        if exact is not None and sampled is not None
    ]
    apart = f"{max(gaps):.3f}" if gaps else "—"
    return f"Exact means are shown; the paper's draws (seed {seed}) come within {apart} of them"


def _cells(layer: int, one: LayerFigures) -> tuple[str, ...]:
    told = [None if part is None else part.nearby for part in (one.log_frequency, one.position)]
    return (
        str(layer), number(one.cosines.s_inter), number(one.cosines.s_intra), str(one.n_clusters),
        number(one.silhouette), number(one.adjusted.s_inter), number(one.adjusted.s_intra),
        number(one.lid, 1), number(one.lid_squared, 1), number(one.lid_cosine, 1),
        number(one.top_variance, 2), *(number(value, 2) for value in told),
    )  # fmt: skip


def _parts(found: Outcome) -> Section:
    text = (
        f"{_about(found)} Attention sinks are left out. Taking off the mean of all tokens is the control for "
        "centring clusters. Symbols are tokens without a letter or digit; the probe is the balanced accuracy "
        "of a linear classifier on token types it never saw."
    )
    cells = tuple(
        (
            str(layer), number(one.isoscore), number(one.isoscore_within), str(one.n_clusters),
            number(one.s_inter), number(one.s_inter_centred), number(one.s_inter_within),
            number(one.silhouette), number(one.probe),
        )
        for layer, one in zip(found.about["layers"], found.parts, strict=True)
    )  # fmt: skip
    return Section(f"{found.title}: what its anisotropy is made of", text, (), _PARTS_HEADS, cells)


def _rows(outcomes: Sequence[Outcome]) -> list[Row]:
    return [lid_row(one) for one in _spaces(outcomes)]


def _results(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the runs' facts and every layer, unrounded."""
    return {
        "runs": {one.setup: dict(one.about) | {"sinks": list(one.sinks)} for one in outcomes},
        "layers": {
            one.setup: {"all": as_plain(one.layers), "without_sinks": as_plain(one.without_sinks)}
            for one in outcomes
            if one.layers
        },
        "parts": {one.setup: as_plain(one.parts) for one in outcomes if one.parts},
    }


def _sinks(outcomes: Sequence[Outcome]) -> list[str]:
    return [f"{one.title}: sinks: {name}" for one in outcomes for name in one.sinks]


STUDY: Study[Setup, Outcome] = Study(
    name="manifolds",
    title="Isotropy in the Contextual Embedding Space: reproduced",
    intro=_INTRO,
    setups=SETUPS,
    choose=_choose,
    run=_run,
    read=read_outcomes,
    findings=findings,
    sections=sections,
    rows=_rows,
    results=_results,
    notes=_sinks,
)
