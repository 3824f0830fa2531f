"""Readings of the last layer that decide single claims: of sentences, dimensions, frequency and grammar."""

from __future__ import annotations

import torch
from scipy.stats import spearmanr
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

from isoscope import Space
from isoscope.metrics import dimension_contributions, informativity
from isoscope_papers.contrastive.tokens import kind

N_TOP = 20  # dominant dimensions
N_PAIRED = 500  # tokens whose pairs are compared with and without each dimension


def last_layer(words: Space, every: Space, *, seed: int = 0) -> dict[str, float]:
    """Return readings of the last layer by name, of words alone and of every token, special ones included."""
    found = {f"intra, {name}": value for name, value in intra_readings(words).items()}
    found |= {f"intra, special tokens, {name}": value for name, value in intra_readings(every).items()}
    return found | _dimensions(words, one_each(words, seed)[:N_PAIRED]) | _frequency(words) | _grammar(words)


def one_each(space: Space, seed: int) -> Tensor:
    """Return one random token from each sentence, (n_sentences, d)."""
    assert space.sentences is not None
    shuffled = torch.randperm(len(space), generator=torch.Generator().manual_seed(seed))
    by_sentence = space.sentences.codes[shuffled].sort(stable=True)
    first = torch.ones(len(space), dtype=torch.bool)
    first[1:] = by_sentence.values[1:] != by_sentence.values[:-1]
    return space.vectors[shuffled[by_sentence.indices[first]]]


def intra_readings(space: Space) -> dict[str, float]:
    """Return what "how similar tokens of a sentence are" could mean, each as a mean over sentences."""
    assert space.sentences is not None
    codes, units = space.sentences.codes, normalize(space.vectors.double())
    n = torch.bincount(codes).double()
    to_mean = cosine_similarity(space.vectors.double(), _means(space.vectors.double(), codes)[codes])
    resultant = _means(units, codes).norm(dim=1)
    several = n > 1
    pairs = (n * resultant.square() - 1)[several] / (n - 1)[several]
    by_sentence = _means(to_mean[:, None], codes)[:, 0]
    return {
        "to the mean": float(by_sentence.mean()),
        "to the mean, median": float(by_sentence.median()),
        "to the mean, by token": float(to_mean.mean()),
        "to the mean direction": float(resultant.mean()),
        "pairs": float(pairs.mean()),
        "pairs with themselves": float(resultant.square().mean()),
    }


def _means(values: Tensor, codes: Tensor) -> Tensor:
    """Return the mean of the values of each group, (groups, d)."""
    sums = values.new_zeros(int(codes.max()) + 1, values.shape[1]).index_add_(0, codes, values)
    return sums / torch.bincount(codes)[:, None]


def _dimensions(space: Space, sample: Tensor) -> dict[str, float]:
    """Return how dominance goes with mean and variance, and what is lost with single dimensions."""
    shares, vectors = torch.as_tensor(dimension_contributions(space)), space.vectors.double()
    mean, variance = vectors.mean(dim=0).square(), vectors.var(dim=0)
    lost = torch.tensor(
        [1 - informativity(sample, n_dimensions=1, order=[j]) for j in range(sample.shape[1])]
    )
    top = shares.argsort(descending=True)[:N_TOP]
    return {
        "dominance and squared mean": _rank(shares, mean),
        "dominance and variance": _rank(shares, variance),
        "dominance and r² lost": _rank(shares, lost),
        "variance and r² lost, dominant dimensions": _rank(variance[top], lost[top]),
        "largest r² lost": float(lost.max()),
    }


def _frequency(space: Space) -> dict[str, float]:
    """Return how a type's frequency goes with its tokens' norm and their cosine to the mean of all tokens."""
    assert space.token_types is not None
    codes, vectors = space.token_types.codes, space.vectors.double()
    norms, cosines = vectors.norm(dim=1), cosine_similarity(vectors, vectors.mean(dim=0)[None])
    counts, by_type = torch.bincount(codes).double(), _means(torch.stack([norms, cosines], dim=1), codes)
    return {
        "frequency and norm": _rank(counts, by_type[:, 0]),
        "frequency and cosine to the mean": _rank(counts, by_type[:, 1]),
        "types": float(len(counts)),
    }


def _grammar(space: Space) -> dict[str, float]:
    """Return how near function tokens are to the content of their sentence, and of the next one."""
    assert space.token_types is not None
    assert space.sentences is not None
    kinds = [kind(str(name)) for name in space.token_types.names]
    of = torch.tensor([("grammar", "content", "").index(name) for name in kinds])[space.token_types.codes]
    codes, vectors = space.sentences.codes, space.vectors.double()
    both = torch.stack(
        [torch.bincount(codes[of == part], minlength=int(codes.max()) + 1) > 0 for part in (0, 1)]
    )
    kept = both.all(dim=0)[codes]
    codes, vectors, of = codes[kept].unique(return_inverse=True)[1], vectors[kept], of[kept]
    sentence, grammar, content = (
        _means(vectors[which], codes[which]) for which in (of >= 0, of == 0, of == 1)
    )
    function, own = vectors[of == 0], codes[of == 0]
    cosines = {
        "function tokens and the content of their sentence": (function, content[own]),
        "function tokens and the content of another": (function, content.roll(1, dims=0)[own]),
        "sentence and its content": (sentence, content),
        "sentence and its function tokens": (sentence, grammar),
    }
    return {name: float(cosine_similarity(*pair).mean()) for name, pair in cosines.items()}


def _rank(first: Tensor, second: Tensor) -> float:
    return float(spearmanr(first, second).statistic)
