"""GGUF files whose headers lie are refused in one line, before a library follows them."""

from __future__ import annotations

import contextlib
import random
import struct
from pathlib import Path

import hostile_models
import pytest

from isoscope.errors import FileError
from isoscope.models import encode, load_language_model
from isoscope.models.gguf_header import read_gguf_header
from isoscope.models.model_files import check_model

pytest.importorskip("gguf", reason="needs the extra `gguf`")


def test_a_sound_header(tmp_path: Path) -> None:
    fields = [
        hostile_models.ARCHITECTURE,
        hostile_models.field("n", hostile_models.U32, struct.pack("<I", 7)),
        hostile_models.field(
            "words", hostile_models.ARRAY, struct.pack("<IQ", 8, 1) + hostile_models.text("é")
        ),
    ]
    path = tmp_path / "a.gguf"
    path.write_bytes(hostile_models.gguf_bytes(fields, [hostile_models.WEIGHT], hostile_models.BODY))
    header = read_gguf_header(path)
    assert header.fields["general.architecture"].text() == "llama"
    assert header.fields["n"].whole() == 7
    assert len(header.fields["words"].entries()) == 1
    assert header.shapes == {"token_embd.weight": (4, 8)}


@pytest.mark.parametrize("name", hostile_models.GGUF)
@pytest.mark.parametrize("how", ["encode", "load"])
def test_headers_that_lie(tmp_path: Path, name: str, how: str) -> None:
    pytest.importorskip("accelerate")
    path = tmp_path / f"{name}.gguf"
    path.write_bytes(hostile_models.GGUF[name])
    with pytest.raises(FileError) as error:
        encode(["a"], model=path, cache=False) if how == "encode" else load_language_model(path)
    assert path.name in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_a_size_of_0_is_refused_only_where_tensors_need_it(tmp_path: Path) -> None:
    path = tmp_path / "mamba.gguf"
    no_heads = hostile_models.field("llama.attention.head_count", hostile_models.U32, struct.pack("<I", 0))
    fields = [hostile_models.ARCHITECTURE, no_heads]
    path.write_bytes(hostile_models.gguf_bytes(fields, [hostile_models.WEIGHT], hostile_models.BODY))
    check_model(path)
    path.write_bytes(hostile_models.GGUF["no-width"])
    with pytest.raises(FileError, match=r"`llama\.embedding_length` must be a whole number of 1 to 8, got 0"):
        check_model(path)


def test_any_damage_to_a_header_is_refused_or_harmless(tmp_path: Path) -> None:
    random_bytes = random.Random(0)
    sound = hostile_models.gguf_bytes(
        [hostile_models.ARCHITECTURE], [hostile_models.WEIGHT], hostile_models.BODY
    )
    path = tmp_path / "a.gguf"
    for _ in range(500):
        raw = bytearray(sound)
        for _ in range(random_bytes.randint(1, 4)):
            raw[random_bytes.randrange(len(raw))] = random_bytes.choice((0, 1, 127, 128, 255))
        path.write_bytes(raw[: random_bytes.randint(4, len(raw))] if random_bytes.random() < 0.3 else raw)
        with contextlib.suppress(FileError):
            read_gguf_header(path)
