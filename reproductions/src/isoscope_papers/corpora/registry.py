"""The corpora the papers use: where each lies in a data folder, on the hub, or inside this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hub:
    """A dataset on Hugging Face's hub: its splits are joined in order."""

    path: str
    splits: tuple[str, ...]
    config: str | None = None
    label: str = "label"


@dataclass(frozen=True)
class Embedded:
    """A table that comes with isoscope-papers, with a sentence on what it is."""

    table: str
    source: str
    licence: str


@dataclass(frozen=True)
class Declaration:
    """One corpus.

    columns: the fields that hold the texts, one or two.
    label: the field that holds the label.
    files: split and file in a data folder, the paper's own split first.
    label_names: what a label is called where the file has a code for it.
    unlabelled: codes that say an item has no label; such items are left out.
    is_set: the label is a set, its members joined by commas.
    prefers_embedded: the table inside this package has the paper's size, the folder's file has not.
    """

    columns: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    licence: str
    label: str = "label"
    label_names: Mapping[str, str] = field(default_factory=dict)
    unlabelled: frozenset[str] = frozenset()
    is_set: bool = False
    hub: Hub | None = None
    embedded: Embedded | None = None
    prefers_embedded: bool = False


_SENTIMENT = {"0": "negative", "1": "positive"}
# WNLI counts upwards, RTE and QNLI downwards; files often have the words instead, which are taken as they are
_ENTAILMENT = {"0": "not_entailment", "1": "entailment"}
_THREE_WAY = {"0": "entailment", "1": "neutral", "2": "contradiction"}
_TWO_WAY = {"0": "entailment", "1": "not_entailment"}
_TAGS = (
    "wordpress",
    "oracle",
    "svn",
    "apache",
    "excel",
    "matlab",
    "visual-studio",
    "cocoa",
    "osx",
    "bash",
    "spring",
    "hibernate",
    "scala",
    "sharepoint",
    "ajax",
    "qt",
    "drupal",
    "linq",
    "haskell",
    "magento",
)
_WORDNET = "WordNet 3.0 licence, Princeton University"


def _glue(task: str, columns: tuple[str, ...], names: Mapping[str, str], licence: str) -> Declaration:
    return Declaration(
        columns=columns,
        files=(
            ("train", f"glue/{task}_train.jsonl.gz"),
            ("dev", f"glue/{task}_dev.jsonl.gz"),
            ("test", f"glue/{task}_test.jsonl.gz"),
            ("dev matched", f"glue/{task}_dev_matched.jsonl.gz"),
            ("subset of 23k", f"glue/{task}_subset_23k.jsonl.gz"),
        ),
        licence=licence,
        label_names=names,
        hub=Hub("nyu-mll/glue", ("train",), config=task),
    )


_ONE, _TWO = ("sentence",), ("sentence1", "sentence2")
CORPORA: dict[str, Declaration] = {
    "polarity": Declaration(
        columns=("text",),
        files=(("all", "sentence_polarity/sentence_polarity.jsonl.gz"),),
        licence="CC BY 4.0 as stated by NLTK's copy (Pang and Lee 2005)",
        label_names=_SENTIMENT,
        hub=Hub("cornell-movie-review-data/rotten_tomatoes", ("train", "validation", "test")),
        embedded=Embedded(
            table="sentence_polarity.jsonl.gz",
            source="the sentence polarity dataset, as it comes with isoscope-papers",
            licence="CC BY 4.0, Bo Pang and Lillian Lee",
        ),
    ),
    "snli": Declaration(
        columns=("premise", "hypothesis"),
        files=(("dev", "snli/snli_dev.jsonl.gz"), ("test", "snli/snli_test.jsonl.gz")),
        licence="CC BY-SA 4.0 (Bowman et al. 2015)",
        label_names=_THREE_WAY,
        unlabelled=frozenset({"-1", "-"}),
        hub=Hub("stanfordnlp/snli", ("validation",)),
        embedded=Embedded(
            table="snli_dev.jsonl.gz",
            source="SNLI's development set, as it comes with isoscope-papers",
            licence="CC BY-SA 4.0, Bowman, Angeli, Potts and Manning",
        ),
    ),
    "cola": _glue(
        "cola", _ONE, {"0": "unacceptable", "1": "acceptable"}, "not stated (Warstadt et al. 2019)"
    ),
    "sst2": _glue("sst2", _ONE, _SENTIMENT, "not stated (Socher et al. 2013)"),
    "mrpc": _glue(
        "mrpc", _TWO, {"0": "not_equivalent", "1": "equivalent"}, "Microsoft Research terms (Dolan 2005)"
    ),
    "rte": _glue("rte", _TWO, _TWO_WAY, "not stated (PASCAL and TAC RTE, through GLUE)"),
    "wnli": _glue("wnli", _TWO, _ENTAILMENT, "CC BY 4.0 (Levesque et al. 2012)"),
    "qnli": _glue("qnli", ("question", "sentence"), _TWO_WAY, "CC BY-SA 4.0 (Rajpurkar et al. 2016)"),
    "qqp": _glue(
        "qqp",
        ("question1", "question2"),
        {"0": "not_duplicate", "1": "duplicate"},
        "Quora's terms of service",
    ),
    "mnli": _glue(
        "mnli",
        ("premise", "hypothesis"),
        _THREE_WAY,
        "OANC and Creative Commons parts (Williams et al. 2018)",
    ),
    "banking77": Declaration(
        columns=("text",),
        files=(
            ("train", "banking77/banking77_train.jsonl.gz"),
            ("test", "banking77/banking77_test.jsonl.gz"),
        ),
        licence="CC BY 4.0 (Casanueva et al. 2020)",
        hub=Hub("mteb/banking77", ("train",), label="label_text"),
    ),
    "stackoverflow": Declaration(
        columns=("text",),
        files=(("all", "short_text/stackoverflow.jsonl.gz"),),
        licence="not stated (Xu et al. 2015)",
        label_names={str(code): tag for code, tag in enumerate(_TAGS, start=1)},
    ),
    "pos": Declaration(
        columns=("word",),
        files=(("all words", "codwoe_pos/wordnet30_pos.tsv.gz"),),
        licence=_WORDNET,
        label="pos",
        label_names={"n": "noun", "v": "verb", "a": "adjective", "r": "adverb"},
        is_set=True,
        embedded=Embedded(
            table="pos.tsv.gz",
            source="the 11,462 most frequent words of GloVe 6B in WordNet 3.0, with their parts of speech",
            licence=_WORDNET,
        ),
        prefers_embedded=True,
    ),
    "supersense": Declaration(
        columns=("word",),
        files=(("all words", "supersenses/wordnet30_noun_supersenses.tsv.gz"),),
        licence=_WORDNET,
        label="supersenses",
        is_set=True,
        embedded=Embedded(
            table="supersense.tsv.gz",
            source="the 2,275 most frequent nouns of GloVe 6B in WordNet 3.0, with their supersenses",
            licence=_WORDNET,
        ),
        prefers_embedded=True,
    ),
}
