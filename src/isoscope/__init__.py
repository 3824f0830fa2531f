"""Measure how an embedding space is shaped: how isotropic, how clustered, how separable.

The names used most are here. The others are in `isoscope.metrics`, `.corrections`, `.losses`, `.models`,
`.io`, `.plots`, `.tracking`, `.training`, `.statistics` and `.clustering`. Names and modules are imported,
and torch with them, when they are first used.

>>> import isoscope as iso
>>> iso.isoscore([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
1.0
>>> iso.metrics.dunn_index([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
3.0
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
import types
import typing
import warnings

# Every name at the top, under the module that has it. docs/generate.py writes `__init__.pyi`, for type
# checkers and editors, from this table.
_PUBLIC: dict[str, tuple[str, ...]] = {
    "_version": ("__version__",),
    "advice": (
        "Advice",
        "advise",
    ),
    "audit": (
        "Audit",
        "audit",
    ),
    "citations": ("cite",),
    "clustering": ("kmeans",),
    "comparison": (
        "Comparison",
        "compare",
    ),
    "compression": ("compress",),
    "corrections": (
        "AllButTheTop",
        "Center",
        "Chain",
        "Normalize",
        "Standardize",
        "Whiten",
        "load_correction",
        "save_correction",
    ),
    "drift": (
        "Snapshot",
        "drift",
        "drift_over_time",
    ),
    "engine.measure": ("measure",),
    "engine.readings": (
        "Reading",
        "Readings",
    ),
    "errors": (
        "ClusterError",
        "FileError",
        "InputError",
        "IsoscopeError",
        "LabelError",
        "NotFiniteError",
        "ShapeError",
        "UndefinedError",
    ),
    "io": (
        "open_vectors",
        "read",
        "save",
    ),
    "labels": ("Labels",),
    "look": (
        "Look",
        "look",
    ),
    "matching": ("threshold",),
    "measurement": ("Measurement",),
    "metrics": (
        "Metric",
        "alignment",
        "calinski_harabasz_score",
        "davies_bouldin_score",
        "effective_rank",
        "frontier_position",
        "hubness",
        "isoscore",
        "isoscore_star",
        "isotropy_ceiling",
        "knn_purity",
        "lid",
        "linear_cka",
        "mean_cosine",
        "metric",
        "participation_ratio",
        "partition_isotropy",
        "rankme",
        "registered",
        "silhouette_samples",
        "silhouette_score",
        "twonn",
        "uniformity",
    ),
    "migrate": ("migrate",),
    "models": ("encode",),
    "models.layers": (
        "LayerProfile",
        "layers",
    ),
    "report": (
        "Report",
        "report",
        "widget",
    ),
    "sides": ("sides",),
    "space": ("Space",),
    "statistics": ("Moments",),
    "tracking": (
        "GeometryTracker",
        "Trajectory",
    ),
    "training": (
        "contrast",
        "finetune",
        "predict_collapse",
        "trade_off",
        "train_embeddings",
    ),
}
_MODULE_OF = {name: f"isoscope.{module}" for module, names in _PUBLIC.items() for name in names}

# Names that used to be at the top, under the module that has them now. They warn, for one version.
_MOVED: dict[str, tuple[str, ...]] = {
    "clustering": (
        "ChosenClusters",
        "Clustering",
        "choose_clusters",
    ),
    "corrections": (
        "ClusterCenter",
        "ClusterwiseAllButTheTop",
        "Correction",
        "RemoveDimensions",
    ),
    "io": (
        "VectorFile",
        "VectorShards",
        "read_labels",
        "read_texts",
    ),
    "losses": (
        "AlignmentLoss",
        "CosineRegularizer",
        "IStarLoss",
        "MultipleNegativesLoss",
        "TripletLoss",
        "UniformityLoss",
        "reference_covariance",
        "token_covariance",
    ),
    "metrics": (
        "Attribution",
        "ClusterAdjustedSimilarities",
        "DimensionShares",
        "DirectionPart",
        "FrontierPosition",
        "LabelPart",
        "NormStatistics",
        "RogueDimension",
        "RunningCorrelation",
        "ScatterDecomposition",
        "SelfSimilarityChange",
        "SilhouetteEstimate",
        "Sinks",
        "adjusted_intra_similarity",
        "adjusted_self_similarity",
        "adjusted_type_similarities",
        "attribute_anisotropy",
        "between_ceiling",
        "between_share",
        "classifier_objective",
        "classifier_objective_expansion",
        "cluster_adjusted_similarities",
        "condition_number",
        "dimension_contributions",
        "dimensions_for_share",
        "dimensions_for_variance",
        "dunn_index",
        "eigenvalues",
        "estimate_silhouette",
        "explained_variance",
        "find_sinks",
        "frontier_curve",
        "frontier_space",
        "informativity",
        "informativity_curve",
        "intra_similarity",
        "isotropy_defect",
        "isotropy_objective",
        "k_occurrence",
        "lid_samples",
        "linear_probe_accuracy",
        "neighbor_overlap",
        "norm_statistics",
        "points_needed",
        "power_law_exponent",
        "procrustes_distance",
        "rogue_dimensions",
        "running_correlation",
        "s_inter",
        "s_intra",
        "sampled_anisotropy",
        "scatter_decomposition",
        "self_similarity",
        "self_similarity_change",
        "self_similarity_shares",
        "silhouette_by_cluster",
        "silhouette_objective",
        "sink_thresholds",
        "stable_rank",
        "top_dimension_share",
        "triplet_bound",
        "triplet_objective",
        "type_similarities",
    ),
    "models": (
        "LanguageModel",
        "LayerComparison",
        "TextFile",
        "TokenRows",
        "TokenStates",
        "load_language_model",
        "measure_layers",
        "open_texts",
        "resolve_model",
        "static_vectors",
        "token_states",
    ),
    "plots": (
        "plot_against_frontier",
        "plot_cosines",
        "plot_dimensions",
        "plot_frontier",
        "plot_scatter",
        "plot_silhouette",
        "plot_spectrum",
        "plot_trajectory",
    ),
    "statistics": (
        "ClusterDistances",
        "Directions",
        "GroupDirections",
        "GroupMoments",
        "Neighbors",
        "Separation",
    ),
    "tracking": (
        "Correlation",
        "geometry_callback",
        "geometry_evaluator",
        "lightning_callback",
    ),
    "training": (
        "Contrasted",
        "FineTuned",
        "TradeOff",
        "TradeOffPoint",
    ),
}
_MOVED_TO = {name: f"isoscope.{module}.{name}" for module, names in _MOVED.items() for name in names}
_MOVED_TO |= {"encoders": "isoscope.models", "scale": "isoscope.engine"}

# Modules with public names, each in its `__all__`.
_MODULES = (
    "advice",
    "clustering",
    "comparison",
    "compression",
    "corrections",
    "io",
    "losses",
    "matching",
    "metrics",
    "models",
    "plots",
    "statistics",
    "tracking",
    "training",
)

# Commands that are no function of the same name, and what does the same in Python.
_COMMANDS = {
    "correct": "isoscope.Whiten().fit_transform(X), or another class of isoscope.corrections",
    "export": "isoscope.report.atlas.save_atlas",
    "frontier": "isoscope.frontier_position",
    "mcp": "the command `isoscope mcp`",
    "reproduce": "the command `isoscope reproduce`",
    "train": "isoscope.train_embeddings",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> typing.Any:
    """Import a public name, or a module of isoscope, on first use."""
    if name in _MODULE_OF:
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value
    if name in _MOVED_TO:
        place = _MOVED_TO[name]
        warnings.warn(f"isoscope.{name} is deprecated: use {place}.", DeprecationWarning, stacklevel=2)
        module, _, attribute = place.rpartition(".")
        return getattr(importlib.import_module(module), attribute)
    if not name.startswith("_") and importlib.util.find_spec(f"isoscope.{name}"):
        return importlib.import_module(f"isoscope.{name}")
    raise AttributeError(f"module 'isoscope' has no attribute {name!r}{_suggestion(name)}")


def _suggestion(name: str) -> str:
    """Return a sentence that names the public name with the nearest spelling, or "" where none is near."""
    if name.startswith("_"):
        return ""
    if name in _COMMANDS:
        return f". Use {_COMMANDS[name]}."
    places = {
        part: f"isoscope.{module}.{part}"
        for module in _MODULES
        for part in importlib.import_module(f"isoscope.{module}").__all__
    }
    places |= {part: f"isoscope.{part}" for part in (*_MODULES, *__all__)}
    by_spelling = {part.lower(): place for part, place in places.items()}
    close = difflib.get_close_matches(name.lower(), by_spelling, n=1, cutoff=0.7)
    if not close and len(name) > 3:
        close = [part for part in by_spelling if name.lower() in part][:1]
    return f". Did you mean {by_spelling[close[0]]}?" if close else ""


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})


class _Package(types.ModuleType):
    """The package: `isoscope.report` stays the function when the module of that name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULE_OF and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
