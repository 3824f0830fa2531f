"""The claims of Cai et al. 2021, each with the bound it is tested by, on what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from isoscope_papers.claims import Claim, Holding, judged
from isoscope_papers.manifolds.layers import Followed, LayerFigures
from isoscope_papers.manifolds.run import Outcome
from isoscope_papers.manifolds.setups import MIN_SILHOUETTE

HIGH_INTER, HIGH_INTRA = 0.2, 0.4  # what the paper's first figure shows every layer of every model above
NEAR_ZERO = 0.05
TELLS = 0.5  # share of the variance of position or frequency that the first three components must tell
MOST = 0.5  # share of the variance the first three components must have for the space to be low-dimensional
FIRST = 0.25  # share of the layers that count as the first ones

BOTH_HIGH = f"both cosines high in every layer (S_inter > {HIGH_INTER}, S_intra > {HIGH_INTRA})"
ISOLATED = f"isolated clusters in every layer (best silhouette ≥ {MIN_SILHOUETTE})"
INTER_GONE = f"in centred clusters S_inter near zero (|·| < {NEAR_ZERO})"
INTRA_GONE = f"in centred clusters S_intra near zero (|·| < {NEAR_ZERO})"
LOWER_LID = "LID below that of static vectors (Euclidean)"
LOWER_LID_COSINE = "LID below that of static vectors (1 − cos, as in table 3)"
FLAT = f"first layers low-dimensional (3 components > {MOST:.0%} of variance)"
FREQUENCY = f"first layers: 3 components tell frequency (R² > {TELLS})"
POSITION = f"first layers: 3 components tell position (R² > {TELLS})"

Layers = Sequence[tuple[int, LayerFigures]]


def all_claims(outcomes: Iterable[Outcome]) -> list[Claim]:
    """Every claim on every model: with all tokens, and without attention sinks where there are any."""
    outcomes = list(outcomes)
    static = [one for one in outcomes if one.static is not None]
    found: list[Claim] = []
    for outcome in outcomes:
        for subject, layers in views(outcome):
            found += _of_layers(subject, layers)
            for table in static:
                found.append(_lower_lid(LOWER_LID, "lid", subject, layers, table))
                found.append(_lower_lid(LOWER_LID_COSINE, "lid_cosine", subject, layers, table))
    return [claim for claim in found if claim.evidence]


def tallies(claims: Sequence[Claim]) -> tuple[str, ...]:
    """How each model fared, in words."""
    found = []
    for subject in dict.fromkeys(one.subject for one in claims):
        own = [one.holding for one in claims if one.subject == subject]
        parts = [f"{own.count(kind)} {_in_words(kind)}" for kind in Holding if kind in own]
        found.append(f"{subject}: of {len(own)} claims {', '.join(parts)}")
    return tuple(found)


def _in_words(kind: Holding) -> str:
    return "depended on the layer" if kind is Holding.DEPENDS else str(kind)


def views(outcome: Outcome) -> list[tuple[str, Layers]]:
    """The blocks of a model, each with its number: all tokens, then without sinks where there are any.

    The embedding layer is left out: the paper's layer 0 is the first block.
    """
    found: list[tuple[str, Layers]] = []
    for words, layers in (
        (outcome.title, outcome.layers),
        (f"{outcome.title}, no sinks", outcome.without_sinks),
    ):
        numbered = zip(outcome.about.get("layers", ()), layers, strict=False)
        blocks = [(number, one) for number, one in numbered if number > 0]
        if blocks:
            found.append((words, blocks))
    return found


def _of_layers(subject: str, layers: Layers) -> list[Claim]:
    first = [(number, one) for number, one in layers if number <= max(2, FIRST * layers[-1][0])]
    return [
        _both_high(subject, layers),
        _judge(ISOLATED, subject, layers, lambda one: one.silhouette, lambda found: found >= MIN_SILHOUETTE),
        _within(INTER_GONE, subject, layers, lambda one: one.adjusted.s_inter),
        _within(INTRA_GONE, subject, layers, lambda one: one.adjusted.s_intra),
        _above(FLAT, subject, first, lambda one: one.top_variance, MOST),
        _above(FREQUENCY, subject, first, lambda one: _nearby(one.log_frequency), TELLS),
        _above(POSITION, subject, first, lambda one: _nearby(one.position), TELLS),
    ]


def _nearby(told: Followed | None) -> float | None:
    return None if told is None else told.nearby


def _both_high(subject: str, layers: Layers) -> Claim:
    pairs = [(one.cosines.s_inter, one.cosines.s_intra) for _, one in layers]
    known = [(inter, intra) for inter, intra in pairs if inter is not None and intra is not None]
    held = [inter > HIGH_INTER and intra > HIGH_INTRA for inter, intra in known]
    evidence = (
        f"{_range([inter for inter, _ in known])} and {_range([intra for _, intra in known])}{_count(held)}"
    )
    return Claim(BOTH_HIGH, subject, judged(held), evidence if known else "")


Value = Callable[[LayerFigures], float | None]


def _within(claim: str, subject: str, layers: Layers, value: Value) -> Claim:
    return _judge(claim, subject, layers, value, lambda found: abs(found) < NEAR_ZERO)


def _above(claim: str, subject: str, layers: Layers, value: Value, bound: float) -> Claim:
    return _judge(claim, subject, layers, value, lambda found: found > bound)


def _judge(claim: str, subject: str, layers: Layers, value: Value, holds: Callable[[float], bool]) -> Claim:
    values = [found for found in (value(one) for _, one in layers) if found is not None]
    held = [holds(found) for found in values]
    return Claim(claim, subject, judged(held), f"{_range(values)}{_count(held)}" if values else "")


def _lower_lid(claim: str, kind: str, subject: str, layers: Layers, table: Outcome) -> Claim:
    """Against a static table by the same estimator; what vectors and dimensions each has is said apart."""
    theirs = getattr(table.static, kind)
    values = [value for _, one in layers if (value := getattr(one, kind)) is not None]
    if theirs is None or not values:
        return Claim(claim, subject, Holding.NOT_HELD, "")
    held = [found < theirs for found in values]
    evidence = f"{_range(values, 1)} against {theirs:.1f} of {table.title}{_count(held)}"
    return Claim(claim, subject, judged(held), evidence)


def _range(values: Sequence[float], digits: int = 3) -> str:
    if not values:
        return "—"
    low, high = (f"{value:.{digits}f}".replace("-", "−") for value in (min(values), max(values)))
    return low if low == high else f"{low} … {high}"


def _count(held: Sequence[bool]) -> str:
    """In how many layers, where it is not all of them."""
    return "" if all(held) else f" ({sum(held)} of {len(held)} layers)"
