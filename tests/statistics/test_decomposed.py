"""Decompositions that are begun beside other work; on the CPU none is."""

from __future__ import annotations

from concurrent.futures import Future

import torch

from isoscope.statistics.decomposed import decomposing
from isoscope.statistics.moments import Moments


def test_what_was_begun_is_waited_for_in_place_of_a_new_one() -> None:
    X = torch.randn(30, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moments, plain = Moments.of(X), Moments.of(X)
    begun: Future[torch.Tensor] = Future()
    begun.set_result(2 * torch.linalg.eigvalsh(moments.smaller_side))
    vars(moments)["_begun"] = {"eigenvalues": begun}
    assert torch.allclose(moments.eigenvalues, 2 * plain.eigenvalues)
    assert torch.allclose(moments.principal[0], plain.principal[0])


def test_nothing_is_begun_on_the_cpu() -> None:
    moments = Moments.of(torch.randn(30, 4, generator=torch.Generator().manual_seed(0)))
    with decomposing(moments, eigenvalues=True, principal=True):
        assert "_begun" not in vars(moments)
