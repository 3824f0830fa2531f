"""What comes out of the contrastive paper's geometry: a table for the terminal, pages, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from isoscope.metrics.contextual_change import extremes
from isoscope_papers.contrastive.comparison import (
    READINGS,
    adjusted,
    change_correlation,
    n_for,
    rows,
    setup_of,
    token_correlation,
    token_values,
    word,
)
from isoscope_papers.contrastive.figures import draw_figures
from isoscope_papers.contrastive.run import Geometry
from isoscope_papers.contrastive.setups import N_TOKENS
from isoscope_papers.dynamics import report as dynamics_report
from isoscope_papers.dynamics.run import Dynamics
from isoscope_papers.pages import Section, compared, in_folder, make_folder, write_pages
from isoscope_papers.verdicts import Verdict

TITLE = "Contrastive sentence representations: their geometry reproduced"
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
    "tables, and the outputs released with its code."
)
_NO_BEFORE = (
    " Its vanilla models, from which the two were trained, are in no package that could be installed; what "
    "it says of before against after is not on this page: `isoscope reproduce contrastive --setup mpnet "
    "--before MODEL` adds it where you have one."
)
_OWN_BEFORE = (
    " Its vanilla models, from which the two were trained, are in no package that could be installed; what "
    "it says of before against after, and of training, is put to trainings of our own further down. "
    "`isoscope reproduce contrastive --setup mpnet --before MODEL` compares with a vanilla model at hand."
)
_ONLY_DYNAMICS = (
    "Contrastive training followed on the sentences of STS-B (Xiao, Long and Al Moubayed 2023, section 4 and "
    "appendices A, B and D)."
)


def sections(runs: Sequence[Geometry], folder: Path | None = None) -> list[Section]:
    """One section a question, with its figures where a folder is given."""
    drawn, undrawn = in_folder(lambda place: draw_figures(runs, place), folder)
    published = [found for found in runs if setup_of(found).published.is_contrastive]
    result: list[Section] = []
    for found in runs:
        figures = drawn.pop("layers", {}) if not result else {}
        result.append(_layers_section(found, figures, undrawn if not result else ()))
    result.append(_clean_section(runs))
    result.append(_dimensions_section(runs, drawn.get("dimensions", {})))
    if published:
        result.append(_claims_section(published))
    if any(found.without_sinks for found in runs):
        result.append(_sinks_section([f for f in runs if f.without_sinks], drawn.get("sinks", {})))
    result.append(_tokens_section(runs, drawn.get("tokens", {})))
    if any(found.change for found in runs):
        result.append(_change_section([f for f in runs if f.change], drawn.get("change", {})))
    return result


def _layers_section(found: Geometry, figures: dict[str, Path], notes: tuple[str, ...]) -> Section:
    setup = setup_of(found)
    by_name = {row.quantity: compared(row) for row in rows(found)}
    cells = tuple(
        (str(layer), *(by_name[f"{words}, layer {layer}"] for words in READINGS))
        for layer in range(len(found.paper))
    )
    text = (
        f"{setup.model}, {len(found.paper) - 1} layers of {found.n_dims} dimensions over the embedding "
        f"layer; {found.n_tokens:,} tokens ({found.n_special:,} special) of {found.n_sentences:,} "
        f"sentences, and {found.n_types:,} types in the self-similarity; {len(found.seeds)} seeds."
    )
    about = (f"{setup.title}: {found.source}" + (f"; {setup.note}" if setup.note else ""),)
    return Section(
        f"{setup.title}: every layer", text, (*about, *notes), ("layer", *READINGS), cells, figures
    )


def _clean_section(runs: Sequence[Geometry]) -> Section:
    heads = ("model, layer", "self-similarity", "intra-sentence", "anisotropy", "norm", "adjusted self",
             "adjusted intra", "IsoScore")  # fmt: skip
    names = (*READINGS.values(), "isoscore")
    cells = []
    for found in runs:
        chosen = sorted({0, len(found.clean) // 2, len(found.clean) - 2, len(found.clean) - 1})
        for layer in chosen:
            reading = adjusted(found.clean[layer])
            cells.append((f"{setup_of(found).title}, {layer}", *(f"{reading[name]:.4f}" for name in names)))
    text = (
        "The same without the quirks: no padding, special tokens left out, every occurrence of every type "
        "seen twice or more, and the exact mean cosine of all pairs of tokens in place of a sample. Shown "
        "are the embedding layer, the middle one and the last two; the kept runs have all."
    )
    return Section("By clean definitions", text, tuple(map(_moved, runs)), heads, tuple(cells), {})


def _moved(found: Geometry) -> str:
    """How far the clean definitions are from the protocol, at most, and in which layer."""
    parts = []
    for words in ("self-similarity", "intra-sentence", "anisotropy"):
        name = READINGS[words]
        steps = [clean[name] - paper[name] for paper, clean in zip(found.paper, found.clean, strict=True)]
        layer = max(range(len(steps)), key=lambda place: abs(steps[place]))
        parts.append(f"{words} by {steps[layer]:+.3f} (layer {layer})")
    return f"{setup_of(found).title}: the quirks' absence moves {', '.join(parts)} at most"


def _dimensions_section(runs: Sequence[Geometry], figures: dict[str, Path]) -> Section:
    quantities = [row.quantity for row in rows(runs[0]) if row.quantity.startswith(("top", "dimensions for"))]
    ks = sorted({k for found in runs for k in found.informativity["k"]})
    quantities += [f"r², k = {k}" for k in ks]
    cells = []
    for found in runs:
        title, by_name = setup_of(found).title, {row.quantity: compared(row) for row in rows(found)}
        cells.append((f"{title}, of {found.n_dims}", *(by_name.get(name, "—") for name in quantities)))
        cells.append((f"{title}, clean", *(_clean_dimension(found, name) for name in quantities)))
    text = (
        "Each dimension's share of the last layer's self-similarity, and the squared correlation r² of all "
        "pairs of cosines with and without the top k dimensions, over one random token from each of the "
        "first 1,000 sentences (mean of the seeds; the paper does not say how it samples). Clean lines "
        "leave out the special tokens and pairs of an occurrence with itself; of r², only the special "
        "tokens."
    )
    return Section(
        "Dimensions", text, tuple(_special_notes(runs)), ("model", *quantities), tuple(cells), figures
    )


def _clean_dimension(found: Geometry, quantity: str) -> str:
    shares = found.shares["clean"]
    if quantity.startswith("top "):
        return f"{shares[int(quantity.split()[1]) - 1]:.4f}"
    if quantity.startswith("dimensions for"):
        return str(n_for(found, float(quantity.split()[2]) / 100, "clean"))
    k = int(quantity.rpartition(" ")[2])
    known = dict(zip(found.informativity["k"], found.informativity["clean"]["mean"], strict=True))
    return f"{known[k]:.3f}" if k in known else "—"


def _special_notes(runs: Sequence[Geometry]) -> list[str]:
    notes = []
    for found in runs:
        place = found.informativity["k"].index(2) if 2 in found.informativity["k"] else None
        if place is None or not found.n_special:
            continue
        with_them, without = (found.informativity[view]["mean"][place] for view in ("paper", "clean"))
        if without - with_them > 0.05:
            notes.append(
                f"{setup_of(found).title}: the drop at k = 2 is that of the special tokens: r² is "
                f"{with_them:.3f} with them, and {without:.3f} without"
            )
    return notes


def _claims_section(runs: Sequence[Geometry]) -> Section:
    found = [row for run in runs for row in rows(run) if row.quantity.startswith("last layer: ")]
    heads = tuple(dict.fromkeys(row.quantity.removeprefix("last layer: ") for row in found))
    cells = tuple(
        (
            setup_of(run).title,
            *(compared(row) for row in rows(run) if row.quantity.startswith("last layer: ")),
        )
        for run in runs
    )
    text = (
        "What the paper says in words of the output layer after contrastive training; the bounds are ours: "
        "anisotropy is almost eliminated, tokens of a sentence converge as in no layer before, embeddings "
        "are pushed toward the origin, no dimension dominates."
    )
    return Section("The last layer, in direction", text, (), ("model", *heads), cells, {})


def _sinks_section(runs: Sequence[Geometry], figures: dict[str, Path]) -> Section:
    heads = (
        "model, layer", "median norm", "norm of the sinks", "anisotropy", "without", "adjusted intra",
        "without", "adjusted self", "without", "IsoScore", "without", "top 1 share", "without",
    )  # fmt: skip
    cells, notes = [], []
    for found in runs:
        title = setup_of(found).title
        notes.append(
            f"{title}: sinks are {'; '.join(found.sinks['names'])}; {found.sinks['share']:.1%} of tokens"
        )
        step = max(1, len(found.clean) // 8)
        for layer in sorted({*range(0, len(found.clean), step), len(found.clean) - 2, len(found.clean) - 1}):
            pair = adjusted(found.clean[layer]), adjusted(found.without_sinks[layer])
            names = (
                "anisotropy",
                "adjusted_intra_similarity",
                "adjusted_self_similarity",
                "isoscore",
                "top_share",
            )
            values = (
                f"{one[name]:.4f}" if name == "isoscore" else f"{one[name]:.3f}"
                for name in names
                for one in pair
            )
            norms = (found.sinks["median"][layer], found.sinks["norm"][layer])
            cells.append(
                (
                    f"{title}, {layer}",
                    *(f"{norm:,.0f}" if norm >= 100 else f"{norm:.3g}" for norm in norms),
                    *values,
                )
            )
    text = (
        "A token whose vector is over ten times as long as its layer's median is an attention sink. Causal "
        "models often park attention on the first token of a text, and means of the space then speak of "
        "it: sentence means point to it, and the spread of the space is that between it and the rest. Both "
        "views, by the clean definitions."
    )
    return Section("With and without attention sinks", text, tuple(notes), heads, tuple(cells), figures)


def _tokens_section(runs: Sequence[Geometry], figures: dict[str, Path]) -> Section:
    cells = []
    for found in runs:
        high, low = extremes(token_values(found), 12)
        cells.append((setup_of(found).title, " · ".join(map(word, high)), " · ".join(map(word, low))))
    text = (
        f"Adjusted self-similarity in the last layer by the clean definitions, of the {N_TOKENS} most "
        "frequent tokens. Of its own models the paper says that words of content keep their place from "
        "sentence to sentence after contrastive training, and words of function follow the sentence they "
        "stand in."
    )
    heads = ("model", "highest", "lowest")
    return Section("Tokens", text, tuple(_correlation_notes(runs)), heads, tuple(cells), figures)


def _correlation_notes(runs: Sequence[Geometry]) -> list[str]:
    """How two models with the same tokens agree."""
    notes = []
    for place, first in enumerate(runs):
        for second in runs[place + 1 :]:
            curve = token_correlation(first, second)
            if curve is None:
                continue
            n, r = curve.highest()
            titles = f"{setup_of(first).title} and {setup_of(second).title}"
            notes.append(
                f"{titles}: correlation {curve.values[-1]:.3f} over the {len(curve.names)} tokens they "
                f"share, the highest {r:.3f} over the {n} most frequent"
            )
    return notes


def _change_section(runs: Sequence[Geometry], figures: dict[str, Path]) -> Section:
    cells, notes = [], []
    for found in runs:
        high, low = extremes(dict(zip(found.change["name"], found.change["change"], strict=True)), 10)
        cells.append((setup_of(found).title, " · ".join(map(word, high)), " · ".join(map(word, low))))
        notes.append(
            f"{setup_of(found).title}: against {found.change['before']}; {found.change['only_before']} "
            f"types only that one has twice or more, {found.change['only_after']} only this one"
        )
    for place, first in enumerate(runs):
        for second in runs[place + 1 :]:
            if (curve := change_correlation(first, second)) is not None:
                n, r = curve.highest()
                notes.append(
                    f"{setup_of(first).title} and {setup_of(second).title}: highest correlation {r:.3f} "
                    f"over the {n} most frequent tokens (the paper: 0.857 over 204)"
                )
    text = (
        "The change of each token's adjusted self-similarity in the last layer from the model before to "
        f"this one, of the {N_TOKENS} most frequent tokens."
    )
    heads = ("model", "rising most", "falling most")
    return Section("Self-similarity change", text, tuple(notes), heads, tuple(cells), figures)


def as_dict(runs: Sequence[Geometry]) -> dict[str, Any]:
    """Everything, unrounded, JSON-ready."""
    return {
        "rows": [row.to_dict() for found in runs for row in rows(found)],
        "runs": {found.setup: asdict(found) for found in runs},
    }


def as_text(found: Geometry) -> str:
    """A run for the terminal: a line a layer, then a line a quantity."""
    by_name = {row.quantity: row for row in rows(found)}
    width = 19
    lines = [f"{setup_of(found).title}  ({found.model}; {found.source})"]
    lines.append(
        "layer"
        + "".join(
            f"{words.replace('-similarity', '').replace('-sentence', ''):>{width}}" for words in READINGS
        )
    )
    for layer in range(len(found.paper)):
        shown = (compared(by_name.pop(f"{words}, layer {layer}")) for words in READINGS)
        lines.append(f"{layer:>5}" + "".join(f"{cell:>{width}}" for cell in shown))
    for row in by_name.values():
        theirs = (
            "" if row.verdict is Verdict.UNPUBLISHED else f"paper {row.published_shown:>10}  {row.verdict}"
        )
        lines.append(f"  {row.quantity:<58}{row.ours_shown:>10}  {theirs}".rstrip())
    lines += [f"  attention sinks: {name}" for name in found.sinks["names"]]
    return "\n".join(lines)


def write_report(
    runs: Sequence[Geometry], folder: Path, *, command: str, dynamics: Sequence[Dynamics] = ()
) -> list[Path]:
    """contrastive.json, contrastive.md, contrastive.html and the figures; of either part, or both."""
    make_folder(folder)
    found = sections(runs, folder) if runs else []
    intro = _intro(runs, dynamics)
    results = {"rows": as_dict(runs)["rows"]}
    if dynamics:
        found += dynamics_report.sections(dynamics, folder)
        results["claims"] = dynamics_report.as_dict(dynamics)["claims"]
    return write_pages(
        folder, "contrastive", title=TITLE, intro=intro, sections=found, results=results, command=command
    )


def _intro(runs: Sequence[Geometry], dynamics: Sequence[Dynamics]) -> str:
    if not runs:
        return _ONLY_DYNAMICS
    if any(run.change for run in runs):
        return _INTRO
    return _INTRO + (_OWN_BEFORE if dynamics else _NO_BEFORE)
