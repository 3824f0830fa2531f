from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from isoscope.cli import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> Path:
    monkeypatch.chdir(tmp_path)
    old = rng.normal(size=(120, 4))
    np.save("old.npy", old)
    np.save("new.npy", old @ np.linalg.qr(rng.normal(size=(4, 4)))[0])
    np.save("other.npy", rng.normal(size=(120, 4)))
    Path("texts.txt").write_text("".join(f"item {i}\n" for i in range(120)))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["migrate", *arguments])


def test_a_map_is_saved_and_applied(folder: Path) -> None:
    result = run("old.npy", "new.npy", "-o", "map.safetensors")
    assert result.exit_code == 0, result.output
    assert "the old vectors can be mapped" in result.stdout
    applied = CliRunner().invoke(app, ["correct", "old.npy", "--load", "map.safetensors", "-o", "mapped.npy"])
    assert applied.exit_code == 0, applied.output
    assert np.allclose(np.load("mapped.npy"), np.load("new.npy"), atol=0.05)


def test_what_is_lost(folder: Path) -> None:
    result = run("old.npy", "other.npy", "--texts", "texts.txt", "--lost", "2", "--json", "--accept", "0.5")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["verdict"] == "embed again"
    assert [one["text"] for one in found["lost"]] == [f"item {one['row']}" for one in found["lost"]]
    assert len(found["lost"]) == 2
    assert run("old.npy", "other.npy", "--gate", "overlap>=0.9").exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("old.npy",),
        ("old.npy", "absent.npy"),
        ("old.npy", "new.npy", "-o", "map.npy"),
        ("old.npy", "new.npy", "--neighbors", "500"),
        ("old.npy", "new.npy", "--gate", "isoscore>=1"),
    ],
)
def test_what_cannot_be(folder: Path, command, arguments: tuple[str, ...]) -> None:
    result = command("migrate", *arguments)
    assert result.code == 2
    assert len(result.err.strip().splitlines()) == 1, result.err
