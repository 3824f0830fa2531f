"""The λ sweep of *Stable Anisotropic Regularization*: runs one by one, each kept as soon as it is done.

A folder may be worked on by any number of processes, with the same command or different ones: a run is
locked while one of them is at it, those that are there are left alone, and a killed sweep goes on where it
was.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isoscope.encoders.language_models import best_device, load_tokenizer
from isoscope.encoders.models import resolve_model
from isoscope.errors import FileError, NotFiniteError, UndefinedError
from isoscope.io.sealed import read_json, write_json
from isoscope.metrics.manifold import twonn
from isoscope.training.encoder_run import limit_of
from isoscope.training.finetune import finetune
from isoscope.training.finetuned import FineTuned
from isoscope.training.held_out import some_examples
from isoscope.training.sequences import Sequences, tokenized
from isoscope.training.untouched import device_of, untouched
from isoscope_papers.corpora import load_task
from isoscope_papers.istar.setups import NONE, Point, Settings, Setup
from isoscope_papers.pages import make_folder

STEM = "istar-"
ESTIMATORS = "istar-estimators.json"  # the other part's, in the same folder
_UNCUT = 1 << 20  # tokens
_BATCH = 64


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep.

    Attributes:
        point: task, regulariser, strength, seed.
        settings: how it was trained.
        metric: what the score is: "accuracy", or "matthews" for CoLA.
        score: on the dev set after the last epoch; None where the loss turned NaN.
        sentence_twonn: TwoNN of the dev texts' sentence vectors, the last layer's first token, which is what
            the paper's figure 7 shows; None where it has no value.
        epochs: all scores after each epoch.
        geometry: a row for each layer above the embedding layer, and one for "all" of them.
        about: texts, how many were cut, device, seconds, library versions.
        failed: why there is no score.
    """

    point: Point
    settings: Settings
    metric: str
    score: float | None
    sentence_twonn: float | None
    epochs: Sequence[Mapping[str, Any]]
    geometry: Sequence[Mapping[str, Any]]
    about: Mapping[str, Any] = field(default_factory=dict)
    failed: str | None = None

    def whole(self, name: str) -> float | None:
        """A quantity of all layers' states together."""
        row = next((row for row in self.geometry if row["layer"] == "all"), {})
        value = row.get(name)
        return None if value is None else float(value)


def run_sweep(
    points: Iterable[Point],
    settings: Settings,
    folder: Path,
    *,
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
    device: str | None = None,
    tell: Callable[[str], object] | None = None,
) -> int:
    """Run those points that the folder does not hold yet, with these settings; how many were run.

    A run that is there with other settings is made again and replaced.
    """
    make_folder(folder)
    say = tell or (lambda _: None)
    n_run = 0
    for point in points:
        path = folder / f"{point.stem(settings.model)}.json"
        if _is_kept(path, settings):
            continue
        with _locked(path) as free:
            if not free:
                say(f"{path.stem}: another process is at it")
                continue
            if _is_kept(path, settings):
                continue
            found = run_point(point, settings, data=data, download=download, device=device)
            keep(found, path)
        n_run += 1
        say(_line(found, path.stem))
    return n_run


def run_point(
    point: Point,
    settings: Settings,
    *,
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
    device: str | None = None,
) -> SweepRun:
    """Fine-tune once. A loss that turns NaN is a result too: it says what the model does not bear."""
    began = time.perf_counter()
    arguments, n_cut = _task(point.task, settings, None if data is None else os.fspath(data), download)
    place = best_device(device)
    about: dict[str, Any] = {
        "n_train": len(arguments["texts"]),
        "n_test": len(arguments["test"][0]),
        "n_cut": n_cut,
        "device": torch.cuda.get_device_name(place) if place.type == "cuda" else place.type,
        "torch": torch.__version__,
    }
    options = asdict(settings)
    options.pop("max_train")  # the texts are drawn already
    try:
        run = finetune(
            options.pop("model"),
            arguments["texts"],
            arguments["labels"],
            pairs=arguments["pairs"],
            test=arguments["test"],
            metric=arguments["metric"],
            regularizer=None if point.regularizer == NONE else point.regularizer,
            strength=point.strength,
            seed=point.seed,
            device=device,
            download=download,
            progress=False,
            **options,
        )
    except NotFiniteError as error:
        about["seconds"] = round(time.perf_counter() - began, 1)
        return SweepRun(point, settings, arguments["metric"], None, None, (), (), about, str(error))
    found = run.to_dict()
    dimension = sentence_twonn(run, arguments, settings)
    about["seconds"] = round(time.perf_counter() - began, 1)
    return SweepRun(
        point, settings, run.metric, run.score, dimension, found["epochs"], found["geometry"], about
    )


def sentence_twonn(run: FineTuned, arguments: Mapping[str, Any], settings: Settings) -> float | None:
    """TwoNN of what the classifier reads of the dev texts: the first token's state in the last layer.

    Of texts that are read alike one counts: padded otherwise, they would be a rounding's distance apart.
    """
    *columns, _ = arguments["test"]
    sequences = _tokenized(
        run.tokenizer, columns, run.model, limit_of(run.model, run.tokenizer, settings.max_length)
    )
    device = device_of(run.model)
    states: dict[tuple[int, ...], Tensor] = {}
    with untouched(run.model):
        for places, batch in sequences.by_length(_BATCH):
            inputs = {name: values.to(device) for name, values in batch.items()}
            found = run.model(**inputs, output_hidden_states=True).hidden_states[-1][:, 0]
            states.update(zip((_read(sequences, place) for place in places), found, strict=True))
    try:
        return float(twonn(torch.stack(list(states.values())).float()))
    except UndefinedError:
        return None


def _read(sequences: Sequences, place: int) -> tuple[int, ...]:
    """The tokens of a text."""
    first, last = sequences.starts[place : place + 2].tolist()
    return tuple(sequences.fields["input_ids"][first:last].tolist())


def _tokenized(tokenizer: Any, columns: Sequence[Sequence[str]], model: Any, max_length: int) -> Sequences:
    texts, *seconds = columns
    segments = bool(seconds) and getattr(model.config, "type_vocab_size", 0) > 1
    return tokenized(
        tokenizer, texts, seconds[0] if seconds else None, max_length=max_length, segments=segments
    )


@lru_cache(maxsize=2)
def _task(name: str, settings: Settings, data: str | None, download: bool) -> tuple[dict[str, Any], int]:
    """What `finetune` takes, and how many texts and pairs are longer than is read of them."""
    found = load_task(name, data=data, download=download).arguments()
    if settings.max_train is not None and settings.max_train < len(found["texts"]):
        found = some_examples(found, settings.max_train)
    tokenizer = load_tokenizer(resolve_model(settings.model, download=download))
    n_cut = 0
    for columns in ([found["texts"], *([found["pairs"]] if found["pairs"] else [])], found["test"][:-1]):
        texts, *seconds = columns
        whole = tokenized(tokenizer, texts, seconds[0] if seconds else None, max_length=_UNCUT)
        n_cut += int((whole.lengths > settings.max_length).sum())
    return found, n_cut


def own_settings(settings: Settings, setup: Setup) -> Settings:
    """A task's own: how many texts it is trained on, where nothing else was asked for."""
    return settings if settings.max_train is not None else replace(settings, max_train=setup.max_train)


def _line(found: SweepRun, stem: str) -> str:
    took = f"{found.about['seconds']:.0f} s"
    if found.failed:
        return f"{stem}: no score ({took}): {found.failed}"
    star = found.whole("isoscore_star")
    shown = "—" if star is None else f"{star:.4f}"
    return f"{stem}: {found.metric} {found.score:.4f}, IsoScore* {shown} ({took})"


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Whether no other process is at the run; the lock goes with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system: two processes may make the same run twice
        yield True
        return
    lock = path.with_suffix(".lock")
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        try:
            yield True
        finally:
            lock.unlink(missing_ok=True)


def keep(found: SweepRun, path: Path) -> Path:
    """Write one run."""
    facts = {
        **asdict(found.point),
        "settings": asdict(found.settings) | {"model": found.settings.title},
        "metric": found.metric,
        "score": found.score,
        "sentence_twonn": found.sentence_twonn,
        "epochs": [dict(row) for row in found.epochs],
        "geometry": [dict(row) for row in found.geometry],
        "about": dict(found.about),
        "failed": found.failed,
    }
    return write_json(path, facts)


def _is_kept(path: Path, settings: Settings) -> bool:
    return path.exists() and read_run(path).settings == replace(settings, model=settings.title)


def read_runs(folder: str | os.PathLike[str]) -> list[SweepRun]:
    """The runs a folder keeps, by task, regulariser, strength and seed."""
    files = [path for path in Path(folder).glob(f"{STEM}*.json") if path.name != ESTIMATORS]
    found = [read_run(path) for path in files]
    return sorted(found, key=lambda run: (run.settings.title, *asdict(run.point).values()))


def read_run(path: Path) -> SweepRun:
    """One run from its file."""
    try:
        facts = read_json(path, sealed=False)
        point = Point(facts["task"], facts["regularizer"], float(facts["strength"]), int(facts["seed"]))
        rows = (tuple(facts["epochs"]), tuple(facts["geometry"]))
        return SweepRun(
            point, Settings(**facts["settings"]), facts["metric"], facts["score"], facts["sentence_twonn"],
            *rows, facts["about"], facts["failed"],
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{path} does not hold a run of istar: {error}") from error
