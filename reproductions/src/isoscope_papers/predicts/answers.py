"""The answers at the top of the page, in words that follow from the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isoscope_papers.predicts.analysis import Analysis, gain_of, sign_of
from isoscope_papers.predicts.associations import ALL, LEVEL
from isoscope_papers.predicts.choices import AS_SAID, CHOICES, DEFAULT, OTHER_TASKS, RANDOM
from isoscope_papers.predicts.wide import ACROSS, CORRECTED, DIMENSIONS, UNCORRECTED
from isoscope_papers.words import between, number, signed, span

_PLACES = {
    UNCORRECTED: "Over the layers and checkpoints of a model",
    CORRECTED: "Over the corrections of its last layer",
    ACROSS: "Across models",
}


def answers(found: Analysis) -> Iterator[str]:
    """Yield one paragraph for each question."""
    yield _correlated(found, "Is isotropy good?", "isoscore_debiased", "IsoScore")
    yield _correlated(found, "Is a small mean cosine good?", "mean_cosine", "mean cosine")
    yield _correlated(found, "Is a low intrinsic dimension good?", "twonn", "TwoNN dimension")
    yield _correlated(found, "Does RankMe predict?", "rankme_debiased", "RankMe") + _dimensions(found)
    yield _chosen(found, "Is RankMe a model selector?", "rankme_debiased", "the highest RankMe")
    yield _chosen(found, "Is IsoScore?", "isoscore_debiased", "the highest IsoScore")
    yield _any(found)
    counts = found.found.groupby("view")["n_lineages"].max()
    yield (
        f"How certain is this? {counts.min():.0f} to {counts.max():.0f} models are independent of each "
        "other, so that intervals are wide, and what is not certain is not shown to be absent. An interval "
        "is that of one metric by itself; certain means p < 0.05 after correction for the number of metrics, "
        "and it is the models that are counted, not their spaces."
    )


def _correlated(found: Analysis, question: str, metric: str, high: str) -> str:
    """Return the answer to a question on a correlation: what is certain, then each view."""
    parts, signs = [], set()
    for view, place in _PLACES.items():
        rows = found.association(view, metric)
        if rows.empty:
            continue
        own = {str(group): sign_of(row) for group, row in rows.iterrows()}
        signs |= set(own.values()) - {0}
        row = rows.loc[ALL]
        over_all = f"{signed(row['rho'], 2)} ({between(row['low'], row['high'], 2)})"
        values = span([float(rho) for group, rho in rows["rho"].items() if group != ALL], 2)
        parts.append(f"{place}, ρ of {high} and score is {over_all} over all tasks; by group {values}")
        certain = [
            f"{words} for {_listed([group for group, one in own.items() if one == sign])}"
            for sign, words in ((1, "above 0"), (-1, "below 0"))
            if sign in own.values()
        ]
        parts[-1] += f"; certainly {' and '.join(certain)}." if certain else "; none is certain."
    return " ".join([question, _verdict(signs), *parts])


def _dimensions(found: Analysis) -> str:
    """Return what the number of dimensions alone predicts across models, which bounds RankMe."""
    rows = found.association(ACROSS, DIMENSIONS)
    if rows.empty:
        return ""
    return (
        f" The number of dimensions alone, which bounds RankMe, has {signed(rows.loc[ALL, 'rho'], 2)} "
        "across models."
    )


def _verdict(signs: set[int]) -> str:
    if signs == {1, -1}:
        return "It depends on the task and on what is varied."
    if not signs:
        return "These spaces do not show it, nor the contrary."
    return f"Where anything is certain, {'more' if signs == {1} else 'less'} of it goes with better scores."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _chosen(found: Analysis, question: str, metric: str, what: str) -> str:
    parts, better = [], []
    for choice in CHOICES:
        row = found.rule(choice, f"{metric}, {AS_SAID}", ALL)
        default, at_random = (found.rule(choice, rule, ALL) for rule in (DEFAULT[choice], RANDOM))
        if row is None or default is None or at_random is None:
            continue
        better.append(1 if row["gain_low"] > 0 else -1 if row["gain_high"] < 0 else 0)
        parts.append(
            f"The {choice} with {what} is {number(row['regret'], 1)} points below the best on average, where "
            f"the default ({DEFAULT[choice]}) is {number(default['regret'], 1)} below, and one at random "
            f"{number(at_random['regret'], 1)}; gain over the default {gain_of(row)}."
        )
    if better and min(better) == 1:
        verdict = "Yes, here."
    elif 1 in better:
        verdict = "For some choices."
    elif -1 in better:
        verdict = "No: nowhere is it better than not choosing for certain, and somewhere worse."
    else:
        verdict = "It is not shown to be: no gain over not choosing is certain."
    return " ".join([question, verdict, *parts])


def _any(found: Analysis) -> str:
    parts = []
    for choice in CHOICES:
        rows = found.regrets
        rows = rows[(rows["choice"] == choice) & (rows["group"] == ALL)]
        if rows.empty:
            continue
        rules = rows[rows["rule"].str.contains(",")]
        n = int(((rules["p_adjusted"] < LEVEL) & (rules["gain"] > 0)).sum())
        labelled = rows[rows["rule"] == OTHER_TASKS]["regret"].iloc[0]
        parts.append(
            f"Of {len(rules)} rules for the {choice}, {n} gain over the default after correction for their "
            f"number; by tasks on other texts one is chosen that is {number(labelled, 1)} points below the "
            f"best, by the best rule with hindsight one that is {number(rules['regret'].min(), 1)} below."
        )
    return " ".join(["Does any metric choose without labels?", *parts])
