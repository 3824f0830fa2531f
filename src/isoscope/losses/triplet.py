"""`TripletLoss`: an anchor is to be nearer to its own than to others, by a margin."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from isoscope.errors import InputError, LabelError, Setting
from isoscope.kernels.precision import direct_distances, full_precision
from isoscope.losses.states import as_number, as_rows, check_count, label_codes, matching_rows
from isoscope.metrics.objectives import triplet_excess
from isoscope.statistics.processes import all_rows, all_sum, several


class TripletLoss(nn.Module):
    """An anchor's distance to its own, plus a margin, over its distance to another.

        mean over triplets of max(‖a − p‖ + m − ‖a − q‖, 0)

    over triplets given as rows, or over all triplets that labels make: p another vector of a's label, q of
    a different label. These are taken exactly in O(n²(d + log n)), each anchor's distances sorted once.
    Range [0, ∞); 0 where every vector is nearer to all of its own than to any other, by m. Unchanged by
    rotation and translation; not by scale, unless m is 0. Equal points get a gradient of zero from their
    pair. With m = 0 it is minus `isoscope.metrics.triplet_objective`, over the number of triplets.

    **Gradient accumulation**: given triplets are a plain mean; with labels, each micro-batch has only the
    triplets within it. **Several processes**: the triplets are those of all processes, gradient included;
    labels must then be whole numbers that mean the same everywhere. Every process must call it.

    Args:
        margin: m, at least 0.
        across_processes: whether to reckon with the vectors of other processes.

    Paper: Schroff et al. 2015; the form without a margin in Mickus, Grönroos and Attieh 2024, appendix B.

    >>> X = torch.tensor([[0.0], [4.0], [1.0]])
    >>> TripletLoss(margin=0.0)(X, labels=["a", "a", "b"])  # (4 − 1 + 4 − 3)/2
    tensor(2.)
    >>> TripletLoss(margin=1.0)(X[:1], X[1:2], X[2:])
    tensor(4.)
    """

    def __init__(self, margin: float = 1.0, *, across_processes: bool = True) -> None:
        super().__init__()
        self.margin = as_number(margin, "margin")
        if self.margin < 0:
            raise InputError(argument="margin", got=margin, wanted="at least 0")
        self.across_processes = across_processes

    @full_precision
    def forward(
        self,
        X: Tensor,
        positives: Tensor | None = None,
        negatives: Tensor | None = None,
        *,
        labels: Any = None,
    ) -> Tensor:
        """Return the loss of (n, d) anchors, positives and negatives, row by row, or of labelled vectors.

        Args:
            X: (n, d) anchors, or all vectors where labels are given.
            positives, negatives: (n, d), row i belongs to anchor i.
            labels: one for each row of X.
        """
        if labels is None:
            if positives is None or negatives is None:
                raise InputError(
                    "Neither `labels` nor both `positives` and `negatives` were passed",
                    hint=[Setting("labels"), "pass both `positives` and `negatives`"],
                )
            total, n_triplets = self._given(X, positives, negatives)
        else:
            if positives is not None or negatives is not None:
                raise InputError(
                    "cannot be combined with `positives` or `negatives`",
                    argument="labels",
                    hint="pass one or the other",
                )
            total, n_triplets = self._labelled(as_rows(X, "X"), labels)
        sums = all_sum(torch.stack([total.double(), n_triplets]), across_processes=self.across_processes)
        if not float(sums[1].detach()) > 0:
            raise LabelError(
                "allows no triplet", argument="labels", wanted="a label with two vectors, and another label"
            )
        return (sums[0] / sums[1].detach()).to(total.dtype)

    def _given(self, X: Tensor, positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor]:
        anchor, same, other = matching_rows(X=X, positives=positives, negatives=negatives)
        if not several(self.across_processes):
            check_count(len(anchor), 1, "the triplet loss")
        own = torch.linalg.vector_norm(anchor - same, dim=1)
        far = torch.linalg.vector_norm(anchor - other, dim=1)
        total = (own + self.margin - far).clamp(min=0).sum()
        return total, total.new_tensor(len(anchor), dtype=torch.float64)

    def _labelled(self, rows: Tensor, labels: Any) -> tuple[Tensor, Tensor]:
        """Return the summed loss and number of triplets whose anchor is a row of this process."""
        whole_numbers = isinstance(labels, Tensor) and not labels.is_floating_point()
        if several(self.across_processes) and not whole_numbers:
            raise InputError(
                f"is of type {type(labels).__name__}",
                argument="labels",
                wanted="a tensor of whole numbers, which mean the same in every process",
            )
        codes = label_codes(labels, len(rows), rows.device)
        everyone, first = all_rows(rows, across_processes=self.across_processes)
        all_codes = all_rows(codes, across_processes=self.across_processes)[0].long()
        check_count(len(everyone), 3, "the triplet loss")
        # tied to the rows even where this process has no triplet: the others wait for it on the way back
        total, n_triplets = 0.0 * everyone.sum(dtype=torch.float64), 0
        for code in codes.unique().tolist():
            anchors = (codes == code).nonzero().flatten()
            own, others = (all_codes == code).nonzero().flatten(), all_codes != code
            near = direct_distances(rows[anchors], everyone[own])
            far = direct_distances(rows[anchors], everyone[others])
            if near.shape[1] > 1 and far.shape[1]:
                itself = own[None] == (anchors + first)[:, None]
                excess = triplet_excess(near + self.margin, far)[0]
                total = total + torch.where(itself, 0.0, excess).sum(dtype=torch.float64)
                n_triplets += len(anchors) * (near.shape[1] - 1) * far.shape[1]
        return total.to(rows.dtype), rows.new_tensor(n_triplets, dtype=torch.float64)

    def extra_repr(self) -> str:
        """Return the parameters that `print` shows."""
        return f"margin={self.margin}"
