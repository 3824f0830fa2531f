"""`load_pairs`: texts that belong together, for contrastive training."""

from __future__ import annotations

import os

from isoscope.errors import InputError
from isoscope_papers.corpora.load import load_corpus
from isoscope_papers.corpora.running_text import Texts

# corpora and their splits, of which the items that follow from each other are taken
_PAIRS: dict[str, tuple[tuple[str, str], ...]] = {
    "nli": (("snli", "dev"), ("snli", "test"), ("mnli", "dev matched")),
    "snli": (("snli", "dev"), ("snli", "test")),
    "mnli": (("mnli", "dev matched"),),
}
_LABEL = "entailment"


def pair_names() -> list[str]:
    """The names that `load_pairs` takes."""
    return sorted(_PAIRS)


def load_pairs(
    name: str = "nli", *, data: str | os.PathLike[str] | None = None, download: bool = False
) -> Texts:
    """Sentences and what follows from them: the items of SNLI and MNLI that are labelled entailment.

    Premises are the first column, hypotheses the second; a pair that occurs twice is taken once.

    Args:
        name: "nli" (both, about 10,000 pairs), "snli" (dev and test) or "mnli" (dev, matched).
        data: a folder with files such as `snli/snli_dev.jsonl.gz`; by default that in ISOSCOPE_DATA.
        download: fetch what is in no folder, through the `datasets` package.

    Raises:
        InputError: there are no such pairs, or nowhere to take them from; the message says how to get them.
        FileError: a file is absent or broken; the message names the file and the line.
    """
    parts = _PAIRS.get(name)
    if parts is None:
        raise InputError(f"pairs {name!r} are not known; wanted one of {', '.join(pair_names())}")
    found: dict[tuple[str, str], None] = {}
    corpora = [load_corpus(corpus, data=data, split=split, download=download) for corpus, split in parts]
    for corpus in corpora:
        for texts, label in corpus.items:
            if label == _LABEL and all(text.strip() for text in texts):
                found[texts[0].strip(), texts[1].strip()] = None
    firsts, seconds = zip(*found, strict=True)
    return Texts(
        name,
        (firsts, seconds),
        split=" + ".join(f"{corpus} {split}" for corpus, split in parts),
        source=", ".join(dict.fromkeys(corpus.source for corpus in corpora)),
        licence="; ".join(dict.fromkeys(corpus.licence for corpus in corpora)),
    )
