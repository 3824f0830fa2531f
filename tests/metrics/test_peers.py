"""Published packages beside ours: as recorded in peers.json, and again where a package is installed."""

from __future__ import annotations

import pytest
from tests.metrics.peers import OURS, PACKAGES, Row, installed, ours, rows

RECORDED = rows()


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: f"{row.package}-{row.metric}-{row.space}")
def test_the_difference_is_the_one_that_is_explained(row: Row) -> None:
    value = ours(row.metric, row.space)
    assert value == pytest.approx(row.ours, rel=1e-9)
    assert value == pytest.approx(row.theirs, rel=row.within)


def test_every_package_and_metric_is_recorded() -> None:
    assert {row.package.split(" ")[0] for row in RECORDED} == set(PACKAGES)
    assert {row.metric for row in RECORDED} == set(OURS)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_that_is_installed_says_what_is_recorded(package: str) -> None:
    recorded = {
        (row.function, row.metric, row.space): row.theirs
        for row in RECORDED
        if row.package == f"{package} {installed(package)}"
    }
    if not recorded:
        pytest.skip(f"needs {package}, as tests/metrics/peers.py says")
    found = {(function, metric, space): value for function, metric, space, value in PACKAGES[package]()}
    assert found == pytest.approx(recorded, rel=1e-6)
