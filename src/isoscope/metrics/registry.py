"""The registry of metrics: what each one is and needs. Tests, `measure` and the documentation read it."""

from __future__ import annotations

import math
import pkgutil
import warnings
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, Literal, TypeVar, overload

from isoscope.errors import InputError
from isoscope.printable import close_names
from isoscope.space import Space
from isoscope.statistics.declared import declared, whole, with_prerequisites
from isoscope.statistics.gathered import Statistics

KNOWN = ("labels", "token_types", "sentences", "partners", "covariance")  # told by the caller, not computed
ALL_INVARIANCES = frozenset({"rotation", "translation", "scale"})
FAMILIES = (  # in the order of tables and pages
    "isotropy",
    "cosine",
    "spectrum",
    "dimensions",
    "clusters",
    "collapse",
    "quality",
    "manifold",
    "contextual",
    "objectives",
    "correspondence",
)
_PACKAGE = "isoscope.metrics"
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Metric:
    """An entry of the registry: a number that describes a space.

    Attributes:
        name: the one name: function in `isoscope.metrics`, flag, JSON key, documentation anchor.
        family: the group it is listed under.
        compute: the value from a shelf of statistics; a plain float, or a tensor that carries a gradient.
        needs: what it asks of the shelf; names in KNOWN say what the caller must tell.
        range: smallest and largest possible value (±inf where unbounded).
        high: what a high value means, in a few words.
        fair: the metric that compares samples of different sizes, where this one is biased by the number of
            rows; empty where it is not, or where there is none.
        biased_by_rows: whether the expected value depends on the number of rows: slices of different sizes
            are then not tested for a difference. Always true where `fair` is given.
        better: whether a "high" or a "low" value is better, where one is: the worst slice is shown first.
        invariances: which of rotation, translation, scale leave it unchanged.
        differentiable: whether a gradient flows from the value to the vectors.
        paper: where it comes from.
        sentence: what a value means for the reader, in one sentence.
        error: its standard error from the shelf, where one is known.
        error_needs: what that asks of the shelf.
        default: whether `measure` includes it unasked when its needs are met.
        explain: the sentence where it takes more than the value, as with samples so small that it is biased.
        function: what computes it from any array.
        place: its place in the family; those of one place are in the order of their modules.
        also: another name that it is asked for by, as another paper calls it.
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
    explain: Callable[[float, Statistics], str] | None = None
    function: Callable[..., Any] | None = None
    place: int = 0
    better: Literal["high", "low"] | None = None
    fair: str = ""
    biased_by_rows: bool = False
    also: str = ""

    @property
    def streams(self) -> bool:
        """Whether passes over blocks of rows suffice: nothing it needs wants all vectors at once."""
        return not (self.needs | self.error_needs) & whole()

    def meaning(self, value: float, shelf: Statistics) -> str:
        """Return a sentence that explains a value of this space."""
        return self.sentence(value) if self.explain is None else self.explain(value, shelf)

    def of(self, X: Any, *, covariance: Any = None, **known: Any) -> Any:
        """Compute the metric of any array; `known` are the columns of a Space."""
        space = X if isinstance(X, Space) else Space(X, **known)
        return self.compute(Statistics(space, covariance=covariance))


_CODED = frozenset({"labels", "token_types", "sentences"})  # columns that functions take as codes
_built_in: dict[str, Metric] = {}
_own: dict[str, Metric] = {}  # what callers have added, by name
_all: Mapping[str, Metric] = MappingProxyType(ChainMap(_own, _built_in))


def registered() -> Mapping[str, Metric]:
    """Return every metric by name, in the order of tables; metrics of the caller come last."""
    built_in()
    _load_entry_points()
    return _all


@overload
def metric(function: _Function, **entry: Any) -> _Function: ...
@overload
def metric(function: str | None = None, **entry: Any) -> Callable[[_Function], _Function]: ...
def metric(  # type: ignore[misc]  # the options of both are these
    function: Callable[..., Any] | str | None = None,
    *,
    name: str | None = None,
    needs: Iterable[str] = ("vectors",),
    call: Callable[[Callable[..., Any], Statistics], Any] | None = None,
    family: str = "own",
    range: tuple[float, float] = (-math.inf, math.inf),
    high: str = "",
    invariances: Iterable[str] = (),
    differentiable: bool = False,
    paper: str = "",
    sentence: str | Callable[[float], str] | None = None,
    explain: Callable[[float, Statistics], str] | None = None,
    error: Callable[[Statistics], float] | None = None,
    error_needs: Iterable[str] = (),
    default: bool = False,
    place: int = 0,
    better: Literal["high", "low"] | None = None,
    fair: str = "",
    biased_by_rows: bool = False,
    also: str = "",
) -> Any:
    """Register a function as a metric: `measure`, the tracker and the command line then take it by name.

    Args:
        function: takes what it needs, in that order, and returns a number. `@metric("spread")` sets the name.
        name: by default the function's.
        needs: what it takes: "vectors", the (n, d) tensor; "labels", (n,) whole numbers; or statistics, such
            as "moments" or "directions", which are also taken from files in blocks, on Dask and by weights.
            What a statistic builds on, and what the caller must tell for it, is known.
        call: calls the function, which comes first, with what a shelf of statistics has, where that is not
            simply what it needs: `lambda metric, shelf: metric(shelf.neighbors, k=shelf.neighbors.k)`.
        family: the group it is listed under.
        range: smallest and largest possible value.
        high: what a high value means, in a few words.
        invariances: which of "rotation", "translation", "scale" leave the value unchanged.
        differentiable: whether a gradient flows from the value to the vectors.
        paper: where it comes from.
        sentence: what a value means, in one sentence: "points are {value:.3g} apart", or a function of it.
        explain: the sentence from the value and the shelf, where it takes more than the value.
        error: its standard error from a shelf.
        error_needs: what that takes.
        default: whether `measure` includes it unasked.
        place: its place in the family, where not that of its module.
        better: "high" or "low", where one is better than the other.
        fair: the metric that compares samples of different sizes, where this one is biased by the number of
            rows.
        biased_by_rows: whether the expected value depends on the number of rows, so that slices of different
            sizes are not tested for a difference; always true where `fair` is given.
        also: another name to ask for it by.

    >>> import numpy as np
    >>> @metric(needs=("moments",), range=(0.0, math.inf), high="spread out")
    ... def gyration_radius(moments):
    ...     return (moments.trace / moments.count).sqrt()
    >>> import isoscope as iso
    >>> round(iso.measure(np.eye(3), metrics=[gyration_radius])["gyration_radius"], 3)
    0.816
    >>> forget("gyration_radius")
    """
    if function is None or isinstance(function, str):
        options = {key: value for key, value in locals().items() if key != "function"}
        options["name"] = function if name is None else name
        return lambda given: metric(given, **options)
    wanted = tuple(needs)
    unknown = [need for need in wanted if need not in declared() and need not in KNOWN]
    if unknown:
        raise InputError(
            f"has {unknown[0]!r}",
            argument="needs",
            wanted=f"some of {', '.join(sorted({*declared(), *KNOWN}))}",
        )

    def compute(shelf: Statistics) -> Any:
        if call is not None:
            return call(function, shelf)
        return function(*[_given(shelf, need) for need in wanted])

    entry = Metric(
        name=name or function.__name__,
        family=family,
        compute=compute,
        needs=_all_needs(wanted),
        range=range,
        high=high,
        invariances=frozenset(invariances),
        differentiable=differentiable,
        paper=paper,
        sentence=_as_sentence(sentence, high),
        error=error,
        error_needs=frozenset(error_needs),
        default=default,
        explain=explain,
        function=function,
        place=place,
        better=better,
        fair=fair,
        biased_by_rows=biased_by_rows or bool(fair),
        also=also,
    )
    if family in FAMILIES and function.__module__.startswith(f"{_PACKAGE}."):
        _built_in[entry.name] = entry
    else:
        add(entry)
    function.metric = entry  # type: ignore[attr-defined]
    return function


def family(name: str, **common: Any) -> Callable[..., Callable[[_Function], _Function]]:
    """Return `metric` for a family of default metrics, with `common` as its other defaults."""

    def of_family(**own: Any) -> Callable[[_Function], _Function]:
        return metric(**{"family": name, "default": True, **common, **own})

    return of_family


def add(entry: Metric) -> None:
    """Register a metric, in place of an earlier one of the same name."""
    if entry.name in built_in() or entry.name in (*FAMILIES, "all", "default"):
        raise InputError(
            f"is {entry.name!r}, the name of another metric or family", argument="name", wanted="a new name"
        )
    if not entry.name.isidentifier():
        raise InputError(argument="name", got=entry.name, wanted="letters, digits and underscores")
    _own[entry.name] = entry


def forget(name: str) -> None:
    """Remove a metric that a caller has registered."""
    _own.pop(name, None)


@cache
def built_in() -> Mapping[str, Metric]:
    """Return the metrics of this package, found in its modules, in the order tables show them."""
    for module in pkgutil.iter_modules(import_module(_PACKAGE).__path__):
        import_module(f"{_PACKAGE}.{module.name}")
    entries = sorted(_built_in.values(), key=_order)
    _built_in.clear()
    _built_in.update({entry.name: entry for entry in entries})
    return _built_in


def _order(entry: Metric) -> tuple[int, int, str]:
    return FAMILIES.index(entry.family), entry.place, getattr(entry.function, "__module__", "")


@cache
def _load_entry_points() -> None:
    """Import the modules that installed packages declare under the entry point `isoscope.metrics`."""
    for entry_point in entry_points(group=_PACKAGE):
        try:
            entry_point.load()
        except Exception as problem:  # one that is broken takes nothing from the others
            reason = f"{type(problem).__name__}: {problem}".splitlines()[0]
            warnings.warn(f"the metrics of {entry_point.value!r} cannot be loaded: {reason}", stacklevel=3)


def _all_needs(wanted: tuple[str, ...]) -> frozenset[str]:
    """Return the needs with their prerequisites and the columns that the caller must give."""
    statistics = with_prerequisites(need for need in wanted if need not in KNOWN)
    groups = {group for name in statistics if (group := declared()[name].groups)}
    # what is known of every row comes with all rows: statistics of blocks do not keep it
    of_rows = {*wanted} & {"labels", "token_types", "sentences", "partners"}
    rows = {"vectors"} if of_rows and not {*wanted} & whole() else set()
    return frozenset({*wanted, *statistics, *groups, *rows})


def _as_sentence(sentence: str | Callable[[float], str] | None, high: str) -> Callable[[float], str]:
    if isinstance(sentence, str):
        return lambda value: sentence.format(value=value)
    return sentence or (lambda _: high and f"a high value means: {high}")


def _given(shelf: Statistics, need: str) -> Any:
    """Return an argument of a metric: a statistic, or the codes of a column."""
    if need in _CODED:
        known = shelf.labels if need == "labels" else getattr(shelf.space, need)
        return known.codes
    return getattr(shelf, need)


def choose(names: str | Iterable[str] | None) -> list[Metric]:
    """Return metrics by name or family, in registry order; None for the default set, "all" for every one."""
    registered()
    metrics = {**_built_in, **_own}  # a plain dict: the view of both is slow to iterate over
    if names is None:
        return [metric for metric in metrics.values() if metric.default]
    wanted = named(names)
    families = {*FAMILIES, *(metric.family for metric in _own.values())}
    for name in wanted:
        if name not in metrics and name not in families and name not in ("all", "default"):
            raise InputError(f"has no {name!r}", argument="metrics", hint=_nearest(name))
    return [
        metric
        for metric in metrics.values()
        if "all" in wanted
        or metric.name in wanted
        or metric.family in wanted
        or ("default" in wanted and metric.default)
    ]


def named(names: Any) -> list[str]:
    """Return the names of metrics from a list, a comma-separated string, a function or a Metric."""
    one = isinstance(names, str | Metric) or callable(names) or not isinstance(names, Iterable)
    wanted = [_name_of(name, names) for name in ([names] if one else names)]
    parts = [part.strip() for name in wanted for part in name.split(",") if part.strip()]
    if not parts:
        raise InputError(
            "is empty", argument="metrics", wanted="names or families", hint="see `isoscope metrics`"
        )
    other_names = {getattr(entry.function, "__name__", ""): entry.name for entry in registered().values()}
    other_names |= {entry.also: entry.name for entry in registered().values() if entry.also}
    return [other_names.get(part, part) for part in parts]  # silhouette_score is silhouette


def _name_of(one: Any, names: Any) -> str:
    if isinstance(one, str):
        return one
    entry = one if isinstance(one, Metric) else getattr(one, "metric", None)
    if isinstance(entry, Metric):
        if registered().get(entry.name) is not entry:
            add(entry)
        return entry.name
    if callable(one):
        name = getattr(one, "__name__", "") or repr(one)
        raise InputError(
            f"has the function {name!r}, which is no metric yet: decorate it with @iso.metric",
            argument="metrics",
        )
    raise InputError(
        argument="metrics", got=names, wanted="names or families", hint="`isoscope metrics` lists them"
    )


def _nearest(name: str) -> str:
    close = close_names(name, [*registered(), *FAMILIES])
    if close:
        return "did you mean " + " or ".join(close) + "?"
    return "`isoscope metrics` lists them; families are " + ", ".join(FAMILIES)
