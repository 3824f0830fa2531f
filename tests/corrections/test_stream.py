from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import isoscope as iso
from isoscope.corrections.stream import Corrected, write_blocks


def test_a_corrected_file_is_measured_as_the_vectors_are(rng, tmp_path: Path) -> None:
    X = rng.normal(size=(300, 5)) * np.arange(1, 6)
    np.save(tmp_path / "x.npy", X)
    fitted = iso.AllButTheTop(1).fit(X)
    corrected = Corrected(iso.open_vectors(tmp_path / "x.npy"), fitted)
    found = iso.measure(corrected, metrics=["isoscore", "lid"])  # one streams, one loads
    wanted = iso.measure(fitted.transform(X), metrics=["isoscore", "lid"])
    assert dict(found) == pytest.approx(dict(wanted))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.bfloat16])
def test_npy_in_blocks_is_npy(rng, tmp_path: Path, dtype: torch.dtype) -> None:
    space = iso.Space(torch.tensor(rng.normal(size=(1234, 3))).to(dtype))
    path, n_rows = write_blocks(space.blocks(100), tmp_path / "x.npy")
    found = np.load(path)
    assert (n_rows, found.shape) == (1234, (1234, 3))
    assert np.array_equal(found, space.vectors.float().numpy() if dtype == torch.bfloat16 else space.vectors)


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    for suffix in ("npy", "parquet"):
        path = tmp_path / f"x.{suffix}"
        path.write_text("before")

        def broken():
            yield iso.Space(np.eye(3))
            raise iso.FileError("the second block is broken")

        with pytest.raises(iso.FileError, match="second block"):
            write_blocks(broken(), path)
        assert path.read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 2


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    blocks = iter([iso.Space(np.eye(3))])
    with pytest.raises(iso.FileError, match=r"wanted one of \.npy, \.parquet"):
        write_blocks(blocks, tmp_path / "x.csv")
    with pytest.raises(iso.FileError, match="make it first"):
        write_blocks(blocks, tmp_path / "no" / "x.npy")
    (tmp_path / "d.npy").mkdir()
    with pytest.raises(iso.FileError, match="is a folder"):
        write_blocks(blocks, tmp_path / "d.npy")
