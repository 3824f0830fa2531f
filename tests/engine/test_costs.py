"""Costs are counted from the registry."""

from __future__ import annotations

import pytest

import isoscope as iso
from isoscope.engine.costs import cost
from isoscope.engine.strips import STRIP_ROWS, strip_rows
from isoscope.metrics.registry import KNOWN
from isoscope.statistics.declared import declared

METRICS = iso.registered()


def test_every_statistic_that_streams_has_a_cost() -> None:
    priced = [one for one in declared().values() if one.merges or one.of_pairs]
    assert all(one.operations is not None for one in priced)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_what_needs_all_vectors_has_none(metric: iso.Metric) -> None:
    found = cost(metric, n=10**6, d=100)
    whole = metric.needs & {"vectors", "distinct_neighbors"} - set(KNOWN)
    assert (found is None) == bool(whole)
    if found is not None:
        assert found.bytes_read == found.passes * 4 * 10**8


def test_together_they_share_passes() -> None:
    both = cost([METRICS["isoscore"], METRICS["mean_cosine"]], n=1000, d=10)
    assert both.passes == 1
    parts = [cost(METRICS[name], n=1000, d=10).operations for name in ("isoscore", "mean_cosine")]
    assert both.operations == sum(parts)


def test_pairs_and_machines() -> None:
    found = cost(METRICS["silhouette"], n=10 * STRIP_ROWS, d=64)
    assert found.passes == 7  # labels, and strips that meet the rows after them
    # long rows make short strips, and more passes
    assert cost(METRICS["silhouette"], n=10 * strip_rows(768, 20), d=768, n_labels=20).passes == 7
    assert strip_rows(768, 20) < STRIP_ROWS / 2
    assert found.operations == (10 * STRIP_ROWS) ** 2 * (2 * 64 + 6) / 2
    many = cost(METRICS["silhouette"], n=200 * STRIP_ROWS, d=64)  # whose sums are not kept
    assert many.passes == 201
    assert many.operations == (200 * STRIP_ROWS) ** 2 * (2 * 64 + 6)
    reading, computing = found.seconds(bytes_per_s=1e9, operations_per_s=1e11, n_machines=4)
    assert reading == pytest.approx(found.bytes_read / 4e9)
    assert computing == pytest.approx(found.operations / 4e11)
