from __future__ import annotations

import sys
from pathlib import Path

import pytest

from isoscope.encoders import cache_folder
from isoscope.encoders.folders import new_folder, write_whole


@pytest.mark.parametrize(
    ("platform", "settings", "wanted"),
    [
        ("linux", {"ISOSCOPE_CACHE": "/here"}, "/here"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/isoscope"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/isoscope"),
        ("linux", {}, "/home/me/.cache/isoscope"),
        ("darwin", {}, "/home/me/Library/Caches/isoscope"),
        ("win32", {}, "/home/me/AppData/Local/isoscope"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/isoscope"),
    ],
)
def test_where_the_cache_lies(
    platform: str, settings: dict[str, str], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ISOSCOPE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **settings}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == Path(wanted)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "a.bin"
    write_whole(path, b"old")

    def fail(self: Path, content: bytes) -> int:
        self.touch()
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_appears_only_when_filled(tmp_path: Path) -> None:
    place = tmp_path / "model"

    def stop_half_way() -> None:
        with new_folder(place) as folder:
            (folder / "half").touch()
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        stop_half_way()
    assert list(tmp_path.iterdir()) == []
    for name in ("first", "second"):
        with new_folder(place) as folder:
            (folder / name).touch()
    assert [path.name for path in place.iterdir()] == ["second"]


def test_a_folder_made_by_another_in_the_meantime_stays(tmp_path: Path) -> None:
    place = tmp_path / "model"
    with new_folder(place, unless=lambda path: (path / "whole").exists()) as mine:
        (mine / "mine").touch()
        with new_folder(place) as others:
            (others / "whole").touch()
    assert [path.name for path in place.iterdir()] == ["whole"]
    with new_folder(place, unless=lambda path: (path / "better").exists()) as mine:
        (mine / "mine").touch()
    assert [path.name for path in place.iterdir()] == ["mine"]
    assert list(tmp_path.iterdir()) == [place]


def test_a_place_that_cannot_be_taken_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "model").touch()
    with pytest.raises(OSError, match="model"), new_folder(tmp_path / "model"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
