"""`Analysis`: the numbers of the page, computed once from the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pandas as pd

from isoscope_papers.predicts.associations import DIRECTIONS, LEVEL, associations
from isoscope_papers.predicts.choices import all_regrets
from isoscope_papers.predicts.setups import LABEL_METRICS, PAIR_METRICS
from isoscope_papers.predicts.table import Spaces, joined
from isoscope_papers.predicts.wide import Wide
from isoscope_papers.words import between, signed


@dataclass(frozen=True, eq=False)
class Analysis:
    """What the table shows.

    Attributes:
        wide: the spaces.
        found: rank correlations of metrics without labels; of_labels: those of metrics with labels.
        regrets: of every rule.
    """

    wide: Wide
    found: pd.DataFrame
    of_labels: pd.DataFrame
    regrets: pd.DataFrame

    def association(self, view: str, metric: str) -> pd.DataFrame:
        """Return the rows of one metric in one view, by group of tasks."""
        rows = self.found[(self.found["view"] == view) & (self.found["metric"] == metric)]
        return rows.set_index("group")

    def rule(self, choice: str, rule: str, group: str) -> pd.Series | None:
        """Return the regret of one rule, or None where the choice was not studied."""
        rows = self.regrets
        rows = rows[(rows["choice"] == choice) & (rows["rule"] == rule) & (rows["group"] == group)]
        return None if rows.empty else rows.iloc[0]


def sign_of(row: pd.Series, direction: int = 1) -> int:
    """Return 1 or −1 where a correlation is significant, as said or contrary; 0 otherwise."""
    if not row["p_adjusted"] < LEVEL:
        return 0
    return direction if row["rho"] > 0 else -direction


def gain_of(row: pd.Series) -> str:
    """Return a gain over the default in words, with its interval where there are enough models for one."""
    known = pd.notna(row["gain_low"])
    ends = between(row["gain_low"], row["gain_high"], 1) if known else "too few models for an interval"
    return f"{signed(row['gain'], 1)} ({ends})"


@lru_cache(maxsize=1)
def _analysed(runs: tuple[Spaces, ...]) -> Analysis:
    wide = Wide(joined(runs))
    return Analysis(
        wide,
        associations(wide, tuple(DIRECTIONS)),
        associations(wide, (*LABEL_METRICS, *PAIR_METRICS)),
        all_regrets(wide, tuple(DIRECTIONS)),
    )


def analysed(runs: Sequence[Spaces]) -> Analysis:
    """Return the analysis of runs; that of the same runs is computed once."""
    return _analysed(tuple(runs))
