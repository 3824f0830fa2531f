"""Gates: conditions on a comparison, such as "isoscore>=0.1", that stop a pipeline."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isoscope.errors import InputError, check_choice
from isoscope.metrics.registry import registered
from isoscope.printable import close_names, printable
from isoscope.results import plain
from isoscope.tables import shown

# names that a gate may have besides metrics
CORRESPONDENCES = ("cka", "cka_debiased", "procrustes", "overlap", "search_overlap")
_OF_QUERIES = re.compile(r"map|mrr|(ndcg|recall|hit_rate)@\d+")  # figures of retrieval
METRICS_OF_BOTH = {  # as metrics, which need partners, and as correspondences
    "linear_cka": "cka",
    "linear_cka_debiased": "cka_debiased",
    "procrustes_distance": "procrustes",
    "neighbor_overlap": "overlap",
}
DELTA = "delta:"
WORST = "worst:"  # of all slices
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_OPPOSITE = {">=": "<", "<=": ">", ">": "<=", "<": ">="}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_GATE = re.compile(
    rf"\s*(?P<name>(?:worst:)?\s*(?:delta:)?\s*[\w@]+)\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>{_NUMBER})\s*"
)
_CONDITION = re.compile(
    rf"\s*(?P<name>\w+)\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>{_NUMBER})\s*(?P<percent>%?)\s*"
)


@dataclass(frozen=True)
class Gate:
    """A condition on a metric of B, on its difference B − A ("delta:isoscore"), or on a correspondence.

    Attributes:
        name: the name of the quantity; with "worst:" before it, that of the worst slice.
        sign: ">=", "<=", ">" or "<".
        bound: the number that the quantity is compared with.
    """

    name: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.bound:g}"

    @property
    def metric(self) -> str | None:
        """The metric that has to be measured; None for a correspondence, and for a figure of retrieval."""
        name = self.name.removeprefix(WORST).removeprefix(DELTA)
        return None if name in CORRESPONDENCES or _OF_QUERIES.fullmatch(name) else name

    @property
    def is_of_queries(self) -> bool:
        """Whether the condition is on a search, which needs queries."""
        name = self.name.removeprefix(WORST).removeprefix(DELTA)
        return name == "search_overlap" or _OF_QUERIES.fullmatch(name) is not None

    @property
    def is_correspondence(self) -> bool:
        """Whether the condition is on a measure of both spaces together."""
        return self.name.removeprefix(WORST) in CORRESPONDENCES

    def worst(self, values: Mapping[str, float | None]) -> tuple[str, float | None]:
        """Return the slice whose value is the furthest from passing; an undefined one is."""
        sign = 1 if self.sign.startswith(">") else -1
        return min(values.items(), key=lambda one: -math.inf if one[1] is None else sign * one[1])

    def holds(self, value: float | None) -> bool:
        """Return whether a value passes; an undefined one does not."""
        return value is not None and not math.isnan(value) and _COMPARE[self.sign](value, self.bound)

    def tested(self, value: float | None) -> GateResult:
        """Return the gate with the value that it was tested with."""
        return GateResult(self, value)


@dataclass(frozen=True)
class GateResult:
    """A gate, the value that it was tested with (None where it is undefined), and the slice of this value."""

    gate: Gate
    value: float | None
    slice: str | None = None

    @property
    def passed(self) -> bool:
        """Whether the condition holds."""
        return self.gate.holds(self.value)

    def __str__(self) -> str:
        value = "undefined" if self.value is None else shown(self.value)
        value += "" if self.slice is None else f" in slice {printable(self.slice)}"
        return f"gate {'pass' if self.passed else 'FAIL'}: {self.gate} (is {value})"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        result = {"gate": str(self.gate), "value": plain(self.value), "passed": self.passed}
        return result if self.slice is None else {**result, "slice": self.slice}


def parse_gates(texts: Iterable[str], metrics: Sequence[str] = ()) -> list[Gate]:
    """Return gates from their texts.

    Args:
        texts: such as "isoscore>=0.1".
        metrics: what the gates may be on; by default metrics, their differences, and correspondences.

    >>> [str(gate) for gate in parse_gates(["isoscore >= 0.1", "delta:mean_cosine<0", "cka>=.9"])]
    ['isoscore>=0.1', 'delta:mean_cosine<0', 'cka>=0.9']
    """
    return [_of_names(text, metrics) if metrics else _parsed(text) for text in texts]


def parse_condition(text: str, names: Iterable[str], *, argument: str, such_as: str) -> Gate:
    """Return the gate that fails where a condition holds: "duplicates>1%" is the gate duplicates<=0.01.

    Args:
        text: the condition.
        names: of the quantities that there are.
        argument: what the condition was given as.
        such_as: an example of one.

    >>> str(parse_condition("duplicates > 1%", ["duplicates"], argument="fail_on", such_as=""))
    'duplicates<=0.01'
    """
    match = _CONDITION.fullmatch(text)
    if match is None or not math.isfinite(float(match["bound"])):
        wanted = "NAME>NUMBER, with >, >=, < or <=, and perhaps %"
        raise InputError(argument=argument, got=text, wanted=wanted, hint=f'for example "{such_as}"')
    check_choice(argument, match["name"], names)
    bound = float(match["bound"]) / (100 if match["percent"] else 1)
    return Gate(match["name"], _OPPOSITE[match["sign"]], bound)


def _matched(text: str, examples: str) -> re.Match[str]:
    match = _GATE.fullmatch(text)
    if match is None or not math.isfinite(float(match["bound"])):
        raise InputError(
            argument="gate",
            got=text,
            wanted="NAME>=NUMBER, with >=, <=, > or <",
            hint=f"for example {examples}",
        )
    return match


def _of_names(text: str, names: Sequence[str]) -> Gate:
    match = _matched(text, f'"{names[0]}<=0.1"')
    check_choice("gate", match["name"], names)
    return Gate(match["name"], match["sign"], float(match["bound"]))


def _parsed(text: str) -> Gate:
    match = _matched(text, '"isoscore>=0.1", "delta:isoscore>=-0.02" or "cka>=0.9"')
    name = match["name"].replace(" ", "")
    asked = name.removeprefix(WORST).removeprefix(DELTA)
    quantity = METRICS_OF_BOTH.get(asked, asked)
    name = name.removesuffix(asked) + quantity
    if quantity in CORRESPONDENCES and DELTA in name:
        raise InputError(f"gate {text!r}: {quantity} compares both spaces and has no delta")
    if quantity in CORRESPONDENCES and name.startswith(WORST) and quantity != "overlap":
        raise InputError(f"gate {text!r}: {quantity} is of all rows; of slices there is overlap")
    metrics = [metric.name for metric in registered().values() if "partners" not in metric.needs]
    known = [*metrics, *CORRESPONDENCES]
    if quantity not in known and not _OF_QUERIES.fullmatch(quantity):
        close = close_names(quantity, [*known, *METRICS_OF_BOTH])
        close = list(dict.fromkeys(METRICS_OF_BOTH.get(one, one) for one in close))
        hint = f"did you mean {' or '.join(close)}?" if close else "`isoscope metrics` lists the metrics."
        raise InputError(
            f"gate {text!r}: there is no {quantity!r}; {hint} Others are {', '.join(CORRESPONDENCES)}"
        )
    return Gate(name, match["sign"], float(match["bound"]))
