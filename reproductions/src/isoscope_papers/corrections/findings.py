"""What the corrections say of the papers' claims on isotropy and tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from isoscope.advice import gain
from isoscope_papers.corrections import setups, tallies
from isoscope_papers.corrections.run import N_NEIGHBORS, NOISE_POWER, Outcome, Result
from isoscope_papers.corrections.tallies import GROUPS, WHITEN, Tally, interval, tally
from isoscope_papers.verdict import Finding, Verdict, by_interval, decide, on, ranges, rho_interval
from isoscope_papers.words import between, number, signed, span

CONE = 0.5  # a mean cosine from which vectors lie close together
NEAR_ZERO = 0.05  # of a mean cosine, and of the change of an IsoScore
LEVEL = 0.05
_ALL = tuple(GROUPS)
_GAIN, _LOSS = 1, -1
_CALIBRATIONS = ("all_but_the_top", "whiten_soft", "whiten_reduced", WHITEN)
_NO_QUERIES = "no set of queries and documents is at hand; nearest is the retrieval of texts by label"
# by group: the claim on whitening, that on the rank correlation of IsoScore and gain, and their direction
_CLAIMS: dict[str, tuple[str, str, int]] = {
    "sentences": ("whitening-sentences", "isotropy-ranks-sentences", _GAIN),
    "words": ("whitening-words", "isotropy-ranks-words", _GAIN),
    "linear probe": ("whitening-probe", "isotropy-ranks-probe", _LOSS),
    "knn": ("whitening-knn", "isotropy-ranks-knn", _LOSS),
    "clustering": ("whitening-clustering", "anisotropy-clusters-well", _LOSS),
    "retrieval": ("whitening-retrieval", "isotropy-ranks-retrieval", _GAIN),
}
_STATIC = (("isotropy-helps-words", "words"), ("isotropy-helps-sentences", "sentences"))


Judged = Iterator[tuple[Sequence[str], Finding]]  # the groups of tasks a finding rests on, and the finding


def findings(outcomes: Sequence[Outcome]) -> Iterator[Finding]:
    """Yield every claim on every encoder that has the data sets it is about."""
    on_tasks = [one for one in outcomes if one.setup.part == setups.TASKS]
    static = next((one for one in on_tasks if one.setup.is_static), None)
    clusters, measures = partial(_of_clusters, n_encoders=len(on_tasks)), partial(_of_measures, static=static)
    parts: dict[str, Sequence[Callable[[Outcome], Judged]]] = {
        setups.TASKS: (_of_groups, _of_static, _of_whitening, clusters, measures),
        setups.PROBE: (_of_probe,),
        setups.NOISE: (_of_noise,),
        setups.ANALOGIES: (_of_analogies,),
    }
    for found in outcomes:
        for part in parts[found.setup.part]:
            for groups, one in part(found):
                evidence = f"{found.title}; {tallies.settings_of(found, groups)}"
                yield from on("classifiers", found.title, [one], evidence)


def _of_groups(found: Outcome) -> Judged:
    for group, (whitening, ranking, sign) in _CLAIMS.items():
        whitened = tally(found, group, WHITEN)
        if whitened.n:
            yield [group], decide(whitening, _held(whitened, sign), whitened.words)
        results = [one for one in found.results if one.kind == GROUPS[group][0]]
        correlations = [rho for one in results if (rho := _correlation(one, group)) is not None]
        if len(correlations) > 2:
            low, high = (min(max(end, -1.0), 1.0) for end in interval(correlations))
            mean = signed(sum(correlations) / len(correlations), 2)
            said = f"mean ρ {mean}, 95 % over {len(correlations)} sets {between(low, high, 2)}"
            yield [group], decide(ranking, by_interval(*sorted((sign * low, sign * high))), said)


def _held(one: Tally, sign: int) -> tuple[Verdict, str]:
    """Judge "most sets, or their mean, go this way and none the other"; else name the sets that do."""
    wanted, unwanted = (one.helped, one.hurt) if sign > 0 else (one.hurt, one.helped)
    low, high = sorted(sign * end for end in interval(one.gains)) if one.n > 2 else (-1.0, 1.0)
    if (2 * len(wanted) > one.n or low > 0) and not unwanted:
        return Verdict.HELD, ""
    if wanted:
        against = f"; the contrary on {ranges(unwanted)}" if unwanted else "; no difference seen on others"
        return Verdict.CONDITION, f"on {ranges(wanted)}{against}"
    return (Verdict.NOT_HELD if unwanted or high < 0 else Verdict.INCONCLUSIVE), ""


def _correlation(result: Result, group: str) -> float | None:
    """Return Spearman's ρ of IsoScore and gain over the corrections, none among them with a gain of 0."""
    from scipy.stats import spearmanr

    task = result.tasks.get(GROUPS[group][1])
    if task is None:
        return None
    gains = {"none": 0.0} | {n: one.gain for n, one in task.corrections.items() if one.gain is not None}
    points = [
        (score, gain)
        for name, gain in gains.items()
        if (score := result.geometry.get(name, {}).get("isoscore")) is not None
    ]
    if len(points) < 4 or len({gain for _, gain in points}) < 2:
        return None
    return float(spearmanr(*zip(*points, strict=True)).statistic)


def _of_static(found: Outcome) -> Judged:
    """Yield what is claimed of static vectors: both corrections have to gain."""
    for claim, group in _STATIC:
        parts = {name: tally(found, group, name).gains for name in ("all_but_the_top", WHITEN)}
        if min(map(len, parts.values())) < 3:
            continue
        signs = {name: _sign(*interval(one)) for name, one in parts.items()}
        why = "" if found.setup.is_static else "the paper says it of static vectors"
        said = "; ".join(f"{name}: mean gain {_mean(gains)}" for name, gains in parts.items())
        yield [group], decide(claim, signs, said, where="by {}", why=why)


def _of_whitening(found: Outcome) -> Judged:
    """Yield what is claimed of isotropy on tasks as a whole."""
    kinds = {
        "graded tasks": tallies.groups_of(setups.SENTENCES, setups.WORDS),
        "tasks with labels": tallies.groups_of(setups.LABELS),
    }
    whitened = {words: tallies.overall(found, WHITEN, groups) for words, groups in kinds.items()}
    graded, labelled = whitened.values()
    if graded.n and labelled.n:
        signs = [len(graded.helped) - len(graded.hurt), len(labelled.hurt) - len(labelled.helped)]
        said = "; ".join(f"{words}: {signed(one.mean)}, {_counts(one)}" for words, one in whitened.items())
        yield _ALL, decide("conflict-explained", min(signs), said)
    if labelled.n and not found.setup.is_static:
        helped = {
            words: [len(tallies.overall(found, name, kinds[words]).helped) for name in _CALIBRATIONS]
            for words in reversed(kinds)
        }
        parts = (f"{n}: helped {', '.join(map(str, one))} of {whitened[n].n}" for n, one in helped.items())
        said = f"{', '.join(_CALIBRATIONS)}: {'; '.join(parts)}"
        signs_of_kinds = {words: not any(one) for words, one in helped.items()}
        yield _ALL, decide("calibration-no-help", signs_of_kinds, said, where="on {}")
    if labelled.n:
        retrieval = {name: tally(found, "retrieval", name) for name in (WHITEN, "whiten_reduced")}
        said = "; ".join(f"{name} {one.words}" for name, one in retrieval.items())
        yield ["retrieval"], decide("dense-retrieval", False, said, why=_NO_QUERIES)
    if (whole := tallies.overall(found, WHITEN)).n:
        verdict, condition = _held(whole, _GAIN)
        condition = condition and "on some tasks; the contrary on others"
        for claim in ("istar/uniform-improves", "manifolds/isotropy-utilises"):
            yield _ALL, decide(claim, (verdict, condition), f"whitening {_counts(whole)}")


def _of_clusters(found: Outcome, n_encoders: int) -> Judged:
    """Yield what is claimed of clusters: taking them off against taking off the common mean or directions."""
    gains = tallies.differences(found, ["sentences"], "cluster_center", "center")
    if len(gains) > 2:
        said = f"centring clusters gains {_mean(gains)} more than centring all"
        yield ["sentences"], decide("clusters-hinder-ranking", _gained(gains), said)
    groups = {"sentences": ["sentences"], "words": ["words"], "labels": tallies.groups_of(setups.LABELS)}
    for words, some in groups.items():
        gains = tallies.differences(found, some, "clusterwise_all_but_the_top", "all_but_the_top")
        if len(gains) > 2:
            said = f"{_mean(gains)} against the global correction over {len(gains)} data sets"
            one = decide("clusterwise-better", _gained(gains, len(groups) * n_encoders), said)
            yield some, replace(one, subject=f"{found.title}, {words}")


def _of_measures(found: Outcome, static: Outcome | None) -> Judged:
    """Yield what is claimed of mean cosine and IsoScore: what centring and all-but-the-top do to them."""
    cosine, plain = (mean_figure(found, "none", figure) for figure in ("mean_cosine", "isoscore"))
    top = [
        (one.geometry["none"]["isoscore"], one.geometry["all_but_the_top"]["isoscore"])
        for one in found.results
        if {"none", "all_but_the_top"} <= set(one.geometry)
    ]
    if cosine is None or plain is None or not top:
        return
    centred, kept = (mean_figure(found, "center", figure) for figure in ("mean_cosine", "isoscore"))
    moved = (
        f"centring: mean cosine {number(cosine)} → {number(centred)}, "
        f"IsoScore {number(plain)} → {number(kept)}"
    )
    gone = centred is not None and abs(centred) < NEAR_ZERO < cosine
    stays = kept is not None and abs(kept - plain) < NEAR_ZERO
    where = "of {}, which centring alone brings to zero; the count of papers is not tested"
    can_tell = cosine > NEAR_ZERO  # a cosine that is near zero without centring shows nothing
    parts = {"mean cosine": (1 if gone and stays else -1) if can_tell else 0, "papers": 0}
    yield _ALL, decide("improper-measures", parts, moved, where=where)
    raised = f"IsoScore {number(plain)} → {number(mean_figure(found, 'all_but_the_top', 'isoscore'))}"
    rises = all((after or 0) > (before or 0) for before, after in top)
    yield _ALL, decide("istar/all-but-the-top", rises, raised)
    if cosine > CONE:
        gains = tally(found, "knn", "center").gains
        if len(gains) > 2:
            said = (
                f"mean cosine {number(cosine)}; taking it to zero gains {_mean(gains)} in nearest neighbours"
            )
            yield ["knn"], decide("manifolds/anisotropy-brings-close", _gained(gains), said)
        if not found.setup.is_static:
            yield from _of_contextual(found, static, cosine)


def _of_contextual(found: Outcome, static: Outcome | None, cosine: float) -> Judged:
    """Yield whether anisotropic vectors of texts in context do better on STS-B than static ones."""
    ours, theirs = (
        next((r.tasks["similarity"] for r in (one.results if one else ()) if r.dataset == "stsb"), None)
        for one in (found, static)
    )
    if ours is None:
        return
    ends = rho_interval(ours.baseline, ours.n_items)
    said = f"mean cosine {number(cosine)}, STS-B ρ {number(ours.baseline)} (95 % {span(ends)})"
    verdict, why = Verdict.NOT_TESTABLE, "no static vectors were scored beside it"
    if static is not None and theirs is not None:
        said += f"; static vectors, {static.title}: {number(theirs.baseline)}"
        verdict, why = by_interval(*ends, theirs.baseline), ""
    one = decide("contextual-anisotropic", verdict, said, why=why)
    yield _ALL, replace(one, evidence=f"{found.title}; STS-B, {ours.n_items:,} pairs")


def _of_probe(found: Outcome) -> Judged:
    """Yield whether isotropy harms a linear classifier whose penalty is chosen in a wide range."""
    names = (WHITEN, "whiten_shrunk", "whiten_soft", "whiten_reduced")
    parts = {name: tally(found, "linear probe", name) for name in names}
    if min(one.n for one in parts.values()) < 2:  # one data set has no interval over data sets
        return
    low, high = interval(parts[WHITEN].gains)
    said = "; ".join(
        f"{name} (IsoScore {number(mean_figure(found, name, 'isoscore'), 2)}) {_mean(one.gains)}"
        for name, one in parts.items()
    )
    yield ["linear probe"], decide("whitened-probe", by_interval(-high, -low), said)


def _of_noise(found: Outcome) -> Judged:
    """Yield whether neighbours stay neighbours under noise more often in a whitened space."""
    for result in found.results:
        for name, task in result.tasks.items():
            # two ways to an IsoScore of 1: where they differ, it is not isotropy that does it
            one, reduced = (task.corrections[each] for each in (WHITEN, "whiten_reduced"))
            low, high = one.interval or (0.0, 0.0)
            said = (
                f"{number(task.baseline)} → {number(one.score)} of the {N_NEIGHBORS} nearest stay, gain "
                f"{signed(one.gain)} (95 % {between(low, high)}); with half of the directions "
                f"{signed(reduced.gain)}"
            )
            sign, other = _sign(low, high), _sign(*(reduced.interval or (0.0, 0.0)))
            judgement = decide("manifolds/isotropy-robust", sign if sign == other else 0, said)
            noise = f"noise of {NOISE_POWER:g} of the variance, {len(one.scores)} draws"
            evidence = f"{found.title} on {result.title}, {task.n_items:,} texts, {noise}"
            yield _ALL, replace(judgement, subject=f"{found.title}, {name}", evidence=evidence)


def _of_analogies(found: Outcome) -> Judged:
    for task in (result.tasks["analogies"] for result in found.results):
        intervals = {name: one.interval or (0.0, 0.0) for name, one in task.corrections.items()}
        said = f"none {number(task.baseline)}"
        for name, one in task.corrections.items():
            said += f"; {name} {number(one.score)} ({signed(one.gain)}, 95 % {between(*intervals[name])})"
        evidence = f"{found.title}, {task.n_items:,} questions of Google's, 95 % over their categories"
        scores = {name: mean_figure(found, name, "isoscore") or 0.0 for name in ("none", *intervals)}
        # centring leaves IsoScore as it is
        raising = [name for name in intervals if scores[name] > scores["none"] + 0.001]
        signs = {f"{n} (IsoScore {number(scores[n], 2)})": _sign(*intervals[n]) for n in raising}
        loss = f"; at IsoScore {number(scores[WHITEN], 2)} {signed(task.corrections[WHITEN].gain)}"
        helps = decide("isotropy-helps-analogy", signs, said, where="part way only, by {}" + loss)
        unharmed = {n: sign >= 0 for n, sign in signs.items()}
        compatible = decide("analogies-compatible", unharmed, said, where="part way only, with {}" + loss)
        yield from ((_ALL, replace(each, evidence=evidence)) for each in (helps, compatible))


def _gained(gains: Sequence[float], n_tests: int = 1) -> Verdict:
    """Return the verdict on "gains", by the interval over data sets.

    Where it is one of many tests, its p-value has to stand Bonferroni's correction.
    """
    seen = n_tests == 1 or gain(gains, test_share=0.0).p_value * n_tests < LEVEL
    return by_interval(*interval(gains)) if seen else Verdict.INCONCLUSIVE


def _sign(low: float, high: float) -> int:
    return 1 if low > 0 else -1 if high < 0 else 0


def mean_figure(found: Outcome, name: str, figure: str) -> float | None:
    """Return IsoScore or mean cosine under a correction, the mean over the data sets."""
    values = [value for one in found.results if (value := one.geometry.get(name, {}).get(figure)) is not None]
    return sum(values) / len(values) if values else None


def _mean(gains: Sequence[float]) -> str:
    return f"{signed(sum(gains) / len(gains))} (95 % {between(*interval(gains))})"


def _counts(one: Tally) -> str:
    return f"helps on {len(one.helped)} and hurts on {len(one.hurt)} of {one.n}"
