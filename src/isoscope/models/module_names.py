"""Find the modules of a model by patterns, or by their role in a block: residual, attention, mlp."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from torch import nn

from isoscope.errors import InputError

ROLES = ("residual", "attention", "mlp")
# the names of a block's parts in common libraries; of the parts of a block, the first that matches is used
_PARTS = {
    "attention": ("self_attn", "attn", "attention", "self_attention", "layer.0", "mixer", "temporal_block"),
    "mlp": ("mlp", "ffn", "feed_forward", "ff", "output", "fc2", "layer.1", "DenseReluDense"),
}
_MAX_NAMES = 12  # names of modules shown in an error


def matching_modules(model: nn.Module, modules: str | Iterable[str]) -> list[str]:
    """Return the names of the modules that match any of the patterns, in the order of the model.

    Args:
        model: any module.
        modules: names; patterns such as "encoder.layer.*.attention", in which * stands for any characters
            but a dot; or "residual" (the output of each block), "attention" and "mlp" (those of its parts).

    >>> model = nn.ModuleDict({"blocks": nn.ModuleList(nn.Sequential(nn.ReLU()) for _ in range(2))})
    >>> matching_modules(model, "blocks.*")
    ['blocks.0', 'blocks.1']
    >>> matching_modules(model, "residual")
    ['blocks.0', 'blocks.1']
    """
    names = [name for name, _ in model.named_modules() if name]
    chosen: set[str] = set()
    for pattern in [modules] if isinstance(modules, str) else modules:
        matched = _of_role(model, pattern) if pattern in ROLES else _matched(names, pattern)
        if not matched:
            wanted = f"a pattern of {listed(names)}, or one of {', '.join(ROLES)}"
            raise InputError(argument="modules", got=pattern, wanted=wanted)
        chosen.update(matched)
    return [name for name in names if name in chosen]


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(repr(name) for name in names[:_MAX_NAMES]) + more


def _matched(names: Sequence[str], pattern: str) -> list[str]:
    parts = pattern.split(".")
    return [
        name
        for name in names
        if len(own := name.split(".")) == len(parts) and all(map(fnmatchcase, own, parts))
    ]


def _of_role(model: nn.Module, role: str) -> list[str]:
    found = []
    for name, block in _blocks(model):
        if role == "residual":
            found.append(name)
            continue
        known = dict(block.named_modules())
        part = next((part for part in _PARTS[role] if part in known), None)
        found += [] if part is None else [f"{name}.{part}"]
    return found


def _blocks(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the blocks: the children of every list of modules of one class that is in no other block.

    Where these are stages, as in Swin and ConvNeXt, the blocks are those that each stage lists as `blocks`.
    """
    blocks: list[tuple[str, nn.Module]] = []
    for name, module in model.named_modules():
        if any(name.startswith(f"{block}.") for block, _ in blocks):
            continue
        least = 1 if name.endswith(".blocks") else 2
        if _lists_blocks(module, at_least=least) and not any(_is_stage(child) for child in module.children()):
            blocks += [(f"{name}.{key}" if name else key, child) for key, child in module.named_children()]
    return blocks


def _lists_blocks(module: nn.Module, *, at_least: int = 2) -> bool:
    """Return whether a module lists modules of one class that have parts of their own."""
    children = list(module.children())
    if not isinstance(module, nn.ModuleList | nn.Sequential) or len(children) < at_least:
        return False
    return len({type(child) for child in children}) == 1 and next(children[0].children(), None) is not None


def _is_stage(module: nn.Module) -> bool:
    """Return whether a module lists blocks of its own under the name `blocks`."""
    own = getattr(module, "blocks", None)
    return isinstance(own, nn.Module) and _lists_blocks(own, at_least=1)
