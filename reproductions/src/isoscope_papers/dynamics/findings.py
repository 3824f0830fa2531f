"""What our trainings say of the paper's claims on training, each with the bound it is tested by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from statistics import correlation, fmean

from scipy.stats import spearmanr

from isoscope_papers.contrastive.findings import (
    ALMOST_NONE,
    SHARPLY,
    change_findings,
    cone,
    no_rise,
)
from isoscope_papers.contrastive.tokens import by_word, extremes, kind
from isoscope_papers.dynamics import bounds
from isoscope_papers.dynamics.run import Dynamics
from isoscope_papers.dynamics.setups import BASE, BASE_POOLING, CLOSE, STARTS
from isoscope_papers.dynamics.views import ANISOTROPY, INTRA, LEAST, NORM, SELF, TITLES, View, views
from isoscope_papers.verdict import Finding, Verdict, judged, rho_interval

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
_NO_CLS = Verdict.NOT_TESTABLE, "a causal model has no [CLS]; its last token is shown"
_Answer = tuple[str, tuple[Verdict, str], str]  # claim, verdict with its condition, our figures


def findings(runs: Sequence[Dynamics]) -> Iterator[Finding]:
    """Yield what the runs say of the paper's claims, and what closed forms say of its equations."""
    shown_views = views(runs)
    for view in shown_views:
        first = next(iter(view.runs.values()))
        n_seeds = len({run.seed for run in runs if run.start == first.start})
        about = (
            f"{first.title}, {len(view.runs)} trainings on {first.n_pairs:,} entailment pairs, "
            f"{n_seeds} {'seed' if n_seeds == 1 else 'seeds'}"
        )
        for claim, (verdict, condition), ours in _of_view(view):
            yield Finding(f"contrastive/{claim}", view.title, verdict, ours, condition, about)
    changes = {
        view.runs[BASE].title: by_word(view.runs[BASE].changes)
        for view in shown_views
        if view.has_change and view.has(BASE) and view.runs[BASE].changes
    }
    yield from change_findings(changes, "the base run of each start, before and after training")
    for claim, (verdict, condition), ours in bounds.answers():
        yield Finding(f"contrastive/{claim}", "closed form", verdict, ours, condition)


def _of_view(view: View) -> Iterator[_Answer]:
    if view.has(BASE):
        yield from _of_base(view)
        if view.is_first:
            yield from _of_task(view)
        if view.has_change and view.runs[BASE].layers:
            yield from _of_layers(view)
        if view.has_change and view.runs[BASE].changes:
            yield from _of_tokens(view)
    if view.has(*_CLOSE):
        for claim, metric in (("temperature-anisotropy", ANISOTROPY), ("temperature-norm", NORM)):
            ends = [view.end(name, metric) for name in _CLOSE]
            ours = f"{', '.join(map(shown, ends))}; all τ: {_all_temperatures(view, metric)}"
            yield claim, _falls(view, metric), f"{TITLES[metric]} {ours}"
    if view.has(_COLD):
        yield from _of_cold(view)
    if view.has(BASE, _HOT):
        for claim, metric, sign in (("hot-self", SELF, -1), ("hot-intra", INTRA, 1)):
            cool, hot = view.end(BASE, metric), view.end(_HOT, metric)
            ours = f"{TITLES[metric]} {shown(hot)} against {shown(cool)}"
            yield claim, _sign(view, metric, sign * (hot - cool)), ours
    if view.has(*_CLOSE) and len(view.batches()) > 1:
        yield _of_batches(view)
    if len(view.poolings()) > 2:
        yield from _of_poolings(view)
    r = {name: correlation(view.curve(name, ANISOTROPY), view.curve(name, NORM)) for name in view.runs
         if len(view.curve(name, NORM)) > 2}  # fmt: skip
    if r:
        strong = {_written(name): value >= STRONGLY for name, value in r.items()}
        ours = f"r along each run: {_named({_written(name): value for name, value in r.items()}, 2)}"
        yield "isotropy-norm", judged(strong, where="in the runs {}"), ours


def _sign(view: View, metric: str, difference: float) -> tuple[Verdict, str]:
    return judged({"": view.beyond(metric, difference)})


def _falls(view: View, metric: str) -> tuple[Verdict, str]:
    """Judge that a metric is the lower the higher the temperature, from each temperature to the next."""
    # of the norm the paper shows the close temperatures only
    taus = {tau: name for tau, name in view.temperatures().items() if metric != NORM or name in _CLOSE}
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
    return verdict, "; ".join(parts) if verdict is Verdict.CONDITION else ""


def _of_base(view: View) -> Iterator[_Answer]:
    first, last = view.start(ANISOTROPY), view.end(BASE, ANISOTROPY)
    near = view.beyond(ANISOTROPY, first - last) if last < ALMOST_NONE else -1
    ours = f"mean cosine {shown(first)} → {shown(last)}; IsoScore was not recorded"
    yield "contrastive-isotropy", judged({"mean cosine": near, "IsoScore": 0}, where="by {} only"), ours
    first, last = view.start(INTRA), view.end(BASE, INTRA)
    ours = f"{TITLES[INTRA]} {shown(first)} → {shown(last)}"
    yield "intra-rises", _sign(view, INTRA, last - first - SHARPLY), ours
    first, last = view.start(NORM), view.end(BASE, NORM)
    fall = (first - last) / first
    norm = f"mean norm {shown(first)} → {shown(last)}, a fall of {100 * fall:.1f} %".replace("-", "−")
    yield "norm-output", judged({"": fall > SHARPLY}), f"{norm} (sharply: over {100 * SHARPLY:g} %)"
    if view.has_change and len({run.task["after"] for run in view.runs.values()}) > 4:
        text, low, high = _related(view, NORM)
        signs = {
            "tokens move toward the origin": view.beyond(NORM, first - last),
            "runs nearer to it score better": 1 if high < 0 else -1 if low > 0 else 0,
        }
        yield "space-toward-origin", judged(signs, where="in that {}"), f"{norm}; of norm and ρ, {text}"


def _of_task(view: View) -> Iterator[_Answer]:
    """Judge claims on the task, which are the same for all views of a start."""
    base, taus = view.runs[BASE], view.temperatures()
    before, after = base.task["before"], {name: run.task["after"] for name, run in view.runs.items()}
    by_tau = {f"{tau:g}": after[name] for tau, name in taus.items()}
    ours = f"ρ {before:.3f} → {after[BASE]:.3f} at τ = 0.05; after, by τ: {_named(by_tau)}"
    yield (
        "contrastive-improves",
        judged({tau: _better(value, before) for tau, value in by_tau.items()}, where="at τ = {}"),
        ours,
    )
    pooled = {how: view.runs[name].task["before"] for how, name in view.poolings().items()}
    ours = f"ρ before training {_named(pooled)}; averaged GloVe {GLOVE_RHO:.3f}"
    worse = {how: _better(GLOVE_RHO, value) for how, value in pooled.items()}
    other = Verdict.NOT_TESTABLE, "other models than BERT"
    yield (
        "vanilla-below-glove",
        other if base.start in STARTS else judged(worse, where="with {} pooling"),
        ours,
    )
    if len(set(after.values())) > 4:
        yield from _across_runs(view, after)
    if view.has(*_CLOSE, _COLD, "tau=0.01", "tau=1"):
        by_two = max(after[name] for name in _CLOSE)
        by_ten = max(after[name] for name in (_COLD, "tau=0.01", _HOT, "tau=1"))
        ours = f"best ρ {by_two:.3f} at 0.025, 0.05, 0.1; {by_ten:.3f} at 0.001, 0.01, 0.1, 1"
        yield "search-by-two", judged({"": _better(by_two, by_ten)}), ours
    if view.has(_HOT) and len(taus) > 2:
        rest = max(value for name, value in by_tau.items() if name != "0.05")
        parts = {"0.1 is worse than 0.05": _better(after[BASE], after[_HOT]),
                 "0.05 is the best": _better(after[BASE], rest)}  # fmt: skip
        yield "hot-performance", judged(parts, where="in that {}"), f"ρ by τ: {_named(by_tau)}"


def _better(score: float, other: float) -> int:
    """Return whether the first ρ is the higher: 1, 0 where one seed cannot tell, or -1."""
    return 0 if abs(score - other) < LEAST else 1 if score > other else -1


def _related(view: View, metric: str) -> tuple[str, float, float]:
    """Return how a metric at the end goes with the task over all runs: in words, and the interval."""
    runs = view.runs
    scores = [run.task["after"] for run in runs.values()]
    rho = float(spearmanr([view.end(name, metric) for name in runs], scores).statistic)
    low, high = rho_interval(rho, len(scores))
    text = f"rank correlation over {len(scores)} runs {rho:+.2f} [{low:+.2f}, {high:+.2f}]"
    return text.replace("-", "−"), low, high


def _across_runs(view: View, after: Mapping[str, float]) -> Iterator[_Answer]:
    """Judge claims that relate the geometry to the task over all runs of a start."""
    text, low, _ = _related(view, INTRA)
    best = max(view.runs, key=lambda name: after[name])
    ours = f"{text}; the best run, {_written(best)}, has adjusted intra-sentence {view.end(best, INTRA):.3f}"
    unseen = Verdict.INCONCLUSIVE, "a rank correlation over all runs cannot see an ideal range"
    yield "intra-and-performance", (Verdict.HELD, "") if low > 0 else unseen, ours
    if view.has(_COLD):
        text, _, _ = _related(view, ANISOTROPY)
        cold, base = view.end(_COLD, ANISOTROPY), view.end(BASE, ANISOTROPY)
        gains = {"": cold > view.start(ANISOTROPY) and after[_COLD] > after[BASE] - LEAST}
        ours = (
            f"τ = 0.001 ends with anisotropy {cold:.3f} and ρ {after[_COLD]:.3f}, τ = 0.05 with {base:.3f} "
            f"and {after[BASE]:.3f}; of anisotropy and ρ, {text}"
        )
        yield "gain-not-isotropy", judged(gains), ours


def _of_layers(view: View) -> Iterator[_Answer]:
    """Judge claims on the layers of the base run, before and after."""
    for claim, metric, sign in (("anisotropy-middle-layers", ANISOTROPY, -1), ("self-higher-after", SELF, 1)):
        before, after = (view.layers(when, metric) for when in ("before", "after"))
        last = len(before) - 1
        signs = {
            str(layer): view.beyond(metric, sign * (after[layer] - before[layer]))
            for layer in range(1, last if sign < 0 else last + 1)
        }
        steps = [after[layer] - before[layer] for layer in map(int, signs)]
        ours = f"change by {min(steps):+.3f} … {max(steps):+.3f} in layers 1–{list(signs)[-1]}"
        yield claim, judged(signs, where="in layers {}"), ours.replace("-", "−")
    before = view.layers("before", INTRA)
    ours = f"untrained: {before[-1]:.3f} in the last layer, at most {max(before[:-1]):.3f} before it"
    yield "intra-unique", no_rise(before), ours
    cosines = view.layers("before", ANISOTROPY)[1:]
    parts: dict[str, int | bool] = {**cone(cosines)}
    ours = f"mean cosine {min(cosines):.3f} … {max(cosines):.3f} above the embedding layer"
    if view.has(_COLD):
        cold, base = (view.runs[name].task["after"] for name in (_COLD, BASE))
        parts["it limits them"] = _better(base, cold)
        ends = [view.end(name, ANISOTROPY) for name in (_COLD, BASE)]
        ours += f"; trained to a cosine of {ends[0]:.3f} ρ is {cold:.3f}, to {ends[1]:.3f} {base:.3f}"
    yield "vanilla-cone", judged(parts, where="in that {}"), ours


def _of_tokens(view: View) -> Iterator[_Answer]:
    changes = view.runs[BASE].changes
    by_kind = {name: [value for token, value in changes.items() if kind(token) == name]
               for name in ("grammar", "content")}  # fmt: skip
    signs = {}
    for claim, name, sign in (("function-falls", "grammar", -1), ("content-rises", "content", 1)):
        values = by_kind[name]
        if values:
            signs[name] = view.beyond(SELF, sign * fmean(values))
            n = sum(sign * value > 0 for value in values)
            ours = f"mean {fmean(values):+.3f}; {n} of {len(values)} tokens".replace("-", "−")
            yield claim, judged({"": signs[name]}), ours
    if len(signs) == 2:
        first, last = view.start(SELF), view.end(BASE, SELF)
        parts = {
            "the mean changes little": abs(last - first) < LITTLE,
            "grammar falls and content rises": min(signs.values()) > 0,
        }
        means = ", ".join(f"{name} {fmean(values):+.3f}" for name, values in by_kind.items())
        ours = f"{shown(first)} → {shown(last)}; {means}"
        yield "self-small-change", judged(parts, where="in that {}"), ours.replace("-", "−")
    rising, falling = extremes(changes, _N_EXTREME)
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
    yield "table-2-tokens", judged(most, where="in that {}"), ours


def _of_cold(view: View) -> Iterator[_Answer]:
    for claim, metric in (("low-raises-anisotropy", ANISOTROPY), ("low-raises-norm", NORM)):
        first, last = view.start(metric), view.end(_COLD, metric)
        yield claim, _sign(view, metric, last - first), f"{TITLES[metric]} {shown(first)} → {shown(last)}"
    pairs = {
        "self": (view.start(SELF), view.end(_COLD, SELF)),
        "intra": (view.start(INTRA), view.end(_COLD, INTRA)),
    }
    falls = {name: last < min(first, SHARPLY) for name, (first, last) in pairs.items()}
    ours = ", ".join(f"{name} {shown(first)} → {shown(last)}" for name, (first, last) in pairs.items())
    yield "low-offset", judged(falls, where="of {}-similarity"), ours


def _of_batches(view: View) -> _Answer:
    less, parts = {}, []
    for metric, title in TITLES.items():
        by_batch, by_tau = (
            max(ends) - min(ends)
            for ends in (
                [view.end(name, metric) for name in view.batches().values()],
                [view.end(name, metric) for name in _CLOSE],
            )
        )
        less[title] = view.beyond(metric, by_tau - by_batch)
        parts.append(f"{title} {shown(by_batch)} against {shown(by_tau)}")
    return "batch-small", judged(less, where="of {}"), "; ".join(parts)


def _of_poolings(view: View) -> Iterator[_Answer]:
    runs = view.poolings()
    slow = "cls" if "cls" in runs else "lasttoken"
    note = "" if slow == "cls" else " (the last token for [CLS])"
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
            verdict = (Verdict.NOT_HELD, "") if min(ahead.values()) < 0 else judged(ahead, where="against {}")
            of_cls = claim == "cls-slowest"
            ours = f"{title}: {_named(values)}{note if of_cls else ''}"
            yield claim, _NO_CLS if of_cls and note else verdict, ours
    steps = view.curve(runs[slow], ANISOTROPY) if slow in runs else []
    if len(steps) > 5:
        fall = steps[-1 - len(steps) // 5] - steps[-1]
        ours = f"{slow}: anisotropy falls by {fall:.3f} over the last fifth of the updates"
        yield "cls-falling", _NO_CLS if note else _sign(view, ANISOTROPY, fall), ours.replace("-", "−")
    both = {
        how: min(
            view.beyond(ANISOTROPY, view.start(ANISOTROPY) - ends[ANISOTROPY][how]),
            view.beyond(INTRA, ends[INTRA][how] - view.start(INTRA)),
        )
        for how in runs
    }
    ours = "; ".join(
        f"{TITLES[metric]} {shown(view.start(metric))} → {_named(ends[metric])}"
        for metric in (ANISOTROPY, INTRA)
    )
    yield "pooling-consistent", judged(both, where="with {} pooling"), ours
    if {slow, "max"} <= set(runs):
        values = ends[SELF]
        far = {how: abs(values[how] - values[BASE_POOLING]) for how in (slow, "max")}
        parts = {
            f"max deviates more than {slow}": view.beyond(SELF, far["max"] - far[slow]),
            f"{slow} is like mean": far[slow] < LITTLE,
        }
        ours = f"{TITLES[SELF]}: {_named(values)}{note}"
        yield "cls-like-mean", _NO_CLS if note else judged(parts, where="in that {}"), ours


def shown(value: float) -> str:
    """Format a figure: three decimals, fewer for large ones."""
    return (f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}").replace("-", "−")


def _written(variant: str) -> str:
    """Return a run's name for reading: "tau=0.1" as "τ = 0.1"."""
    part, _, value = variant.partition("=")
    return {"tau": f"τ = {value}", "batch": f"batch size {value}", "pooling": f"{value} pooling"}[part]


def _named(values: Mapping[str, float], digits: int | None = None) -> str:
    return ", ".join(
        f"{name} {shown(value) if digits is None else f'{value:.{digits}f}'.replace('-', '−')}"
        for name, value in values.items()
    )


def _all_temperatures(view: View, metric: str) -> str:
    ends = {f"{tau:g}": view.end(name, metric) for tau, name in view.temperatures().items()}
    return f"start {shown(view.start(metric))}; {_named(ends)}"
