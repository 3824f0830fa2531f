"""What our trainings say of the paper's claims on training, each with the bound it is tested by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from statistics import correlation, fmean

from scipy.stats import spearmanr

from isoscope_papers.contrastive.findings import ALMOST_NONE, SHARPLY, change_findings, cone, no_rise
from isoscope_papers.contrastive.tokens import by_word, extremes, kind
from isoscope_papers.dynamics import bounds
from isoscope_papers.dynamics.run import Dynamics
from isoscope_papers.dynamics.setups import BASE, BASE_POOLING, CLOSE, STARTS
from isoscope_papers.dynamics.views import ANISOTROPY, INTRA, LEAST, NORM, SELF, TITLES, View, views
from isoscope_papers.verdict import Finding, Verdict, decide, judged, on, rho_interval
from isoscope_papers.words import number

GLOVE_RHO = 0.420  # of averaged GloVe vectors on the same pairs: `isoscope reproduce corrections`
STRONGLY = 0.7  # the correlation from which isotropy and norm are strongly correlated
LITTLE = 0.05  # up to which the mean self-similarity changes little
_COLD, _HOT = "tau=0.001", "tau=0.1"
_CLOSE = [f"tau={tau:g}" for tau in CLOSE]
_N_EXTREME = 15  # tokens at either end of the changes
_RISING = {  # of table 2
    "onion", "piano", "unfortunately", "cow", "chair", "potato", "read", "dow", "guitar", "drums", "hands",
    "fire", "run", "house", "japan", "hat", "ukraine", "jumping", "coffee", "points",
}  # fmt: skip
_NO_CLS = "a causal model has no [CLS]; its last token is shown"


def findings(runs: Sequence[Dynamics]) -> Iterator[Finding]:
    """Yield what the runs say of the paper's claims, and what closed forms say of its equations."""
    changes = {}
    for view in views(runs):
        first = next(iter(view.runs.values()))
        n_seeds = len({run.seed for run in runs if run.start == first.start})
        about = (
            f"{first.title}, {len(view.runs)} trainings on {first.n_pairs:,} entailment pairs, "
            f"{n_seeds} {'seed' if n_seeds == 1 else 'seeds'}"
        )
        yield from on("contrastive", view.title, _of_view(view), about)
        if view.changes:
            changes[first.title] = by_word(view.changes)
    yield from change_findings(changes, "the base run of each start, before and after training")
    yield from on("contrastive", "closed form", bounds.findings())


def _of_view(view: View) -> Iterator[Finding]:
    if view.has(BASE):
        yield from _of_base(view)
        if view.is_first:
            yield from _of_task(view)
        if view.has_layers:
            yield from _of_layers(view)
        if view.changes:
            yield from _of_tokens(view)
    if view.has(*_CLOSE):
        yield _falls("temperature-anisotropy", view, ANISOTROPY, view.temperatures())
        # of the norm the paper shows the close temperatures only
        yield _falls("temperature-norm", view, NORM, dict(zip(CLOSE, _CLOSE, strict=True)))
    if view.has(_COLD):
        for claim, metric in (("low-raises-anisotropy", ANISOTROPY), ("low-raises-norm", NORM)):
            first, last = view.moved(_COLD, metric)
            ours = f"{TITLES[metric]} {_arrow(first, last)}"
            yield decide(claim, view.beyond(metric, last - first), ours)
        both = {"self": view.moved(_COLD, SELF), "intra": view.moved(_COLD, INTRA)}
        fallen = {name: last < min(first, SHARPLY) for name, (first, last) in both.items()}
        ours = ", ".join(f"{name} {_arrow(*ends)}" for name, ends in both.items())
        yield decide("low-offset", fallen, ours, where="of {}-similarity")
    if view.has(BASE, _HOT):
        for claim, metric, sign in (("hot-self", SELF, -1), ("hot-intra", INTRA, 1)):
            cool, hot = view.end(BASE, metric), view.end(_HOT, metric)
            ours = f"{TITLES[metric]} {shown(hot)} against {shown(cool)}"
            yield decide(claim, view.beyond(metric, sign * (hot - cool)), ours)
    if view.has(*_CLOSE) and len(view.batches()) > 1:
        yield _of_batches(view)
    if len(view.poolings()) > 2:
        yield from _of_poolings(view)
    r = {_written(name): correlation(view.curve(name, ANISOTROPY), view.curve(name, NORM))
         for name in view.runs if len(view.curve(name, NORM)) > 2}  # fmt: skip
    if r:
        strong = {name: value >= STRONGLY for name, value in r.items()}
        yield decide("isotropy-norm", strong, f"r along each run: {_named(r, 2)}", where="in the runs {}")


def _falls(claim: str, view: View, metric: str, taus: Mapping[float, str]) -> Finding:
    """Judge that a metric is the lower the higher the temperature, from each temperature to the next."""
    steps = [
        (low, high, view.beyond(metric, view.end(taus[low], metric) - view.end(taus[high], metric)))
        for low, high in pairwise(taus)
    ]
    verdict, _ = judged({f"{low:g}": sign for low, _, sign in steps})
    parts = []
    for sign, group in groupby(steps, key=lambda step: step[2]):
        own = list(group)
        words = ("no difference seen ", "", "the contrary ")[sign]
        parts.append(f"{words}from τ = {own[0][0]:g} to {own[-1][1]:g}")
    condition = "; ".join(parts) if verdict is Verdict.CONDITION else ""
    close = ", ".join(shown(view.end(name, metric)) for name in _CLOSE)
    ends = {f"{tau:g}": view.end(name, metric) for tau, name in view.temperatures().items()}
    ours = f"{TITLES[metric]} {close}; all τ: start {shown(view.start(metric))}; {_named(ends)}"
    return decide(claim, (verdict, condition), ours)


def _of_base(view: View) -> Iterator[Finding]:
    first, last = view.moved(BASE, ANISOTROPY)
    near = view.beyond(ANISOTROPY, first - last) if last < ALMOST_NONE else -1
    ours = f"mean cosine {_arrow(first, last)}; IsoScore was not recorded"
    yield decide("contrastive-isotropy", {"mean cosine": near, "IsoScore": 0}, ours, where="by {} only")
    first, last = view.moved(BASE, INTRA)
    rise = view.beyond(INTRA, last - first - SHARPLY)
    yield decide("intra-rises", rise, f"{TITLES[INTRA]} {_arrow(first, last)}")
    first, last = view.moved(BASE, NORM)
    fall = (first - last) / first
    norm = f"mean norm {_arrow(first, last)}, a fall of {100 * fall:.1f} %"
    yield decide("norm-output", fall > SHARPLY, f"{norm} (sharply: over {100 * SHARPLY:g} %)")
    if view.has_change and len({run.task["after"] for run in view.runs.values()}) > 4:
        text, low, high = _related(view, NORM)
        signs = {
            "tokens move toward the origin": view.beyond(NORM, first - last),
            "runs nearer to it score better": 1 if high < 0 else -1 if low > 0 else 0,
        }
        yield decide("space-toward-origin", signs, f"{norm}; of norm and ρ, {text}", where="in that {}")


def _of_task(view: View) -> Iterator[Finding]:
    """Judge claims on the task, which are the same for all views of a start."""
    base, taus = view.runs[BASE], view.temperatures()
    before, after = base.task["before"], {name: run.task["after"] for name, run in view.runs.items()}
    by_tau = {f"{tau:g}": after[name] for tau, name in taus.items()}
    better = {tau: _better(value, before) for tau, value in by_tau.items()}
    ours = f"ρ {before:.3f} → {after[BASE]:.3f} at τ = 0.05; after, by τ: {_named(by_tau)}"
    yield decide("contrastive-improves", better, ours, where="at τ = {}")
    pooled = {how: view.runs[name].task["before"] for how, name in view.poolings().items()}
    worse = {how: _better(GLOVE_RHO, value) for how, value in pooled.items()}
    ours = f"ρ before training {_named(pooled)}; averaged GloVe {GLOVE_RHO:.3f}"
    why = "other models than BERT" if base.start in STARTS else ""
    yield decide("vanilla-below-glove", worse, ours, where="with {} pooling", why=why)
    if len(set(after.values())) > 4:
        text, low, _ = _related(view, INTRA)
        best = max(after, key=after.__getitem__)
        end = view.end(best, INTRA)
        unseen = Verdict.INCONCLUSIVE, "a rank correlation over all runs cannot see an ideal range"
        ours = f"{text}; the best run, {_written(best)}, has adjusted intra-sentence {end:.3f}"
        yield decide("intra-and-performance", Verdict.HELD if low > 0 else unseen, ours)
        if view.has(_COLD):
            text, _, _ = _related(view, ANISOTROPY)
            cold, warm = view.end(_COLD, ANISOTROPY), view.end(BASE, ANISOTROPY)
            ours = (
                f"τ = 0.001 ends with anisotropy {cold:.3f} and ρ {after[_COLD]:.3f}, τ = 0.05 with "
                f"{warm:.3f} and {after[BASE]:.3f}; of anisotropy and ρ, {text}"
            )
            gains = cold > view.start(ANISOTROPY) and after[_COLD] > after[BASE] - LEAST
            yield decide("gain-not-isotropy", gains, ours)
    if view.has(*_CLOSE, _COLD, "tau=0.01", "tau=1"):
        by_two = max(after[name] for name in _CLOSE)
        by_ten = max(after[name] for name in (_COLD, "tau=0.01", _HOT, "tau=1"))
        ours = f"best ρ {by_two:.3f} at 0.025, 0.05, 0.1; {by_ten:.3f} at 0.001, 0.01, 0.1, 1"
        yield decide("search-by-two", _better(by_two, by_ten), ours)
    if view.has(_HOT) and len(taus) > 2:
        rest = max(value for tau, value in by_tau.items() if tau != "0.05")
        parts = {"0.1 is worse than 0.05": _better(after[BASE], after[_HOT]),
                 "0.05 is the best": _better(after[BASE], rest)}  # fmt: skip
        yield decide("hot-performance", parts, f"ρ by τ: {_named(by_tau)}", where="in that {}")


def _better(score: float, other: float) -> int:
    """Return whether the first ρ is the higher: 1, 0 where one seed cannot tell, or -1."""
    return 0 if abs(score - other) < LEAST else 1 if score > other else -1


def _related(view: View, metric: str) -> tuple[str, float, float]:
    """Return how a metric at the end goes with the task over all runs: in words, and the interval."""
    scores = [run.task["after"] for run in view.runs.values()]
    rho = float(spearmanr([view.end(name, metric) for name in view.runs], scores).statistic)
    low, high = rho_interval(rho, len(scores))
    return f"rank correlation over {len(scores)} runs {rho:+.2f} [{low:+.2f}, {high:+.2f}]", low, high


def _of_layers(view: View) -> Iterator[Finding]:
    """Judge claims on the layers of the base run, before and after."""
    for claim, metric, sign in (("anisotropy-middle-layers", ANISOTROPY, -1), ("self-higher-after", SELF, 1)):
        both = zip(*(view.layers(when, metric) for when in ("before", "after")), strict=True)
        steps = {str(layer): after - before for layer, (before, after) in enumerate(both) if layer}
        if sign < 0:  # the last layer is not a middle one
            steps.popitem()
        signs = {layer: view.beyond(metric, sign * step) for layer, step in steps.items()}
        least, most = min(steps.values()), max(steps.values())
        ours = f"change by {least:+.3f} … {most:+.3f} in layers 1–{list(steps)[-1]}"
        yield decide(claim, signs, ours, where="in layers {}")
    before = view.layers("before", INTRA)
    ours = f"untrained: {before[-1]:.3f} in the last layer, at most {max(before[:-1]):.3f} before it"
    yield decide("intra-unique", no_rise(before), ours)
    cosines = view.layers("before", ANISOTROPY)[1:]
    parts: dict[str, int | bool] = {**cone(cosines)}
    ours = f"mean cosine {min(cosines):.3f} … {max(cosines):.3f} above the embedding layer"
    if view.has(_COLD):
        (cold, cold_rho), (base, base_rho) = (
            (view.end(name, ANISOTROPY), view.runs[name].task["after"]) for name in (_COLD, BASE)
        )
        parts["it limits them"] = _better(base_rho, cold_rho)
        ours += f"; trained to a cosine of {cold:.3f} ρ is {cold_rho:.3f}, to {base:.3f} {base_rho:.3f}"
    yield decide("vanilla-cone", parts, ours, where="in that {}")


def _of_tokens(view: View) -> Iterator[Finding]:
    means, signs = {}, {}
    for claim, name, sign in (("function-falls", "grammar", -1), ("content-rises", "content", 1)):
        values = [value for token, value in view.changes.items() if kind(token) == name]
        if values:
            means[name] = fmean(values)
            signs[name] = view.beyond(SELF, sign * means[name])
            n = sum(sign * value > 0 for value in values)
            yield decide(claim, signs[name], f"mean {means[name]:+.3f}; {n} of {len(values)} tokens")
    if len(signs) == 2:
        first, last = view.moved(BASE, SELF)
        parts = {
            "the mean changes little": abs(last - first) < LITTLE,
            "grammar falls and content rises": min(signs.values()) > 0,
        }
        ours = f"{_arrow(first, last)}; " + ", ".join(f"{name} {mean:+.3f}" for name, mean in means.items())
        yield decide("self-small-change", parts, ours, where="in that {}")
    rising, falling = extremes(view.changes, _N_EXTREME)
    n_content, n_grammar = (
        sum(kind(token) == name for token in tokens)
        for tokens, name in ((rising, "content"), (falling, "grammar"))
    )
    same = sorted(_RISING & set(by_word(dict.fromkeys(rising, 0.0))))
    most = {"content words rise most": n_content > len(rising) / 2,
            "words of grammar and marks fall most": n_grammar > len(falling) / 2,
            "the words are the paper's": len(same) > len(rising) / 2}  # fmt: skip
    ours = (
        f"content words: {n_content} of the {len(rising)} that rise most; grammar and marks: {n_grammar} of "
        f"the {len(falling)} that fall most; of the paper's {len(_RISING)} that rise most: "
        f"{', '.join(same) or 'none'}"
    )
    yield decide("table-2-tokens", most, ours, where="in that {}")


def _of_batches(view: View) -> Finding:
    less, parts = {}, []
    for metric, title in TITLES.items():
        ends = ([view.end(name, metric) for name in names] for names in (view.batches().values(), _CLOSE))
        by_batch, by_tau = (max(values) - min(values) for values in ends)
        less[title] = view.beyond(metric, by_tau - by_batch)
        parts.append(f"{title} {shown(by_batch)} against {shown(by_tau)}")
    return decide("batch-small", less, "; ".join(parts), where="of {}")


def _of_poolings(view: View) -> Iterator[Finding]:
    runs = view.poolings()
    slow = "cls" if "cls" in runs else "lasttoken"
    note, no_cls = ("", "") if slow == "cls" else (" (the last token for [CLS])", _NO_CLS)
    over = {how: fmean(view.curve(name, ANISOTROPY)) for how, name in runs.items()}
    ends = {metric: {how: view.end(name, metric) for how, name in runs.items()} for metric in TITLES}
    for claim, how, values, sign, title in (
        ("cls-slowest", slow, over, 1, "anisotropy over the run"),
        ("mean-best", BASE_POOLING, ends[ANISOTROPY], -1, TITLES[ANISOTROPY]),
        ("max-excessive", "max", ends[INTRA], 1, TITLES[INTRA]),
        ("tokens-imitate", BASE_POOLING, ends[INTRA], 1, TITLES[INTRA]),
    ):
        if how in values:
            ahead = {other: view.beyond(INTRA, sign * (values[how] - values[other])) for other in runs
                     if other != how}  # fmt: skip
            holds = Verdict.NOT_HELD if min(ahead.values()) < 0 else judged(ahead, where="against {}")
            own, why = (note, no_cls) if claim == "cls-slowest" else ("", "")
            yield decide(claim, holds, f"{title}: {_named(values)}{own}", why=why)
    steps = view.curve(runs[slow], ANISOTROPY) if slow in runs else []
    if len(steps) > 5:
        fall = steps[-1 - len(steps) // 5] - steps[-1]
        ours = f"{slow}: anisotropy falls by {fall:.3f} over the last fifth of the updates"
        yield decide("cls-falling", view.beyond(ANISOTROPY, fall), ours, why=no_cls)
    first = {metric: view.start(metric) for metric in (ANISOTROPY, INTRA)}
    both = {
        how: min(view.beyond(ANISOTROPY, first[ANISOTROPY] - ends[ANISOTROPY][how]),
                 view.beyond(INTRA, ends[INTRA][how] - first[INTRA]))
        for how in runs
    }  # fmt: skip
    ours = "; ".join(
        f"{TITLES[metric]} {shown(value)} → {_named(ends[metric])}" for metric, value in first.items()
    )
    yield decide("pooling-consistent", both, ours, where="with {} pooling")
    if {slow, "max"} <= set(runs):
        far = {how: abs(ends[SELF][how] - ends[SELF][BASE_POOLING]) for how in (slow, "max")}
        parts = {
            f"max deviates more than {slow}": view.beyond(SELF, far["max"] - far[slow]),
            f"{slow} is like mean": far[slow] < LITTLE,
        }
        ours = f"{TITLES[SELF]}: {_named(ends[SELF])}{note}"
        yield decide("cls-like-mean", parts, ours, where="in that {}", why=no_cls)


def shown(value: float) -> str:
    """Format a figure: three decimals, fewer for large ones."""
    return number(value, 3 if abs(value) < 10 else 1)


def _arrow(first: float, last: float) -> str:
    return f"{shown(first)} → {shown(last)}"


def _written(variant: str) -> str:
    """Return a run's name for reading: "tau=0.1" as "τ = 0.1"."""
    part, _, value = variant.partition("=")
    return {"tau": f"τ = {value}", "batch": f"batch size {value}", "pooling": f"{value} pooling"}[part]


def _named(values: Mapping[str, float], digits: int | None = None) -> str:
    return ", ".join(
        f"{name} {shown(value) if digits is None else f'{value:.{digits}f}'}"
        for name, value in values.items()
    )
