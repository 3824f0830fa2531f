"""`layers`: measure every layer of a model on texts."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch

from isoscope.arguments import as_mebibytes, parse_memory, renamed
from isoscope.errors import ShapeError, check_seed, check_whole
from isoscope.kernels.precision import FEW_ROWS
from isoscope.metrics.isotropy import few_notes
from isoscope.metrics.sinks import Sinks
from isoscope.models.forward import Layer, StateBatch
from isoscope.models.language_models import LanguageModel
from isoscope.models.layers.batch_index import BatchIndex
from isoscope.models.layers.layer_profile import LayerProfile
from isoscope.models.layers.layer_readings import readings_of, streams_of
from isoscope.models.layers.opened import open_states, plans_of
from isoscope.models.layers.plan import LayerPlan, OpenPlan
from isoscope.models.layers.quantities import (
    LOCAL_DIMENSIONS,
    LayerStatistics,
    Quantity,
    chosen_quantities,
)
from isoscope.models.layers.sums import LayerSums
from isoscope.models.layers.type_sums import SinkPlaces
from isoscope.models.states import States, TokenBatch
from isoscope.progress import Bar

_FEW_FOR_LID = 20  # tokens a neighbour: with fewer the neighbourhood is a good part of the space
MEMORY = 2**30  # bytes for the sums of all layers, by default


@renamed(texts="inputs")
@renamed(as_mebibytes, memory_mb="memory")
def layers(
    model: Any,
    inputs: Any,
    *,
    tokenizer: Any = None,
    layers: Iterable[int] | None = None,
    modules: str | Iterable[str] | None = None,
    window: int | None = None,
    truncate: bool = False,
    max_tokens: int | None = None,
    special: bool = False,
    metrics: Any = None,
    sample: int = 2500,
    clusters: bool = True,
    k: int = 100,
    sink_ratio: float = 10.0,
    batch_tokens: int | None = None,
    batch_size: int = 32,
    memory: str | float | None = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
    device_map: str | Mapping[str, Any] | None = None,
    compile: bool = False,
    side: str | None = None,
    seed: int = 0,
    progress: bool | None = None,
    download: bool = False,
) -> LayerProfile:
    """Measure every layer of a model on texts or batches, in one pass and bounded memory.

    Cosines, norms, IsoScore, ranks and dimension shares are exact over all tokens, without storing their
    states. Clusters, local dimension and informativity are computed on `sample` random tokens. Attention
    sinks (tokens with a very large norm) are found and named, and every quantity is given with and without
    them.

    Args:
        model: a short name, folder, .gguf file or hub id (see `resolve_model`); a model of transformers that
            is loaded, a pair (model, tokenizer), a LanguageModel or an InputModel. For batches, any model: of
            transformers, of timm, or one of your own.
        inputs: texts, none of them empty unless `window` is given; images, as arrays or of PIL; recordings,
            each a one-dimensional array at the sampling rate of the model; or batches for the model: mappings
            of named inputs, tensors, or tuples that begin with one of them, in a list or a DataLoader. Only
            texts have token types: quantities that need these are undefined for the others.
        tokenizer: the tokenizer of the model; by default the one that was saved with it.
        layers: the numbers of the layers, 0 for the embedding layer and −1 for the last; by default all.
        modules: measure the outputs of these modules instead: names, patterns such as
            "encoder.layer.*.attention", or "residual", "attention" and "mlp" of every block. A model that
            returns no hidden states needs it.
        window: join the texts into one stream and cut it into windows of this many tokens.
        truncate: truncate texts that exceed the model's maximum length; otherwise they raise an error.
        max_tokens: stop before the text or window that would exceed this many tokens.
        special: also count special tokens ([CLS], [SEP], <s>).
        metrics: the names of quantities, or names and families of metrics, including your own; by default
            all quantities. Metrics that follow from sums are exact over all tokens; the others are computed
            on the sample.
        sample: the number of random tokens whose states are stored, for metrics that need the vectors.
        clusters: find clusters and centre them, which is the slowest part.
        k: the number of neighbours for the local dimension.
        sink_ratio: a token is an attention sink if its norm exceeds this many times the median.
        batch_tokens: tokens in a batch; by default 4,096, and 32,768 on CUDA, or fewer in a large model.
        batch_size: images or recordings in a batch.
        memory: the memory limit for the sums of all layers, such as "2GB"; by default 1 GiB. Where they
            exceed it, the texts are read more than once, each time for some of the layers.
        device: the device to run the model on; by default a CUDA device if there is one.
        dtype: the type of the weights and states of a model that is loaded: "float32", "bfloat16", "float16",
            or "auto" for the type that the weights were saved in. Sums are in float32 and float64.
        device_map: how accelerate places a model on several devices, the CPU and the disk; "auto" or a
            mapping. It replaces `device`.
        compile: compile the model by torch.compile.
        side: for texts and an encoder-decoder, "encoder", by default, or "decoder", whose states are those of
            a decoder that reads a text after its encoder has.
        seed: the seed of random choices.
        progress: show a progress bar; by default on a terminal.
        download: download the model if it is not on this machine.
    """
    check_seed(seed)
    for name, value, least in (("k", k, 2), ("sample", sample, 2), ("batch_size", batch_size, 1)):
        check_whole(name, value, least=least)
    for name, most in (("window", window), ("max_tokens", max_tokens), ("batch_tokens", batch_tokens)):
        if most is not None:
            check_whole(name, most)
    quantities = chosen_quantities(metrics)
    limit = parse_memory(memory) or MEMORY
    with Bar(show=progress) as bar:
        bar.step("loading the model", at_once=True)
        loading = {"device": device, "dtype": dtype, "device_map": device_map, "compile": compile}
        loading |= {} if side is None else {"side": side}
        reading = {"window": window, "truncate": truncate, "max_tokens": max_tokens, "special": special}
        states = open_states(
            model, inputs, tokenizer=tokenizer, layers=layers, modules=modules, sink_ratio=sink_ratio,
            batch_tokens=batch_tokens, batch_size=batch_size, loading=loading | {"download": download},
            reading=reading, bar=bar,
        )  # fmt: skip
        run = _Run(states, plans_of(states, sample, seed), bar, {"clusters": clusters, "k": k, "seed": seed})
        run.seconds["model"] += states.first_seconds
        found: dict[Layer, tuple[LayerStatistics, LayerStatistics]] = {}
        plan = run.plans[0]
        groups = layer_groups(states.layers, plan, max(states.widths.values()), limit)
        for number, group in enumerate(groups, 1):
            of_many = f", pass {number} of {len(groups)}" if len(groups) > 1 else ""
            what = "batches" if states.n_tokens is None else f"{states.n_tokens:,} tokens"
            bar.step(f"{what} through {states.name}{of_many}")
            found |= run.layers(group)
        bar.step("clusters and neighbours")
        began, has_sinks = time.perf_counter(), any(map(len, run.sinks))
        readings = readings_of(found, quantities, space=states.name, has_sinks=has_sinks, progress=bar.share)
        run.seconds["sample"] = time.perf_counter() - began
    notes = [
        *states.notes,
        *_token_notes(plan, k, max(states.widths.values()), quantities),
        *_zero_notes(found),
    ]
    notes += [f"layer {layer}: {note}" for layer, (everyone, _) in found.items() for note in everyone.notes]
    if len(groups) > 1:
        within = f"{limit / 10**6:,.0f} MB"
        notes.append(f"the texts were read {len(groups)} times to keep the sums within {within}")
    sinks = [part for part in run.sinks if len(part)]
    return LayerProfile.of(states, plan, sinks, readings, found, run.seconds, tuple(notes))


@renamed(as_mebibytes, memory_mb="memory")
def measure_layers(
    texts: Sequence[str],
    *,
    model: str | os.PathLike[str] | LanguageModel = "all-MiniLM-L6-v2",
    **options: Any,
) -> LayerProfile:
    """Measure every layer of a language model on texts: `isoscope.layers`, with a default model.

    Args:
        texts: strings.
        model: the model, as in `isoscope.layers`.
        **options: the other arguments of `isoscope.layers`.
    """
    return layers(model, texts, **options)


@dataclass
class _Run:
    """A run of the model over the inputs: the states, the sinks found so far, and the time."""

    states: States
    plans: list[LayerPlan] | list[OpenPlan]
    bar: Bar
    options: dict[str, Any]
    _seen: list[list[Sinks]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: {"model": 0.0, "measures": 0.0})

    @property
    def sinks(self) -> list[Sinks]:
        """The attention sinks of each set of rows that were found in the last pass."""
        return [Sinks.joined(parts) for parts in self._seen]

    def layers(self, layers: list[Layer]) -> dict[Layer, tuple[LayerStatistics, LayerStatistics]]:
        """Return the statistics of some layers, with and without sinks, after one pass over the inputs."""
        device, n_done, began = self.states.device, 0, time.perf_counter()
        self._seen = [[] for _ in self.plans]  # the same in every pass
        places = [SinkPlaces(len(plan.types.counts), device) for plan in self.plans]
        sums: dict[Layer, LayerSums] = {}
        clock = _Clock(device)
        batches = clock.timed(self.states.forward())
        if device.type == "cuda":
            batches = _beside_the_model(batches, device)
        for number, states in enumerate(batches):
            for row_set, batch in enumerate(self.states.row_sets(number, states)):
                chosen = [layer for layer in batch.layers if layer in layers]
                if number == 0:
                    sums |= {
                        layer: LayerSums(
                            self.plans[row_set], places[row_set], self.states.widths[layer], device
                        )
                        for layer in chosen
                    }
                own = {layer: sums[layer] for layer in chosen}
                n_done += self._add(number, row_set, batch, own, places[row_set])
            if self.states.n_tokens is not None:
                self.bar.share(n_done / self.states.n_tokens)
        self.seconds["model"] += clock.seconds
        self.seconds["measures"] += time.perf_counter() - began - clock.seconds
        self._check_counts()
        return {layer: sums[layer].finish(**self.options) for layer in layers}

    def _check_counts(self) -> None:
        n = min(plan.n_counted for plan in self.plans)
        if n < 2:
            raise ShapeError(f"has {n} vectors to count", argument="inputs", wanted="at least 2")

    def _add(
        self,
        number: int,
        row_set: int,
        batch: TokenBatch,
        sums: Mapping[Layer, LayerSums],
        places: SinkPlaces,
    ) -> int:
        """Add a batch to the sums of each layer, and return how many rows it has."""
        device, plan = self.states.device, self.plans[row_set]
        self._seen[row_set].append(batch.sinks)
        is_sink = batch.is_sink.to(device)
        index = BatchIndex.of(plan.batch(number, batch), is_sink, plan.types)
        places.add(index)
        uneven = _are_uneven(batch, list(sums), index)
        for layer, own in sums.items():
            own.add(batch.vectors(layer), batch.norms[layer], index, is_sink, uneven=uneven[layer])
        return len(batch.items)


def _are_uneven(batch: TokenBatch, layers: list[Layer], index: BatchIndex) -> dict[Layer, bool]:
    """Return by layer whether a few tokens that are no sinks are far longer than all others."""
    if not layers:
        return {}
    squares = torch.stack([batch.norms[layer] for layer in layers])[:, index.kept.rows].double().square()
    uneven = squares.square().sum(dim=1) > FEW_ROWS * squares.sum(dim=1).square()
    return dict(zip(layers, uneven.tolist(), strict=True))


class _Clock:
    """Seconds that pass while batches are made; on CUDA, those that the device takes."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._wall = device, 0.0
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    def timed(self, batches: Iterator[StateBatch]) -> Iterator[StateBatch]:
        """Yield the same batches."""
        while True:
            began, start = time.perf_counter(), self._event()
            batch = next(batches, None)
            if batch is None:
                return
            if start is None:
                self._wall += time.perf_counter() - began
            else:
                self._events.append((start, self._event()))
            yield batch

    def _event(self) -> Any:
        if self._device.type != "cuda":
            return None
        return torch.cuda.current_stream(self._device).record_event(torch.cuda.Event(enable_timing=True))

    @property
    def seconds(self) -> float:
        """The time of all batches."""
        for _, end in self._events:
            end.synchronize()
        return self._wall + sum(start.elapsed_time(end) for start, end in self._events) / 1000


def _beside_the_model(batches: Iterable[StateBatch], device: torch.device) -> Iterator[StateBatch]:
    """Yield each batch when the model has been launched on the next one, in a CUDA stream of its own.

    So the sums of a batch are launched, and checked, while the model is busy.
    """
    own, stream = torch.cuda.current_stream(device), streams_of(device)[0]
    waiting: StateBatch | None = None
    ready: torch.cuda.Event | None = None
    for batch in chain(batches, [None]):
        now_ready = own.record_event()
        if waiting is not None and ready is not None:
            with torch.cuda.stream(stream):
                stream.wait_event(ready)
                yield waiting
        waiting, ready = batch, now_ready
    own.wait_stream(stream)


def _token_notes(plan: LayerPlan | OpenPlan, k: int, n_dims: int, quantities: list[Quantity]) -> list[str]:
    """Return notes on quantities that few tokens make too low, or undefined."""
    names, n = {one.name for one in quantities}, plan.n_sample
    notes = few_notes(plan.n_counted, n_dims) if "isoscore" in names else []
    if not names & LOCAL_DIMENSIONS:
        return notes
    more = "pass more texts" if n == plan.n_counted else "raise `sample`"
    if n <= k + 1:
        notes.append(f"{n:,} tokens are too few for {k} neighbours: no local dimension; {more}")
    elif n < _FEW_FOR_LID * k:
        notes.append(f"{k} neighbours among {n:,} tokens reach far: the local dimension reads low; {more}")
    return notes


def _zero_notes(found: Mapping[Layer, tuple[LayerStatistics, LayerStatistics]]) -> list[str]:
    zero = [str(layer) for layer, (everyone, _) in found.items() if not everyone.directions.count]
    return [f"every state is zero in layer{'s' if len(zero) > 1 else ''} {', '.join(zero)}"] if zero else []


def layer_groups(
    layers: list[Layer], plan: LayerPlan | OpenPlan, n_dims: int, memory: int
) -> list[list[Layer]]:
    """Return the layers of each pass, as many as fit in memory."""
    at_once = max(1, memory // plan.layer_bytes(n_dims))
    n_passes = -(-len(layers) // at_once)
    even = -(-len(layers) // n_passes)
    return [layers[start : start + even] for start in range(0, len(layers), even)]
