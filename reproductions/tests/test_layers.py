"""The study of layers: small runs of each kind, what decides each claim, and the page."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.raising import raises
from torch import nn

import isoscope as iso
from isoscope.errors import InputError
from isoscope.models import load_language_model, load_tokenizer
from isoscope_papers.layers import setups, training
from isoscope_papers.layers.findings import findings, percent
from isoscope_papers.layers.options import Options
from isoscope_papers.layers.rounding import (
    EXACT,
    HALF,
    OPERATIONS,
    OTHER_SUMS,
    SINK_SUMS,
    SUMS,
    SUMS_ALONE,
    VARIANTS,
    WEIGHTS,
    variant,
)
from isoscope_papers.layers.run import Layers, Profile, run_setup
from isoscope_papers.layers.setups import DEPTH, METRICS, ROUNDED, ROUNDED_METRICS, SETUPS, TRAINED, Setup
from isoscope_papers.layers.study import STUDY, sections
from isoscope_papers.runs import keep
from isoscope_papers.study import Place
from isoscope_papers.verdict import Verdict

WORDS = np.array(["a", "the", "cat", "dog", "sat", "ran", "to", "mat", "on", "hat"])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    folder = tmp_path / "data" / "wikitext2"
    folder.mkdir(parents=True)
    for split in ("train", "valid", "test"):
        lines = [" ".join(rng.choice(WORDS, 20)) for _ in range(40)]
        (folder / f"wikitext2_{split}.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return tmp_path / "data"


@pytest.mark.slow
def test_the_layers_of_a_model(tiny_gpt: Path, corpus: Path, tmp_path: Path) -> None:
    setup = STUDY.own_setup(str(tiny_gpt))
    (run,) = run_setup(setup, Options(max_tokens=400), Place(corpus, device="cpu"), progress=False)
    assert (run.kind, run.layers, run.n_dims, len(run.profiles)) == (DEPTH, (0, 1, 2, 3), 16, 1)
    assert run.about["n_tokens"] <= 400
    assert set(run.last.values) == set(METRICS)
    profile = iso.layers(
        tiny_gpt, list(WORDS), window=64, max_tokens=400, metrics="mean_cosine", device="cpu", progress=False
    )
    assert profile.layers == list(run.layers)
    (other,) = run_setup(setup, Options(max_tokens=128), Place(corpus, device="cpu"), progress=False)
    assert other.about["n_tokens"] == 128
    keep(run, tmp_path / "layers-own.json")
    assert STUDY.read(tmp_path) == [run]
    with raises(InputError, argument="seed", got=-1):
        run_setup(setup, Options(seed=-1), Place(corpus))
    with raises(InputError, argument="model", wanted="a language model"):
        STUDY.own("words", "words.txt", True)


@pytest.mark.slow
def test_the_model_over_its_training(
    tiny_bert: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = load_tokenizer(tiny_bert)
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    monkeypatch.setattr(training, "load_tokenizer", lambda _: tokenizer)
    monkeypatch.setattr(training, "resolve_model", lambda *_, **__: tiny_bert)
    small = {"n_layers": 1, "n_dims": 16, "n_heads": 2, "window": 16, "batch_size": 4, "steps": 4}
    monkeypatch.setattr(setups, "TRAINING", setups.TRAINING | small)
    monkeypatch.setattr(setups, "SNAPSHOTS", (0, 1, 4))
    with raises(InputError, hint="output"):
        run_setup(SETUPS["masked"], Options(), Place(corpus, device="cpu"))
    place = Place(corpus, device="cpu", runs=tmp_path / "out" / "runs")
    (run,) = run_setup(SETUPS["masked"], Options(max_tokens=300), place, progress=False)
    assert [one.name for one in run.profiles] == ["0", "1", "4"]
    assert set(run.about["training"]["losses"]) == {"1", "4"}
    monkeypatch.setattr(training, "train_masked_lm", None)  # a finished model is not trained again
    assert run_setup(SETUPS["masked"], Options(max_tokens=300), place, progress=False)[0].profiles == (
        run.profiles
    )
    claims = {one.claim for one in findings([run])}
    assert "layers/collapse-then-recovery" in claims


@pytest.mark.slow
def test_a_model_in_bfloat16(tiny_gpt: Path, corpus: Path) -> None:
    setup = Setup("tiny", "tiny", str(tiny_gpt), ROUNDED)
    (run,) = run_setup(setup, Options(), Place(corpus, device="cpu"), progress=False)
    assert tuple(one.name for one in run.profiles) == VARIANTS
    exact, *others = run.profiles
    assert all(exact.largest_change(one, "mean_cosine") > 0 for one in others)
    section = sections([run])[-1]
    assert (section.title, len(section.cells)) == ("bfloat16", len(VARIANTS) - 1)


def test_what_is_rounded(tiny_gpt: Path) -> None:
    """Rounded numbers are those of bfloat16, in float32; the model itself is not changed."""
    model = load_language_model(tiny_gpt, device="cpu")
    with torch.no_grad():
        model.model.wte.weight[1] *= 1000  # token 1 is an attention sink
    before = [weight.clone() for weight in model.model.parameters()]
    states: dict[str, torch.Tensor] = {}
    for name in VARIANTS:
        core: nn.Module = variant(model, name).model
        with torch.no_grad():
            output = core(input_ids=torch.tensor([[1, 2, 3]]), output_hidden_states=True)
        states[name] = output.hidden_states[2][0]
        weights = list(core.parameters())
        of_weights = all(map(on_grid, (weight.data for weight in weights)))
        assert of_weights == (name in (WEIGHTS, SUMS, OPERATIONS, HALF))
        assert weights[0].dtype == (torch.bfloat16 if name == HALF else torch.float32)
    rounded = {name: (on_grid(of_layer[0]), on_grid(of_layer[1:])) for name, of_layer in states.items()}
    both, none = (True, True), (False, False)
    assert rounded == {EXACT: none, WEIGHTS: none, SINK_SUMS: (True, False), OTHER_SUMS: (False, True),
                       SUMS_ALONE: both, SUMS: both, OPERATIONS: both, HALF: both}  # fmt: skip
    assert not torch.equal(states[SUMS], states[OPERATIONS])
    assert all(map(torch.equal, before, model.model.parameters()))


def on_grid(values: torch.Tensor) -> bool:
    """Return whether bfloat16 holds all values."""
    return torch.equal(values, values.bfloat16().to(values.dtype))


# ---------------------------------------------------------------- findings


def made(
    values: dict[str, list[float | None]],
    *,
    kind: str = DEPTH,
    sinks: dict[str, list[float | None]] | None = None,
) -> Layers:
    """Return a run whose metrics are 0.5 … where they are not given; layer 0 never counts."""
    n = 8
    plain = {metric: [0.5 + i / 100 for i in range(n)] for metric in METRICS}
    profile = Profile("", plain | (sinks or values), plain | values, ("position 0",) if sinks else ())
    about = {"n_tokens": 900, "n_types": 90, "n_sinks": 3, "source": "wikitext2", "seconds": 2.0}
    return Layers("own", "made", "all-MiniLM-L6-v2", kind, tuple(range(n)), 16, about, (profile,))


def verdicts(run: Layers) -> dict[str, Verdict]:
    return {one.claim.removeprefix("layers/"): one.verdict for one in findings([run])}


def test_claims_on_depth() -> None:
    rising = [9.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    inside = [9.0, 5.0, 6.0, 9.0, 8.0, 7.0, 6.0, 5.0]
    found = verdicts(
        made(
            {
                "mean_cosine": rising,
                "adjusted_self_similarity": rising,
                "twonn": inside,
                "rankme_debiased": inside,
                "isoscore_debiased": inside,
            }
        )
    )
    assert found == {
        "cosine-rises": Verdict.HELD, "context-accumulates": Verdict.NOT_HELD,
        "dimension-peaks": Verdict.HELD, "rank-least-inside": Verdict.NOT_HELD,
        "tuning-opens-the-cone": Verdict.NOT_HELD, "measures-agree": Verdict.HELD,
    }  # fmt: skip
    falling = verdicts(
        made({"mean_cosine": [0.0, *rising[:0:-1]], "rankme_debiased": [-1 * x for x in inside]})
    )
    assert (falling["cosine-rises"], falling["tuning-opens-the-cone"]) == (Verdict.NOT_HELD, Verdict.HELD)
    assert falling["rank-least-inside"] is Verdict.HELD


@pytest.mark.parametrize(("with_sinks", "verdict"), [(0.01, Verdict.HELD), (0.2, Verdict.NOT_HELD)])
def test_the_claim_on_sinks(with_sinks: float, verdict: Verdict) -> None:
    run = made({"isoscore": [0.5] * 8}, sinks={"isoscore": [0.001, *[with_sinks] * 7]})
    assert verdicts(run)["sinks-decide"] is verdict


def test_the_claim_on_training() -> None:
    run = made({}, kind=TRAINED)

    def at(step: str, rank: float) -> Profile:
        return replace(
            run.last, name=step, without_sinks=run.last.without_sinks | {"rankme_debiased": [rank] * 8}
        )

    for ranks, verdict in (((9, 3, 8), Verdict.HELD), ((9, 8, 3), Verdict.NOT_HELD)):
        profiles = tuple(at(str(step), rank) for step, rank in enumerate(ranks))
        assert verdicts(replace(run, profiles=profiles))["collapse-then-recovery"] is verdict


def test_the_claims_on_bfloat16() -> None:
    """Rounded weights explain half of what bfloat16 changes, or less."""

    def profile(name: str, change: float) -> Profile:
        values: dict[str, Any] = {metric: [1.0, 1.0 + change] for metric in ROUNDED_METRICS}
        return Profile(name, values, values)

    for of_weights, verdict in ((0.05, Verdict.HELD), (0.01, Verdict.NOT_HELD)):
        names = {EXACT: 0.0, WEIGHTS: of_weights, SUMS: 0.1, HALF: 0.1}
        run = replace(made({}), kind=ROUNDED, profiles=tuple(profile(*one) for one in names.items()))
        assert verdicts(run) == {"bfloat16-of-weights": verdict, "bfloat16-of-sums": Verdict.HELD}
    of_sinks = {SINK_SUMS: 0.08, OTHER_SUMS: 0.03}
    profiles = (*run.profiles[:2], *(profile(*one) for one in of_sinks.items()), *run.profiles[2:])
    with_sinks = (*profiles[:-1], replace(profiles[-1], sinks=("position 0",)))
    assert verdicts(replace(run, profiles=with_sinks))["bfloat16-acts-on-sinks"] == Verdict.HELD
    assert "bfloat16-acts-on-sinks" not in verdicts(replace(run, profiles=profiles))
    assert percent(0.1234) == "12 %"


@pytest.mark.slow
def test_the_page_and_its_figure(tmp_path: Path) -> None:
    run = made({"twonn": [None, *[3.0] * 7]}, sinks={})
    trained = replace(
        run, kind=TRAINED, setup="masked",
        profiles=tuple(replace(run.last, name=str(step)) for step in (0, 2, 4)),
        about=run.about | {"training": {
            "n_layers": 7, "n_dims": 16, "n_tokens": 900, "batch_size": 4, "window": 16,
            "held_out_loss": 5.0, "unigram_loss": 6.0, "losses": {"2": 9.0, "4": 7.0},
        }},
    )  # fmt: skip
    written = STUDY.write([run, trained], tmp_path)
    text = written[1].read_text()
    assert "5.00 nats per masked token, where predicting by frequency gives 6.00" in text
    assert "| 2 | 9.00 |" in text
    assert (tmp_path / "layers-depth.pdf").stat().st_size > 1000
