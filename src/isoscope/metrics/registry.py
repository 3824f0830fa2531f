"""The registry: what each metric is, needs and promises. Tests, `measure` and the documentation read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from isoscope.errors import InputError
from isoscope.space import Space
from isoscope.statistics.declared import whole
from isoscope.statistics.gathered import Statistics

KNOWN = ("labels", "token_types", "sentences", "partners", "covariance")  # told by the caller, not computed
ALL_INVARIANCES = frozenset({"rotation", "translation", "scale"})
FAMILIES = (
    "isotropy",
    "cosine",
    "spectrum",
    "clusters",
    "manifold",
    "contextual",
    "dimensions",
    "objectives",
)


@dataclass(frozen=True)
class Metric:
    """One entry: a number that describes a space.

    Attributes:
        name: the one name: function, flag, JSON key, documentation anchor.
        family: the group it is listed under.
        compute: the value from a shelf of statistics; a plain float, or a tensor that carries a gradient.
        needs: what it asks of the shelf; names in KNOWN say what the caller must tell.
        range: smallest and largest possible value (±inf where unbounded).
        high: what a high value means, in a few words.
        invariances: which of rotation, translation, scale leave it unchanged.
        differentiable: whether a gradient flows from the value to the vectors.
        paper: where it comes from.
        sentence: what a value means for the reader, in one sentence.
        told: the sentence where it takes more than the value, as with samples so small that it is biased.
        error: its standard error from the shelf, where one is known.
        default: whether `measure` includes it unasked when its needs are met.
    """

    name: str
    family: str
    compute: Callable[[Statistics], Any]
    needs: frozenset[str]
    range: tuple[float, float]
    high: str
    invariances: frozenset[str]
    differentiable: bool
    paper: str
    sentence: Callable[[float], str]
    error: Callable[[Statistics], float] | None = None
    error_needs: frozenset[str] = frozenset()
    default: bool = True
    told: Callable[[float, Statistics], str] | None = None

    @property
    def streams(self) -> bool:
        """Whether passes over blocks of rows suffice: nothing it needs wants all vectors at once."""
        return not (self.needs | self.error_needs) & whole()

    def meaning(self, value: float, shelf: Statistics) -> str:
        """What a value means on the space it was found on."""
        return self.sentence(value) if self.told is None else self.told(value, shelf)

    def of(self, X: Any, *, covariance: Any = None, **known: Any) -> Any:
        """The metric of any array, on its own; `known` is what a Space may know of its rows."""
        space = X if isinstance(X, Space) else Space(X, **known)
        return self.compute(Statistics(space, covariance=covariance))


def entries(family: str, **common: Any) -> Callable[..., Metric]:
    """A maker of the metrics of a family, by name and `compute`; `common` holds unless an entry says other.

    >>> entry = entries("cosine", needs=frozenset({"directions"}), range=(0.0, 1.0), high="", paper="",
    ...                 invariances=frozenset(), differentiable=True, sentence=str)
    >>> entry("halved", lambda shelf: 0.5, range=(0.5, 0.5)).range
    (0.5, 0.5)
    """

    def entry(name: str, compute: Callable[[Statistics], Any], **own: Any) -> Metric:
        return Metric(name=name, family=family, compute=compute, **{**common, **own})

    return entry


def registered() -> Mapping[str, Metric]:
    """Every metric by name, in the order tables show them."""
    from isoscope.metrics import ALL

    return MappingProxyType({metric.name: metric for metric in ALL})


def choose(names: str | Iterable[str] | None) -> list[Metric]:
    """Metrics by name or family, in registry order; None for the default set, "all" for every one."""
    metrics = registered()
    if names is None:
        return [metric for metric in metrics.values() if metric.default]
    wanted = named(names)
    for name in wanted:
        if name not in metrics and name not in FAMILIES and name not in ("all", "default"):
            raise InputError(f"metrics: there is no {name!r}; {_nearest(name, metrics)}")
    return [
        metric
        for metric in metrics.values()
        if "all" in wanted
        or metric.name in wanted
        or metric.family in wanted
        or ("default" in wanted and metric.default)
    ]


def named(names: str | Iterable[str]) -> list[str]:
    """Names given one by one or with commas between them, one by one."""
    wanted = [names] if isinstance(names, str) else list(names) if isinstance(names, Iterable) else [names]
    if not all(isinstance(name, str) for name in wanted):
        raise InputError(f"metrics is {names!r}; wanted names or families: `isoscope metrics` lists them")
    parts = [part.strip() for name in wanted for part in name.split(",") if part.strip()]
    if not parts:
        raise InputError("metrics is empty; wanted names or families: `isoscope metrics` lists them")
    return parts


def _nearest(name: str, metrics: Mapping[str, Metric]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [*metrics, *FAMILIES], n=2)
    if close:
        return "did you mean " + " or ".join(close) + "?"
    return "`isoscope metrics` lists them; families are " + ", ".join(FAMILIES)
