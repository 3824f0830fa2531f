"""A pass over blocks leaves the number of cores as it found it, however it ends."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch

from isoscope.engine.passes import first_pass
from isoscope.space import Space


@pytest.fixture
def three_cores() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def blocks() -> Iterator[Space]:
    for seed in range(40):
        yield Space(torch.randn(50, 4, generator=torch.Generator().manual_seed(seed)))


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_pass_that_is_broken_off(three_cores: None, error: type[BaseException]) -> None:
    def stop(n_rows: int) -> None:
        raise error

    with pytest.raises(error) as caught:
        first_pass({"moments", "directions"}).over(blocks(), report_rows=stop)
    assert torch.get_num_threads() == 3
    del caught  # with it goes what the frames of the pass held
    gc.collect()
    assert torch.get_num_threads() == 3


def test_a_pass_that_ends(three_cores: None) -> None:
    found = first_pass({"moments", "directions"}).over(blocks())
    assert found["moments"].count == found["directions"].count == 2000
    assert torch.get_num_threads() == 3
