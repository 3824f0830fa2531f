"""The registry: what each metric is, needs and promises. Tests, `measure` and the documentation read it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

from isoscope.errors import InputError
from isoscope.space import Space
from isoscope.statistics.declared import declared, whole
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


_own: dict[str, Metric] = {}  # what callers have added, by name


def registered() -> Mapping[str, Metric]:
    """Every metric by name, in the order tables show them; those of the caller come last."""
    _load_entry_points()
    return MappingProxyType({**_built_in(), **_own})


def metric(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    needs: Iterable[str] = ("vectors",),
    family: str = "own",
    range: tuple[float, float] = (-math.inf, math.inf),
    high: str = "",
    sentence: Callable[[float], str] | None = None,
    default: bool = False,
) -> Any:
    """Register a function as a metric: `measure`, the tracker and the command line then take it by name.

    Args:
        function: takes what it needs, in that order, and returns a number.
        name: by default the function's.
        needs: what it takes: "vectors", the (n, d) tensor; "labels", (n,) whole numbers; or statistics, such
            as "moments" or "directions", which are also taken from files in blocks, on Dask and by weights.
        family: the group it is listed under.
        range: smallest and largest possible value.
        high: what a high value means, in a few words.
        sentence: what a value means, in one sentence.
        default: whether `measure` includes it unasked.

    >>> import numpy as np
    >>> @metric(needs=("moments",), range=(0.0, math.inf), high="spread out")
    ... def gyration_radius(moments):
    ...     return (moments.trace / moments.count).sqrt()
    >>> import isoscope as iso
    >>> round(iso.measure(np.eye(3), metrics=[gyration_radius])["gyration_radius"], 3)
    0.816
    >>> forget("gyration_radius")
    """
    if function is None:
        own = {key: value for key, value in locals().items() if key != "function"}
        return lambda given: metric(given, **own)
    wanted = tuple(needs)
    # what is known of every row comes with all rows: statistics of blocks do not keep it
    by_row = {"vectors"} if {*wanted} & {"labels", "token_types", "sentences", "partners"} else set()
    unknown = [need for need in wanted if need not in declared() and need not in KNOWN]
    if unknown:
        raise InputError(
            f"needs has {unknown[0]!r}; wanted some of {', '.join(sorted({*declared(), *KNOWN}))}"
        )

    def compute(shelf: Statistics) -> Any:
        return function(*(_given(shelf, need) for need in wanted))

    entry = Metric(
        name=name or function.__name__,
        family=family,
        compute=compute,
        needs=frozenset({*wanted, *by_row}),
        range=range,
        high=high,
        invariances=frozenset(),
        differentiable=False,
        paper="",
        sentence=sentence or (lambda _: high and f"a high value means: {high}"),
        default=default,
    )
    add(entry)
    function.metric = entry  # type: ignore[attr-defined]
    return function


def add(entry: Metric) -> None:
    """Register a metric; one of the same name that a caller added before is replaced."""
    if entry.name in _built_in() or entry.name in (*FAMILIES, "all", "default"):
        raise InputError(f"there is a metric or family {entry.name!r} already; wanted another name")
    if not entry.name.isidentifier():
        raise InputError(f"name is {entry.name!r}; wanted letters, digits and underscores")
    _own[entry.name] = entry


def forget(name: str) -> None:
    """Take back a metric that a caller has added."""
    _own.pop(name, None)


@cache
def _built_in() -> dict[str, Metric]:
    from isoscope.metrics import ALL

    return {metric.name: metric for metric in ALL}


@cache
def _load_entry_points() -> None:
    """Import the modules that installed packages declare under isoscope.metrics; they register their own."""
    for found in entry_points(group="isoscope.metrics"):
        found.load()


def _given(shelf: Statistics, need: str) -> Any:
    """What a metric of the caller takes; of known things the tensors."""
    if need in ("labels", "token_types", "sentences"):
        known = shelf.labels if need == "labels" else getattr(shelf.space, need)
        return known.codes
    return getattr(shelf, need)


def choose(names: str | Iterable[str] | None) -> list[Metric]:
    """Metrics by name or family, in registry order; None for the default set, "all" for every one."""
    metrics = registered()
    if names is None:
        return [metric for metric in metrics.values() if metric.default]
    wanted = named(names)
    families = {*FAMILIES, *(metric.family for metric in _own.values())}
    for name in wanted:
        if name not in metrics and name not in families and name not in ("all", "default"):
            raise InputError(f"metrics: there is no {name!r}; {_nearest(name, metrics)}")
    return [
        metric
        for metric in metrics.values()
        if "all" in wanted
        or metric.name in wanted
        or metric.family in wanted
        or ("default" in wanted and metric.default)
    ]


def named(names: Any) -> list[str]:
    """Names given one by one or with commas between them, one by one; a function or Metric by its name."""
    one = isinstance(names, str | Metric) or callable(names) or not isinstance(names, Iterable)
    wanted = [_name_of(name, names) for name in ([names] if one else names)]
    parts = [part.strip() for name in wanted for part in name.split(",") if part.strip()]
    if not parts:
        raise InputError("metrics is empty; wanted names or families: `isoscope metrics` lists them")
    return parts


def _name_of(one: Any, names: Any) -> str:
    if isinstance(one, str):
        return one
    entry = one if isinstance(one, Metric) else getattr(one, "metric", None)
    if isinstance(entry, Metric):
        if registered().get(entry.name) is not entry:
            add(entry)
        return entry.name
    name = getattr(one, "__name__", "")
    known = next((found for found in (name, name.removesuffix("_score")) if found in registered()), None)
    if known is not None and getattr(one, "__module__", "").startswith("isoscope."):
        return known
    if callable(one):
        raise InputError(
            f"metrics has the function {name or one!r}, which is no metric yet: decorate it with @iso.metric"
        )
    raise InputError(f"metrics is {names!r}; wanted names or families: `isoscope metrics` lists them")


def _nearest(name: str, metrics: Mapping[str, Metric]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [*metrics, *FAMILIES], n=2)
    if close:
        return "did you mean " + " or ".join(close) + "?"
    return "`isoscope metrics` lists them; families are " + ", ".join(FAMILIES)
