from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import isoscope.models.layers
from isoscope.cli import app
from isoscope.errors import FileError, InputError, IsoscopeError

TEXTS = ["a cat sat on the mat", "boom the dog ran to the cat", "dog on a hat", "the hat sat to a cat"] * 6


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS))
    return file


def run(*arguments: object) -> str:
    found = CliRunner().invoke(app, ["layers", *map(str, arguments)])
    if found.exception and isinstance(found.exception, IsoscopeError):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found.output


def test_one_model(tiny_gpt: Path, texts: Path) -> None:
    shown = run(tiny_gpt, "--texts", texts, "--no-clusters")
    assert "138 tokens of 11 types in 24 texts, 4 layers × 16" in shown
    assert "effective rank: number of dimensions the variance fills" in shown
    assert "clusters" not in shown
    assert "attention sinks (24 tokens): position 0" in " ".join(shown.split())
    assert "without sinks" in shown
    assert "tokens per second in the model" in shown


@pytest.mark.slow
def test_two_models(tiny_bert: Path, tiny_gpt: Path, texts: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shown = run(tiny_bert, tiny_gpt, "--texts", texts, "--no-clusters", "-o", tmp_path / "out")
    assert "self-similarity rises most" in shown
    assert "self-similarity falls most" in shown
    found = json.loads((tmp_path / "out" / "layers.json").read_text())
    assert set(found) == {"before", "after", "self_similarity_change"}
    assert (tmp_path / "out" / "layers.png").stat().st_size > 10_000


def test_similarity_of_layers(tiny_bert: Path, tiny_gpt: Path, texts: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    shown = run(tiny_bert, texts, "--similarity", "cka_debiased", "-o", out)
    assert "linear CKA without bias" in shown
    kept = json.loads((out / "similarity.json").read_text())
    printed = json.loads(run(tiny_bert, texts, "--similarity", "cka_debiased", "--json"))
    assert kept["values"] == printed["values"]
    assert (out / "similarity.png").stat().st_size > 5_000
    both = json.loads(
        run(tiny_bert, tiny_gpt, texts, "--similarity", "procrustes", "--layers", "0,1", "--json")
    )
    assert (both["rows"], both["columns"], both["measure"]) == (["0", "1"], ["0", "1"], "procrustes")
    for wrong in (("-m", "isoscore"), ("--memory", "1GB")):
        with pytest.raises(InputError, match="goes without --similarity"):
            run(tiny_bert, texts, "--similarity", "cka", *wrong)
    with pytest.raises(InputError, match="takes one model or two, got 3"):
        run(tiny_bert, tiny_bert, tiny_bert, texts, "--similarity", "cka")


def test_the_texts_are_the_last_argument(tiny_bert: Path, tiny_gpt: Path, texts: Path) -> None:
    options = ("--json", "-m", "twonn")
    last, option = (json.loads(run(tiny_bert, *where, *options)) for where in ([texts], ["--texts", texts]))
    assert last["layers"] == option["layers"]
    assert "self-similarity rises most" in run(tiny_bert, tiny_gpt, texts, "--no-clusters")


def test_two_models_and_metrics_by_name(tiny_bert: Path, tiny_gpt: Path, texts: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shown = run(tiny_bert, tiny_gpt, texts, "-m", "participation_ratio", "-o", tmp_path)
    assert "participation ratio: a high value means" in shown
    assert "self-similarity" not in shown
    assert (tmp_path / "layers.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda path, table: table.to_parquet(path), "texts.parquet"),
        (lambda path, table: table.to_csv(path, index=False), "texts.csv"),
        (lambda path, table: table.to_json(path, orient="records", lines=True), "texts.jsonl"),
    ],
)
def test_texts_in_a_table(tiny_bert: Path, tmp_path: Path, write, name: str) -> None:
    pandas = pytest.importorskip("pandas")
    write(tmp_path / name, pandas.DataFrame({"id": range(len(TEXTS)), "text": TEXTS}))
    assert json.loads(run(tiny_bert, tmp_path / name, "--json", "-m", "mean_norm"))["n_texts"] == len(TEXTS)


def test_texts_are_missing(tiny_bert: Path, tiny_gpt: Path) -> None:
    for models in ([tiny_bert], [tiny_bert, tiny_gpt]):
        with pytest.raises(InputError, match=r"a file of texts must follow.*soscope layers .* reviews.txt"):
            run(*models)


def test_the_model_as_an_option(tiny_bert: Path, texts: Path) -> None:
    def found(*words: object) -> dict:
        whole = json.loads(run(*words, "--json", "--no-clusters", "-m", "mean_norm"))
        return {key: value for key, value in whole.items() if "second" not in key}

    assert found("--model", tiny_bert, texts)["layers"] == found(tiny_bert, texts)["layers"]


def test_json(tiny_bert: Path, texts: Path) -> None:
    found = json.loads(run(tiny_bert, "--texts", texts, "--json", "--no-clusters", "--layers", "0,2"))
    assert [layer["layer"] for layer in found["layers"]] == [0, 2]
    assert found["n_tokens"] == 138


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        (("--special",), lambda found, _: found["n_tokens"] == 186),
        (("--max-tokens", 30), lambda found, _: found["n_tokens"] < 30),
        (("--window", 12), lambda found, _: found["n_texts"] == 14),
        (("--sample", 50), lambda found, _: found["sample"] == 50),
        (("--clusters",), lambda found, _: found["layers"][1]["all tokens"]["n_clusters"] is not None),
        (("--seed", 1), lambda found, other: baseline(found) != baseline(other)),
    ],
)
def test_every_option_does_something(tiny_bert: Path, texts: Path, options: tuple, changed) -> None:
    plain = ("--texts", texts, "--json", "--no-clusters")
    other = json.loads(run(tiny_bert, *plain))
    assert changed(json.loads(run(tiny_bert, *plain, *options)), other)


def baseline(found: dict) -> float:
    return found["layers"][1]["all tokens"]["sampled_anisotropy"]


def test_what_is_passed_on(tiny_bert: Path, texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory and device change no figure: they reach the function that heeds them."""
    seen = {}
    measure = isoscope.models.layers.measure_layers
    monkeypatch.setattr(
        isoscope.models.layers,
        "measure_layers",
        lambda *texts, **options: seen.update(options) or measure(*texts, **options),
    )
    run(tiny_bert, "--texts", texts, "--no-clusters", "--memory", "7MB", "--device", "cpu", "--download")
    assert (seen["memory"], seen["device"], seen["download"]) == ("7MB", "cpu", True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--window", 0), "window must be"),
        (("--data", "somewhere"), "--data goes with a corpus"),
    ],
)
def test_options_that_cannot_be_heeded(tiny_bert: Path, texts: Path, options: tuple, words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(tiny_bert, "--texts", texts, *options)


def test_a_column_of_a_corpus_is_refused(tiny_bert: Path) -> None:
    with pytest.raises(InputError, match="--text-column works only with a file"):
        run(tiny_bert, "--texts", "stsb", "--text-column", "body")


def test_blank_lines_are_nothing_to_a_stream(tiny_bert: Path, tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("\n\n".join(TEXTS) + "\n\n")
    assert "138 tokens of 11 types in 14 texts" in run(
        tiny_bert, "--texts", book, "--window", 12, "--no-clusters"
    )
    with pytest.raises(InputError, match="no text in line 2"):
        run(tiny_bert, "--texts", book)


def test_a_column_of_a_table(tiny_bert: Path, tmp_path: Path) -> None:
    file = tmp_path / "table.jsonl"
    file.write_text("\n".join(json.dumps({"note": "x", "body": text}) for text in TEXTS))
    shown = run(tiny_bert, "--texts", file, "--text-column", "body", "--no-clusters")
    assert "138 tokens" in shown


def test_long_texts_are_cut_on_request(tiny_bert: Path, tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("\n".join(["a cat " * 20, "the dog"]))
    with pytest.raises(InputError, match=r"has 42 tokens, and .* accepts 24.*--truncate.*--window"):
        run(tiny_bert, "--texts", file)
    assert "truncated to 24 tokens" in run(tiny_bert, "--texts", file, "--truncate", "--no-clusters")


def test_a_corpus_by_name(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no wikitext2/.*--download"):
        run(tiny_bert, "--texts", "wikitext2", "--data", tmp_path)
    (tmp_path / "wikitext2").mkdir()
    with gzip.open(tmp_path / "wikitext2" / "wikitext2_test.txt.gz", "wt") as file:
        file.write(" \n\n".join(TEXTS))
    shown = run(tiny_bert, "--texts", "wikitext2", "--data", tmp_path, "--window", 12, "--no-clusters")
    assert "138 tokens of 11 types in 14 texts" in shown


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("a", "b", "a"), InputError, "the same model twice"),
        (("nobody/nothing",), InputError, r"not on this machine.*--download"),
    ],
)
def test_bad_models(texts: Path, arguments: tuple[str, ...], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        run(*arguments, "--texts", texts)


def test_texts_that_are_not_there(tiny_bert: Path) -> None:
    with pytest.raises(FileError, match=r"nowhere\.txt does not exist"):
        run(tiny_bert, "--texts", "nowhere.txt")


def test_an_output_that_cannot_be_written(tiny_bert: Path, texts: Path) -> None:
    with pytest.raises(FileError, match="cannot be written to"):
        run(tiny_bert, "--texts", texts, "--no-clusters", "-o", texts / "inside")
