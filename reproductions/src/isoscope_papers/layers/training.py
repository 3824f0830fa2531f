"""Train the masked model whose layers are followed, with a snapshot at each of ten updates."""

from __future__ import annotations

from pathlib import Path

from isoscope.errors import InputError, Setting
from isoscope.models import load_tokenizer, resolve_model
from isoscope.training import MaskedLM, train_masked_lm
from isoscope_papers.corpora import load_texts
from isoscope_papers.dynamics.run import as_written
from isoscope_papers.layers import setups
from isoscope_papers.study import Place


def masked_model(place: Place, *, progress: bool | None = None) -> MaskedLM:
    """Return the trained model; it is trained, or its run resumed, in models/layers-masked."""
    if place.runs is None:
        raise InputError(
            "the masked model is trained first, and saved", hint=Setting("output", to="say in which folder")
        )
    folder = place.runs.parent / "models" / "layers-masked"
    if (folder / "result.json").exists():
        return MaskedLM.load(folder)
    tokenizer = load_tokenizer(resolve_model(setups.TOKENIZER, download=place.download))
    train, valid = (
        as_written(load_texts("wikitext2", data=place.data, split=split, download=place.download), tokenizer)
        for split in ("train", "valid")
    )
    return train_masked_lm(
        train, tokenizer=tokenizer, held_out=valid[: setups.HELD_OUT], run=folder, resume=True,
        snapshots=setups.SNAPSHOTS, device=place.device, progress=progress, **setups.TRAINING,
    )  # fmt: skip


def snapshots_of(model: MaskedLM) -> Path:
    """Return the folder of the snapshots."""
    assert model.folder is not None
    return model.folder / "snapshots"
