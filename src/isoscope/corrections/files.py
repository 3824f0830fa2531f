"""Fitted corrections in .safetensors files: tensors, and JSON that describes them. No pickles."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from isoscope._version import __version__
from isoscope.corrections.chain import Chain
from isoscope.corrections.clusterwise import ClusterCenter, ClusterwiseAllButTheTop
from isoscope.corrections.components import AllButTheTop
from isoscope.corrections.correction import Correction, Solution
from isoscope.corrections.product import ProductQuantizer
from isoscope.corrections.rogue import RemoveDimensions
from isoscope.corrections.scalar import HalfPrecision, ScalarQuantizer
from isoscope.corrections.scaling import Center, Normalize, Standardize
from isoscope.corrections.signs import RaBitQuantizer, SignQuantizer
from isoscope.corrections.translate import Translate
from isoscope.corrections.truncate import Truncate
from isoscope.corrections.whiten import Whiten
from isoscope.errors import FileError, InputError
from isoscope.io.files import check_file, reading
from isoscope.io.sealed import CHECKSUM, read_tensors, write_tensors
from isoscope.io.structure import parse_json
from isoscope.io.targets import CORRECTION, check_target
from isoscope.printable import listed

FORMAT = 2  # with a checksum; files of format 1, which have none, are read as well
_ENTRY = "isoscope_correction"  # of the file's metadata
_TYPES = (torch.float64, torch.int64, torch.bool)
KINDS: dict[str, type[Correction]] = {
    kind.__name__: kind
    for kind in (
        AllButTheTop,
        Center,
        ClusterCenter,
        ClusterwiseAllButTheTop,
        HalfPrecision,
        Normalize,
        ProductQuantizer,
        RaBitQuantizer,
        RemoveDimensions,
        ScalarQuantizer,
        SignQuantizer,
        Standardize,
        Translate,
        Truncate,
        Whiten,
    )
}


def save_correction(correction: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted correction, a list of them, or a scikit-learn Pipeline of them to one file.

    The file is .safetensors: float64 tensors, and JSON with kinds, parameters and dimensions in its metadata.
    """
    path = check_target(path, CORRECTION)
    steps = _steps(correction)
    tensors: dict[str, Tensor] = {}
    for i, step in enumerate(steps):
        tensors |= {f"{i}.{name}": value for name, value in step._solved().items()}
    about = {"format": FORMAT, "isoscope": __version__, "steps": [_described(step) for step in steps]}
    return write_tensors(path, tensors, {_ENTRY: json.dumps(about, allow_nan=False)})


def load_correction(path: str | os.PathLike[str]) -> Correction:
    """Load a fitted correction from a file; several are returned as a Chain.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> path = Center().fit([[1.0, 0.0], [3.0, 4.0]]).save(f"{folder}/center.safetensors")
    >>> load_correction(path).mean_.tolist()
    [2.0, 2.0]
    """
    path = Path(path)
    check_file(path, what="a correction")
    with reading(path):
        tensors, entries = _read(path)
        steps = [_loaded(path, i, entry, tensors) for i, entry in enumerate(entries)]
        for before, after in pairwise(steps):
            n_out = before._map(before._solved()).n_out
            if n_out != after.n_features_in_:
                raise FileError(
                    f"{path} has a {type(before).__name__} with {n_out} output dimensions before a "
                    f"{type(after).__name__} with {after.n_features_in_} input dimensions",
                    wanted="a file written by isoscope",
                )
        return steps[0] if len(steps) == 1 else Chain.of(steps)


def _steps(correction: Any) -> list[Correction]:
    """Return the corrections in order, of one, a list, a Chain or a Pipeline, nested or not."""
    if isinstance(correction, Chain):
        check_is_fitted(correction)
        return [part for step in correction.steps_ for part in _steps(step)]
    if isinstance(correction, Correction):
        check_is_fitted(correction)
        return [correction]
    parts = correction
    if hasattr(correction, "steps"):  # a Pipeline: (name, step), "passthrough" or None for none
        parts = [step for _, step in correction.steps if step not in (None, "passthrough")]
    if not isinstance(parts, list | tuple) or not parts:
        raise InputError(
            f"is a {type(correction).__name__}",
            argument="correction",
            wanted="a fitted correction of isoscope, or a list or Pipeline of them",
        )
    return [part for step in parts for part in _steps(step)]


def _described(step: Correction) -> dict[str, Any]:
    about = {
        "kind": type(step).__name__,
        "parameters": {name: _plain(value) for name, value in step.get_params(deep=False).items()},
        "n_features_in": step.n_features_in_,
    }
    if hasattr(step, "feature_names_in_"):
        about["feature_names_in"] = [str(name) for name in step.feature_names_in_]
    return about


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return value.tolist()
    return [_plain(part) for part in value] if isinstance(value, list | tuple | range) else value


def _read(path: Path) -> tuple[dict[str, Tensor], list[Any]]:
    tensors, metadata = read_tensors(path, sealed=False)
    if _ENTRY not in metadata:
        raise FileError(
            f"{path} is a .safetensors file without a correction", wanted="one written by correction.save"
        )
    about = parse_json(metadata[_ENTRY], str(path)).value
    if not isinstance(about, Mapping) or not isinstance(about.get("format"), int):
        raise FileError(f"{path} does not name its format", wanted="a file written by isoscope")
    if about["format"] > FORMAT:
        raise FileError(
            f"{path} has format {about['format']}, written by isoscope {about.get('isoscope')}",
            wanted=f"at most {FORMAT}, which isoscope {__version__} reads",
            hint="install a newer isoscope",
        )
    if about["format"] > 1 and CHECKSUM not in metadata:
        raise FileError(f"{path} has no checksum", hint="was it edited?")
    if not isinstance(about.get("steps"), list) or not about["steps"]:
        raise FileError(f"{path} has no steps", wanted="a file written by isoscope")
    return tensors, about["steps"]


def _loaded(path: Path, i: int, entry: Any, tensors: dict[str, Tensor]) -> Correction:
    """Return one step after checking the shapes of its tensors."""
    kind = entry.get("kind") if isinstance(entry, Mapping) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise FileError(f"{path} has a correction of unknown kind {kind!r}", wanted=f"one of {listed(KINDS)}")
    step = KINDS[kind](**entry["parameters"])
    sizes = {"d": int(entry["n_features_in"])}
    step._check_parameters(sizes["d"])
    solution = {}
    for name, axes in step._axes.items():
        tensor = tensors.get(f"{i}.{name}")
        if tensor is None or not _fits(tensor, axes, sizes):
            found = "missing" if tensor is None else f"of shape {tuple(tensor.shape)} and type {tensor.dtype}"
            raise FileError(
                f"{path} has {name} {found} for a {kind} of {sizes['d']} dimensions, or not finite",
                hint="is it truncated or edited?",
            )
        solution[name] = tensor
    step.n_features_in_ = sizes["d"]
    if "feature_names_in" in entry:
        step.feature_names_in_ = np.array([str(name) for name in entry["feature_names_in"]], dtype=object)
    step._solution = Solution(solution)
    return step


def _fits(tensor: Tensor, axes: str, sizes: dict[str, int]) -> bool:
    """Whether a tensor is finite and has the type and shape that its axes require."""
    if tensor.dtype not in _TYPES or tensor.ndim != len(axes) or not bool(torch.isfinite(tensor).all()):
        return False
    return all(sizes.setdefault(axis, n) == n for axis, n in zip(axes, tensor.shape, strict=True))
