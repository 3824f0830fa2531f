"""What comes out of *Clusters and Manifolds*: lines for the terminal, tables, figures, JSON and pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isoscope_papers.claims import Claim, claims_table
from isoscope_papers.manifolds.claims import all_claims, tallies
from isoscope_papers.manifolds.figures import draw_figures
from isoscope_papers.manifolds.layers import LID_POINTS, LayerFigures
from isoscope_papers.manifolds.run import Outcome
from isoscope_papers.manifolds.setups import CONTEXTUAL, LID_NEIGHBORS, PUBLISHED, STATIC, Published
from isoscope_papers.pages import Section, compared, in_folder, write_pages
from isoscope_papers.verdicts import Row, Verdict, unpublished, within

TITLE = "Isotropy in the Contextual Embedding Space: reproduced"
LID_TOLERANCE = 0.1  # of the published mean: texts and their number differ
_SMALL, _MOSTLY = 0.05, 0.7  # shares: a small cluster of all tokens; what it mostly is
_SAME_SIZE = 0.5  # of the paper's number of vectors, to be comparable at all
_INTRO = (
    "Cosines between tokens of different types (S_inter) and of the same type (S_intra) in every layer, "
    "before and after each cluster is centred on its own mean, and the local intrinsic dimension (Cai, "
    "Huang, Bian and Church 2021). The paper's own models were BERT, DistilBERT, GPT, GPT-2 and ELMo; those "
    "below are others unless they bear these names, so its claims are tested in direction, by the bounds "
    "stated. LID is compared where it is the paper's own model: "
    "✓ within a tenth of the paper's figure, ✗ not, ≠ fewer tokens than half the paper's."
)
_HEADS = (
    "layer", "S_inter", "S_intra", "K", "silhouette", "S_inter, centred", "S_intra, centred",
    "LID", "LID, squared", "LID, 1 − cos", "variance of 3", "frequency R²", "position R²",
)  # fmt: skip


def sections(outcomes: Sequence[Outcome], folder: Path | None = None) -> list[Section]:
    """Claims, dimensions beside the published ones, each model's layers; with figures in a folder."""
    drawn, undrawn = in_folder(lambda place: draw_figures(outcomes, place), folder)
    claims = all_claims(outcomes)
    heads, cells = claims_table(claims)
    text = (
        "A claim about layers holds where it does in every block; the embedding layer is left out, since the "
        "paper's layer 0 is the first block. The first layers are the first quarter, at least two. R² is "
        "that of the mean over the 20 tokens nearest on the three components; for frequency, among one token "
        "of each type. Figures are the range over layers. How many vectors and dimensions each space has, "
        "which moves LID, is in the next table."
    )
    found = [
        Section("The claims", text, (*tallies(claims), *undrawn), heads, cells, drawn),
        _dimension_section(outcomes),
    ]
    for outcome in outcomes:
        found += _layer_sections(outcome)
    return found


def _dimension_section(outcomes: Sequence[Outcome]) -> Section:
    text = (
        f"Mean over {LID_POINTS:,} random points (and over the layers of a model, the embedding layer left "
        f"out) of the local intrinsic dimension by maximum likelihood, {LID_NEIGHBORS} neighbours among all. "
        "The paper's code takes squared distances, which halves it, and its table 1 − cos, a squared chord, "
        "which does too: 1 − cos is the column to compare. The paper's own lines stand below ours."
    )
    cells = [_dimension_cells(one) for one in outcomes]
    cells += [_published_cells(PUBLISHED[name]) for name in (*CONTEXTUAL, *STATIC)]
    heads = ("space", "vectors", "dimensions", "LID", "LID, squared", "LID, 1 − cos")
    return Section("Local intrinsic dimension (table 3)", text, (), heads, tuple(cells), {})


def _dimension_cells(found: Outcome) -> tuple[str, ...]:
    values = mean_dimensions(found)
    n, d = (
        (found.static.n_vectors, found.static.n_dims)
        if found.static is not None
        else (found.about["n_tokens"], found.about["n_dims"])
    )
    last = compared(lid_row(found))
    return (found.title, f"{n:,}", str(d), _number(values[0], 1), _number(values[1], 1), last)


def _published_cells(line: Published) -> tuple[str, ...]:
    return (f"paper: {line.title}", f"{line.n_vectors:,}", str(line.n_dims), "—", "—", f"{line.lid:.1f}")


def mean_dimensions(found: Outcome) -> tuple[float | None, float | None, float | None]:
    """LID, from squared distances, and from 1 − cos; of a model the means over its blocks, without sinks."""
    if found.static is not None:
        return found.static.lid, found.static.lid_squared, found.static.lid_cosine
    blocks = [
        one for number, one in zip(found.about["layers"], found.plain_layers, strict=True) if number > 0
    ]
    return (
        _mean([one.lid for one in blocks]),
        _mean([one.lid_squared for one in blocks]),
        _mean([one.lid_cosine for one in blocks]),
    )


def lid_row(found: Outcome) -> Row:
    """The mean LID with 1 − cos beside the paper's, which is comparable for its own models at like sizes."""
    ours, line = mean_dimensions(found)[2], found.published
    if line is None:
        return unpublished(found.title, "LID, 1 − cos", ours, 1)
    n = found.static.n_vectors if found.static is not None else found.about["n_tokens"]
    return within(
        found.title,
        "LID, 1 − cos",
        ours,
        line.lid,
        tolerance=LID_TOLERANCE * line.lid,
        comparable=n >= _SAME_SIZE * line.n_vectors,
        digits=1,
    )


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
            cells = tuple(
                _cells(number, one) for number, one in zip(found.about["layers"], layers, strict=True)
            )
            small = _small_clusters(found.about["layers"], layers)
            apart = _drawn_apart(layers, found.about.get("seed", 0))
            notes = _notes(found, layers) if place == 0 else (*small, apart)
            parts.append(Section(title, _about(found) if place == 0 else "", notes, _HEADS, cells, {}))
    return parts


def _about(found: Outcome) -> str:
    about = found.about
    seconds = f"{about['seconds']:,.0f} s" if about.get("seconds") is not None else "time not noted"
    return (
        f"{about['n_tokens']:,} tokens of {about['n_types']:,} types, {about.get('source', 'texts')}, "
        f"windows of {about.get('window', '—')} tokens, special tokens left out; on {about['device']}, "
        f"{seconds}."
    )


def _notes(found: Outcome, layers: Sequence[LayerFigures]) -> tuple[str, ...]:
    notes = [f"{found.setup.model}: {found.setup.note}"] if found.setup.note else []
    notes += [f"Attention sinks: {name}" for name in found.sinks] or ["No attention sinks"]
    notes += _small_clusters(found.about["layers"], layers)
    skipped = sum(one.n_skipped for one in layers)
    if skipped:
        notes.append(f"{skipped} clusters, over all layers, have one token type or none twice: left out")
    return (*notes, _drawn_apart(layers, found.about.get("seed", 0)))


def _small_clusters(numbers: Sequence[int], layers: Sequence[LayerFigures]) -> list[str]:
    """The layers whose smallest cluster is mostly sinks, or mostly one token type."""
    sinks: list[int] = []
    of_token: dict[str, list[tuple[int, float]]] = {}
    for number, one in zip(numbers, layers, strict=True):
        if one.smallest is None or one.n_clusters < 2 or one.smallest.share > _SMALL:
            continue
        if one.smallest.sinks >= _MOSTLY:
            sinks.append(number)
        elif one.smallest.of_token >= _MOSTLY:
            of_token.setdefault(one.smallest.token, []).append((number, one.smallest.of_token))
    notes = [f"{_layers(sinks)}: the smallest cluster is the attention sinks"] if sinks else []
    for token, found in of_token.items():
        least = min(share for _, share in found)
        where = _layers([number for number, _ in found])
        notes.append(
            f"{where}: at least {int(100 * least)} % of the smallest cluster are one token, {token!r}"
        )
    return notes


def _layers(numbers: Sequence[int]) -> str:
    return f"Layer{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _drawn_apart(layers: Sequence[LayerFigures], seed: int) -> str:
    """How far the paper's draws come from the exact means."""
    gaps = [
        abs(exact - drawn)
        for one in layers
        for part in (one.cosines, one.adjusted)
        for exact, drawn in ((part.s_inter, part.s_inter_sampled), (part.s_intra, part.s_intra_sampled))
        if exact is not None and drawn is not None
    ]
    apart = f"{max(gaps):.3f}" if gaps else "—"
    return f"Exact means are shown; the paper's draws (seed {seed}) come within {apart} of them"


def _cells(number: int, one: LayerFigures) -> tuple[str, ...]:
    told = [None if part is None else part.nearby for part in (one.log_frequency, one.position)]
    return (
        str(number),
        _number(one.cosines.s_inter),
        _number(one.cosines.s_intra),
        str(one.n_clusters),
        _number(one.silhouette),
        _number(one.adjusted.s_inter),
        _number(one.adjusted.s_intra),
        _number(one.lid, 1),
        _number(one.lid_squared, 1),
        _number(one.lid_cosine, 1),
        _number(one.top_variance, 2),
        *(_number(value, 2) for value in told),
    )


def _number(value: float | None, digits: int = 3) -> str:
    return "—" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def as_dict(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything that is compared, unrounded, JSON-ready; the runs' own files have the layers."""
    return {
        "claims": [claim.to_dict() for claim in all_claims(outcomes)],
        "rows": [lid_row(one).to_dict() for one in outcomes],
        "runs": {one.setup.name: dict(one.about) | {"sinks": list(one.sinks)} for one in outcomes},
        "layers": {
            one.setup.name: {
                "all": [layer.to_dict() for layer in one.layers],
                "without_sinks": [layer.to_dict() for layer in one.without_sinks],
            }
            for one in outcomes
            if one.layers
        },
    }


def as_text(outcomes: Sequence[Outcome]) -> str:
    """For the terminal: each model with its claims."""
    claims: list[Claim] = all_claims(outcomes)
    lines = []
    for one in outcomes:
        size = (
            f"{one.static.n_vectors:,} vectors"
            if one.static is not None
            else f"{one.about['n_tokens']:,} tokens of {one.about['n_types']:,} types"
        )
        row = lid_row(one)
        theirs = (
            "" if row.verdict is Verdict.UNPUBLISHED else f" (paper {row.published_shown}, {row.verdict})"
        )
        lid, squared, _ = mean_dimensions(one)
        lines.append(f"{one.title}  ({size})")
        lines += [f"  sinks: {name}" for name in one.sinks]
        lines.append(
            f"  LID {_number(lid, 1)}, squared {_number(squared, 1)}, 1 − cos {row.ours_shown}{theirs}"
        )
        for claim in claims:
            if claim.subject.partition(",")[0] == one.title:
                view = " [no sinks]" if claim.subject != one.title else ""
                lines.append(f"  {claim.holding:<13}{claim.claim}{view}: {claim.evidence}")
        lines.append("")
    return "\n".join(lines).rstrip()


def write_report(outcomes: Sequence[Outcome], folder: Path, *, command: str) -> list[Path]:
    """manifolds.json, manifolds.md, manifolds.html and the figures."""
    found = sections(outcomes, folder)
    return write_pages(
        folder,
        "manifolds",
        title=TITLE,
        intro=_INTRO,
        sections=found,
        results=as_dict(outcomes),
        command=command,
    )
