"""What is run, what is predicted of it, and what counts as right: stated before the runs.

    isoscope reproduce collapse --setup all --data data -o results

The prediction is `iso.predict_collapse(X, labels, learning_rate=…, steps=STEPS)` with nothing else set. It
says of every run, before it begins, whether the assumptions of the law hold. They are those of the library,
at the bounds it has for everyone:

    one label a vector         the loss is cross-entropy, not binary cross-entropy of sets of labels
    labels fit a simplex       K ≤ d + 1
    vectors can move           the optimiser's longest way, steps · learning rate · √d for Adam, is at least
                               the root mean square distance of vectors to the mean of their label
    labels of similar size     the largest label has at most 10 times the rows of the smallest
    two vectors a label        no label has one row
    the change is clear        the predicted change exceeds 2 % of the start, and two standard deviations
                               over drawn classifiers

Right is, for each run (one seed of one space at one length and learning rate):

    the sign    that of IsoScore at the end minus IsoScore at the start. Wanted: on SIGN_SHARE of all runs of
                which the assumptions hold
    the end     |predicted − seen| ≤ END_WITHIN · seen, for runs of which the assumptions hold and whose
                silhouette at the end is at least COLLAPSED. Wanted: on every one

Runs on sets of labels are counted apart. They are judged by the same rules, except that three assumptions do
not count: the first, and those on the sizes of labels, which are of distinct sets there (OF_ONE_LABEL).
"""

from __future__ import annotations

from dataclasses import dataclass

STEPS = 500  # updates
EVERY = 125  # updates between measurements
LEARNING_RATES = (1e-4, 1e-3, 1e-2)
NORMS = (None, 1.0, 10.0)  # mean length of the vectors; None: as the encoder gives them
SAME_NORM = 0.01  # lengths that differ by less, relatively, are one
MIN_ROWS, ROWS_PER_LABEL, NUMBERS = 300, 10, 100_000  # rows: the largest of 300, 10·K and 100,000/d

SIGN_SHARE = 0.95
END_WITHIN = 0.10
COLLAPSED = 0.7  # silhouette

# the assumptions that do not count where rows have sets of labels
OF_ONE_LABEL = ("one label a vector", "labels of similar size", "two vectors a label")


@dataclass(frozen=True)
class Encoder:
    """A model of texts, or a table of word vectors.

    Attributes:
        name: short name, in names of files.
        title: name on the page.
        model: what isoscope loads; empty where vectors come with the data.
        prefix: text before each text.
    """

    name: str
    title: str
    model: str = ""
    prefix: str = ""


MINILM = Encoder("minilm", "MiniLM", "all-MiniLM-L6-v2")
MPNET = Encoder("mpnet", "MPNet", "all-mpnet-base-v2")
E5 = Encoder("e5", "e5-small", "e5-small", "query: ")
SMOLLM2 = Encoder("smollm2", "SmolLM2", "smollm2-135m")
GLOVE = Encoder("glove", "GloVe", "glove-6b-50d")
PIXELS = Encoder("pixels", "pixels")
_TEXTS = (MINILM, MPNET, E5, SMOLLM2, GLOVE)
_WORDS = (GLOVE, MINILM)


@dataclass(frozen=True)
class Setup:
    """A data set with its labels.

    Attributes:
        name: name on the command line.
        title: name on the page.
        corpus: its corpus; empty for scikit-learn's digits.
        encoders: the encoders it is run with.
        n_labels: the first so many labels, by name; None for all.
        only_single: of rows with a set of labels, take those with one label, as their label.
    """

    name: str
    title: str
    corpus: str
    encoders: tuple[Encoder, ...] = _TEXTS
    n_labels: int | None = None
    only_single: bool = False


_BANKING = tuple(
    Setup(f"banking77-{K}", f"Banking77, {K} labels", "banking77", n_labels=K) for K in (2, 5, 20, 40, 77)
)
SETUPS = {
    setup.name: setup
    for setup in (
        Setup("digits", "digits", "", (PIXELS,)),
        *_BANKING,
        Setup("stackoverflow", "StackOverflow", "stackoverflow"),
        Setup("sst2", "SST-2", "sst2"),
        Setup("cola", "CoLA", "cola"),
        Setup("polarity", "polarity", "polarity"),
        Setup("ap", "AP categories", "ap", _WORDS),
        Setup("battig", "Battig categories", "battig", _WORDS),
        Setup("bless", "BLESS categories", "bless", _WORDS),
        Setup("pos-single", "POS, one a word", "pos", _WORDS, only_single=True),
        Setup("supersense-single", "supersenses, one a word", "supersense", _WORDS, only_single=True),
        Setup("pos", "POS, sets", "pos", _WORDS),
        Setup("supersense", "supersenses, sets", "supersense", _WORDS),
    )
}
