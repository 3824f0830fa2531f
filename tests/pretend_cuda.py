"""A CUDA device that is not there: what a call launches, how often it waits, and whether it mixes devices.

Tensors of `Pretended` say that they are on "cuda" and hold their numbers on the CPU. Every operation that
a kernel would do counts as a launch; a recording and a kernel of Triton count as one. Reading a number
back, and indexing by a mask, waits. Tensors of the CPU among those of the device are refused, as there.

    python -m tests.pretend_cuda [n d K]        prints where the launches of a default measurement come from

To be used in a process of its own: torch believes from then on that CUDA has been started.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial, partialmethod
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

import isoscope as iso
from isoscope.statistics.directions import unit_rows

CUDA = torch.device("cuda", 0)
_NO_KERNEL = frozenset(
    (
        "alias", "as_strided", "detach", "diagonal", "empty", "empty_like", "empty_strided", "expand",
        "lift_fresh", "new_empty", "permute", "_reshape_alias", "resize_", "select", "set_", "slice", "split",
        "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "_unsafe_view", "unsqueeze",
        "view",
    )
)  # fmt: skip
_WAITS = frozenset({"_local_scalar_dense", "equal", "masked_select", "nonzero", "_unique2", "unique_dim"})
_RECORDED = (
    "kernels.centered", "kernels.recorded", "metrics.silhouettes", "statistics.device_participation",
    "statistics.few_points", "statistics.fused", "statistics.scored",
)  # fmt: skip
_PACKAGE = str(Path("src", "isoscope"))


class Pretended(Tensor):
    """A tensor that says it is on CUDA."""

    _held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Pretended:
        made = Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype
        )
        made._held = held
        return made

    def __repr__(self) -> str:
        return f"Pretended({self._held})"

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The device that is not there."""
        return CUDA

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        """True."""
        return True

    def cpu(self) -> Tensor:
        """Return a copy that does not pretend."""
        return torch.ops.aten._to_copy(self, device=torch.device("cpu"))

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return this tensor on another device, or in another type."""
        devices = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.device | str)]
        if not devices or torch.device(devices[0]).type == "cuda":
            types = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.dtype)]
            return super().to(*types) if types else self
        return self.cpu().to(*args, **kwargs)

    def new_tensor(self, data: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
        """Return numbers on this device."""
        return torch.tensor(data, dtype=dtype or self.dtype, **{"device": CUDA, **options})

    def tolist(self) -> Any:
        """Return the numbers, as a copy to the CPU has them."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Refuse operations outside of `as_on_cuda`."""
        raise RuntimeError(f"{function} of a tensor that pretends, outside of as_on_cuda")


class Launches(TorchDispatchMode):
    """Counts of launches and of waits, in all and by the lines they come from."""

    def __init__(self, *, records: bool = True) -> None:
        super().__init__()
        self.sites: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self._quiet = 0
        self._records = records
        self._made: list[Tensor] = []  # on the CPU within a recording

    @property
    def n_launches(self) -> int:
        """How many kernels were launched."""
        return self.sites.total()

    @property
    def n_waits(self) -> int:
        """How often the device was waited for."""
        return self.waits.total()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute on the CPU, and count what would be launched on the device."""
        kwargs = dict(kwargs or {})
        name = function._schema.name.partition("::")[2]
        flat = torch.utils._pytree.tree_leaves((args, kwargs))
        on_device = any(isinstance(one, Pretended) for one in flat)
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == "cuda":
            kwargs["device"] = torch.device("cpu")
        to_device = on_device if device is None else torch.device(device).type == "cuda"
        if name in ("copy_", "set_"):
            to_device = isinstance(args[0], Pretended)
        elif on_device and name != "_to_copy":
            _refuse_mixed(name, flat, args)
        if self._quiet:
            self._refuse_baked(name, flat)
        found = function(*tree_map(_held, args), **tree_map(_held, kwargs))
        if self._quiet and not to_device:
            self._made += [one for one in torch.utils._pytree.tree_leaves(found) if isinstance(one, Tensor)]
        if on_device or to_device:
            moves = name in ("_to_copy", "copy_") and not all(
                isinstance(one, Pretended) == to_device for one in flat if isinstance(one, Tensor)
            )
            self._count(name, args, between=moves)
        if not to_device:
            return found
        returned = {id(_held(one)): one for one in flat if isinstance(one, Pretended)}
        return tree_map(lambda one: _on_device(one, returned), found)

    def _refuse_baked(self, name: str, flat: list[Any]) -> None:
        """Raise where a number of the CPU from outside a recording would be part of it for ever."""
        made = set(map(id, self._made))
        for one in flat:
            if isinstance(one, Tensor) and not isinstance(one, Pretended) and id(one) not in made:
                raise RuntimeError(f"a recording holds a number of the CPU: {name} at {_site()}")

    def _count(self, name: str, args: Any, *, between: bool) -> None:
        if name in _NO_KERNEL:
            return
        by_mask = name.startswith("index") and len(args) > 1 and _has_mask(args[1])
        if self._quiet:
            if name in _WAITS or by_mask or between:
                raise RuntimeError(f"a recording cannot wait: {name} at {_site()}")
            return
        if name in _WAITS or by_mask or between:
            self.waits[_site()] += 1
        if name != "_local_scalar_dense" and not between:  # a copy, no kernel
            self.sites[_site()] += 1

    def as_one(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function whose operations are one launch."""
        if not self._quiet:
            self.sites[_site()] += 1
        self._quiet += 1
        try:
            return function(*args, **options)
        finally:
            self._quiet -= 1
            if not self._quiet:
                self._made = []

    def replayed(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function that is recorded."""
        call = partial(self.as_one, function) if self._records else function
        return call(*args, **options)


def _held(one: Any) -> Any:
    return one._held if isinstance(one, Pretended) else one


def _on_device(found: Any, returned: dict[int, Any]) -> Any:
    if not isinstance(found, Tensor):
        return found
    return returned.get(id(found)) if id(found) in returned else Pretended(found)


def _refuse_mixed(name: str, flat: list[Any], args: Any) -> None:
    """Raise as torch does where a tensor of the CPU with more than one number meets the device."""
    for one in flat:
        if isinstance(one, Tensor) and not isinstance(one, Pretended) and one.ndim:
            if name.startswith("index") and one is not args[0] and not one.is_floating_point():
                continue  # an index may lie on the CPU
            raise RuntimeError(f"Expected all tensors to be on the same device: {name} at {_site()}")
    on_cpu = any(isinstance(one, Tensor) and not isinstance(one, Pretended) for one in flat)
    if on_cpu and name in ("cat", "stack", "mm", "mv", "dot", "addmm", "bmm"):
        raise RuntimeError(f"Expected all tensors to be on the same device: {name} at {_site()}")


def _has_mask(index: Any) -> bool:
    return isinstance(index, list | tuple) and any(
        isinstance(one, Tensor) and one.dtype in (torch.bool, torch.uint8) for one in index
    )


def _site() -> str:
    """Return the three innermost lines of the package."""
    frame, lines = sys._getframe(2), []
    while frame is not None and len(lines) < 3:
        where = frame.f_code.co_filename
        if _PACKAGE in where:
            lines.append(f"{where.partition(_PACKAGE)[2][1:]}:{frame.f_code.co_name}:{frame.f_lineno}")
        frame = frame.f_back  # type: ignore[assignment]
    return " < ".join(lines)


def _takes(X: Any, *_: Any) -> bool:
    return isinstance(X, Pretended) and X.dtype in (torch.float32, torch.float16, torch.bfloat16)


def _direction_sums(X: Tensor) -> tuple[Tensor, Tensor]:
    """Return what the kernel of this name returns."""
    units, norms = unit_rows(X)
    sums = torch.stack([units.sum(dim=0), (units * units).sum(dim=0)])
    of_norms = norms.sum(), norms @ norms, norms.min(), norms.max(), (norms == 0).sum()
    return sums, torch.stack([value.double() for value in of_norms])


def _moved(self: Tensor, move: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Return what `Tensor.to` does, also where the other tensor pretends."""
    if args and isinstance(args[0], Pretended) and not isinstance(self, Pretended):
        return move(self, CUDA, args[0].dtype)
    return move(self, *map(_held, args), **kwargs)


def _no_room(*_: Any, **__: Any) -> None:
    raise torch.cuda.OutOfMemoryError


@contextmanager
def as_on_cuda(*, records: bool = True) -> Iterator[Launches]:
    """Count what is launched inside on tensors that pretend to be on CUDA, with Triton; of few points.

    Without `records`, recordings count as what is recorded: so it is at the first call with a shape.
    """
    counted = Launches(records=records)
    kernels = {
        "triton_directions": {"MOST_DIMS": 4096, "direction_sums": partial(counted.as_one, _direction_sums)},
        "triton_checksum": {"checksum_of_bits": partial(counted.as_one, lambda bits: bits.long().sum())},
    }
    modules = {f"isoscope.kernels.{name}": SimpleNamespace(**held) for name, held in kernels.items()}
    replaced = {f"isoscope.{module}.replayed": counted.replayed for module in _RECORDED}
    replaced |= {
        f"isoscope.{module}.can_launch": _takes
        for module in ("statistics.directions", "statistics.fused", "metrics.silhouettes")
    }
    replaced["isoscope.statistics.fused._separation"] = _no_room  # the tiles of torch take over
    replaced["isoscope.engine.measure.decomposing"] = lambda *_, **__: nullcontext()
    replaced["torch.cuda._lazy_init"] = lambda: None
    with ExitStack() as stack:
        for name, module in modules.items():
            stack.callback(sys.modules.pop, name)
            sys.modules[name] = module  # type: ignore[assignment]
        for name, stand_in in replaced.items():
            stack.enter_context(mock.patch(name, stand_in))
        stack.enter_context(mock.patch.object(Tensor, "to", partialmethod(_moved, Tensor.to)))
        stack.callback(torch._C._set_only_lift_cpu_tensors, torch._C._only_lift_cpu_tensors())
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(…, device=…) makes a copy that can be seen
        stack.enter_context(counted)
        yield counted


def labelled(n: int, d: int, n_labels: int) -> tuple[Tensor, Tensor]:
    """Return points about centres, and the centre of each."""
    draw = torch.Generator().manual_seed(0)
    codes = torch.randint(0, n_labels, (n,), generator=draw)
    return torch.randn(n, d, generator=draw) + torch.randn(n_labels, d, generator=draw)[codes], codes


def spaces() -> dict[str, tuple[Tensor, Tensor]]:
    """Return spaces that take the ways of large offsets, zero vectors, equal rows, cones and few rows."""
    X, codes = labelled(300, 16, 4)
    alone = torch.where(torch.arange(300) == 7, 4, codes)
    return {
        "float32": (X, codes),
        "float64": (X.double(), codes),
        "a label of one": (X, alone),
        "far from 0": (X + 1e4, codes),
        "a cone": (X * 1e-4 + torch.eye(16)[0], codes),
        "zero rows": (X * (torch.arange(300) % 17 > 0)[:, None], codes),
        "equal rows": (X[:100].repeat(3, 1), codes),
        "one far row": (X + 1e6 * (torch.arange(300) == 0)[:, None], codes),
        "few rows": (torch.cat([X, X.flip(1), X.square()], dim=1)[:30], codes[:30]),
    }


def difference(X: Tensor, codes: Tensor, **options: Any) -> tuple[float, str]:
    """Return the largest relative difference of a reading to that of the CPU, and whose it is."""
    options = {"progress": False, **options}
    expected = iso.measure(X, labels=codes, **options).to_dict()["metrics"]
    with as_on_cuda():
        found = iso.measure(Pretended(X), labels=Pretended(codes), **options).to_dict()["metrics"]
    worst = 0.0, ""
    for name, reading in expected.items():
        for field in ("value", "standard_error"):
            a, b = reading.get(field), found[name].get(field)
            if (a is None) != (b is None):
                return float("inf"), f"{name}, {field}"
            if a is not None:
                worst = max(worst, (abs(a - b) / max(abs(a), 1e-3), f"{name}, {field}"))
    return worst


def counts(n: int, d: int, n_labels: int, *, records: bool = True) -> Launches:
    """Return the launches and waits of a default measurement with labels."""
    X, codes = labelled(n, d, n_labels)
    iso.measure(X, labels=codes, progress=False)  # what is made once is there
    with as_on_cuda(records=records) as counted:
        iso.measure(Pretended(X), labels=Pretended(codes), progress=False)
    return counted


def main() -> None:
    """Print where the launches and the waits of `measure` with labels come from, or --check the numbers."""
    if sys.argv[1:] == ["--check"]:
        found: dict[str, Any] = {name: difference(*space) for name, space in spaces().items()}
        for records in (True, False):
            counted = counts(2000, 384, 10, records=records)
            found["recorded" if records else "first call"] = counted.n_launches, counted.n_waits
        print(json.dumps(found))
        return
    counted = counts(*map(int, sys.argv[1:4] or (2000, 384, 10)))
    print(f"{counted.n_launches} launches, {counted.n_waits} waits")
    for title, sites in (("launches", counted.sites), ("waits", counted.waits)):
        for site, count in sites.most_common():
            print(f"{count:5} {title} {site}")


if __name__ == "__main__":
    main()
