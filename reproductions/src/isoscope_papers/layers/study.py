"""The study of layers: its page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isoscope_papers.layers.figures import figures
from isoscope_papers.layers.findings import findings, percent
from isoscope_papers.layers.options import DEFAULT
from isoscope_papers.layers.run import Layers, Profile, own_setup, run_setup
from isoscope_papers.layers.setups import (
    MAX_TOKENS,
    METRICS,
    ROUNDED,
    ROUNDED_METRICS,
    SAMPLE,
    SETUPS,
    SHOWN,
    STEPS,
    TRAINED,
    Setup,
)  # fmt: skip
from isoscope_papers.page import Section
from isoscope_papers.runs import as_plain, keep
from isoscope_papers.study import Study
from isoscope_papers.words import number

_INTRO = (
    "How does the geometry of token states change along depth, over training, and in half precision? Every "
    f"layer of each model, measured on the same text of WikiText-2's test split by {len(METRICS)} metrics. "
    f"The runs have at most {MAX_TOKENS:,} tokens each, so that they take minutes on two CPU cores: enough "
    "for means over all tokens, while differences of a few per cent between layers are not to be read into "
    f"metrics of neighbours (TwoNN, hubness, local dimension), which are computed on {SAMPLE:,} tokens."
)
_DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


def sections(runs: Sequence[Layers]) -> list[Section]:
    """Return the figure, a table of each model, and the table of bfloat16."""
    models = [run for run in runs if run.kind != ROUNDED]
    rounded = [run for run in runs if run.kind == ROUNDED]
    found = []
    if models:
        heads = ("model", "blocks × dimensions", "tokens", "token types", "attention sinks", "seconds")
        cells = tuple(_row(run) for run in models)
        found.append(Section("Along depth", _about(models), (), heads, cells, tuple(figures(runs))))
    found += [_training(run) if run.kind == TRAINED else _depth(run) for run in models]
    if rounded:
        found.append(_rounding(rounded))
    return found


def _about(models: Sequence[Layers]) -> str:
    text = (
        "Metrics that are sums (cosines, IsoScore, ranks) are exact over all tokens. `layers.json` has every "
        "metric of every layer, with and without attention sinks. Clusters are on the page on manifolds."
    )
    trained = [run for run in models if run.kind == TRAINED]
    return text + (
        f" The masked model is a BERT that the command trains for {STEPS} updates." if trained else ""
    )


def _row(run: Layers) -> tuple[str, ...]:
    about = run.about
    return (
        run.title, f"{run.layers[-1]} × {run.n_dims}", f"{about['n_tokens']:,}", f"{about['n_types']:,}",
        "; ".join(run.last.sinks) or "none", number(about["seconds"], 0),
    )  # fmt: skip


def _titles() -> tuple[str, ...]:
    return tuple(one.title.replace("\n", " ").replace(" / d", "") for one in SHOWN)


def _depth(run: Layers) -> Section:
    """Return the table of one model: the layers at five depths."""
    note = SETUPS[run.setup].note if run.setup in SETUPS else "own model"
    places = sorted({round(depth * (len(run.layers) - 1)) for depth in _DEPTHS})
    cells = tuple(
        (str(run.layers[place]), *(number(run.last.without_sinks[one.name][place]) for one in SHOWN))
        for place in places
    )
    return Section(
        f"{run.title}", f"{run.model}: {note}. Without attention sinks.", (), ("layer", *_titles()), cells
    )


def _training(run: Layers) -> Section:
    """Return the table of one model over training: its last layer at each checkpoint."""
    about = run.about["training"]
    text = (
        f"A BERT of {about['n_layers']} layers and {about['n_dims']} dimensions, trained on WikiText-2 "
        f"({about['n_tokens']:,} tokens) with batches of {about['batch_size']} windows of {about['window']} "
        f"tokens. Its loss on held-out texts at the end is {number(about['held_out_loss'], 2)} nats per "
        f"masked token, where predicting by frequency gives {number(about['unigram_loss'], 2)}. The table "
        "has the last layer at each checkpoint, and the mean training loss since half as many updates. In a "
        "model that is trained so little, the occurrences of a token nearly coincide in every block, and "
        "TwoNN measures these groups."
    )
    cells = tuple((one.name, number(about["losses"].get(one.name), 2), *_last(one)) for one in run.profiles)
    return Section(f"{run.title}, over training", text, (), ("updates", "loss", *_titles()), cells)


def _last(profile: Profile) -> list[str]:
    return [number(profile.without_sinks[one.name][-1]) for one in SHOWN]


def _rounding(runs: Sequence[Layers]) -> Section:
    text = (
        "The same model on the same texts in float32, and with numbers rounded to bfloat16: the largest "
        "relative change of a metric over all layers and all tokens. In all rows of a model but the last, "
        "arithmetic is in float32, and one thing is rounded, or two: the weights; the sum to which attention "
        "and MLP of every block add, at attention sinks, at all other tokens, or at both; or the result of "
        "every operation. In the last, the model is in bfloat16. isoscope's own sums are in float32 and "
        "float64 in every row. Rounding errors are random: changes of the same size are the same. Where "
        "rounded weights explain little of what bfloat16 changes, it is the sum: bfloat16 has 8 bits, and "
        "once a coordinate has grown large, so have the steps of all that is added to it afterwards. The "
        "rows of attention sinks and of other tokens say whose sums these are. Without sinks a change can be "
        "larger, since a token whose norm is near the threshold is a sink in one run and not in the other."
    )
    cells = []
    for run in runs:
        by_name = {one.name: one for one in run.profiles}
        for name in by_name:
            if name != "float32":
                changes = (
                    by_name["float32"].largest_change(by_name[name], metric) for metric in ROUNDED_METRICS
                )
                cells.append((run.title, name, *map(percent, changes)))
    heads = ("model", "rounded", *(metric.replace("_", " ") for metric in ROUNDED_METRICS))
    return Section("bfloat16", text, (), heads, tuple(cells))


def _results(runs: Sequence[Layers]) -> dict[str, Any]:
    """Return every metric of every layer, unrounded."""
    return {"runs": {run.setup: as_plain(run) for run in runs}}


STUDY: Study[Setup, Layers] = Study(
    name="layers",
    title="Every layer: along depth, over training, and in bfloat16",
    intro=_INTRO,
    setups=SETUPS,
    default=DEFAULT,
    own=own_setup,
    run=run_setup,
    kind=Layers,
    keep=keep,
    findings=findings,
    sections=sections,
    results=_results,
    claims_at=1,
)
