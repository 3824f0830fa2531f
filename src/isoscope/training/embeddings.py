"""`train_embeddings`: train vectors together with a classifier, and measure their geometry."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from isoscope._version import __version__
from isoscope.arguments import renamed
from isoscope.errors import InputError, check_whole
from isoscope.progress import Bar
from isoscope.tracking.trajectory import Trajectory
from isoscope.training.checkpoint import SeedFolder
from isoscope.training.configuration import Configuration, as_betas, as_metrics, as_seeds
from isoscope.training.loggers import as_listener
from isoscope.training.problem import Problem
from isoscope.training.recorder import Listener, Row
from isoscope.training.session import Session


@renamed(checkpoint_every="save_every")
@torch.inference_mode(False)  # training needs gradients, whatever the caller has switched off
@torch.enable_grad()
def train_embeddings(
    X: Any,
    y: Any = None,
    *,
    pairs: Any = None,
    steps: int = 1000,
    seeds: int | Iterable[int] = 5,
    metrics: str | Iterable[str] = ("isoscore", "silhouette"),
    every: int = 1,
    objective: str = "classifier",
    n_triplets: int | None = None,
    bias: bool = True,
    hidden: int | Sequence[int] = (),
    activation: str = "relu",
    optimizer: str = "adam",
    learning_rate: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    sample_above: int | None = 20_000,
    sample_table: bool = False,
    silhouette_tolerance: float | None = None,
    patience: int | None = None,
    min_improvement: float = 0.0,
    target_accuracy: float | None = None,
    callback: Callable[[Row], bool | None] | None = None,
    log: str | Listener | None = None,
    run: str | os.PathLike[str] | None = None,
    resume: bool = False,
    save_every: int | None = None,
    progress: bool | None = None,
) -> Trajectory:
    """Train vectors and a classifier together, full batch, and measure the geometry at every update.

    This is the experiment of Mickus, Grönroos and Attieh 2024, *Isotropy, Clusters, and Classifiers*, on
    any vectors. A table of vectors, initialised with X, and a linear classifier are trained on y; clusters
    form and isotropy falls. Each seed initialises the classifier as torch.manual_seed(seed) and nn.Linear
    do. Metrics that need labels are computed on the items, the inputs of the classifier; all others on the
    table. The same seeds give the same numbers, bitwise on the CPU. X does not change, and the training
    runs on the device of X.

    Args:
        X: (n, d) vectors in any array, or a Space.
        y: one label per item, or a set of labels per item (lists, or a matrix of 0 and 1). For sets, the
            loss is binary cross-entropy per label, and each distinct set is a cluster. Not needed where X
            is a Space with labels.
        pairs: (m, c) row numbers of X; the rows of an item are concatenated. By default every row of X is
            an item.
        steps: number of updates.
        seeds: the number of seeds, or the seeds themselves.
        metrics: names or families of registered metrics.
        every: updates between measurements. The start and the end are always measured.
        objective: "classifier", or "triplet": max(‖a − p‖ − ‖a − q‖, 0), without margin or classifier.
        n_triplets: number of triplets drawn at each update; by default all triplets are used.
        bias: whether the layers of the classifier have a bias.
        hidden: widths of layers before the scores. Their activations are measured as `hidden1_…`.
        activation: function between layers: "relu", "gelu", "tanh" or "sigmoid".
        optimizer: "adam", "adamw", "nadam", "sgd", "rmsprop" or "adagrad".
        learning_rate, betas: settings of the optimiser.
        sample_above: with more items than this, metrics that need labels are computed on a new random
            sample of this size at each measurement; None always uses all items.
        sample_table: compute the other metrics on the vectors of that sample too, as the paper does.
        silhouette_tolerance: estimate the silhouette to a 95 % interval of ± this, which is recorded in the
            columns silhouette_low and silhouette_high.
        patience: end a seed whose loss did not improve by `min_improvement` for this many updates.
        target_accuracy: end a seed that reaches this accuracy.
        callback: called with each row (a dict); a seed for which it returns True ends.
        log: "tensorboard", "wandb", "mlflow", or a function called with each row.
        run: folder for the run's checkpoints and results. An interrupted run resumes to the same numbers.
        resume: continue a run found in that folder.
        save_every: updates between checkpoints; by default there is one every minute.
        progress: show a progress bar; None shows it on a terminal when work takes over a second.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    >>> run = train_embeddings(X, X[:, 0] > 0, steps=200, seeds=2, learning_rate=0.01)
    >>> bool(run["silhouette"][-1] > run["silhouette"][0]), run.n_parameters
    (True, 250)
    >>> run.correlation("isoscore", "silhouette").r < 0
    True
    """
    problem = Problem.of(X, y, pairs=pairs)
    configuration = Configuration(
        steps=steps, seeds=as_seeds(seeds), every=every, metrics=as_metrics(metrics),
        objective=objective, n_triplets=n_triplets, bias=bool(bias),
        hidden=(hidden,) if isinstance(hidden, int) else tuple(hidden),
        activation=activation, optimizer=optimizer, learning_rate=learning_rate, betas=as_betas(betas),
        sample_above=sample_above, sample_table=bool(sample_table),
        silhouette_tolerance=silhouette_tolerance, patience=patience, min_improvement=min_improvement,
        target_accuracy=target_accuracy,
    )  # fmt: skip
    if save_every is not None:
        check_whole("save_every", save_every)
        if run is None:
            raise InputError("needs run", argument="save_every", hint="pass run=FOLDER")
    about = described(problem, configuration)
    with (
        SeedFolder.open(run, about, resume=resume) as folder,
        as_listener(log, about, None if folder is None else folder.path) as listener,
        Bar(show=progress) as bar,
    ):
        session = Session(problem, configuration, about, folder, save_every, listener, callback, bar)
        return session.run()


def described(problem: Problem, configuration: Configuration) -> dict[str, Any]:
    """Return the configuration with the sizes, data and versions of the run, JSON-ready."""
    n, d = problem.table.shape
    return configuration.to_dict() | {
        "n": n,
        "d": d,
        "n_items": problem.n_items,
        "n_columns": problem.n_columns,
        "n_labels": len(problem.label_names),
        "n_clusters": problem.clusters.n_labels,
        "multi_label": problem.indicator is not None,
        "dtype": str(problem.table.dtype).removeprefix("torch."),
        "data": problem.fingerprint,
        "device": str(problem.table.device),
        "isoscope": __version__,
        "torch": torch.__version__,
    }
