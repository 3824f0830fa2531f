"""`layer_similarity`: how alike the layers of a model are, or those of two models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from isoscope.comparison.similarity import MEASURES, SAMPLE, SimilarityMatrix, similarity_matrix
from isoscope.errors import InputError, check_seed
from isoscope.models.language_models import load_language_model
from isoscope.models.pooling import pool
from isoscope.models.states import States
from isoscope.progress import Bar

ITEMS = ("tokens", "texts")


def layer_similarity(
    model: Any,
    texts: Sequence[str],
    *,
    against: Any = None,
    tokenizer: Any = None,
    measure: str = "cka_debiased",
    items: str | None = None,
    layers: Iterable[int] | None = None,
    modules: str | Iterable[str] | None = None,
    window: int | None = None,
    truncate: bool = False,
    max_tokens: int | None = None,
    special: bool = False,
    k: int = 10,
    metric: str = "cosine",
    sample: int = SAMPLE,
    batch_tokens: int | None = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
    device_map: str | Mapping[str, Any] | None = None,
    compile: bool = False,
    seed: int = 0,
    progress: bool | None = None,
    download: bool = False,
) -> SimilarityMatrix:
    """Measure how alike the layers of a model are, or those of two models, on the same texts.

    Each model runs once over the texts, one model at a time. The states of `sample` random items are held;
    they count as independent.

    Args:
        model: the model whose layers are the rows, as in `isoscope.layers`.
        texts: strings, none of them empty unless `window` is given.
        against: the model whose layers are the columns; by default the same.
        tokenizer: the tokenizer of `model`, as in `isoscope.layers`; for `against`, pass a pair (model,
            tokenizer).
        measure: "cka_debiased", "cka", "rsa", "procrustes" or "overlap"; see `similarity_matrix`.
        items: "tokens", each a row; or "texts", each the mean of its tokens. By default tokens for one model
            and texts for two, whose tokens may differ.
        layers: the numbers of the layers, 0 for the embedding layer and −1 for the last; by default all.
        modules: compare the outputs of these modules instead, as in `isoscope.layers`.
        window, truncate, max_tokens, special, batch_tokens: as in `isoscope.layers`.
        k, metric: as in `similarity_matrix`.
        sample: the number of random items.
        device, dtype, device_map, compile, download: as in `isoscope.layers`, for both models.
        seed: the seed of the sample.
        progress: show a progress bar; by default on a terminal.
    """
    check_seed(seed)
    items = items or ("tokens" if against is None else "texts")
    for argument, value, known in (("measure", measure, tuple(MEASURES)), ("items", items, ITEMS)):
        if value not in known:
            raise InputError(argument=argument, got=value, wanted=f"one of {', '.join(map(repr, known))}")
    if sample < 1:
        raise InputError(argument="sample", got=sample, wanted="at least one item")
    sides: list[_Side] = []
    with Bar(show=progress) as bar:
        for one, own in ((model, tokenizer), *(() if against is None else ((against, None),))):
            bar.step("loading the model", at_once=True)
            states = States(
                texts, layers=layers, modules=modules, window=window, truncate=truncate,
                max_tokens=max_tokens, special=special, batch_tokens=batch_tokens,
                model=load_language_model(
                    one, tokenizer=own, device=device, dtype=dtype, device_map=device_map, compile=compile,
                    download=download,
                ),
            )  # fmt: skip
            bar.step(f"{len(states.tokenized.ids):,} tokens through {states.name}")
            if sides:
                sides[0].check(states, items, window)
                wanted = sides[0].items
            else:
                present = _present(states, items)
                order = torch.randperm(len(present), generator=torch.Generator().manual_seed(seed))
                wanted = present[order[:sample].sort().values]
                n_items = len(present)
            sides.append(_Side.of(states, items, wanted, bar))
        bar.step("similarities")
        shared = sides[-1].items
        spaces = [side.spaces(shared) for side in sides]
        result = similarity_matrix(
            spaces[0], against=spaces[1] if len(spaces) > 1 else None, measure=measure, k=k, metric=metric,
            sample=None, seed=seed, name=f"the layers of {' and '.join(side.name for side in sides)}",
        )  # fmt: skip
    notes = [*result.notes, *dict.fromkeys(note for side in sides for note in side.notes)]
    if len(shared) < n_items:
        notes.append(f"a random {len(shared):,} of {n_items:,} {items} are compared (seed {seed})")
    return replace(result, notes=tuple(notes))


@dataclass(frozen=True, eq=False)
class _Side:
    """The states of some items in the layers of a model.

    Attributes:
        name: the model's name.
        tokens: the ids of all tokens.
        items: (m,) the numbers of the items, ascending.
        layers: the numbers of the layers, or the names of the modules.
        rows: (m, d) the states of each layer, on the CPU.
        notes: remarks of the tokenizer.
    """

    name: str
    tokens: Tensor
    items: Tensor
    layers: Sequence[int | str]
    rows: Sequence[Tensor]
    notes: Sequence[str]

    @classmethod
    def of(cls, states: States, items: str, wanted: Tensor, bar: Bar) -> _Side:
        """Run the model once and keep the wanted items that have states."""
        numbers: list[Tensor] = []
        rows: list[list[Tensor]] = [[] for _ in states.layers]
        n_done, tokens = 0, states.tokenized.rows
        for batch in states.forward():
            places = batch.batch.rows
            assert places is not None
            counted = states.counted[places]
            own = places[counted] if items == "tokens" else tokens.sentences.codes[places[counted]]
            keep = torch.isin(own, wanted)
            n_done += len(places)
            bar.share(n_done / len(states.counted))
            if not bool(keep.any()):
                continue
            some, local = own[keep].unique_consecutive(return_inverse=True)
            numbers.append(some)
            taken = counted.nonzero().flatten()[keep]
            for held, layer in zip(rows, states.layers, strict=True):
                states_of_layer = batch.rows(layer)  # of a model on several devices, each on its own
                values = states_of_layer[taken.to(states_of_layer.device)]
                held.append((values if items == "tokens" else pool(values, local.to(values.device))).cpu())
        order = torch.cat(numbers).argsort()
        layers = [torch.cat(held)[order] for held in rows]
        name, notes = states.name, tuple(states.notes)
        return cls(name, states.tokenized.ids, torch.cat(numbers)[order], states.layers, layers, notes)

    def check(self, other: States, items: str, window: int | None) -> None:
        """Raise InputError where the items of another model are not the same."""
        if torch.equal(self.tokens, other.tokenized.ids):
            return
        if items == "tokens":
            raise InputError(
                "is 'tokens', but the two models have different tokens", argument="items", wanted="'texts'"
            )
        if window is not None:
            raise InputError(
                "cuts the texts in different places: the two models have different tokens",
                argument="window",
                hint="compare them on whole texts",
            )

    def spaces(self, items: Tensor) -> dict[str, Tensor]:
        """Return the states of some items, by layer."""
        keep = torch.isin(self.items, items)
        return {str(layer): rows[keep] for layer, rows in zip(self.layers, self.rows, strict=True)}


def _present(states: States, items: str) -> Tensor:
    """Return the numbers of the items that have states that are counted."""
    tokens = states.counted.nonzero().flatten()
    return tokens if items == "tokens" else states.tokenized.rows.sentences.codes[tokens].unique()
