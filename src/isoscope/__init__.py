"""isoscope shows how an embedding space is shaped: how isotropic, how clustered, how separable.

Importing it is quick: a name is imported, and torch with it, when it is first used.

>>> import isoscope as iso
>>> iso.isoscore([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
1.0
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
import typing

# Every public name, under the module that has it. `__init__.pyi`, for type checkers and editors, is written
# from this table by docs/generate.py.
_PUBLIC: dict[str, tuple[str, ...]] = {
    "_version": ("__version__",),
    "advice": (
        "Advice",
        "advise",
    ),
    "citations": ("cite",),
    "clustering": (
        "ChosenClusters",
        "Clustering",
        "choose_clusters",
        "kmeans",
    ),
    "comparison": (
        "Comparison",
        "compare",
    ),
    "corrections": (
        "AllButTheTop",
        "Center",
        "Chain",
        "ClusterCenter",
        "ClusterwiseAllButTheTop",
        "Correction",
        "Normalize",
        "RemoveDimensions",
        "Standardize",
        "Whiten",
        "load_correction",
        "save_correction",
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
        "VectorFile",
        "VectorShards",
        "open_vectors",
        "read",
        "read_labels",
        "read_texts",
        "save",
    ),
    "labels": ("Labels",),
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
    "measurement": ("Measurement",),
    "metrics.attribution": (
        "Attribution",
        "DirectionPart",
        "LabelPart",
        "attribute_anisotropy",
    ),
    "metrics.cluster_adjusted": (
        "ClusterAdjustedSimilarities",
        "cluster_adjusted_similarities",
    ),
    "metrics.clusters": (
        "calinski_harabasz_score",
        "davies_bouldin_score",
        "dunn_index",
        "knn_purity",
        "linear_probe_accuracy",
    ),
    "metrics.contextual": (
        "adjusted_intra_similarity",
        "adjusted_self_similarity",
        "intra_similarity",
        "s_inter",
        "s_intra",
        "sampled_anisotropy",
        "self_similarity",
        "type_similarities",
    ),
    "metrics.contextual_change": (
        "RunningCorrelation",
        "SelfSimilarityChange",
        "adjusted_type_similarities",
        "running_correlation",
        "self_similarity_change",
    ),
    "metrics.correspondence": (
        "linear_cka",
        "neighbor_overlap",
        "procrustes_distance",
    ),
    "metrics.cosine": (
        "NormStatistics",
        "alignment",
        "mean_cosine",
        "norm_statistics",
        "uniformity",
    ),
    "metrics.dimensions": (
        "DimensionShares",
        "RogueDimension",
        "dimension_contributions",
        "dimensions_for_share",
        "rogue_dimensions",
        "self_similarity_shares",
        "top_dimension_share",
    ),
    "metrics.frontier": (
        "ScatterDecomposition",
        "between_ceiling",
        "between_share",
        "frontier_curve",
        "isotropy_ceiling",
        "scatter_decomposition",
    ),
    "metrics.frontier_position": (
        "FrontierPosition",
        "frontier_position",
    ),
    "metrics.frontier_space": (
        "frontier_space",
        "points_needed",
    ),
    "metrics.isotropy": (
        "isoscore",
        "isoscore_star",
        "isotropy_defect",
        "partition_isotropy",
    ),
    "metrics.manifold": (
        "hubness",
        "k_occurrence",
        "lid",
        "lid_samples",
        "twonn",
    ),
    "metrics.objectives": (
        "classifier_objective",
        "classifier_objective_expansion",
        "isotropy_objective",
        "silhouette_objective",
        "triplet_bound",
        "triplet_objective",
    ),
    "metrics.registry": (
        "Metric",
        "metric",
        "registered",
    ),
    "metrics.removed_dimensions": (
        "informativity",
        "informativity_curve",
    ),
    "metrics.silhouette_estimate": (
        "SilhouetteEstimate",
        "estimate_silhouette",
    ),
    "metrics.silhouettes": (
        "silhouette_by_cluster",
        "silhouette_samples",
        "silhouette_score",
    ),
    "metrics.sinks": (
        "Sinks",
        "find_sinks",
        "sink_thresholds",
    ),
    "metrics.spectrum": (
        "condition_number",
        "dimensions_for_variance",
        "effective_rank",
        "eigenvalues",
        "explained_variance",
        "participation_ratio",
        "power_law_exponent",
        "rankme",
        "stable_rank",
    ),
    "models": (
        "LanguageModel",
        "TextFile",
        "TokenRows",
        "TokenStates",
        "encode",
        "load_language_model",
        "open_texts",
        "resolve_model",
        "static_vectors",
        "token_states",
    ),
    "models.layers": (
        "LayerComparison",
        "LayerProfile",
        "measure_layers",
    ),
    "report": (
        "Report",
        "plot_cosines",
        "plot_dimensions",
        "plot_frontier",
        "plot_scatter",
        "plot_silhouette",
        "plot_spectrum",
        "plot_trajectory",
        "report",
    ),
    "space": ("Space",),
    "statistics": (
        "ClusterDistances",
        "Directions",
        "GroupDirections",
        "GroupMoments",
        "Moments",
        "Neighbors",
        "Separation",
    ),
    "tracking": (
        "Correlation",
        "GeometryTracker",
        "Trajectory",
        "geometry_callback",
        "geometry_evaluator",
        "lightning_callback",
    ),
    "training": (
        "Contrasted",
        "FineTuned",
        "TradeOff",
        "TradeOffPoint",
        "contrast",
        "finetune",
        "plot_against_frontier",
        "trade_off",
        "train_embeddings",
    ),
}
_MODULE_OF = {name: f"isoscope.{module}" for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> typing.Any:
    """Import a public name, or a module of isoscope, on first use."""
    if name in _MODULE_OF:
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and importlib.util.find_spec(f"isoscope.{name}"):
        return importlib.import_module(f"isoscope.{name}")
    raise AttributeError(f"module 'isoscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(types.ModuleType):
    """The package: `isoscope.measure` is the function, also once the module of that name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULE_OF and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
