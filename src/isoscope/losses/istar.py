"""`IStarLoss`: the penalty of I-STAR, on IsoScore* or on the debiased score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.errors import InputError, NotFiniteError, Setting, ShapeError
from isoscope.losses.covariance import Block, reference_moments
from isoscope.losses.replayed_score import replayed_score, serves
from isoscope.losses.score import Shrinkage, batch_score
from isoscope.losses.states import States, as_number, check_count, checked_layers, masked_rows
from isoscope.metrics.isotropy import as_covariance
from isoscope.statistics.moments import Moments
from isoscope.statistics.processes import all_moments, counted_once_each, several


class IStarLoss(nn.Module):
    """Penalty that spreads the variance over all dimensions, or with a negative strength narrows it.

        λ·(1 − IsoScore*),   IsoScore* = (PR − 1)/(d − 1),   PR = (tr Σ_ζ)²/‖Σ_ζ‖_F²
        Σ_ζ = (1 − ζ)·S + ζ·C₀,   S the covariance of the batch

    to be added to the loss of the task. Range [0, λ]; 0 is isotropic. Unchanged by rotation and
    translation. The gradient is a closed form: one product forward, one backward, no eigenvalues.
    All points equal score 0, with a gradient of zero; near there the slope grows as one over the spread,
    as it does for every measure without a scale, so clip gradients. NaN or Inf in the states raise.

    A batch smaller than d says little about S (see `isoscope.isoscore`), hence C₀, the covariance of many
    vectors, rebuilt from time to time: `reference_covariance` or `token_covariance`, then
    `set_covariance`. `debias=True` needs none: it replaces both ingredients by unbiased estimates, so that
    the mean over batches comes near the score of the whole; any one of them may exceed 1.

    **Gradient accumulation.** A covariance is no mean over micro-batches, and the mean of their penalties
    is not the penalty of the batch. With `debias=True` its expectation nearly is, and nothing needs to be
    done. For the exact penalty pass over the micro-batches twice: `moments` without gradient, then
    `forward(…, whole=…)` for each; the gradients add up to that of the whole, so divide by nothing.

    **Several processes.** Where torch.distributed runs, the penalty is that of all processes' vectors, and
    its gradient, once averaged by DistributedDataParallel, that of one process with the whole batch.
    Every process must call it.

    Args:
        strength: λ; negative makes the space less isotropic.
        covariance: (d, d) C₀, symmetric positive semi-definite; or later, by `set_covariance`.
        zeta: weight ζ of C₀ in [0, 1]; 0 is plain IsoScore and needs no C₀, 1 ignores the batch.
        debias: the debiased score in place of IsoScore*; leaves C₀ and ζ aside, needs 4 vectors.
        layers: where the states are a sequence, which entries; None is all but the first, the
            embedding layer.
        across_processes: whether to reckon with the vectors of other processes.

    Paper: Rudman and Eickhoff 2024, Stable Anisotropic Regularization (ICLR); the closed form, the masks
    and the debiased penalty are ours. The paper's ζ is 0.2 while training. `CosineRegularizer` penalises a
    shared direction instead, which centring would remove; this penalty does not see the mean.

    In a training step, add the penalty to the loss of the task. `debias=True` needs no covariance:

    >>> encoder, classifier = nn.Linear(8, 4), nn.Linear(4, 2)
    >>> inputs, targets = torch.randn(32, 8), torch.randint(2, (32,))
    >>> penalty = IStarLoss(0.5, debias=True)
    >>> states = encoder(inputs)
    >>> loss = nn.functional.cross_entropy(classifier(states), targets) + penalty(states)
    >>> loss.backward()

    Of a transformers model, pass the hidden states and the attention mask:

    >>> outputs = model(**batch, output_hidden_states=True)  # doctest: +SKIP
    >>> loss = outputs.loss + penalty(outputs.hidden_states, batch["attention_mask"])  # doctest: +SKIP

    With a covariance to shrink towards, as in the paper:

    >>> penalty = IStarLoss(0.5, zeta=0.2)
    >>> penalty.set_covariance(torch.eye(2))  # reference_covariance(…) of many vectors

    The values of a small batch, whose mask leaves padding out:

    >>> states = torch.tensor([[[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]], [[0.0, -1.0], [9.0, 9.0], [9.0, 9.0]]])
    >>> mask = torch.tensor([[1, 1, 1], [1, 0, 0]])  # 1 where a token counts
    >>> IStarLoss(0.5, zeta=0)(states, mask)
    tensor(0.2647)
    >>> IStarLoss(0.5, covariance=torch.eye(2), zeta=1.0)(states, mask)
    tensor(0.)
    """

    covariance: Tensor | None

    def __init__(
        self,
        strength: float = 1.0,
        *,
        covariance: Any = None,
        zeta: float = 0.2,
        debias: bool = False,
        layers: Sequence[int] | None = None,
        across_processes: bool = True,
    ) -> None:
        super().__init__()
        self.strength = as_number(strength, "strength")
        self.zeta = as_number(zeta, "zeta")
        if not 0 <= self.zeta <= 1:
            raise InputError(
                argument="zeta",
                got=zeta,
                wanted="a weight in [0, 1]",
                hint="0 is plain IsoScore, 1 ignores the batch",
            )
        if debias and covariance is not None:
            raise InputError(
                "is not used if `debias` is true",
                argument="covariance",
                hint=[Setting("covariance", verb="leave out"), Setting("debias", False)],
            )
        self.debias = debias
        self.layers = layers
        self.across_processes = across_processes
        self._shrinkage: Shrinkage | None = None
        self.register_buffer("covariance", None)
        if covariance is not None:
            self.set_covariance(covariance)

    def set_covariance(self, covariance: Any) -> None:
        """Shrink towards this (d, d) matrix from now on; it moves with the module and is saved with it."""
        d = len(covariance)
        self.covariance = as_covariance(covariance, d).detach().clone()

    def moments(self, blocks: Iterable[Block]) -> Moments:
        """Return the moments of a batch in micro-batches, without gradient, for `whole`.

        Each block is what `forward` takes: states, or a pair of states and mask.
        """
        return reference_moments(blocks, layers=self.layers, across_processes=self.across_processes)

    def forward(self, states: States, mask: Tensor | None = None, *, whole: Moments | None = None) -> Tensor:
        """Return the penalty.

        Args:
            states: (n, d) vectors, (B, T, d) token states, or a sequence of either, one entry a layer.
            mask: (n,) or (B, T), true or 1 where a vector counts; token states need one. The attention
                mask leaves padding out; `attention_mask * (1 - special_tokens_mask)` special tokens too.
            whole: the moments of a batch of which these are a part; the value is that of the whole, the
                gradient the part of these vectors.
        """
        if whole is None and not several(self.across_processes):
            score = self._replayed(states, mask)
            if score is not None:
                return torch.rsub(score, self.strength, alpha=self.strength)
        rows = masked_rows(states, mask, self.layers)
        if rows.shape[1] < 2:
            raise ShapeError("has vectors of 1 dimension", argument="states", wanted="at least 2")
        found = self._own_moments(rows, mask) if whole is None else whole
        score = batch_score(
            rows,
            found,
            shrinkage=self._shrink(rows.shape[1], rows.device),
            debias=self.debias,
            partial=whole is not None,
            processes=whole is None and several(self.across_processes),
        )
        if whole is not None:
            score = counted_once_each(score, across_processes=self.across_processes)
        return torch.rsub(score, self.strength, alpha=self.strength)  # λ − λ·score

    def _replayed(self, states: States, mask: Tensor | None) -> Tensor | None:
        """Return the score by a recording of launches; None where there is none for these states."""
        layers, checked = checked_layers(states, mask, self.layers)
        if not serves(layers):
            return None
        shrinkage = self._shrink(layers[0].shape[-1], layers[0].device)
        least = 4 if self.debias else 2
        return replayed_score(layers, checked, shrinkage=shrinkage, debias=self.debias, least=least)

    def _own_moments(self, rows: Tensor, mask: Tensor | None) -> Moments:
        least = 4 if self.debias else 2
        processes = several(self.across_processes)
        if not processes:
            check_count(len(rows), least, "the penalty", mask)
        with torch.no_grad():
            try:
                fourth = self.debias or processes
                moments = Moments.of(rows.detach(), fourth=fourth) if len(rows) else None
            except NotFiniteError:
                n_bad = int((~torch.isfinite(rows)).any(dim=1).sum())
                raise NotFiniteError(
                    f"has NaN or infinity in {n_bad} of {len(rows)} vectors",
                    argument="states",
                    wanted="finite numbers",
                    hint="check whether training has diverged, or mask the tokens without attention",
                ) from None
            if processes:
                moments = all_moments(moments, like=rows)
        if moments is None or moments.count < least:
            check_count(moments.count if moments else 0, least, "the penalty", mask)
        assert moments is not None
        return moments

    def _shrink(self, d: int, device: torch.device) -> Shrinkage | None:
        if self.debias or self.zeta == 0:
            return None
        if self.covariance is None:
            raise InputError(
                f"is missing, and `zeta` is {self.zeta}",
                argument="covariance",
                wanted="the covariance to shrink towards",
                hint=[
                    "call `set_covariance(reference_covariance(…))`",
                    Setting("debias", True),
                    Setting("zeta", 0, to="do without"),
                ],
            )
        if len(self.covariance) != d:
            raise ShapeError(
                f"has shape {tuple(self.covariance.shape)}",
                argument="covariance",
                wanted=f"({d}, {d}) for states of {d} dimensions",
            )
        kept = self._shrinkage
        asked = (self.covariance, self.zeta, device)
        if kept is None or not kept.serves(*asked):
            self._shrinkage = kept = Shrinkage.of(*asked)
        return kept

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **more: Any) -> None:
        saved = state_dict.get(f"{prefix}covariance")
        if saved is not None and (self.covariance is None or self.covariance.shape != saved.shape):
            self.covariance = torch.empty_like(saved)  # a buffer that is still absent could not be filled
        super()._load_from_state_dict(state_dict, prefix, *args, **more)
        self._shrinkage = None

    def extra_repr(self) -> str:
        """Return the parameters that `print` shows."""
        kind = "debias=True" if self.debias else f"zeta={self.zeta}"
        return f"strength={self.strength}, {kind}, layers={self.layers}"
