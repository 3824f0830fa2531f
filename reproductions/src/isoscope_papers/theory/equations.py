"""The statements of Mickus, Grönroos and Attieh 2024, one by one: verdict, check, smallest counterexample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from isoscope_papers.theory import checks, counterexamples
from isoscope_papers.theory.counterexamples import Counterexample


class Truth(StrEnum):
    """What a statement comes to."""

    TRUE = "true"
    CONDITION = "true with a condition"
    FALSE = "false"


@dataclass(frozen=True)
class Statement:
    """One statement of the paper.

    Attributes:
        key: what it is called here.
        where: its number or place in the paper.
        says: the statement.
        truth: true, true with a condition, or false.
        holds: what is true instead, or the condition; for a true statement, what was checked.
        check: whether what `holds` says is so, on a random case.
        counterexample: the smallest case in which the statement as written fails; none where it is true.
    """

    key: str
    where: str
    says: str
    truth: Truth
    holds: str
    check: Callable[[np.random.Generator], bool]
    counterexample: Callable[[], Counterexample] | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, with the counterexample's numbers."""
        found = None if self.counterexample is None else self.counterexample()
        return {
            "key": self.key,
            "where": self.where,
            "says": self.says,
            "truth": str(self.truth),
            "holds": self.holds,
            "counterexample": None if found is None else found.to_dict(),
        }


STATEMENTS = (
    Statement(
        "silhouette_needs",
        "2.1",
        "To maximise the silhouette one needs to maximise all distances between clusters and minimise all "
        "distances within.",
        Truth.CONDITION,
        "The second half. Labels of two points or more have silhouette 1 exactly when each is one point and "
        "no two share it; how far apart they are does not matter.",
        checks.silhouette_needs,
        counterexamples.silhouette_needs,
    ),
    Statement(
        "square_root",
        "2.1, before eq. 1",
        "Σ sign·‖d − d′‖ has the same optimal argument as O_S, by the monotonicity of the square root.",
        Truth.FALSE,
        "Both grow without bound with scale. At a fixed total variance every space of collapsed labels is an "
        "optimum of O_S, wherever the labels lie; the sum of distances wants them equally far apart as well, "
        "which takes d ≥ K − 1 dimensions. The optima are the same for two labels.",
        checks.square_root,
        counterexamples.square_root,
    ),
    Statement(
        "objective_s",
        "eq. 1",
        "O_S = Σ sign·‖d − d′‖² rewards distances between labels and punishes those within.",
        Truth.TRUE,
        "O_S = 2n·tr A − 4 Σ n_k w_k, tr A the squared distances to the mean, w_k those within label k.",
        checks.objective_s,
    ),
    Statement(
        "pairwise_variance",
        "2.2",
        "V(D)_i = Σ (d_i − d′_i)²/(2|D|²).",
        Truth.TRUE,
        "The variance with divisor n, in any basis.",
        checks.pairwise_variance,
    ),
    Statement(
        "chord",
        "2.2, the chord",
        "‖ṽ − 1‖ = 2‖1‖ sin(α/2), and ‖ṽ − 1‖²/(4d) − 1 = −cos²(α/2).",
        Truth.TRUE,
        "Both, for every angle.",
        checks.chord,
    ),
    Statement(
        "angle",
        "2.2, the chord",
        "0 ≤ α ≤ π/4.",
        Truth.CONDITION,
        "d ≤ 2. The largest angle between variances and the all-ones vector is arccos(1/√d), towards π/2. "
        "Nothing that follows needs the bound.",
        checks.angle,
        counterexamples.angle,
    ),
    Statement(
        "cosine",
        "eq. 2, first line",
        "To maximise isotropy is to maximise O_I = cos(1, V(D)).",
        Truth.TRUE,
        "IsoScore = (d·cos² − 1)/(d − 1), increasing in the cosine.",
        checks.cosine,
    ),
    Statement(
        "objective_i",
        "eq. 2, second line",
        "O_I ∝ Σ ‖d − d′‖².",
        Truth.CONDITION,
        "‖V(D)‖ held fixed: the sum is 2n²√d·‖V(D)‖·cos(1, V(D)). The norm that is dropped carries all of "
        "the scale, and with it the order: longer may be less isotropic.",
        checks.objective_i,
        counterexamples.objective_i,
    ),
    Statement(
        "incompatible",
        "2.2, below eq. 2",
        "Both objectives can only be jointly maximised where no two data points have the same label.",
        Truth.FALSE,
        "True for K ≤ d labels: collapsed ones have IsoScore (K − 2)/(d − 1) at most. From K = d + 1 on, "
        "labels collapsed to distinct points of a tight frame (a simplex where K = d + 1) have IsoScore 1 "
        "and silhouette 1 together.",
        checks.incompatible,
        counterexamples.incompatible,
    ),
    Statement(
        "clusters",
        "summary (i)",
        "Point clouds cannot both contain well-defined clusters and be isotropic.",
        Truth.FALSE,
        "K ≥ d + 1 labels at distinct points of a tight frame (a simplex where K = d + 1) are both. Nor is "
        "it true of two labels, where clusters are what the mean silhouette says they are: one label of many "
        "points in one place, in the middle of another that spreads evenly, has IsoScore 1, and a mean "
        "silhouette as near to 1 as one likes. Its ρ is 0: the frontier bounds ρ, and that alone.",
        checks.clusters,
        counterexamples.clusters,
    ),
    Statement(
        "polarisation",
        "2.3",
        "⟨d, c⟩ = ½(‖d‖² + ‖c‖² − ‖d − c‖²).",
        Truth.TRUE,
        "For all d and c.",
        checks.polarisation,
    ),
    Statement(
        "objective_c",
        "eq. 3",
        "O_C = −Σ sign·⟨d, c_ω⟩ equals its expansion into norms and squared distances.",
        Truth.TRUE,
        "For all points, labels and class vectors.",
        checks.objective_c,
    ),
    Statement(
        "priors",
        "2.3, footnote 2",
        "The terms of the norms cancel for balanced, binary classification.",
        Truth.TRUE,
        "K = 2 and n_ω = n/2 make both weights 0.",
        checks.priors,
    ),
    Statement(
        "prior_norms",
        "2.3, footnote 2",
        "The objective entails that the norm of a class vector should be proportional to the number of "
        "points with its label.",
        Truth.FALSE,
        "O_C is linear in each class vector, so no length of it is best: it should be 0, or as long as it "
        "may be. The weight of ‖c_ω‖² in eq. 3, n_ω − n/2, does grow with n_ω, but the distances beside it "
        "take it back.",
        checks.prior_norms,
        counterexamples.prior_norms,
    ),
    Statement(
        "collapse",
        "eq. 4",
        "Any optimum of O_C is an optimum of O_S, since ℓ(d) = ℓ(d′) ⟺ d = d′ there.",
        Truth.CONDITION,
        "O_C is linear in every vector, so it has an optimum only where lengths are bounded. With ‖d‖ and "
        "‖c‖ ≤ 1 and balanced labels its maximum is n·max(2, K − 2) (for K = 3, in d ≥ 2). Eq. 4 holds for "
        "K = 2, and for K = 3 in d ≥ 2. For K = 4 labels may share a point, and from K = 5 on the only "
        "optima put all points of all labels in one place. Where labels are not balanced it fails from K = 3 "
        "on: two labels share a point beside a third of four times their size.",
        checks.collapse,
        counterexamples.collapse,
    ),
    Statement(
        "classifiers",
        "summary (ii)",
        "Linear classifiers yield clustered and thereby anisotropic representations.",
        Truth.CONDITION,
        "K ≤ d, and labels that have collapsed: balanced ones at the corners of a simplex have IsoScore "
        "(K − 2)/(d − 1). Short of collapse a classifier asks for one direction a label, and can be right "
        "about every point of an isotropic space.",
        checks.classifiers,
        counterexamples.classifiers,
    ),
    Statement(
        "triplet_terms",
        "appendix B",
        "L = max(‖a−p‖ − ‖a−n‖, 0) = max(‖a−p‖, ‖a−n‖) − ‖a−n‖ ≥ ‖a−p‖ − ‖a−n‖.",
        Truth.TRUE,
        "For all triplets.",
        checks.triplet_terms,
    ),
    Statement(
        "objective_t",
        "eq. 5",
        "O_T ≤ Σ sign_wgt·‖d − d′‖, sign_wgt |D_ω| − |D| within labels and |D_ω| − 1 between.",
        Truth.TRUE,
        "The bound, and the counting behind the weights.",
        checks.objective_t,
    ),
    Statement(
        "triplet_bound",
        "appendix B, last remark",
        "The right side of eq. 5 bounds the silhouette objective of eq. 1 too.",
        Truth.FALSE,
        "O_S has squared distances and outgrows it with scale; with plain distances in O_S it fails as well. "
        "(Without any triplet, for n = K, the right side is 0 and O_S is not.)",
        checks.triplet_bound,
        counterexamples.triplet_bound,
    ),
    Statement(
        "triplets_free",
        "appendix B, last remark",
        "Nothing here entails that a triplet loss makes representations anisotropic.",
        Truth.TRUE,
        "There are isotropic spaces with O_T = 0, its maximum: four corners of a square under two labels.",
        checks.triplets_free,
    ),
    Statement(
        "other_scores",
        "Limitations",
        "The Dunn, Caliński–Harabasz and Davies–Bouldin indices imply the same optimal layout as eq. 4 (a "
        "conjecture).",
        Truth.CONDITION,
        "Dunn and Davies–Bouldin: their best values, ∞ and 0, are had by the layout of eq. 4 and no other. "
        "Caliński–Harabasz is ∞ there too, but also where collapsed labels share a place, as long as not all "
        "do: it sees no label, only sums.",
        checks.other_scores,
        counterexamples.other_scores,
    ),
)


def checked(statement: Statement, *, n_cases: int = 50, seed: int = 0) -> int:
    """In how many of n random cases what `holds` says was so."""
    return sum(statement.check(np.random.default_rng([seed, case])) for case in range(n_cases))


def statements_table() -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Heads and cells for a page."""
    cells = []
    for one in STATEMENTS:
        found = None if one.counterexample is None else one.counterexample()
        against = "—" if found is None else f"{found.size}: {found.says}"
        cells.append((one.where, one.says, str(one.truth), one.holds, against))
    return ("where", "the paper says", "verdict", "what holds", "smallest counterexample"), tuple(cells)
