"""Texts without labels: `load_texts` for language models to read, `load_pairs` for contrastive training."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from isoscope.errors import FileError, InputError
from isoscope_papers.corpora.load import load_corpus
from isoscope_papers.corpora.registry import REGISTRY, declared
from isoscope_papers.corpora.rows import find
from isoscope_papers.corpora.similarity import load_similarity_pairs

_SCORED = "stsb"  # pairs that have scores too, as `load_similarity_pairs` reads them
# corpora and their splits, of which the items that follow from each other are taken
_ENTAILED: dict[str, tuple[tuple[str, str], ...]] = {
    "mnli": (("mnli", "dev matched"),),
    "nli": (("snli", "dev"), ("snli", "test"), ("mnli", "dev matched")),
    "snli": (("snli", "dev"), ("snli", "test")),
}


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts, or pairs of texts, in their order; iterating goes over the first column.

    Attributes:
        name: what they are called here.
        columns: one or two columns of n texts.
        split: which part of the published corpus this is.
        source: where they were read from, in words; of a file, its name without the folder.
        licence: what is known of their terms.

    >>> pairs = Texts("tiny", (("a cat", "a dog"), ("one cat", "one dog")))
    >>> len(pairs), list(pairs), pairs.columns[1][0]
    (2, ['a cat', 'a dog'], 'one cat')
    """

    name: str
    columns: tuple[tuple[str, ...], ...]
    split: str = ""
    source: str = ""
    licence: str = ""

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns[0])


def text_names() -> list[str]:
    """Return the names that `load_texts` takes."""
    return sorted((*REGISTRY["texts"], _SCORED))


def load_texts(
    name: str,
    *,
    data: str | os.PathLike[str] | None = None,
    split: str = "test",
    download: bool = False,
) -> Texts:
    """Return texts without labels: `wikitext2`, a paragraph or heading each; `stsb`, pairs of sentences.

    Looked for in a data folder, then on Hugging Face's hub if `download`. WikiText-2 is the tokenised one:
    rare words read `<unk>`, and blank lines are left out.

    Args:
        name: "wikitext2" or "stsb".
        data: a folder with files such as `wikitext2/wikitext2_test.txt.gz`; by default that in ISOSCOPE_DATA.
        split: "test", "train", or "valid" of wikitext2 and "dev" of stsb.
        download: fetch them where they are in no folder, through the `datasets` package.

    Raises:
        InputError: there are no such texts, or nowhere to take them from; the message says how to get them.
        FileError: a file is absent or broken; the message names the file and the line.
    """
    if name == _SCORED:
        pairs = load_similarity_pairs(name, data=data, split=split, download=download)
        return Texts(name, pairs.columns, pairs.split, pairs.source, pairs.licence)
    if name not in text_names():
        raise InputError(f"texts {name!r} are not known; wanted one of {', '.join(text_names())}")
    wanted = declared("texts", name)
    found = find("texts", wanted, split, data, download=download)
    texts = []
    for where, record in found.rows:
        if not isinstance(text := record["text"], str):
            raise FileError(f"{where}: text is {text!r:.40}; wanted a text")
        if text.strip():  # the hub keeps WikiText's blank lines
            texts.append(text.strip())
    return Texts(name, (tuple(texts),), found.split, found.source, wanted.licence)


def pair_names() -> list[str]:
    """Return the names that `load_pairs` takes."""
    return list(_ENTAILED)


def load_pairs(
    name: str = "nli", *, data: str | os.PathLike[str] | None = None, download: bool = False
) -> Texts:
    """Return sentences and what follows from them: the items of SNLI and MNLI that are labelled entailment.

    Premises are the first column, hypotheses the second; a pair that occurs twice is taken once.

    Args:
        name: "nli" (both, about 10,000 pairs), "snli" (dev and test) or "mnli" (dev, matched).
        data: a folder with files such as `snli/snli_dev.jsonl.gz`; by default that in ISOSCOPE_DATA.
        download: fetch what is in no folder, through the `datasets` package.

    Raises:
        InputError: there are no such pairs, or nowhere to take them from; the message says how to get them.
        FileError: a file is absent or broken; the message names the file and the line.
    """
    if name not in _ENTAILED:
        raise InputError(f"pairs {name!r} are not known; wanted one of {', '.join(_ENTAILED)}")
    parts = _ENTAILED[name]
    corpora = [load_corpus(corpus, data=data, split=split, download=download) for corpus, split in parts]
    pairs = {
        tuple(text.strip() for text in texts): None
        for corpus in corpora
        for texts, label in corpus.items
        if label == "entailment" and all(text.strip() for text in texts)
    }
    return Texts(
        name,
        tuple(zip(*pairs, strict=True)),
        split=" + ".join(f"{corpus} {split}" for corpus, split in parts),
        source=", ".join(dict.fromkeys(corpus.source for corpus in corpora)),
        licence="; ".join(dict.fromkeys(corpus.licence for corpus in corpora)),
    )
