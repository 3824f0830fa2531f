"""Load models of images and recordings with their processors, and batches of what these return."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isoscope.errors import InputError, ShapeError
from isoscope.io.structure import read_json
from isoscope.models.language_models import load_weights, pretrained, quiet_loading, transformers_library
from isoscope.models.model_files import running
from isoscope.models.resolve import model_folder

KINDS = ("images", "recordings")


@dataclass(frozen=True, eq=False)
class InputModel:
    """A loaded model of images or recordings in eval mode, with its processor.

    Attributes:
        name: the name of the model or its folder.
        path: the folder that it was loaded from.
        model: the transformers model; of a model of two modalities, the tower for these inputs, and of an
            encoder-decoder, the encoder.
        processor: the image processor or feature extractor of the model.
        kind: "images" or "recordings".
    """

    name: str
    path: Path
    model: Any
    processor: Any
    kind: str

    def processed(self, items: Sequence[Any]) -> Mapping[str, Any]:
        """Return the inputs of the model for some items."""
        with quiet_loading(), running(self.path, "given these inputs"):
            if self.kind == "images":
                return self.processor(images=list(items), return_tensors="pt")
            return self.processor(
                [np.asarray(item, np.float32) for item in items],
                sampling_rate=self.processor.sampling_rate,
                return_tensors="pt",
                padding=True if self.processor.model_input_names[0] == "input_values" else "max_length",
                return_attention_mask=True,
            )


def load_model(model: str | os.PathLike[str], kind: str, **loading: Any) -> InputModel:
    """Load a model of images or recordings and its processor by name, folder or hub id.

    Only safetensors files are read as weights. Code that comes with a model is never run.

    Args:
        model: the model to load, see `resolve_model`.
        kind: "images" (ViT, DINO, CLIP, …) or "recordings" (Whisper, wav2vec 2.0, …).
        **loading: device, dtype, device_map, compile and download, as in `load_language_model`.
    """
    if kind not in KINDS:
        raise InputError(argument="kind", got=kind, wanted=f"one of {', '.join(KINDS)}")
    path = model_folder(model, download=loading.pop("download", False))
    transformers = transformers_library()
    with quiet_loading(), running(path):
        folder, options = pretrained(path)
        reader = transformers.AutoImageProcessor if kind == "images" else transformers.AutoFeatureExtractor
        if (
            not (folder / "preprocessor_config.json").is_file()
            and not (folder / "processor_config.json").is_file()
        ):
            raise InputError(
                f"{path} has no preprocessor_config.json, so it reads no {kind}", wanted=f"a model of {kind}"
            )
        _check_kind(folder, kind)
        processor = reader.from_pretrained(folder, **options)
        return InputModel(
            Path(os.fspath(model)).name, path, load_weights(path, kind, **loading), processor, kind
        )


def _check_kind(folder: Path, kind: str) -> None:
    """Raise InputError if the settings of the processor are those of the other kind."""
    file = folder / "preprocessor_config.json"
    settings = read_json(file).mapping() if file.is_file() else {}
    types = {"images": "image_processor_type", "recordings": "feature_extractor_type"}
    others = [other for other in KINDS if other != kind and types[other] in settings]
    if others and types[kind] not in settings:
        raise InputError(f"has {kind}, but {folder} reads {others[0]}", argument="inputs", wanted=others[0])


class Processed:
    """Batches of items that a model's processor has prepared; they can be read again and again."""

    def __init__(self, items: Sequence[Any], model: InputModel, batch_size: int) -> None:
        if batch_size < 1:
            raise InputError(argument="batch_size", got=batch_size, wanted="at least 1")
        self._items, self._model, self._size = items, model, batch_size

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for start in range(0, len(self._items), self._size):
            yield self._model.processed(self._items[start : start + self._size])


def kind_of_items(inputs: Any) -> str:
    """Return what the items are: texts, images, recordings, or batches that are ready for a model.

    >>> kind_of_items(["a cat"]), kind_of_items([np.zeros((8, 8, 3))]), kind_of_items([np.zeros(16000)])
    ('texts', 'images', 'recordings')
    """
    if isinstance(inputs, Mapping | torch.Tensor):
        return "batches"
    if isinstance(inputs, str) or not isinstance(inputs, Sequence | np.ndarray):
        return "texts" if isinstance(inputs, str) or hasattr(inputs, "tolist") else "batches"
    if not len(inputs):
        raise ShapeError("is empty", argument="inputs", wanted="at least one text, image, recording or batch")
    first = inputs[0]
    if isinstance(first, Mapping | tuple):
        return "batches"
    if type(first).__module__.startswith("PIL."):
        return "images"
    if isinstance(first, np.ndarray | torch.Tensor) and first.ndim:
        return "recordings" if first.ndim == 1 else "images" if first.ndim in (2, 3) else "batches"
    return "texts"
