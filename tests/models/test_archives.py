from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from isoscope.errors import FileError
from isoscope.models.archives import is_complete, root, unpack

FILES = {
    "m/config.json": b"{}",
    "m/model.safetensors": bytes(range(256)) * 40,
    "m/1_Pooling/config.json": b"[]",
}


def packed(files: dict[str, bytes], *, link: str | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        if link:
            member = zipfile.ZipInfo(link)
            member.external_attr = 0o120777 << 16
            archive.writestr(member, "/etc/passwd")
    return buffer.getvalue()


def split(content: bytes, folder: Path, n: int = 3) -> list[Path]:
    step = -(-len(content) // n)
    paths = [folder / f"m.zip.{i + 1:03}" for i in range(n)]
    for i, path in enumerate(paths):
        path.write_bytes(content[i * step : (i + 1) * step])
    return paths


def test_an_archive_in_parts_is_unpacked(tmp_path: Path) -> None:
    content = packed(FILES)
    place = tmp_path / "cache" / "m"
    assert not is_complete(place)
    unpack(split(content, tmp_path), place, n_bytes=len(content))
    assert is_complete(place)
    assert root(place) == place / "m"
    assert {name: (place / name).read_bytes() for name in FILES} == FILES
    (place / "m" / "model.safetensors").write_bytes(b"half")
    assert not is_complete(place)


def refused(tmp_path: Path, content: bytes, match: str, n_bytes: int | None = None) -> None:
    place = tmp_path / "cache" / "m"
    with pytest.raises(FileError, match=match):
        unpack(split(content, tmp_path), place, n_bytes=n_bytes or len(content))
    assert not place.exists()
    assert not list(tmp_path.glob("cache/.*"))


def test_another_size_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, packed(FILES), r"have [\d,]+ bytes; expected 7\. Install", n_bytes=7)


def test_a_flipped_byte_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:  # stored: the byte is the file's own
        archive.writestr("m/config.json", b"x" * 5000)
    content = bytearray(buffer.getvalue())
    content[2500] ^= 1
    refused(tmp_path, bytes(content), "are damaged: .*CRC")


def test_a_damaged_stream_is_refused(tmp_path: Path) -> None:
    content = bytearray(packed({"m/config.json": bytes(range(256))}))
    start = 30 + len("m/config.json")  # a local header, then the deflated bytes
    content[start] |= 0b110  # a block of the kind that deflate does not have
    refused(tmp_path, bytes(content), "are damaged: .*invalid block type")


def test_a_second_process_leaves_a_finished_model_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two put the same model together; the first finishes and is in use when the second comes to its end."""
    content = packed(FILES)
    parts, place = split(content, tmp_path), tmp_path / "cache" / "m"
    extract, in_use = zipfile.ZipFile.extractall, []

    def overtaken(archive: zipfile.ZipFile, folder: Path) -> None:
        monkeypatch.setattr(zipfile.ZipFile, "extractall", extract)
        unpack(parts, place, n_bytes=len(content))
        in_use.append((place / "m" / "model.safetensors").open("rb"))
        extract(archive, folder)

    monkeypatch.setattr(zipfile.ZipFile, "extractall", overtaken)
    unpack(parts, place, n_bytes=len(content))
    with in_use[0] as file:
        assert os.path.samestat(os.fstat(file.fileno()), (place / "m" / "model.safetensors").stat())
    assert [path.name for path in place.parent.iterdir()] == ["m"]


def test_no_archive_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, b"not a zip archive", "are damaged")


@pytest.mark.parametrize("name", ["../out", "m/../../out", "/etc/out", "C:/out", "..\\out"])
def test_a_path_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    refused(tmp_path, packed({**FILES, name: b"x"}), "leads out of it")
    assert not (tmp_path / "out").exists()


def test_a_link_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, packed(FILES, link="m/link"), "leads out of it")


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, packed({"m/config.json": bytes(10**6)}), "more than 20 times its size")


def test_an_absent_part_is_named(tmp_path: Path) -> None:
    parts = split(packed(FILES), tmp_path)
    parts[1].unlink()
    with pytest.raises(FileError, match=r"m\.zip\.002, a part of m, does not exist"):
        unpack(parts, tmp_path / "m", n_bytes=1)


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "extractall", full)
    refused(tmp_path, packed(FILES), "cannot be written: No space left .* Set ISOSCOPE_CACHE")


def test_a_folder_without_a_model_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no config\.json"):
        root(tmp_path)
