"""The study of clusters and manifolds in contextual embeddings: its claims and its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from isoscope_papers.manifolds import setups
from isoscope_papers.manifolds.figures import figures
from isoscope_papers.manifolds.findings import findings, lid_row, mean_dimensions
from isoscope_papers.manifolds.layers import LayerFigures, figure_of
from isoscope_papers.manifolds.options import DEFAULT
from isoscope_papers.manifolds.run import Outcome, keep_outcome, read_outcomes, run_setup
from isoscope_papers.manifolds.setups import CONTEXTUAL, PUBLISHED, SETUPS, STATIC, Setup
from isoscope_papers.page import Section
from isoscope_papers.rows import Table
from isoscope_papers.runs import as_plain
from isoscope_papers.study import Study
from isoscope_papers.verdict import ranges
from isoscope_papers.words import number

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
    "alone, and a high mean cosine not on encoders tuned with a contrastive loss; the first layers are the "
    "first quarter, at least two. R² is that of the mean over the 20 tokens nearest on the three "
    "components. Tokens of one type lie together and share its frequency, so that R² of tokens (the figure, "
    "and the claim on frequency) is high where R² among one token of each type (the tables) is low. "
    "Clusters are isolated from a silhouette of 0.5 on. Figures are the range over layers. How many vectors "
    "and dimensions each space has, which moves LID, is in the table of dimensions."
)
_OF_LID = (
    f"Mean over {setups.LID_POINTS:,} random points (and over the layers of a model, the embedding layer "
    f"left out) of the local intrinsic dimension by maximum likelihood, {setups.LID_NEIGHBORS} neighbours "
    "among all. The paper's code takes squared distances, which halves it, and its table 1 − cos, a squared "
    "chord, which does too: 1 − cos is the column to compare. The paper's own lines stand below ours."
)
_OF_PARTS = (
    "Attention sinks are left out. Taking off the mean of all tokens is the control for centring clusters. "
    "Symbols are tokens without a letter or digit; the probe is the balanced accuracy of a linear classifier "
    "on token types it never saw."
)
# heads, where each figure is found, and its decimals
_COLUMNS = {
    "S_inter": ("cosines.s_inter", 3), "S_intra": ("cosines.s_intra", 3), "K": ("n_clusters", 0),
    "silhouette": ("silhouette", 3), "S_inter, centred": ("adjusted.s_inter", 3),
    "S_intra, centred": ("adjusted.s_intra", 3), "LID": ("lid", 1), "LID, squared": ("lid_squared", 1),
    "LID, 1 − cos": ("lid_cosine", 1), "variance of 3": ("top_variance", 2),
    "frequency R², types": ("log_frequency.nearby", 2), "position R², tokens": ("position.nearby", 2),
}  # fmt: skip
_PARTS_COLUMNS = {
    "IsoScore": ("isoscore", 3), "IsoScore in clusters": ("isoscore_within", 3), "K": ("n_clusters", 0),
    "S_inter": ("s_inter", 3), "S_inter, mean taken off": ("s_inter_centred", 3),
    "S_inter, clusters centred": ("s_inter_within", 3), "silhouette of symbols and words": ("silhouette", 3),
    "probe": ("probe", 3),
}  # fmt: skip


def sections(outcomes: Sequence[Outcome]) -> list[Section]:
    """Return figures, dimensions beside the published ones, and each model's layers."""
    found = [Section("How they were tested", _TESTS, figures=tuple(figures(outcomes))), _dimensions(outcomes)]
    found += [section for one in outcomes if one.layers for section in _layers(one)]
    for one in outcomes:
        if one.parts:
            title, text = f"{one.title}: what its anisotropy is made of", f"{_about(one)} {_OF_PARTS}"
            found.append(Section(title, text, (), *_table(one, one.parts, _PARTS_COLUMNS)))
    return found


def _spaces(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if not one.parts]


def _dimensions(outcomes: Sequence[Outcome]) -> Section:
    lines = []
    for one in _spaces(outcomes):
        euclidean, squared, _ = mean_dimensions(one)
        lines.append((one.title, *one.size, number(euclidean, 1), number(squared, 1), lid_row(one).cell))
    for line in (PUBLISHED[name] for name in (*CONTEXTUAL, *STATIC)):
        lines.append((f"paper: {line.title}", line.n_vectors, line.n_dims, "—", "—", f"{line.lid:.1f}"))
    cells = tuple((title, f"{n:,}", str(d), *rest) for title, n, d, *rest in lines)
    heads = ("space", "vectors", "dimensions", "LID", "LID, squared", "LID, 1 − cos")
    return Section("Local intrinsic dimension (table 3)", _OF_LID, (), heads, cells)


def _table(found: Outcome, layers: Sequence[Any], columns: Mapping[str, tuple[str, int]]) -> Table:
    """Return heads and cells: a line for each layer, a dash where a figure is undefined."""
    cells = tuple(
        (str(layer), *(number(figure_of(one, path), digits) for path, digits in columns.values()))
        for layer, one in zip(found.about["layers"], layers, strict=True)
    )
    return ("layer", *columns), cells


def _layers(found: Outcome) -> Iterator[Section]:
    """Yield the layers with all tokens, and without sinks where there are any."""
    views = {", all tokens": found.layers, ", without sinks": found.without_sinks}
    for words, layers in views.items() if found.without_sinks else [("", found.layers)]:
        first = layers is found.layers
        notes = (*(_notes(found) if first else ()), *_small_clusters(found, layers), _gap(found, layers))
        text = _about(found) if first else ""
        yield Section(f"{found.title}{words}", text, notes, *_table(found, layers, _COLUMNS))


def _about(found: Outcome) -> str:
    about = found.about
    seconds = f"{about['seconds']:,.0f} s" if about.get("seconds") is not None else "time not noted"
    return (
        f"{about['n_tokens']:,} tokens of {about['n_types']:,} types, {about.get('source', 'texts')}, "
        f"windows of {about.get('window', '—')} tokens, special tokens left out; on {about['device']}, "
        f"{seconds}."
    )


def _notes(found: Outcome) -> Iterator[str]:
    if found.declared.note:
        yield f"{found.model}: {found.declared.note}"
    yield from [f"Attention sinks: {name}" for name in found.sinks] or ["No attention sinks"]
    if skipped := sum(one.n_skipped for one in found.layers):
        yield f"{skipped} clusters, over all layers, have one token type or none twice: left out"


def _small_clusters(found: Outcome, layers: Sequence[LayerFigures]) -> Iterator[str]:
    """Name the layers whose smallest cluster is mostly sinks, or mostly one token type."""
    made_of: dict[str, dict[str, float]] = {}  # by token, "" for sinks: the share in each layer
    for layer, one in zip(found.about["layers"], layers, strict=True):
        if one.smallest is None or one.n_clusters < 2 or one.smallest.share > _SMALL:
            continue
        if one.smallest.sinks >= _MOSTLY:
            made_of.setdefault("", {})[str(layer)] = 1.0
        elif one.smallest.of_token >= _MOSTLY:
            made_of.setdefault(one.smallest.token, {})[str(layer)] = one.smallest.of_token
    for token, shares in made_of.items():
        words = (
            f"at least {int(100 * min(shares.values()))} % of the smallest cluster are one token, {token!r}"
        )
        words = words if token else "the smallest cluster is the attention sinks"
        yield f"Layer{'s' if len(shares) > 1 else ''} {ranges(list(shares))}: {words}"


def _gap(found: Outcome, layers: Sequence[LayerFigures]) -> str:
    """Say how far the paper's draws come from the exact means."""
    gaps = [
        abs(exact - sampled)
        for one in layers
        for part in (one.cosines, one.adjusted)
        for exact, sampled in ((part.s_inter, part.s_inter_sampled), (part.s_intra, part.s_intra_sampled))
        if exact is not None and sampled is not None
    ]
    within, seed = number(max(gaps, default=None)), found.about.get("seed", 0)
    return f"Exact means are shown; the paper's draws (seed {seed}) come within {within} of them"


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


STUDY: Study[Setup, Outcome] = Study(
    name="manifolds",
    title="Isotropy in the Contextual Embedding Space: reproduced",
    intro=_INTRO,
    setups=SETUPS,
    default=DEFAULT,
    own=lambda name, model, is_static: Setup(name, name, model, is_static, is_causal="gpt" in name.lower()),
    run=lambda setup, options, place: [run_setup(setup, options, place)],
    keep=keep_outcome,
    load=read_outcomes,
    findings=findings,
    sections=sections,
    rows=lambda outcomes: [lid_row(one) for one in _spaces(outcomes)],
    results=_results,
    notes=lambda outcomes: [f"{one.title}: sinks: {name}" for one in outcomes for name in one.sinks],
)
