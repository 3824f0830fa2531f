"""What the corrections say of the papers' claims on isotropy and tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from isoscope_papers.corrections.run import N_NEIGHBORS, NOISE_POWER, Outcome, Result
from isoscope_papers.corrections.setups import (
    ANALOGIES,
    LABELS,
    NOISE,
    PROBE,
    SENTENCES,
    TASKS,
    WORDS,
)
from isoscope_papers.corrections.tallies import (
    GROUPS,
    WHITEN,
    Tally,
    differences,
    groups_of,
    interval,
    overall,
    tally,
)
from isoscope_papers.rows import number, signed
from isoscope_papers.verdict import Finding, Verdict, by_interval, judged, ranges

CONE = 0.5  # a mean cosine from which vectors lie close together
_GAIN, _LOSS = 1, -1
# by group: the claim on whitening, that on the rank correlation of IsoScore and gain, and their direction
_CLAIMS: dict[str, tuple[str, str, int]] = {
    "sentences": ("whitening-sentences", "isotropy-ranks-sentences", _GAIN),
    "words": ("whitening-words", "isotropy-ranks-words", _GAIN),
    "linear probe": ("whitening-probe", "isotropy-ranks-probe", _LOSS),
    "knn": ("whitening-knn", "isotropy-ranks-knn", _LOSS),
    "clustering": ("whitening-clustering", "anisotropy-clusters-well", _LOSS),
    "retrieval": ("dense-retrieval", "isotropy-ranks-retrieval", _GAIN),
}
_STATIC = (("isotropy-helps-words", "words"), ("isotropy-helps-sentences", "sentences"))


def findings(outcomes: Sequence[Outcome]) -> Iterator[Finding]:
    """Yield every claim on every encoder that has the data sets it is about."""
    parts: dict[str, Callable[[Outcome], Iterator[Finding]]] = {
        TASKS: _of_tasks, PROBE: _of_probe, NOISE: _of_noise, ANALOGIES: _of_analogies,
    }  # fmt: skip
    for one in outcomes:
        yield from parts[one.setup.part](one)


def _of_tasks(found: Outcome) -> Iterator[Finding]:
    evidence = _evidence(found)
    for group, (whitening, ranking, sign) in _CLAIMS.items():
        whitened = tally(found, group, WHITEN)
        if not whitened.n:
            continue
        verdict, condition = _held(whitened, sign)
        claim = f"classifiers/{whitening}"
        yield Finding(claim, found.title, verdict, whitened.words, condition, evidence)
        kind = GROUPS[group][0]
        correlations = [
            rho for one in found.results if one.kind == kind and (rho := _correlation(one, group)) is not None
        ]
        if len(correlations) > 2:
            low, high = (min(max(end, -1.0), 1.0) for end in interval(correlations))
            mean = sum(correlations) / len(correlations)
            ends = f"{signed(low, 2)} … {signed(high, 2)}"
            said = f"mean ρ {signed(mean, 2)}, 95 % over {len(correlations)} sets {ends}"
            verdict = by_interval(*sorted((sign * low, sign * high)))
            yield Finding(f"classifiers/{ranking}", found.title, verdict, said, evidence=evidence)
    yield from _of_static(found, evidence)
    yield from _of_whitening(found, evidence)
    yield from _of_clusters(found, evidence)
    yield from _of_measures(found, evidence)


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


def _of_static(found: Outcome, evidence: str) -> Iterator[Finding]:
    """Yield what is claimed of static vectors: both corrections have to gain."""
    for claim, group in _STATIC:
        parts = {name: tally(found, group, name) for name in ("all_but_the_top", WHITEN)}
        if not all(one.n > 2 for one in parts.values()):
            continue
        signs = {name: 1 if interval(one.gains)[0] > 0 else -1 if interval(one.gains)[1] < 0 else 0
                 for name, one in parts.items()}  # fmt: skip
        verdict, condition = judged(signs, where="by {}")
        if not found.setup.is_static:
            verdict, condition = Verdict.NOT_TESTABLE, "the paper says it of static vectors"
        said = "; ".join(f"{name}: mean gain {_mean(one.gains)}" for name, one in parts.items())
        yield Finding(f"classifiers/{claim}", found.title, verdict, said, condition, evidence)


def _of_whitening(found: Outcome, evidence: str) -> Iterator[Finding]:
    """Yield what is claimed of isotropy on tasks as a whole."""
    graded = overall(found, WHITEN, groups_of(SENTENCES, WORDS))
    labelled = overall(found, WHITEN, groups_of(LABELS))
    whole = overall(found, WHITEN)
    if graded.n and labelled.n:
        as_said = (graded.mean or 0.0) > 0 > (labelled.mean or 0.0)
        said = (
            f"graded tasks: {signed(graded.mean)}, {_counts(graded)}; tasks with labels: "
            f"{signed(labelled.mean)}, {_counts(labelled)}"
        )
        verdict = Verdict.HELD if as_said else Verdict.NOT_HELD
        yield Finding("classifiers/conflict-explained", found.title, verdict, said, evidence=evidence)
    if labelled.n and not found.setup.is_static:
        verdict = Verdict.NOT_HELD if labelled.helped else Verdict.HELD
        said = f"whitening on tasks with labels: {_counts(labelled)}"
        yield Finding("classifiers/calibration-no-help", found.title, verdict, said, evidence=evidence)
    if whole.n:
        verdict, condition = _held(whole, _GAIN)
        condition = condition and "on some tasks; the contrary on others"
        for claim in ("istar/uniform-improves", "manifolds/isotropy-utilises"):
            yield Finding(claim, found.title, verdict, f"whitening {_counts(whole)}", condition, evidence)


def _of_clusters(found: Outcome, evidence: str) -> Iterator[Finding]:
    """Yield what is claimed of clusters: taking them off against taking off the common mean or directions."""
    hindered = differences(found, ["sentences"], "cluster_center", "center")
    if len(hindered) > 2:
        said = f"centring clusters gains {_mean(hindered)} more than centring all"
        verdict = by_interval(*interval(hindered))
        claim = "classifiers/clusters-hinder-ranking"
        yield Finding(claim, found.title, verdict, said, evidence=evidence)
    for words, groups in (
        ("sentences", ["sentences"]), ("words", ["words"]), ("labels", groups_of(LABELS)),
    ):  # fmt: skip
        gains = differences(found, groups, "clusterwise_all_but_the_top", "all_but_the_top")
        if len(gains) > 2:
            said = f"{_mean(gains)} against the global correction over {len(gains)} data sets"
            verdict = by_interval(*interval(gains))
            subject = f"{found.title}, {words}"
            yield Finding("classifiers/clusterwise-better", subject, verdict, said, evidence=evidence)


def _of_measures(found: Outcome, evidence: str) -> Iterator[Finding]:
    """Yield what is claimed of mean cosine and IsoScore: what centring and all-but-the-top do to them."""
    cosine, centred = mean_figure(found, "none", "mean_cosine"), mean_figure(found, "center", "mean_cosine")
    plain, same = mean_figure(found, "none", "isoscore"), mean_figure(found, "center", "isoscore")
    top = {
        one.title: one.geometry["all_but_the_top"]["isoscore"] > one.geometry["none"]["isoscore"]  # type: ignore[operator]
        for one in found.results
        if {"none", "all_but_the_top"} <= set(one.geometry)
    }
    if cosine is None or plain is None or not top:
        return
    moved = f"mean cosine {number(cosine)} → {number(centred)}, IsoScore {number(plain)} → {number(same)}"
    yield Finding(
        "classifiers/improper-measures", found.title, Verdict.CONDITION, f"centring: {moved}",
        "of mean cosine, which centring alone brings to zero; the count of papers is not tested", evidence,
    )  # fmt: skip
    raised = f"IsoScore {number(plain)} → {number(mean_figure(found, 'all_but_the_top', 'isoscore'))}"
    yield Finding("istar/all-but-the-top", found.title, *_swap(judged(top, where="on {}"), raised, evidence))
    if cosine > CONE:
        close = tally(found, "knn", "center")
        if close.n > 2:
            verdict = by_interval(*interval(close.gains))
            gains = f"taking it to zero gains {_mean(close.gains)} in nearest neighbours"
            said = f"mean cosine {number(cosine)}; {gains}"
            claim = "manifolds/anisotropy-brings-close"
            yield Finding(claim, found.title, verdict, said, evidence=evidence)
        stsb = next((one.tasks["similarity"] for one in found.results if one.dataset == "stsb"), None)
        if stsb is not None and not found.setup.is_static:
            said = f"mean cosine {number(cosine)}, STS-B ρ {number(stsb.baseline)}"
            yield Finding(
                "classifiers/contextual-anisotropic", found.title,
                Verdict.HELD if stsb.baseline > CONE else Verdict.NOT_HELD, said, evidence=evidence,
            )  # fmt: skip


def _swap(judgement: tuple[Verdict, str], ours: str, evidence: str) -> tuple[Verdict, str, str, str]:
    verdict, condition = judgement
    return verdict, ours, condition, evidence


def _of_probe(found: Outcome) -> Iterator[Finding]:
    """Yield whether isotropy harms a linear classifier whose penalty is chosen in a wide range."""
    parts = {
        name: tally(found, "linear probe", name)
        for name in (WHITEN, "whiten_reduced", "whiten_shrunk", "whiten_soft")
    }
    signs = {}
    for name, one in parts.items():
        verdict, _ = _held(one, _LOSS)
        signs[name] = {Verdict.HELD: 1, Verdict.NOT_HELD: -1}.get(verdict, 0)
    verdict, condition = judged(signs, where="by {}, not by the others")
    isoscores = ", ".join(f"{name} {number(mean_figure(found, name, 'isoscore'))}" for name in parts)
    said = "; ".join(f"{name} {_mean(one.gains)}" for name, one in parts.items())
    evidence = f"{_evidence(found)}; IsoScore: {isoscores}"
    yield Finding("classifiers/whitened-probe", found.title, verdict, said, condition, evidence)


def _of_noise(found: Outcome) -> Iterator[Finding]:
    """Yield whether neighbours stay neighbours under noise more often in a whitened space."""
    (result,) = found.results
    for name, task in result.tasks.items():
        one = task.corrections[WHITEN]
        assert one.gain is not None
        assert one.interval is not None
        said = (
            f"{name}: {number(task.baseline)} → {number(one.score)} of the {N_NEIGHBORS} nearest stay, gain "
            f"{signed(one.gain)} (95 % {signed(one.interval[0])} … {signed(one.interval[1])})"
        )
        evidence = (
            f"{result.title}, {task.n_items:,} texts, noise of {NOISE_POWER:.0%} of the variance, 10 draws"
        )
        subject = f"{found.title}, {name}"
        yield Finding(
            "manifolds/isotropy-robust", subject, by_interval(*one.interval), said, evidence=evidence
        )


def _of_analogies(found: Outcome) -> Iterator[Finding]:
    (result,) = found.results
    task = result.tasks["analogies"]
    intervals = {name: one.interval or (0.0, 0.0) for name, one in task.corrections.items()}
    said = f"none {number(task.baseline)}; " + "; ".join(
        f"{name} {number(one.score)} ({signed(intervals[name][0])} … {signed(intervals[name][1])})"
        for name, one in task.corrections.items()
    )
    evidence = f"{found.title}, {task.n_items:,} questions, 95 % over 14 categories"
    signs = {name: 1 if low > 0 else -1 if high < 0 else 0 for name, (low, high) in intervals.items()}
    verdict, condition = judged(signs, where="by {}")
    yield Finding("classifiers/isotropy-helps-analogy", found.title, verdict, said, condition, evidence)
    verdict, condition = judged({name: sign >= 0 for name, sign in signs.items()}, where="with {}")
    yield Finding("classifiers/analogies-compatible", found.title, verdict, said, condition, evidence)


def mean_figure(found: Outcome, name: str, figure: str) -> float | None:
    """Return IsoScore or mean cosine under a correction, the mean over the data sets."""
    values = [value for one in found.results if (value := one.geometry.get(name, {}).get(figure)) is not None]
    return sum(values) / len(values) if values else None


def _mean(gains: Sequence[float]) -> str:
    low, high = interval(gains)
    return f"{signed(sum(gains) / len(gains))} (95 % {signed(low)} … {signed(high)})"


def _counts(one: Tally) -> str:
    return f"helps on {len(one.helped)} and hurts on {len(one.hurt)} of {one.n}"


def _evidence(found: Outcome) -> str:
    about = found.about
    return (
        f"{found.title}; at most {about['max_pairs']:,} pairs and {about['max_rows']:,} texts of a set, "
        f"{about['folds']} folds × {about['repeats']} repeats, seed {about['seed']}"
    )
