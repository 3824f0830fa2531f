"""The spaces of a setup: its layers, its checkpoints, the corrections of its last layer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.corrections import (
    AllButTheTop,
    Center,
    Chain,
    Normalize,
    RemoveDimensions,
    SignQuantizer,
    Standardize,
    Truncate,
    Whiten,
)
from isoscope.errors import FileError, InputError
from isoscope.known_models import package_folder
from isoscope.models import averaged_vectors, cache_folder, encode, load_tokenizer, resolve_model
from isoscope.training import contrast, train_masked_lm
from isoscope_papers.corpora import load_corpus, load_pairs, load_texts
from isoscope_papers.dynamics.run import as_written
from isoscope_papers.predicts import setups
from isoscope_papers.predicts.pooled import Pooled, pooled_states
from isoscope_papers.predicts.setups import (
    CHECKPOINTS,
    CONTRAST,
    CORRECTED,
    CORRECTIONS,
    ENCODER,
    LAYERS,
    MASKED,
    SENTENCES,
    TABLE,
    Setup,
)
from isoscope_papers.predicts.texts import Texts
from isoscope_papers.study import Place

_WORDLLAMA = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"


@dataclass(frozen=True)
class Space:
    """What one space is.

    Attributes:
        model: the name of the setup.
        family: of which kind of variation it is: layers, checkpoints or corrections.
        layer: its number, 0 for the embeddings; the only one of a static table is 0.
        depth: the same from 0 to 1, the last.
        pooling: how token states become one vector.
        step: updates of the training so far; −1 where it was not trained here.
        correction: its name, or "none".
        strength: of the correction; 0 for none.
    """

    model: str
    family: str
    layer: int
    depth: float
    pooling: str = "mean"
    step: int = -1
    correction: str = "none"
    strength: float = 0.0

    @property
    def name(self) -> str:
        """Its name, unique."""
        step = f"step-{self.step:04}/" if self.step >= 0 else ""
        corrected = f"/{self.correction}={self.strength:g}" if self.correction != "none" else ""
        return f"{self.model}/{step}layer-{self.layer:02}/{self.pooling}{corrected}"


Vectors = tuple[np.ndarray, np.ndarray]  # (n, d), zero where a text has none; and which texts have one


class Source:
    """The vectors of every space of one setup."""

    def __init__(self, setup: Setup, texts: Texts, place: Place, *, progress: bool | None = None) -> None:
        self.setup, self.texts, self.place, self.progress = setup, texts, place, progress
        trained = _trained(setup.model, 0).name if setup.kind in (MASKED, CONTRAST) else ""
        self.folder = cache_folder() / "predicts" / texts.fingerprint / (setup.name + trained[-9:])
        self._table = cache(self._encoded)
        self._corrected_base = cache(self.vectors)

    def spaces(self) -> Iterator[Space]:
        """Yield every space, uncorrected ones first."""
        name, family = self.setup.name, self.setup.family
        if self.setup.kind in (ENCODER, TABLE):
            last = Space(name, family, 0, 1.0)
            yield last
        else:
            steps = {MASKED: setups.SNAPSHOTS, CONTRAST: setups.CONTRASTS}.get(self.setup.kind, (-1,))
            for step in steps:
                n_layers = self._pooled(SENTENCES, step).layers
                for pooling in self.setup.poolings:
                    for layer in range(0, n_layers, self.setup.every):
                        yield Space(name, family, layer, layer / (n_layers - 1), pooling, step)
            last = Space(name, family, n_layers - 1, 1.0, self.setup.poolings[0], steps[-1])
        for correction, strengths in CORRECTED.items():
            for strength in strengths:
                yield replace(last, family=CORRECTIONS, correction=correction, strength=strength)

    def vectors(self, space: Space, domain: str) -> Vectors:
        """Return the vectors of all texts of a domain."""
        if space.correction != "none":
            family = CHECKPOINTS if space.step >= 0 else LAYERS
            base = replace(space, family=family, correction="none", strength=0.0)
            rows, known = self._corrected_base(base, domain)
            corrected = correction_of(space.correction, space.strength, rows.shape[1]).fit(rows[known])
            out = np.asarray(corrected.transform(rows[known]), dtype=np.float32)
            found = np.zeros((len(rows), out.shape[1]), dtype=np.float32)
            found[known] = out
            return found, known
        if self.setup.kind in (ENCODER, TABLE):
            return self._table(domain)
        rows = self._pooled(domain, space.step).vectors(space.layer, space.pooling)
        return rows, np.ones(len(rows), dtype=bool)

    def _pooled(self, domain: str, step: int) -> Pooled:
        setup, place = self.setup, self.place
        model: str | Path = setup.model
        folder = self.folder / domain
        if setup.kind in (MASKED, CONTRAST):
            model = (masked_model if setup.kind == MASKED else contrastive_model)(setup.model, step, place)
            folder = self.folder / f"step-{step:04}" / domain
        else:
            model = resolve_model(model, download=place.download)
        return pooled_states(
            model, self.texts.by_domain[domain], setup.poolings, folder, device=place.device,
            progress=self.progress,
        )  # fmt: skip

    def _encoded(self, domain: str) -> Vectors:
        texts = [self.setup.prefix + text for text in self.texts.by_domain[domain]]
        known = np.ones(len(texts), dtype=bool)
        if self.setup.kind == ENCODER:
            rows = encode(texts, model=self.setup.model, download=self.place.download, progress=self.progress)
            return np.asarray(rows), known
        if self.setup.name == "wordllama":
            return token_means(texts)
        means, kept = averaged_vectors(texts, model=self.setup.model)
        known = np.isin(np.arange(len(texts)), kept.numpy())
        found = np.zeros((len(texts), means.shape[1]), dtype=np.float32)
        found[known] = means
        return found, known


def correction_of(name: str, strength: float, n_dims: int) -> Any:
    """Return an unfitted correction.

    >>> correction_of("pca", 4, 64)
    Whiten(n_components=16, strength=0.0)
    """
    count = int(strength)
    made: dict[str, Callable[[], Any]] = {
        "center": Center,
        "normalize": Normalize,
        "center_normalize": lambda: Chain([Center(), Normalize()]),
        "standardize": Standardize,
        "all_but_the_top": lambda: AllButTheTop(count),
        "whiten": lambda: Whiten(strength=strength),
        "remove_dimensions": lambda: RemoveDimensions(count),
        "pca": lambda: Whiten(n_dims // count, strength=0.0),
        "truncate": lambda: Truncate(n_dims // count),
        "signs": SignQuantizer,
    }
    return made[name]()


def token_means(texts: list[str]) -> Vectors:
    """Return the mean of the WordLlama vectors of each text's tokens."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    package = package_folder("wordllama")
    if package is None:
        raise InputError("the package wordllama is not installed", hint="install it with --no-deps")
    weights, words = (package / name for name in _WORDLLAMA)
    if not (weights.exists() and words.exists()):
        raise FileError(f"{package} has no {weights.name} or no {words.name}", wanted="wordllama 0.4")
    table = next(iter(load_file(weights).values())).astype(np.float32)
    tokens = [
        one.ids for one in Tokenizer.from_file(str(words)).encode_batch(texts, add_special_tokens=False)
    ]
    return np.stack([table[ids].mean(axis=0) for ids in tokens]), np.ones(len(texts), dtype=bool)


def masked_model(name: str, step: int, place: Place) -> Path:
    """Return the folder of a checkpoint of a masked model, which is trained the first time."""
    folder = _trained(name)
    if not (folder / "result.json").exists():
        tokenizer = load_tokenizer(resolve_model(setups.TOKENIZER, download=place.download))
        train, valid = (
            as_written(
                load_texts("wikitext2", data=place.data, split=split, download=place.download), tokenizer
            )
            for split in ("train", "valid")
        )
        train_masked_lm(
            train, tokenizer=tokenizer, held_out=valid[: setups.HELD_OUT], run=folder, resume=True,
            snapshots=setups.SNAPSHOTS, device=place.device, **setups.TRAININGS[name],
        )  # fmt: skip
    return folder / "snapshots" / f"step-{step}"


def contrastive_model(name: str, steps: int, place: Place) -> Path:
    """Return the folder of a contrastive run of so many updates from the last masked checkpoint."""
    folder = _trained(name, steps)
    if not (folder / "result.json").exists():
        start = masked_model(name, setups.SNAPSHOTS[-1], place)
        contrast(
            start, entailed(place), steps=steps, seed=setups.SEED, run=folder, resume=True,
            device=place.device, **setups.CONTRASTING,
        )  # fmt: skip
    return folder / "model"


def _trained(name: str, *contrasted: int) -> Path:
    """Return the folder of a training run; with other settings it is another one."""
    settings = setups.TRAININGS[name], setups.SNAPSHOTS, setups.CONTRASTING if contrasted else None
    title = "-".join((name, *(f"contrast-{steps}" for steps in contrasted), digest(settings)))
    return cache_folder() / "predicts" / "models" / title


def digest(content: object) -> str:
    """Return eight letters that differ where settings differ."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:8]


def entailed(place: Place) -> list[tuple[str, str]]:
    """Return entailment pairs of MNLI and of SNLI's test split: those of its dev split are a task."""
    pairs = list(zip(*load_pairs("mnli", data=place.data, download=place.download).columns, strict=True))
    snli = load_corpus("snli", data=place.data, split="test", download=place.download)
    pairs += [texts for texts, label in snli.items if label == "entailment" and all(texts)]
    return list(dict.fromkeys((first, second) for first, second in pairs))
