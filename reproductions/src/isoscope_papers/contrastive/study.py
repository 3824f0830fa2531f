"""The study of the geometry of contrastively trained encoders: its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isoscope.cli import parse_seeds
from isoscope_papers.contrastive import run as measuring
from isoscope_papers.contrastive.figures import (
    dimensions_figure,
    layers_figure,
    sinks_figure,
    tokens_figure,
)  # fmt: skip
from isoscope_papers.contrastive.findings import LAST, READINGS, changes_of, findings, rows
from isoscope_papers.contrastive.options import DEFAULT, Options
from isoscope_papers.contrastive.run import Geometry
from isoscope_papers.contrastive.setups import N_TOKENS, SETUPS, Setup
from isoscope_papers.contrastive.tokens import agreements, by_word, extremes, listed
from isoscope_papers.figures import Drawing
from isoscope_papers.page import Section
from isoscope_papers.runs import keep
from isoscope_papers.study import Place, Study
from isoscope_papers.words import number

_INTRO = (
    "Every layer of two contrastively trained encoders over sentence 1 of STS-B's English test pairs "
    "(Xiao, Long and Al Moubayed 2023; the paper counts 1,359 sentences, the test set has 1,379, and with "
    "all of them its figures come out). The paper's protocol: special tokens count everywhere; "
    "self-similarity is over types seen five times or more, the first occurrence in each sentence, padding "
    "a type of its own, all types alike; intra-sentence similarity is that of each token with its "
    "sentence's mean; anisotropy is that of one random token from each of 1,000 sentences, here the mean "
    "over seeds; adjusted values have it subtracted. Each cell is our figure, and the published one in "
    "brackets: ✓ reproduced (raw similarities within 0.0005, norms within 0.002, anisotropy within 4 "
    "standard deviations of our seeds, adjusted values within both, dimensions for half within 1, r² "
    "within 0.04), ✗ not, ≠ other sentences or layers than the paper's. Published are the paper's text and "
    "tables, and the outputs released with its code. The vanilla models, from which the two were trained, "
    "are in no package that could be installed: `--setup mpnet-vanilla,minilm-vanilla --download` adds them "
    "where there is a network. What the paper says of before against after, and of training, is put to "
    "trainings of our own by `isoscope reproduce dynamics`."
)


def _run(setup: Setup, options: Options, place: Place) -> list[Geometry]:
    return [measuring.measure_geometry(setup, place, seeds=parse_seeds(options.seeds))]


def sections(runs: Sequence[Geometry]) -> list[Section]:
    """Return one section for each question, with its figures."""
    encoders = [run for run in runs if not run.without_sinks]
    figures = (layers_figure(encoders),) if encoders else ()
    result = [_layers(run, figures if run is runs[0] else ()) for run in runs]
    result += [_clean(runs), _dimensions(runs)]
    if published := [run for run in runs if run.declared.published.is_contrastive]:
        result.append(_in_words(published))
    if with_sinks := [run for run in runs if run.without_sinks]:
        result.append(_sinks(with_sinks))
    if read := [run for run in runs if run.last]:
        result.append(_last(read))
    result.append(_tokens(runs, tuple(tokens_figure(encoders))))
    if changes := changes_of(runs):
        result.append(change_section(changes, "The vanilla model is that the encoder was trained from."))
    return result


def _layers(run: Geometry, figures: tuple[Drawing, ...]) -> Section:
    cells = {row.quantity: row.cell for row in rows(run)}
    table = tuple(
        (str(layer), *(cells[f"{words}, layer {layer}"] for words in READINGS))
        for layer in range(len(run.paper))
    )
    text = (
        f"{run.model}, {len(run.paper) - 1} layers of {run.n_dims} dimensions over the embedding "
        f"layer; {run.n_tokens:,} tokens ({run.n_special:,} special) of {run.n_sentences:,} "
        f"sentences, and {run.n_types:,} types in the self-similarity; {len(run.seeds)} seeds."
    )
    note = run.declared.note
    notes = (f"{run.title}: {run.source}" + (f"; {note}" if note else ""),)
    return Section(f"{run.title}: every layer", text, notes, ("layer", *READINGS), table, figures)


def _clean(runs: Sequence[Geometry]) -> Section:
    heads = ("model, layer", "self-similarity", "intra-sentence", "anisotropy", "norm", "adjusted self",
             "adjusted intra", "IsoScore")  # fmt: skip
    cells = []
    for run in runs:
        n, readings = len(run.clean), run.layers("clean")
        for layer in sorted({0, n // 2, n - 2, n - 1}):
            values = (f"{readings[layer][name]:.4f}" for name in (*READINGS.values(), "isoscore"))
            cells.append((f"{run.title}, {layer}", *values))
    text = (
        "The same without the quirks: no padding, special tokens left out, every occurrence of every type "
        "seen twice or more, and the exact mean cosine of all pairs of tokens in place of a sample. Shown "
        "are the embedding layer, the middle one and the last two; the kept runs have all."
    )
    return Section("By clean definitions", text, tuple(map(_moved, runs)), heads, tuple(cells))


def _moved(run: Geometry) -> str:
    """Say how far the clean definitions are from the protocol, at most, and in which layer."""
    parts = []
    for words, name in list(READINGS.items())[:3]:
        steps = [clean[name] - paper[name] for paper, clean in zip(run.paper, run.clean, strict=True)]
        layer, most = max(enumerate(steps), key=lambda step: abs(step[1]))
        parts.append(f"{words} by {most:+.3f} (layer {layer})")
    return f"{run.title}: the quirks' absence moves {', '.join(parts)} at most"


def _dimensions(runs: Sequence[Geometry]) -> Section:
    shares = ("top 1 share", "top 2 share", "top 3 share")
    counts = {f"dimensions for {share} %": share / 100 for share in (10, 20, 50)}
    ks = {f"r², k = {k}": k for k in sorted({k for run in runs for k in run.informativity["k"]})}
    cells, notes = [], []
    for run in runs:
        paper = {row.quantity: row.cell for row in rows(run)}
        r2, with_them = run.r2("clean"), run.r2("paper")
        clean = dict(zip(shares, (f"{share:.4f}" for share in run.shares["clean"]), strict=False))
        clean |= {name: str(run.n_for(share, "clean")) for name, share in counts.items()}
        clean |= {name: f"{r2[k]:.3f}" for name, k in ks.items() if k in r2}
        for title, known in ((f"{run.title}, of {run.n_dims}", paper), (f"{run.title}, clean", clean)):
            cells.append((title, *(known.get(name, "—") for name in (*shares, *counts, *ks))))
        if run.n_special and 2 in r2 and r2[2] - with_them[2] > 0.05:
            notes.append(
                f"{run.title}: the drop at k = 2 is that of the special tokens: r² is {with_them[2]:.3f} "
                f"with them, and {r2[2]:.3f} without"
            )
    text = (
        "Each dimension's share of the last layer's self-similarity, and the squared correlation r² of all "
        "pairs of cosines with and without the top k dimensions, over one random token from each of the "
        "first 1,000 sentences (mean of the seeds; the paper does not say how it samples). Clean lines "
        "leave out the special tokens and pairs of an occurrence with itself; of r², only the special "
        "tokens."
    )
    heads = ("model", *shares, *counts, *ks)
    return Section("Dimensions", text, tuple(notes), heads, tuple(cells), (dimensions_figure(runs),))


def _in_words(runs: Sequence[Geometry]) -> Section:
    own = [[row for row in rows(run) if row.quantity.startswith(LAST)] for run in runs]
    heads = ("model", *(row.quantity.removeprefix(LAST) for row in own[0]))
    cells = tuple((line[0].setup, *(row.cell for row in line)) for line in own)
    text = (
        "What the paper says in words of the output layer after contrastive training; the bounds are ours: "
        "anisotropy is almost eliminated, tokens of a sentence converge as in no layer before, embeddings "
        "are pushed toward the origin, no dimension dominates."
    )
    return Section("The last layer, in direction", text, (), heads, cells)


def _sinks(runs: Sequence[Geometry]) -> Section:
    names = {
        "anisotropy": "anisotropy", "adjusted_intra_similarity": "adjusted intra",
        "adjusted_self_similarity": "adjusted self", "isoscore": "IsoScore", "top_share": "top 1 share",
    }  # fmt: skip
    cells, notes = [], []
    for run in runs:
        notes.append(
            f"{run.title}: sinks are {'; '.join(run.sinks['names'])}; {run.sinks['share']:.1%} of tokens"
        )
        n, both = len(run.clean), (run.layers("clean"), run.layers("without_sinks"))
        for layer in sorted({*range(0, n, max(1, n // 8)), n - 2, n - 1}):
            norms = (run.sinks[name][layer] for name in ("median", "norm"))
            values = (
                f"{view[layer][name]:.{4 if name == 'isoscore' else 3}f}" for name in names for view in both
            )
            shown = (f"{norm:,.0f}" if norm >= 100 else f"{norm:.3g}" for norm in norms)
            cells.append((f"{run.title}, {layer}", *shown, *values))
    text = (
        "A token whose vector is over ten times as long as its layer's median is an attention sink. Causal "
        "models often park attention on the first token of a text, and means of the space then speak of "
        "it: sentence means point to it, and the spread of the space is that between it and the rest. Both "
        "views, by the clean definitions."
    )
    heads = ("model, layer", "median norm", "norm of the sinks",
             *(head for name in names.values() for head in (name, "without")))  # fmt: skip
    figures = tuple(map(sinks_figure, runs))
    return Section("With and without attention sinks", text, tuple(notes), heads, tuple(cells), figures)


def _last(runs: Sequence[Geometry]) -> Section:
    names = [name for name in runs[0].last if name != "types"]
    cells = tuple((name, *(number(run.last[name]) for run in runs)) for name in names)
    text = (
        "Readings that single claims are about, without attention sinks. Intra-sentence similarity in every "
        "sense it could have: of each token with its sentence's mean or mean direction, or of pairs of "
        "tokens. Of dimensions, rank correlations of dominance (the contribution to the mean cosine), mean, "
        "variance, and the r² that is lost with the dimension alone; of types, of frequency with norm and "
        "cosine to the mean of all tokens. Mean cosines of function tokens with the mean of the content "
        "words of their sentence, and of the sentence before it."
    )
    heads = ("reading", *(run.title for run in runs))
    return Section("The last layer, reading by reading", text, (), heads, cells)


def _tokens(runs: Sequence[Geometry], figures: tuple[Drawing, ...]) -> Section:
    text = (
        f"Adjusted self-similarity in the last layer by the clean definitions, of the {N_TOKENS} most "
        "frequent tokens. Of its own models the paper says that words of content keep their place from "
        "sentence to sentence after contrastive training, and words of function follow the sentence they "
        "stand in."
    )
    values = {run.title: run.token_values for run in runs}
    notes = tuple(
        f"{' and '.join(pair)}: correlation {last:.3f} over the {n_all} tokens they share, the highest "
        f"{peak:.3f} over the {n} most frequent. These are self-similarities after training; the paper's "
        "0.857 is of their change"
        for pair, n_all, last, n, peak in agreements(values)
    )
    cells = tuple((title, *map(listed, extremes(own, 12))) for title, own in values.items())
    return Section("Tokens", text, notes, ("model", "highest", "lowest"), cells, figures)


def change_section(changes: Mapping[str, Mapping[str, float]], about: str) -> Section:
    """Return the tokens whose self-similarity changes most, and how far models agree on them."""
    text = (
        "The change of each token's adjusted self-similarity in the last layer by training, of the "
        f"{N_TOKENS} most frequent tokens. {about} The paper's: rising are onion, piano, cow, chair; falling "
        "are has, is, are, that."
    )
    notes = tuple(
        f"{' and '.join(pair)}: the changes correlate by {last:.3f} over the {n_all} tokens they share, by "
        f"{peak:.3f} at most, over the {n} most frequent (the paper, of mpnet and MiniLM: 0.857 over 204)"
        for pair, n_all, last, n, peak in agreements({name: by_word(one) for name, one in changes.items()})
    )
    cells = tuple((title, *map(listed, extremes(change, 15))) for title, change in changes.items())
    return Section("Self-similarity change", text, notes, ("model", "rising most", "falling most"), cells)


STUDY: Study[Setup, Geometry] = Study(
    name="contrastive",
    title="Contrastive sentence representations: their geometry reproduced",
    intro=_INTRO,
    setups=SETUPS,
    default=DEFAULT,
    own=lambda name, model, _: Setup(name, name, model),
    run=_run,
    kind=Geometry,
    keep=keep,
    findings=findings,
    sections=sections,
    rows=lambda runs: [row for run in runs for row in rows(run)],
)
