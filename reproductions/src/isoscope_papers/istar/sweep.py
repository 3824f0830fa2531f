"""The λ sweep of *Stable Anisotropic Regularization*: each run is kept as soon as it is done.

Several processes may work on the same folder: a run is locked while one of them makes it, runs that are there
are left alone, and a killed sweep continues where it stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isoscope import finetune, measure
from isoscope.errors import NotFiniteError
from isoscope.models import best_device, hidden_states
from isoscope.training import FineTuned, some_examples
from isoscope_papers.corpora import load_task
from isoscope_papers.istar.setups import NONE, Point, Settings
from isoscope_papers.page import make_folder
from isoscope_papers.runs import keep, read
from isoscope_papers.study import Place

_BATCH = 64


@dataclass(frozen=True)
class SweepRun(Point):
    """One run of a sweep.

    Attributes:
        settings: how it was trained; the model without its folder.
        metric: what the score is: "accuracy", or "matthews" for CoLA.
        score: on the dev set after the last epoch; None where the loss turned NaN.
        sentence_twonn: TwoNN of the dev texts' sentence vectors, the last layer's first token, as in the
            paper's figure 7; None where it has no value.
        epochs: all scores after each epoch.
        geometry: a row for each layer above the embedding layer, and one for "all" of them.
        about: texts, how many were cut, device, seconds, library versions.
        failed: why there is no score.
        silhouette: of the same sentence vectors by label; None in runs that did not record it.
    """

    settings: Settings
    metric: str
    score: float | None
    sentence_twonn: float | None = None
    epochs: tuple[dict[str, Any], ...] = ()
    geometry: tuple[dict[str, Any], ...] = ()
    about: dict[str, Any] = field(default_factory=dict)
    failed: str | None = None
    silhouette: float | None = None

    def value(self, name: str, layer: int | str = "all") -> Any:
        """Return a field (λ, the score, a quantity of the sentence vectors), or one of a layer's states."""
        if hasattr(self, name):
            return getattr(self, name)
        row: dict[str, Any] = next((row for row in self.geometry if row["layer"] == layer), {})
        return row.get(name)


def run_sweep(
    points: Iterable[Point], settings: Settings, place: Place, *, say: Callable[[str], object] = print
) -> list[SweepRun]:
    """Return the runs of these points; those that the place's folder keeps with these settings are read."""
    if place.runs is None:
        return [run_point(point, settings, place) for point in points]
    make_folder(place.runs)
    runs = []
    for point in points:
        path = place.runs / f"{point.stem(settings.model)}.json"
        with _locked(path) as free:
            if not free:
                say(f"{path.stem}: another process is at it")
                continue
            run = read(path, SweepRun) if path.exists() else None
            if run is None or run.settings != replace(settings, model=settings.title):
                run = run_point(point, settings, place)
                keep(run, path)
                say(f"{path.stem}: {_line(run)}")
        runs.append(run)
    return runs


def _line(run: SweepRun) -> str:
    took = f"({run.about['seconds']:.0f} s)"
    if run.score is None:
        return f"no score {took}: {run.failed}"
    return f"{run.metric} {run.score:.4f}, IsoScore* {run.value('isoscore_star') or float('nan'):.4f} {took}"


def run_point(point: Point, settings: Settings, place: Place) -> SweepRun:
    """Fine-tune once. A loss that turns NaN is a result too: it says what the model does not bear."""
    began = time.perf_counter()
    task = load_task(point.task, data=place.data, download=place.download)
    if settings.max_train is not None and settings.max_train < len(task["texts"]):
        task = some_examples(task, settings.max_train)
    options = asdict(settings)
    model, _ = options.pop("model"), options.pop("max_train")  # the texts are drawn already
    device = best_device(place.device)
    named = replace(settings, model=settings.title)
    run = SweepRun(**asdict(point), settings=named, metric=task["metric"], score=None)
    about = {
        "n_train": len(task["texts"]), "n_test": len(task["test"][0]), "torch": torch.__version__,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
    }  # fmt: skip
    try:
        trained = finetune(
            model, **task, **options, regularizer=None if point.regularizer == NONE else point.regularizer,
            strength=point.strength, seed=point.seed, device=place.device, download=place.download,
            progress=False,
        )  # fmt: skip
        result = trained.to_dict()
        columns, labels = task["test"][:-1], task["test"][-1]
        vectors, kept = sentence_vectors(trained, columns, settings.max_length)
        kinds, metrics = [labels[place] for place in kept], ("twonn", "silhouette")
        found = measure(vectors, labels=kinds, metrics=metrics, errors=False, progress=False)
        run = replace(
            run, score=trained.score, epochs=tuple(result["epochs"]), geometry=tuple(result["geometry"]),
            sentence_twonn=found["twonn"], silhouette=found["silhouette"],
        )  # fmt: skip
        trained_on = [task["texts"], *([task["pairs"]] if task["pairs"] else [])]
        about["n_cut"] = sum(
            len(ids) > settings.max_length
            for part in (trained_on, columns)
            for ids in trained.tokenizer(*map(list, part), verbose=False)["input_ids"]
        )
    except NotFiniteError as error:
        run = replace(run, failed=error.problem)
    return replace(run, about=about | {"seconds": round(time.perf_counter() - began, 1)})


def sentence_vectors(
    trained: FineTuned, columns: Sequence[Sequence[str]], max_length: int
) -> tuple[Tensor, list[int]]:
    """Return the first token's last state of each text, which the classifier reads, and the texts' places.

    Of texts that are read alike the first counts: padded otherwise, they would be a rounding error apart.
    """
    segments = len(columns) > 1 and getattr(trained.model.config, "type_vocab_size", 0) > 1
    read_as = trained.tokenizer(
        *map(list, columns), truncation=True, max_length=max_length, return_token_type_ids=segments,
        verbose=False,
    )  # fmt: skip
    first = {tuple(ids): place for place, ids in reversed(list(enumerate(read_as["input_ids"])))}
    places = sorted(first.values(), key=lambda place: len(read_as["input_ids"][place]))

    def batches() -> Iterator[dict[str, Tensor]]:
        for start in range(0, len(places), _BATCH):
            some = places[start : start + _BATCH]
            inputs = {name: [values[place] for place in some] for name, values in read_as.items()}
            yield trained.tokenizer.pad(inputs, return_tensors="pt")

    states = [found.hidden[-1][:, 0].float() for found in hidden_states(trained.model, batches())]
    return torch.cat(states), places


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Say whether no other process makes the run; the lock ends with the process, however that ends."""
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
