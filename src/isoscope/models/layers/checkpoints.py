"""`measure_checkpoints`: the layers of a model at several checkpoints of its training, one after another."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isoscope.engine.readings import Readings, View
from isoscope.errors import FileError, InputError, ShapeError
from isoscope.io.atomic import write_atomically
from isoscope.io.structure import read_json
from isoscope.models.cache import fingerprint
from isoscope.models.layers.layer_profile import LayerProfile
from isoscope.models.layers.quantities import Quantity
from isoscope.models.layers.run import layers
from isoscope.models.resolve import model_folder
from isoscope.tables import Grid, shown

_FORMAT = "isoscope layers of a checkpoint 1"
_SHOWN = ("mean_cosine", "isoscore_debiased", "effective_rank")  # a table of each, where all are measured
_MOST_COLUMNS = 7
_NOT_IN_RESULT = ("device", "device_map", "compile", "download", "memory")  # options that change no number


@dataclass(frozen=True, eq=False, repr=False)
class LayerTrajectory(View):
    """The layers of a model at several checkpoints, in the order of training.

    Attributes:
        profiles: the profile of each checkpoint, by its name.
    """

    profiles: Mapping[str, LayerProfile]

    @property
    def readings(self) -> Readings:
        """The readings of all checkpoints, by `checkpoint`, `layer` and `view`."""
        return Readings(
            [
                replace(reading, group={"checkpoint": name, **reading.group})
                for name, profile in self.profiles.items()
                for reading in profile.readings
            ]
        )

    @property
    def title(self) -> str:
        """The first and the last checkpoint, and the numbers of tokens and layers."""
        names, last = list(self.profiles), list(self.profiles.values())[-1]
        return f"{names[0]} → {names[-1]}: {len(names)} checkpoints, {last.title.partition(': ')[2]}"

    def to_dict(self) -> dict[str, Any]:
        """Return the profiles as JSON-ready values, not rounded."""
        return {"checkpoints": {name: profile.to_dict() for name, profile in self.profiles.items()}}

    def values(self, name: str, layer: Any = -1, *, sinks: bool = True) -> list[float | None]:
        """Return the values of a quantity in a layer by checkpoint; −1 is the last layer."""
        profiles = list(self.profiles.values())
        known = profiles[0].layers
        place = (
            layer if isinstance(layer, int) and layer < 0 else known.index(layer) if layer in known else None
        )
        if place is None or not -len(known) <= place < len(known):
            raise InputError(argument="layer", got=layer, wanted=f"one of {', '.join(map(str, known))}")
        return [profile.values(name, sinks=sinks)[place] for profile in profiles]

    def grids(self) -> Iterable[Grid]:
        """Return a table for each quantity, with a row for each checkpoint, without attention sinks."""
        first = next(iter(self.profiles.values()))
        n = len(first.layers)
        places = sorted({round(i * (n - 1) / max(1, _MOST_COLUMNS - 1)) for i in range(_MOST_COLUMNS)})
        heads = ("checkpoint", *(str(first.layers[place]) for place in places))
        for name in _SHOWN if first.has_default_metrics else first.metrics:
            quantity = Quantity.named(name)
            rows = []
            for checkpoint, profile in self.profiles.items():
                values = profile.values(name, sinks=False)
                rows.append((checkpoint, *(shown(values[place], quantity.digits) for place in places)))
            yield Grid(f"{quantity.title} by layer", heads, rows, heads)

    def lines(self) -> list[str]:
        """Return the meaning of each quantity, and the notes of the checkpoints."""
        first = next(iter(self.profiles.values()))
        names = _SHOWN if first.has_default_metrics else first.metrics
        lines = [f"{one.title}: {one.meaning}" for one in map(Quantity.named, names)]
        notes = dict.fromkeys(
            note.replace(profile.model, "the model")
            for profile in self.profiles.values()
            for note in profile.notes
        )
        return [*lines, *(f"note: {note}" for note in notes)]

    def figure(self, path: Path | str) -> Path:
        """Write a figure of the quantities by layer, with a curve for each checkpoint, without sinks."""
        from isoscope.models.layers.layer_figure import draw_layers

        named = [replace(profile, model=name) for name, profile in self.profiles.items()]
        draw_layers(named, path, over_training=True)
        return Path(path)


def measure_checkpoints(
    checkpoints: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    inputs: Sequence[str],
    *,
    folder: str | os.PathLike[str] | None = None,
    **options: Any,
) -> LayerTrajectory:
    """Measure every layer of a model at several checkpoints; one model is in memory at a time.

    Args:
        checkpoints: a folder with a subfolder for each checkpoint, such as checkpoint-100; or names of models
            in the order of training, in which "model@step100" is the revision step100 of a model on the hub,
            or the subfolder step100 of a folder.
        inputs: texts, or images or recordings, as in `isoscope.layers`.
        folder: write the numbers of each checkpoint to a file in this folder, and continue from these files
            if the call is made again with the same checkpoints, inputs and options.
        **options: the other arguments of `isoscope.layers`.
    """
    models = checkpoint_models(checkpoints)
    profiles: dict[str, LayerProfile] = {}
    for name, model in models.items():
        store = None if folder is None else Path(folder) / f"{_file_name(name)}.json"
        identity = "" if store is None else _identity(model, inputs, options)
        profile = None if store is None else _stored(store, identity)
        if profile is None:
            profile = layers(model, inputs, **options)
            gc.collect()  # modules of transformers refer to each other
            if store is not None:
                _store(store, identity, profile)
        _check_same(name, profile, profiles)
        profiles[name] = profile
    return LayerTrajectory(profiles)


def checkpoint_models(
    checkpoints: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> dict[str, str | os.PathLike[str]]:
    """Return the model of each checkpoint by its name, in the order of training."""
    if isinstance(checkpoints, str | os.PathLike):
        found = sorted(subfolders(Path(checkpoints)), key=_natural)
        if not found:
            raise FileError(
                f"{os.fspath(checkpoints)} has no checkpoints",
                wanted="a folder with a subfolder for each checkpoint, such as checkpoint-100",
            )
        return {path.name: path for path in found}
    names = [os.fspath(model) for model in checkpoints]
    if not names:
        raise ShapeError("is empty", argument="checkpoints", wanted="at least one model")
    short = [name.rpartition("@")[2] if "@" in name else Path(name).name for name in names]
    unique = short if len(set(short)) == len(short) else names
    if len(set(unique)) < len(unique):
        raise InputError("has the same model twice", argument="checkpoints")
    return dict(zip(unique, checkpoints, strict=True))


def subfolders(folder: Path) -> list[Path]:
    """Return the subfolders that hold a model; none where the folder itself does."""
    is_model = any((folder / name).is_file() for name in ("config.json", "modules.json"))
    if is_model or not folder.is_dir():
        return []
    return [path.parent for path in folder.glob("*/config.json")]


def _natural(path: Path) -> list[Any]:
    """Return a key that sorts checkpoint-20 before checkpoint-100."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", path.name)]


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)


def _identity(model: Any, inputs: Sequence[Any], options: Mapping[str, Any]) -> str:
    """Return a hash of the weights, the inputs and the options that change a number."""
    path = model_folder(model, download=bool(options.get("download")))
    chosen = {name: repr(value) for name, value in options.items() if name not in _NOT_IN_RESULT}
    digest = hashlib.sha256(json.dumps([_FORMAT, fingerprint(path), chosen], sort_keys=True).encode())
    for item in inputs:
        content = item.encode("utf-8", "surrogatepass") if isinstance(item, str) else bytes(memoryview(item))
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def _store(path: Path, identity: str, profile: LayerProfile) -> None:
    text = json.dumps({"identity": identity, "profile": profile.stored()}, ensure_ascii=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda place: place.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path.parent} cannot be written to: {error.strerror or error}") from error


def _stored(path: Path, identity: str) -> LayerProfile | None:
    """Return the profile in a file; None where there is none, or it is of another run or damaged."""
    try:
        content = read_json(path)
        if content["identity"].text() != identity:
            return None
        return LayerProfile.restored(content["profile"].value)
    except (FileError, KeyError, TypeError, ValueError, OSError):
        return None


def _check_same(name: str, profile: LayerProfile, others: Mapping[str, LayerProfile]) -> None:
    for other_name, other in others.items():
        if (profile.layers, profile.n_dims) != (other.layers, other.n_dims):
            raise ShapeError(
                f"{name} has {len(profile.layers)} layers × {profile.n_dims}, and {other_name} has "
                f"{len(other.layers)} × {other.n_dims}",
                argument="checkpoints",
                wanted="checkpoints of one model",
                hint="compare two models by isoscope layers A B FILE",
            )
