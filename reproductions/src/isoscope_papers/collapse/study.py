"""The study of the collapse law: its page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from isoscope_papers.collapse.figures import figure
from isoscope_papers.collapse.findings import Case, cases, findings, share
from isoscope_papers.collapse.options import DEFAULT
from isoscope_papers.collapse.run import Condition, Space, read_spaces, run_setup
from isoscope_papers.collapse.setups import (
    COLLAPSED,
    END_WITHIN,
    LEARNING_RATES,
    SETUPS,
    SIGN_SHARE,
    STEPS,
    Setup,
)
from isoscope_papers.page import Section
from isoscope_papers.study import Study
from isoscope_papers.words import number

_INTRO = (
    "Cross-entropy draws vectors toward one point a label and these points toward the corners of a regular "
    "simplex, where IsoScore is (K − 2)/(d − 1) for K balanced labels in d dimensions. So a classifier of "
    "few labels makes vectors less isotropic, and one of many makes them more isotropic. How far they get "
    "depends on the number of updates, the learning rate and the length of the vectors. `predict_collapse` "
    "says so before training, from a model in which each label moves as one body. Here it predicts every "
    f"run of a classifier trained with its vectors, full batch, for {STEPS} updates of Adam, and is "
    "compared with what came. What is predicted, when the assumptions hold and what counts as right was "
    "written down before the runs; no threshold was changed after them. Before, one seed of four "
    "conditions had been tried (digits, AP, Banking77 with 5 labels and sets of supersenses, at a learning "
    "rate of 0.001)."
)
_RULES = (
    "The prediction is that of `predict_collapse(X, labels, learning_rate=…, steps=…)`, which also says "
    "whether the assumptions of the law hold: one label a vector; K ≤ d + 1; the optimiser's longest way, "
    "steps · learning rate · √d, is at least the root mean square distance of vectors to the mean of their "
    "label; the largest label has at most 10 times the rows of the smallest, which has two or more; and the "
    "predicted change exceeds 2 % of the start and two standard deviations over drawn classifiers. A run is "
    "one seed of one space at one mean length and one learning rate. Its sign is right if IsoScore moved as "
    f"predicted from start to end; wanted is {100 * SIGN_SHARE:.0f} % of the runs of which the assumptions "
    f"hold. Its end is near if |predicted − seen| ≤ {END_WITHIN:g} · seen; wanted of every run of which the "
    f"assumptions hold and whose silhouette ends at {COLLAPSED} or above. For rows with sets of labels, the "
    "assumptions on the labels of a row and on their sizes do not count, and they are tallied apart."
)
_CHANGES = (
    ("predicted change under 5 %", 0.0, 0.05),
    ("predicted change 5 to 10 %", 0.05, 0.1),
    ("predicted change over 10 %", 0.1, math.inf),
)
_HEADS = (
    "", "runs", "assumptions hold", "sign right", "by the collapse value alone", "by the first step alone",
    f"silhouette ≥ {COLLAPSED}", "end within 10 %", "median error",
)  # fmt: skip


def sections(spaces: Sequence[Space]) -> list[Section]:
    """Return the figure with the tally by data set, the tally by factor, and the misses."""
    by_setup = [
        (SETUPS[name].title, cases([space for space in spaces if space.setup == name], sets=None))
        for name in dict.fromkeys(space.setup for space in spaces)
    ]
    all_single = ("all with one label a row", cases(spaces))
    all_sets = ("all with sets of labels", cases(spaces, sets=True))
    cells = tuple(_tally(name, some) for name, some in (*by_setup, all_single, all_sets) if some)
    return [
        Section("Predicted and seen", _RULES, _about(spaces), _HEADS, cells, (figure(spaces),)),
        Section(
            "One factor at a time",
            "The same runs, those with one label a row, by encoder, mean length, learning rate and the size "
            "of the predicted change, as a share of the start. In brackets, the mean length that the encoder "
            "gives. The sizes were set apart after the runs, to see where signs are wrong.",
            (), _HEADS, tuple(_tally(name, some) for name, some in _by_factor(spaces)),
        ),
        _misses(spaces),
    ]  # fmt: skip


def _about(spaces: Sequence[Space]) -> tuple[str, ...]:
    run = {(space.setup, space.encoder) for space in spaces}
    absent: dict[str, list[str]] = {}
    for setup in SETUPS.values():
        for one in setup.encoders:
            if (setup.name, one.title) not in run:
                absent.setdefault(one.title, []).append(setup.title)
    left_out = "; ".join(f"with {encoder} {', '.join(titles)}" for encoder, titles in absent.items())
    rows = sorted({space.n for space in spaces})
    fewer = [
        f"{space.title} has {space.n_labels}"
        for space in spaces
        if space.n_labels < (SETUPS[space.setup].n_labels or 0)
    ]
    notes = (
        f"{rows[0]:,} to {rows[-1]:,} rows of each data set, drawn once. Sets whose labels are of pairs of "
        "sentences (MRPC, RTE, SNLI) are left out: a pair has no vector of its own.",
        f"Labels of which no row was drawn are absent: {', '.join(fewer)}." if fewer else "",
        f"Not run: {left_out}." if absent else "",
    )
    return tuple(filter(None, notes))


def _tally(name: str, some: Sequence[Case]) -> tuple[str, ...]:
    held = [one for one in some if one.holds]
    collapsed = [one for one in held if one.is_collapsed]
    error = float(np.median([one.error for one in collapsed])) if collapsed else None
    return (
        name, f"{len(some):,}", f"{len(held):,}",
        *(_percent(held, test) for test in (_is_right, _by_value, _by_first_step)),
        f"{len(collapsed):,}", _percent(collapsed, _is_near),
        "—" if error is None else f"{100 * error:.1f} %",
    )  # fmt: skip


def _is_right(one: Case) -> bool:
    return one.is_right


def _by_value(one: Case) -> bool:
    return one.by_value


def _by_first_step(one: Case) -> bool:
    return one.by_first_step


def _is_near(one: Case) -> bool:
    return one.is_near


def _percent(some: Sequence[Case], test: Callable[[Case], bool]) -> str:
    part = share(some, test)
    return "—" if part is None else f"{100 * part:.1f} %"


def _by_factor(spaces: Sequence[Space]) -> list[tuple[str, list[Case]]]:
    single = cases(spaces)
    parts: dict[str, list[Case]] = {}
    for encoder in dict.fromkeys(one.space.encoder for one in single):
        own = [one for one in single if one.space.encoder == encoder]
        lengths = [one.space.mean_norm for one in own]
        parts[f"{encoder} ({_range(lengths)})"] = own
    for norm in dict.fromkeys(one.condition.norm for one in single):
        name = "length as it comes" if norm is None else f"mean length {norm:g}"
        parts[name] = [one for one in single if one.condition.norm == norm]
    for rate in LEARNING_RATES:
        parts[f"learning rate {rate:g}"] = [one for one in single if one.condition.learning_rate == rate]
    for name, low, high in _CHANGES:
        parts[name] = [one for one in single if low <= _size_of_change(one) < high]
    return list(parts.items())


def _size_of_change(one: Case) -> float:
    predicted = one.condition.predicted
    return abs(predicted.end / predicted.isoscore - 1)


def _range(lengths: Sequence[float]) -> str:
    low, high = number(min(lengths), 1), number(max(lengths), 1)
    return low if low == high else f"{low} to {high}"


def _misses(spaces: Sequence[Space]) -> Section:
    """Return every condition with a miss, and which of two factors is behind it."""
    missed = [
        (
            space,
            condition,
            [one for one in (Case(space, condition, each) for each in condition.trained) if one.holds],
        )
        for space in spaces
        for condition in space.conditions
    ]
    cells = []
    for space, condition, some in missed:
        wrong = [one for one in some if not one.is_right]
        far = [one for one in some if one.is_collapsed and not one.is_near]
        if not wrong and not far:
            continue
        what = ", ".join(
            f"{word} of {len(each)} of {len(some)} seeds"
            for word, each in (("sign", wrong), ("end", far))
            if each
        )
        seen = float(np.mean([one.trained.end for one in some]))
        rigid = float(np.mean([one.trained.rigid for one in some]))
        norm = "as it comes" if condition.norm is None else f"{condition.norm:g}"
        cells.append(
            (space.title, norm, f"{condition.learning_rate:g}", what, number(condition.predicted.isoscore, 4),
             number(condition.predicted.end, 4), number(seen, 4), number(rigid, 4),
             _cause(condition.predicted.end, rigid, seen))
        )  # fmt: skip
    text = (
        "Every condition in which a run of which the assumptions hold has the wrong sign, or, where labels "
        "collapsed, an end that is not within 10 %. To find the cause, one factor is exchanged at a time. "
        "With the labels where training took them and the spread within labels as it was at the start, "
        "IsoScore is that of the column “labels as seen”: its difference from the prediction is due to "
        "where labels went, and its difference from what was seen to the vectors of a label, which did not "
        "move as one body."
    )
    heads = (
        "space",
        "length",
        "learning rate",
        "missed",
        "start",
        "predicted",
        "seen",
        "labels as seen",
        "larger part",
    )
    text += _at_length_one([(space, condition) for space, condition, some in missed if _has_wrong_sign(some)])
    return Section("The misses", text if cells else "There are none.", (), heads, tuple(cells))


def _has_wrong_sign(some: Sequence[Case]) -> bool:
    return any(not one.is_right for one in some)


def _at_length_one(wrong: Sequence[tuple[Space, Condition]]) -> str:
    """Return how many of the conditions with a wrong sign have the right one at mean length 1."""
    others = [
        [Case(space, other, one) for one in other.trained]
        for space, condition in wrong
        for other in space.conditions
        if other.norm == 1.0 != condition.norm and other.learning_rate == condition.learning_rate
    ]
    if not others:
        return ""
    right = sum(not _has_wrong_sign(some) for some in others)
    return (
        f" Length is another factor: of the {len(others)} conditions with a wrong sign that were also run at "
        f"mean length 1, all else equal, {right} have the right sign there on every seed."
    )


def _cause(predicted: float, rigid: float, seen: float) -> str:
    of_labels, of_spread = abs(rigid - predicted), abs(seen - rigid)
    name = "where labels went" if of_labels > of_spread else "spread within labels"
    return f"{name}, {100 * max(of_labels, of_spread) / (of_labels + of_spread or 1):.0f} %"


def _results(spaces: Sequence[Space]) -> dict[str, Any]:
    """Return a row for each condition, unrounded."""
    rows = [
        {
            "space": space.title, "n": space.n, "d": space.n_dims, "K": space.n_labels,
            "mean_norm": space.mean_norm if condition.norm is None else condition.norm,
            "learning_rate": condition.learning_rate, "fails": list(condition.predicted.fails),
            "start": condition.predicted.isoscore, "collapse_value": condition.predicted.collapse_value,
            "predicted": condition.predicted.end, "sign": condition.predicted.sign,
            "seen": [one.end for one in condition.trained],
            "silhouette": [one.silhouette[-1] for one in condition.trained],
        }
        for space in spaces
        for condition in space.conditions
    ]  # fmt: skip
    return {"conditions": rows}


STUDY: Study[Setup, Space] = Study(
    name="collapse",
    title="The collapse law: where a classifier takes IsoScore, predicted before training",
    intro=_INTRO,
    setups=SETUPS,
    default=DEFAULT,
    run=run_setup,
    load=read_spaces,
    findings=findings,
    sections=sections,
    results=_results,
    claims_at=1,
)
