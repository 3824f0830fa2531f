"""Gates: conditions on a comparison that a pipeline stops at, such as "isoscore>=0.1"."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from isoscope.errors import InputError
from isoscope.metrics.registry import registered
from isoscope.results import plain
from isoscope.tables import shown

# what a gate may ask for besides metrics
CORRESPONDENCES = ("cka", "cka_debiased", "procrustes", "overlap")
DELTA = "delta:"
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_GATE = re.compile(rf"\s*(?P<name>(?:delta:)?\s*\w+)\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>{_NUMBER})\s*")


@dataclass(frozen=True)
class Gate:
    """A condition: a metric of B, the difference B − A of one ("delta:isoscore"), or a correspondence.

    Attributes:
        name: what is asked for.
        sign: ">=", "<=", ">" or "<".
        bound: the number it is held against.
    """

    name: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.bound:g}"

    @property
    def metric(self) -> str | None:
        """The metric of the registry that has to be measured for it."""
        name = self.name.removeprefix(DELTA)
        return None if name in CORRESPONDENCES else name

    def holds(self, value: float | None) -> bool:
        """Whether a value passes; one that is undefined does not."""
        return value is not None and not math.isnan(value) and _COMPARE[self.sign](value, self.bound)


@dataclass(frozen=True)
class GateResult:
    """A gate with the value it met; None where that is undefined."""

    gate: Gate
    value: float | None

    @property
    def passed(self) -> bool:
        """Whether the condition holds."""
        return self.gate.holds(self.value)

    def __str__(self) -> str:
        value = "undefined" if self.value is None else shown(self.value)
        return f"gate {'pass' if self.passed else 'FAIL'}: {self.gate} (is {value})"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"gate": str(self.gate), "value": plain(self.value), "passed": self.passed}


def parse_gates(texts: Iterable[str]) -> list[Gate]:
    """Read gates as they are typed.

    >>> [str(gate) for gate in parse_gates(["isoscore >= 0.1", "delta:mean_cosine<0", "cka>=.9"])]
    ['isoscore>=0.1', 'delta:mean_cosine<0', 'cka>=0.9']
    """
    return [_parsed(text) for text in texts]


def _parsed(text: str) -> Gate:
    found = _GATE.fullmatch(text)
    if found is None or not math.isfinite(float(found["bound"])):
        raise InputError(
            f"gate {text!r} is not understood; wanted NAME>=NUMBER with >=, <=, > or <, "
            'such as "isoscore>=0.1", "delta:isoscore>=-0.02" or "cka>=0.9"'
        )
    name = found["name"].replace(" ", "")
    asked = name.removeprefix(DELTA)
    if asked in CORRESPONDENCES and name != asked:
        raise InputError(f"gate {text!r}: {asked} is one number of both spaces and has no delta")
    known = [*registered(), *CORRESPONDENCES]
    if asked not in known:
        close = get_close_matches(asked, known, n=2)
        hint = f"did you mean {' or '.join(close)}?" if close else "`isoscope metrics` lists the metrics."
        raise InputError(
            f"gate {text!r}: there is no {asked!r}; {hint} Others are {', '.join(CORRESPONDENCES)}"
        )
    return Gate(name, found["sign"], float(found["bound"]))
