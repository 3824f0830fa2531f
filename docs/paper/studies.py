"""What the two studies recorded, as the paper states it; None before a study has run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
Values = dict[str, Any]
METRICS = {
    "isoscore_debiased": "IsoScore",
    "mean_cosine": "mean cosine",
    "rankme_debiased": "RankMe",
    "twonn": "TwoNN",
    "hubness": "hubness",
}
RULES = {
    "last layer": "the default",
    "no correction": "the default",
    "at random": "at random",
    "isoscore_debiased, as said": "highest IsoScore",
    "mean_cosine, as said": "lowest mean cosine",
    "rankme_debiased, as said": "highest RankMe",
    "twonn, as said": "lowest TwoNN",
    "best on the other tasks": "best on the other tasks",
}


def collapse(threshold: float = 0.7, within: float = 0.1) -> Values | None:
    """Return what the runs of the collapse experiment show, one label a vector."""
    kept = _record("collapse")
    if kept is None:
        return None
    conditions = [one for one in kept["conditions"] if "one label a vector" not in one["fails"]]
    runs = [
        (one, seen, silhouette)
        for one in conditions
        for seen, silhouette in zip(one["seen"], one["silhouette"], strict=True)
    ]
    held = [run for run in runs if not run[0]["fails"]]
    errors = [abs(one["predicted"] - seen) / seen for one, seen, s in held if s >= threshold]
    return {
        "n_spaces": len({one["space"] for one in conditions}),
        "n_runs": len(runs),
        "n_held": len(held),
        "right": float(np.mean([np.sign(seen - one["start"]) == one["sign"] for one, seen, _ in held])),
        "rising": float(np.mean([seen > one["start"] for one, seen, _ in held])),
        "threshold": threshold,
        "n_collapsed": len(errors),
        "near": float(np.mean([error <= within for error in errors])),
        "median_error": float(np.median(errors)),
        "sets": [
            found["ours"]
            for claim in kept["claims"]
            for found in claim["findings"]
            if found["subject"] == "sets of labels"
        ],
    }


def predicts(choices: tuple[str, ...] = ("layer", "correction")) -> Values | None:
    """Return the correlations and regrets of the predictive study over all tasks."""
    kept = _record("predicts")
    if kept is None:
        return None
    rows = [row for row in kept["correlations"] if row["group"] == "all tasks"]
    views = list(dict.fromkeys(row["view"] for row in rows))
    found = {(row["view"], row["metric"]): row for row in rows}
    regrets = {
        (row["choice"], RULES[row["rule"]]): row
        for row in kept["regrets"]
        if row["group"] == "all tasks" and row["rule"] in RULES and row["choice"] in choices
    }
    return {
        "views": views,
        "spaces": [max(row["n_spaces"] for row in rows if row["view"] == view) for view in views],
        "models": [max(row["n_lineages"] for row in rows if row["view"] == view) for view in views],
        "correlations": {name: [found[view, key] for view in views] for key, name in METRICS.items()},
        "choices": choices,
        "regrets": {
            name: [regrets[choice, name] for choice in choices] for name in dict.fromkeys(RULES.values())
        },
        "claims": [(claim["statement"], _verdicts(claim["findings"])) for claim in kept["claims"]],
    }


def _verdicts(findings: list[Values]) -> str:
    """Return the verdict, by subject where they differ."""
    if len({one["verdict"] for one in findings}) == 1:
        return str(findings[0]["verdict"])
    return "; ".join(f"{one['subject']}: {one['verdict']}" for one in findings)


def _record(study: str) -> Any:
    path = ROOT / "docs/reproduction" / f"{study}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
