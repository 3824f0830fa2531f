"""isoscope shows how an embedding space is shaped: how isotropic, how clustered, how separable.

>>> import isoscope as iso
>>> iso.isoscore([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
1.0
"""

import importlib
import typing

import isoscope._starting  # noqa: F401  before anything heavy
from isoscope._version import __version__
from isoscope.advice import Advice, advise
from isoscope.clustering import ChosenClusters, Clustering, choose_clusters, kmeans
from isoscope.comparison import Comparison, compare
from isoscope.engine.measure import measure
from isoscope.engine.readings import Reading, Readings
from isoscope.errors import (
    ClusterError,
    FileError,
    InputError,
    IsoscopeError,
    LabelError,
    NotFiniteError,
    ShapeError,
    UndefinedError,
)
from isoscope.io import VectorFile, VectorShards, open_vectors, read, read_labels, read_texts, save
from isoscope.labels import Labels
from isoscope.losses import (
    AlignmentLoss,
    CosineRegularizer,
    IStarLoss,
    MultipleNegativesLoss,
    TripletLoss,
    UniformityLoss,
    reference_covariance,
    token_covariance,
)
from isoscope.measurement import Measurement
from isoscope.metrics.attribution import Attribution, DirectionPart, LabelPart, attribute_anisotropy
from isoscope.metrics.cluster_adjusted import ClusterAdjustedSimilarities, cluster_adjusted_similarities
from isoscope.metrics.clusters import calinski_harabasz_score, davies_bouldin_score, dunn_index
from isoscope.metrics.contextual import (
    adjusted_intra_similarity,
    adjusted_self_similarity,
    intra_similarity,
    s_inter,
    s_intra,
    sampled_anisotropy,
    self_similarity,
    type_similarities,
)
from isoscope.metrics.contextual_change import (
    RunningCorrelation,
    SelfSimilarityChange,
    adjusted_type_similarities,
    running_correlation,
    self_similarity_change,
)
from isoscope.metrics.correspondence import linear_cka, neighbor_overlap, procrustes_distance
from isoscope.metrics.cosine import NormStatistics, alignment, mean_cosine, norm_statistics, uniformity
from isoscope.metrics.dimensions import (
    DimensionShares,
    RogueDimension,
    dimension_contributions,
    dimensions_for_share,
    rogue_dimensions,
    self_similarity_shares,
    top_dimension_share,
)
from isoscope.metrics.frontier import (
    ScatterDecomposition,
    between_ceiling,
    between_share,
    frontier_curve,
    isotropy_ceiling,
    scatter_decomposition,
)
from isoscope.metrics.frontier_position import FrontierPosition, frontier_position
from isoscope.metrics.frontier_space import frontier_space, points_needed
from isoscope.metrics.isotropy import isoscore, isoscore_star, isotropy_defect, partition_isotropy
from isoscope.metrics.manifold import hubness, k_occurrence, lid, lid_samples, twonn
from isoscope.metrics.objectives import (
    classifier_objective,
    classifier_objective_expansion,
    isotropy_objective,
    silhouette_objective,
    triplet_bound,
    triplet_objective,
)
from isoscope.metrics.registry import Metric, metric, registered
from isoscope.metrics.removed_dimensions import informativity, informativity_curve
from isoscope.metrics.separability import knn_purity, linear_probe_accuracy
from isoscope.metrics.silhouette_estimate import SilhouetteEstimate, estimate_silhouette
from isoscope.metrics.silhouettes import silhouette_by_cluster, silhouette_samples, silhouette_score
from isoscope.metrics.sinks import Sinks, find_sinks, sink_thresholds
from isoscope.metrics.spectrum import (
    condition_number,
    dimensions_for_variance,
    effective_rank,
    eigenvalues,
    explained_variance,
    participation_ratio,
    power_law_exponent,
    rankme,
    stable_rank,
)
from isoscope.models import (
    LanguageModel,
    TextFile,
    TokenRows,
    TokenStates,
    encode,
    load_language_model,
    open_texts,
    resolve_model,
    static_vectors,
    token_states,
)
from isoscope.models.layers import LayerComparison, LayerProfile, measure_layers
from isoscope.report import (
    Report,
    plot_cosines,
    plot_dimensions,
    plot_frontier,
    plot_scatter,
    plot_silhouette,
    plot_spectrum,
    plot_trajectory,
    report,
)
from isoscope.space import Space
from isoscope.statistics import (
    ClusterDistances,
    Directions,
    GroupDirections,
    GroupMoments,
    Moments,
    Neighbors,
    Separation,
)
from isoscope.tracking import (
    Correlation,
    GeometryTracker,
    Trajectory,
    geometry_callback,
    geometry_evaluator,
    lightning_callback,
)
from isoscope.training import (
    Contrasted,
    FineTuned,
    TradeOff,
    TradeOffPoint,
    contrast,
    finetune,
    plot_against_frontier,
    trade_off,
    train_embeddings,
)

if typing.TYPE_CHECKING:
    from isoscope.corrections import (
        AllButTheTop,
        Center,
        Chain,
        ClusterCenter,
        ClusterwiseAllButTheTop,
        Correction,
        Normalize,
        RemoveDimensions,
        Standardize,
        Whiten,
        load_correction,
        save_correction,
    )

__all__ = [
    "Advice",
    "AlignmentLoss",
    "AllButTheTop",
    "Attribution",
    "Center",
    "Chain",
    "ChosenClusters",
    "ClusterAdjustedSimilarities",
    "ClusterCenter",
    "ClusterDistances",
    "ClusterError",
    "Clustering",
    "ClusterwiseAllButTheTop",
    "Comparison",
    "Contrasted",
    "Correction",
    "Correlation",
    "CosineRegularizer",
    "DimensionShares",
    "DirectionPart",
    "Directions",
    "FileError",
    "FineTuned",
    "FrontierPosition",
    "GeometryTracker",
    "GroupDirections",
    "GroupMoments",
    "IStarLoss",
    "InputError",
    "IsoscopeError",
    "LabelError",
    "LabelPart",
    "Labels",
    "LanguageModel",
    "LayerComparison",
    "LayerProfile",
    "Measurement",
    "Metric",
    "Moments",
    "MultipleNegativesLoss",
    "Neighbors",
    "NormStatistics",
    "Normalize",
    "NotFiniteError",
    "Reading",
    "Readings",
    "RemoveDimensions",
    "Report",
    "RogueDimension",
    "RunningCorrelation",
    "ScatterDecomposition",
    "SelfSimilarityChange",
    "Separation",
    "ShapeError",
    "SilhouetteEstimate",
    "Sinks",
    "Space",
    "Standardize",
    "TextFile",
    "TokenRows",
    "TokenStates",
    "TradeOff",
    "TradeOffPoint",
    "Trajectory",
    "TripletLoss",
    "UndefinedError",
    "UniformityLoss",
    "VectorFile",
    "VectorShards",
    "Whiten",
    "__version__",
    "adjusted_intra_similarity",
    "adjusted_self_similarity",
    "adjusted_type_similarities",
    "advise",
    "alignment",
    "attribute_anisotropy",
    "between_ceiling",
    "between_share",
    "calinski_harabasz_score",
    "choose_clusters",
    "classifier_objective",
    "classifier_objective_expansion",
    "cluster_adjusted_similarities",
    "compare",
    "condition_number",
    "contrast",
    "davies_bouldin_score",
    "dimension_contributions",
    "dimensions_for_share",
    "dimensions_for_variance",
    "dunn_index",
    "effective_rank",
    "eigenvalues",
    "encode",
    "estimate_silhouette",
    "explained_variance",
    "find_sinks",
    "finetune",
    "frontier_curve",
    "frontier_position",
    "frontier_space",
    "geometry_callback",
    "geometry_evaluator",
    "hubness",
    "informativity",
    "informativity_curve",
    "intra_similarity",
    "isoscore",
    "isoscore_star",
    "isotropy_ceiling",
    "isotropy_defect",
    "isotropy_objective",
    "k_occurrence",
    "kmeans",
    "knn_purity",
    "lid",
    "lid_samples",
    "lightning_callback",
    "linear_cka",
    "linear_probe_accuracy",
    "load_correction",
    "load_language_model",
    "mean_cosine",
    "measure",
    "measure_layers",
    "metric",
    "neighbor_overlap",
    "norm_statistics",
    "open_texts",
    "open_vectors",
    "participation_ratio",
    "partition_isotropy",
    "plot_against_frontier",
    "plot_cosines",
    "plot_dimensions",
    "plot_frontier",
    "plot_scatter",
    "plot_silhouette",
    "plot_spectrum",
    "plot_trajectory",
    "points_needed",
    "power_law_exponent",
    "procrustes_distance",
    "rankme",
    "read",
    "read_labels",
    "read_texts",
    "reference_covariance",
    "registered",
    "report",
    "resolve_model",
    "rogue_dimensions",
    "running_correlation",
    "s_inter",
    "s_intra",
    "sampled_anisotropy",
    "save",
    "save_correction",
    "scatter_decomposition",
    "self_similarity",
    "self_similarity_change",
    "self_similarity_shares",
    "silhouette_by_cluster",
    "silhouette_objective",
    "silhouette_samples",
    "silhouette_score",
    "sink_thresholds",
    "stable_rank",
    "static_vectors",
    "token_covariance",
    "token_states",
    "top_dimension_share",
    "trade_off",
    "train_embeddings",
    "triplet_bound",
    "triplet_objective",
    "twonn",
    "type_similarities",
    "uniformity",
]


def __getattr__(name: str) -> typing.Any:
    """Corrections are scikit-learn's kind of object, and are imported with it when one is first asked for."""
    if name in __all__:
        return getattr(importlib.import_module("isoscope.corrections"), name)
    raise AttributeError(f"module 'isoscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
