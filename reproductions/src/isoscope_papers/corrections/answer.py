"""Should I whiten? The answer of the runs, in a few sentences."""

from __future__ import annotations

from collections.abc import Sequence

from isoscope.advice.outcomes import HELPS, HURTS
from isoscope_papers.corrections.claims import GROUPS, WHITEN, Tally, overall, tally
from isoscope_papers.corrections.run import Outcome
from isoscope_papers.corrections.setups import LABELS, SENTENCES, WORDS


def answer(outcomes: Sequence[Outcome]) -> str:
    """Should I whiten? In a few sentences, by the runs."""
    gain = [one for one in outcomes if _verdict(one) == "whiten"]
    lose = [one for one in outcomes if _verdict(one) == "do not"]
    mixed = [one for one in outcomes if one not in (*gain, *lose)]
    short = "Whiten" if not (lose or mixed) else "No" if not (gain or mixed) else "It depends on the encoder"
    said = [f"{short}."]
    if gain:
        said.append(f"Whitening pays for {_with_counts(gain)}.")
    if lose:
        said.append(f"It does harm to {_with_counts(lose)}: leave such vectors alone.")
    said += [f"Of {_with_counts([one])} it depends on the task: {_by_group(one)}." for one in mixed]
    graded, labelled = (
        [overall(one, WHITEN, kinds) for one in outcomes] for kinds in ((SENTENCES, WORDS), (LABELS,))
    )
    said.append(
        f"Over all encoders whitening helps {_share(graded, HELPS)} of the tasks with graded scores and "
        f"hurts {_share(graded, HURTS)}; with labels it helps {_share(labelled, HELPS)} and hurts "
        f"{_share(labelled, HURTS)}. Before you whiten, ask `isoscope advise` on your own vectors and task."
    )
    return " ".join(said)


def _verdict(found: Outcome) -> str:
    """What whitening does to an encoder, all tasks together: one way at least four times as often."""
    one = overall(found, WHITEN)
    if one.n_helps >= 4 * max(one.n_hurts, 1):
        return "whiten"
    return "do not" if one.n_hurts >= 4 * max(one.n_helps, 1) else "mixed"


def _with_counts(outcomes: Sequence[Outcome]) -> str:
    parts = []
    for found in outcomes:
        one = overall(found, WHITEN)
        about = f"{found.setup.note}; " if found.setup.note else ""
        parts.append(f"{found.title} ({about}of {one.n} tasks it helps {one.n_helps}, hurts {one.n_hurts})")
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]


def _by_group(found: Outcome) -> str:
    """The kinds of tasks where whitening helps more often than it hurts, and where it is the other way."""
    tallies = {group: tally(found, group, WHITEN) for group in GROUPS}
    helped = [group for group, one in tallies.items() if one.n_helps > one.n_hurts]
    hurt = [group for group, one in tallies.items() if one.n_hurts > one.n_helps]
    parts = ((helped, f"it {HELPS} {', '.join(helped)}"), (hurt, f"it {HURTS} {', '.join(hurt)}"))
    return " and ".join(words for groups, words in parts if groups) or "no difference is seen"


def _share(tallies: Sequence[Tally], verdict: str) -> str:
    number = sum(one.n_helps if verdict == HELPS else one.n_hurts for one in tallies)
    return f"{number} of {sum(one.n for one in tallies)}"
