"""The MCP server, with the client of the mcp package: in memory, and as a process over standard streams."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

import isoscope as iso

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters, stdio_client

from isoscope.cli.mcp_server import Folder, build

TOOLS = {"look", "measure", "compare", "advise", "report"}


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    X = rng.normal(size=(90, 6)) + np.repeat(np.eye(6)[:3] * 4, 30, axis=0)
    np.save(root / "v.npy", X)
    np.save(root / "w.npy", X + 0.01 * rng.normal(size=X.shape))
    np.save(tmp_path / "secret.npy", X)
    (root / "labels.txt").write_text("\n".join("abc"[i // 30] for i in range(90)))
    (tmp_path / "secret.txt").write_text("\n".join("abc"[i // 30] for i in range(90)))
    iso.save(iso.Space(X, labels=["abc"[i // 30] for i in range(90)]), root / "t.parquet")
    shards = root / "shards"
    shards.mkdir()
    np.save(shards / "0.npy", X[:40])
    np.save(shards / "1.npy", X[40:])
    return root


Call = Callable[..., tuple[Any, bool]]


async def _ask(client: Client, tool: str, arguments: dict[str, Any]) -> tuple[Any, bool]:
    answer = await client.call_tool(tool, arguments)
    (content,) = answer.content
    return (content.text if answer.is_error else json.loads(content.text)), bool(answer.is_error)


@pytest.fixture
def call(folder: Path) -> Call:
    """Call a tool of a server in memory: its answer, and whether that is an error."""

    def run(tool: str, **arguments: Any) -> tuple[Any, bool]:
        async def ask() -> tuple[Any, bool]:
            async with Client(build(folder)) as client:
                return await _ask(client, tool, arguments)

        return anyio.run(ask)

    return run


@pytest.mark.slow
def test_a_client_over_standard_streams(folder: Path) -> None:
    async def ask() -> None:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "isoscope", "mcp", "--root", str(folder)],
            env=dict(os.environ),
        )
        async with Client(stdio_client(server)) as client:
            listed = (await client.list_tools()).tools
            assert {tool.name for tool in listed} == TOOLS
            for tool in listed:
                assert tool.description
                assert all("description" in field for field in tool.input_schema["properties"].values())
            answer, failed = await _ask(client, "measure", {"file": "v.npy", "metrics": ["isoscore"]})
            assert not failed
            expected = iso.measure(np.load(folder / "v.npy"), metrics=["isoscore"])["isoscore"]
            assert answer["metrics"]["isoscore"]["value"] == pytest.approx(expected, rel=1e-12)
            message, failed = await _ask(client, "measure", {"file": "absent.npy"})
            assert failed
            assert "absent.npy" in message
            assert "\n" not in message

    anyio.run(ask)


def test_look(call: Call) -> None:
    answer, failed = call("look", file="v.npy", labels="labels.txt")
    assert not failed
    assert len(answer["findings"]) >= 7
    assert "labels" in [finding["name"] for finding in answer["findings"]]
    assert "isoscope measure v.npy" in json.dumps(answer)  # the name that was given, no path of the server


def test_measure(call: Call) -> None:
    answer, failed = call("measure", file="v.npy", labels="labels.txt", metrics=["silhouette", "isoscore"])
    assert not failed
    assert set(answer["metrics"]) == {"isoscore", "silhouette"}
    assert answer["n_labels"] == 3
    assert isinstance(answer["notes"], list)
    column, _ = call("measure", file="t.parquet", labels="label", metrics=["silhouette"])
    assert column["metrics"]["silhouette"]["value"] == answer["metrics"]["silhouette"]["value"]
    for by in ("label", "labels.txt"):
        slices, failed = call("measure", file="t.parquet", by=by, metrics=["mean_norm"])
        assert not failed, slices
        assert len(slices["slices"]) == 3
    for pattern in ("shards", "shards/*.npy"):
        assert call("measure", file=pattern, metrics=["isoscore"])[0]["n"] == 90


def test_compare(call: Call) -> None:
    answer, failed = call(
        "compare",
        a="v.npy",
        b="w.npy",
        labels="labels.txt",
        metrics=["isoscore"],
        gates=["cka>=0.9", "overlap>=1.1"],
    )
    assert not failed
    assert [gate["passed"] for gate in answer["gates"]] == [True, False]


@pytest.mark.slow
def test_advise(call: Call) -> None:
    answer, failed = call(
        "advise", file="v.npy", labels="labels.txt", tasks=["knn"], corrections=["center"], max_rows=60
    )
    assert not failed
    assert "notes" in answer
    assert "center" in json.dumps(answer)


@pytest.mark.slow
def test_report(call: Call, folder: Path) -> None:
    answer, failed = call("report", file="v.npy", labels="labels.txt", output="page.html", title="Mine")
    assert not failed
    assert Path(answer["page"]) == folder / "page.html"
    assert "Mine" in (folder / "page.html").read_text(encoding="utf-8")
    assert answer["headline"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"file": "../secret.npy"},
        {"file": "shards/../../secret.npy"},
        {"file": "/etc/passwd"},
        {"file": "../*.npy"},
        {"file": "sha*/../../*.npy"},
        {"file": ".."},
        {"file": "link.npy"},
        {"file": "linked"},
        {"file": "linked/secret.npy"},
        {"file": "l*.npy"},
        {"file": "*/secret.npy"},
        {"file": "**/secret.npy"},
        {"file": "l*ed"},
        {"file": "file:///etc/passwd"},
        {"file": "s3://bucket/x.npy"},
        {"file": "v.npy\0"},
        {"file": "v.npy", "labels": "../secret.txt"},
        {"file": "v.npy", "labels": "link.txt"},
        {"file": "v.npy", "labels": "../secret.txt:column"},
        {"file": "v.npy", "labels": "~/labels.txt"},
        {"file": "v.npy", "by": "../secret.txt"},
        {"file": "labels.txt", "model": "../model"},
        {"file": "labels.txt", "model": "~"},
    ],
    ids=str,
)
def test_what_is_outside_the_folder_is_refused(
    call: Call, folder: Path, arguments: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)  # where a reader would find what is outside
    (folder / "link.npy").symlink_to(folder.parent / "secret.npy")
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "linked").symlink_to(folder.parent)
    message, failed = call("measure", **arguments)
    assert failed
    assert f"under the root folder {folder}" in message
    assert "\n" not in message


def test_a_name_in_the_working_folder_is_no_name_under_the_root(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    for labels in ("secret.txt", "secret.txt:column"):
        message, failed = call("measure", file="v.npy", labels=labels)
        assert failed
        assert "under the root folder" in message


@pytest.mark.parametrize(
    "output", ["../page.html", "/tmp/page.html", "v.npy", "linked/page.html", "linked/[p]age.html"]
)
def test_a_page_is_written_under_the_folder_and_over_no_data(call: Call, folder: Path, output: str) -> None:
    (folder / "linked").symlink_to(folder.parent)
    before = (folder / "v.npy").read_bytes()
    _, failed = call("report", file="v.npy", output=output)
    assert failed
    assert (folder / "v.npy").read_bytes() == before
    assert not (folder.parent / "page.html").exists()


def test_arguments_of_the_wrong_type_and_unknown_tools_are_errors(call: Call) -> None:
    assert call("measure", file=3)[1]
    assert call("measure", file="v.npy", metrics=["nonsense"])[1]
    assert call("nonsense")[1]


def test_the_root_must_be_a_folder(command, folder: Path) -> None:
    with pytest.raises(iso.FileError):
        Folder(folder / "v.npy")
    printed = command("mcp", "--root", folder / "absent")
    assert printed.code == 2
    assert "--root" in printed.err


def test_without_the_package_the_extra_is_named(command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "isoscope.cli.mcp_server")
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    printed = command("mcp")
    assert printed.code == 2
    assert "isoscope[mcp]" in printed.err
