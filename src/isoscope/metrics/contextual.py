"""Similarity of the occurrences of a token and of the tokens of a sentence: mean cosines within groups."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from isoscope.arrays import as_matrix, scalar
from isoscope.errors import InputError, UndefinedError, check_choice, check_seed, check_whole
from isoscope.labels import Labels, as_labels
from isoscope.metrics.cosine import mean_cosine
from isoscope.metrics.registry import family
from isoscope.printable import counted
from isoscope.space import known_rows
from isoscope.statistics.directions import Directions, has_direction, pair_cosine
from isoscope.statistics.group_cosines import GroupCosines, MeanCosines
from isoscope.statistics.groups import GroupDirections, GroupMoments
from isoscope.statistics.strata import draw_rows

_metric = family(
    "contextual",
    needs=("type_directions",),
    range=(-1.0, 1.0),
    invariances=("rotation", "scale"),
    differentiable=True,
    paper="Ethayarajh 2019, How Contextual are Contextualized Word Representations?",
)


@_metric(
    high="context changes a token little",
    sentence="two occurrences of one token have a cosine of {value:z.2f} on average",
)
def self_similarity(X: Any, *, token_types: Any = None, weight: Literal["types", "tokens"] = "types") -> Any:
    """Compute the mean cosine between the vectors of one token in all its contexts.

        mean over types of  (‖Σ u‖² − n_t)/(n_t(n_t − 1)),   u = x/‖x‖ over the n_t occurrences of type t

    the mean cosine of all pairs of occurrences, exact, with no sampling. Types that occur once are
    skipped; zero vectors have no direction and are left out. Range [−1, 1]; high means that context
    changes a token little. Invariant to rotation and one scale. Paper: Ethayarajh 2019; Xiao et al. 2023.

    Args:
        X: a Space that knows its token types, (n, d) vectors, or GroupDirections of the types.
        token_types: the type of each row, where X does not carry it.
        weight: "types", every type alike, or "tokens", by the number of occurrences.

    >>> self_similarity([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [3.0, 0.0]], token_types=["a", "a", "b", "b"])
    0.5
    """
    check_choice("weight", weight, ("types", "tokens"))
    groups = GroupCosines.by("token_types", X, token_types)
    values, counts = _pair_means(groups, "self_similarity", "token type")
    return scalar(values.mean() if weight == "types" else (values * counts).sum() / counts.sum())


@_metric(
    range=(-2.0, 2.0),
    high="context changes a token little",
    sentence="two occurrences of one token have a cosine {value:+z.2f} above that of any two tokens",
)
def adjusted_self_similarity(X: Any, *, token_types: Any = None, anisotropy: float | None = None) -> Any:
    """Compute the self-similarity less the mean cosine of all pairs.

        self_similarity − mean cosine of all pairs of vectors

    Range [−2, 2]; 0 means that occurrences of a token are no more alike than random tokens. Invariant
    to rotation and one scale. Paper: Ethayarajh 2019.

    Args:
        X: as for `self_similarity`.
        token_types: the type of each row, where X does not carry it.
        anisotropy: another baseline, such as a paper's sampled one; default the exact mean cosine.

    >>> adjusted_self_similarity([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0]], token_types=[0, 0, 1, 1])
    0.6666666666666667
    """
    groups = GroupCosines.by("token_types", X, token_types)
    return scalar(self_similarity(groups) - (anisotropy_of(groups) if anisotropy is None else anisotropy))


def type_similarities(X: Any, *, token_types: Any = None) -> dict[Any, float]:
    """Return the self-similarity of every token type that occurs at least twice, by name.

    Range [−1, 1] each; invariant to rotation and one scale. Paper: Ethayarajh 2019.

    >>> type_similarities([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]], token_types=["a", "a", "b"])
    {'a': 0.0}
    """
    groups = GroupCosines.by("token_types", X, token_types)
    values, _ = _pair_means(groups, "type_similarities", "token type")
    names = [name for name, n in zip(groups.names, groups.counts.tolist(), strict=True) if n >= 2]
    return dict(zip(names, values.tolist(), strict=True))


@_metric(
    needs=("sentence_directions", "sentence_moments"),
    call=lambda metric, shelf: metric(shelf.sentence_directions, moments=shelf.sentence_moments),
    high="the tokens of a sentence point one way",
    sentence="a token has a cosine of {value:z.2f} with the mean of its sentence on average",
)
def intra_similarity(
    X: Any,
    *,
    sentences: Any = None,
    to: Literal["mean", "pairs"] = "mean",
    moments: GroupMoments | None = None,
) -> Any:
    """Compute the mean similarity of the token vectors of one sentence.

        to="mean":   mean over sentences of the mean cosine of each token with its sentence's mean vector m,
                     (Σ u)·m/(n‖m‖) over the n tokens u = x/‖x‖ of a sentence
        to="pairs":  mean over sentences of the mean cosine of all pairs of its tokens

    Both in one pass. The first is what the papers report (and reads higher: .85 where pairs give .70). A
    sentence of one token reads 1 against its mean and is skipped by pairs. Range [−1, 1]; high means that
    sentences are compact. Invariant to rotation and one scale. Paper: Ethayarajh 2019; Xiao et al. 2023.

    Args:
        X: a Space that knows its sentences, (n, d) vectors, or GroupDirections of the sentences.
        sentences: the sentence of each row, where X does not carry it.
        to: what each token is compared with.
        moments: the sentences' means, wanted with GroupDirections and to="mean".

    >>> round(intra_similarity([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]], sentences=[0, 0, 1]), 6)
    0.853553
    >>> intra_similarity([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]], sentences=[0, 0, 1], to="pairs")
    0.0
    """
    check_choice("to", to, ("mean", "pairs"))
    if to == "pairs":
        groups = GroupCosines.by("sentences", X, sentences)
        return scalar(_pair_means(groups, "intra_similarity", "sentence")[0].mean())
    return scalar(MeanCosines.by("sentences", X, sentences, moments).mean)


@_metric(
    needs=("sentence_directions", "sentence_moments"),
    call=lambda metric, shelf: metric(shelf.sentence_directions, moments=shelf.sentence_moments),
    range=(-2.0, 2.0),
    high="the tokens of a sentence point one way",
    sentence="a token has a cosine {value:+z.2f} higher with its sentence's mean than any two tokens have",
)
def adjusted_intra_similarity(
    X: Any,
    *,
    sentences: Any = None,
    to: Literal["mean", "pairs"] = "mean",
    moments: GroupMoments | None = None,
    anisotropy: Any = None,
) -> Any:
    """Compute the intra-sentence similarity less the mean cosine of all pairs.

        intra_similarity − mean cosine of all pairs of vectors

    Range [−2, 2]; 0 means that sentences are no more compact than the space. Invariant to rotation and
    one scale. Paper: Ethayarajh 2019; Xiao et al. 2023.

    Args:
        X: as for `intra_similarity`.
        sentences: the sentence of each row, where X does not carry it.
        to, moments: as for `intra_similarity`.
        anisotropy: another baseline, or Directions to take the exact one from.

    >>> adjusted_intra_similarity([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], sentences=[0, 0, 1])
    0.6666666666666667
    """
    if isinstance(X, GroupDirections | MeanCosines) and anisotropy is None:
        anisotropy = anisotropy_of(X)
    if anisotropy is None or isinstance(anisotropy, Directions):
        anisotropy = mean_cosine(X if anisotropy is None else anisotropy)
    return scalar(intra_similarity(X, sentences=sentences, to=to, moments=moments) - anisotropy)


def s_intra(X: Any, *, token_types: Any = None, max_instances: int | None = None, seed: int = 0) -> Any:
    """Compute the mean cosine between occurrences of the same type, averaged over types that occur twice.

    Exact over all occurrences, and then the same as `self_similarity`; `max_instances=1000` is the
    paper's protocol, a random thousand of each type. Range [−1, 1]; high means types are compact.
    Invariant to rotation and one scale. Paper: Cai et al. 2021.

    >>> s_intra([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]], token_types=["a", "a", "b"])
    1.0
    """
    if max_instances is not None:
        check_whole("max_instances", max_instances, least=2)
        X, token_types = _sample_types(X, token_types, max_instances, seed)
    values, _ = _pair_means(GroupCosines.by("token_types", X, token_types), "s_intra", "token type")
    return scalar(values.mean())


@_metric(
    high="anisotropic",
    better="low",
    paper="Cai, Huang, Bian, Church 2021, Isotropy in the Contextual Embedding Space: Clusters and Manifolds",
    sentence="occurrences of two different tokens have a cosine of {value:z.2f} on average",
)
def s_inter(X: Any, *, token_types: Any = None, sampled: bool = False, seed: int = 0) -> Any:
    """Compute the mean cosine between occurrences of different types, with equal weight for each type.

        (‖Σ m_t‖² − Σ ‖m_t‖²)/(T(T − 1)),   m_t the mean unit vector of type t

    is the exact expectation of the paper's protocol, which draws one random occurrence of each of the T
    types and takes the mean cosine of all pairs; `sampled=True` does that, with the seed. Range [−1, 1];
    high is anisotropic. Invariant to rotation and one scale. Paper: Cai et al. 2021.

    >>> s_inter([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]], token_types=["a", "a", "b"])
    0.5
    """
    if sampled:
        X, token_types = _sample_types(X, token_types, 1, seed)
    groups = GroupCosines.by("token_types", X, token_types)
    kept = groups.counts > 0
    T = int(kept.sum())
    if T < 2:
        raise UndefinedError(f"s_inter needs two token types with a direction; there are {T}")
    own = (groups.squared[kept] / groups.counts[kept] ** 2).sum()
    return scalar(((groups.mean_sum @ groups.mean_sum - own) / (T * (T - 1))).clamp(-1, 1))


def sampled_anisotropy(X: Any, *, sentences: Any = None, n_sentences: int = 1000, seed: int = 0) -> Any:
    """Estimate the mean cosine between tokens of different sentences from one random token a sentence.

        mean over pairs of cos(x_i, x_j),   i, j over one token each of `n_sentences` random sentences

    is the papers' baseline, which long sentences do not dominate. It depends on the seed in its third
    decimal; `mean_cosine` is the exact one over all tokens. Range [−1, 1]; high is anisotropic. Invariant
    to rotation and one scale. Zero vectors are left out. Paper: Ethayarajh 2019; Xiao et al. 2023.

    Args:
        X: a Space that knows its sentences, or (n, d) vectors.
        sentences: the sentence of each row, where X does not carry it.
        n_sentences: how many are drawn; all where there are fewer.
        seed: of both draws.

    >>> sampled_anisotropy([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]], sentences=[0, 0, 1])
    0.0
    """
    check_whole("n_sentences", n_sentences, least=2)
    check_seed(seed)
    matrix = as_matrix(X, finite=False, apart=sentences)  # only the rows that are drawn are checked
    labels = as_labels(known_rows(X, sentences, "sentences"), n=matrix.shape[0], name="sentences")
    generator = torch.Generator().manual_seed(seed)
    rows = draw_rows(labels, at_most=1, generator=generator)
    chosen = rows[torch.randperm(len(rows), generator=generator)[:n_sentences]]
    return mean_cosine(matrix[chosen.to(matrix.device)])


def _pair_means(groups: GroupCosines, name: str, noun: str) -> tuple[Tensor, Tensor]:
    """Return the mean cosine of all pairs and the count, for each group of two or more."""
    kept = groups.counts >= 2
    if not kept.any():
        raise UndefinedError(
            f"{name} is undefined: no {noun} has two vectors with a direction "
            f"({len(groups.names)} of them, {counted(groups.n_zero, 'zero vector')})"
        )
    n = groups.counts[kept]
    return pair_cosine(n, groups.squared[kept]).clamp(-1, 1), n


def anisotropy_of(groups: GroupDirections | GroupCosines | MeanCosines) -> Tensor:
    """Return the mean cosine of all pairs of vectors, regardless of groups."""
    sums = GroupCosines.of(groups) if isinstance(groups, GroupDirections) else groups
    total, n = sums.unit_sum, sums.count
    if n < 2:
        raise UndefinedError(f"the mean cosine needs two vectors with a direction; there are {int(n)}")
    return pair_cosine(n, total @ total).clamp(-1, 1)


def _sample_types(X: Any, token_types: Any, at_most: int, seed: int) -> tuple[Tensor, Labels]:
    """Return at most so many random rows of each type, without zero vectors."""
    if isinstance(X, GroupDirections):
        raise InputError("sampling needs the vectors; pass X and its token types, not GroupDirections")
    matrix = as_matrix(X, apart=token_types)
    labels = as_labels(known_rows(X, token_types, "token_types"), n=matrix.shape[0], name="token_types")
    present = has_direction(matrix).cpu()
    rows = draw_rows(labels, at_most=at_most, generator=torch.Generator().manual_seed(seed), among=present)
    if not len(rows):
        raise UndefinedError(
            f"no token type has a vector with a direction: all {len(labels)} vectors are zero"
        )
    return matrix[rows.to(matrix.device)], Labels(labels.codes.cpu()[rows], labels.names)
