"""Metrics of a space; each is a function of its name.

`isoscope.metrics.isoscore` is the metric that `isoscope measure -m isoscore` computes.
"""

from isoscope.metrics.attribution import Attribution, DirectionPart, LabelPart, attribute_anisotropy
from isoscope.metrics.class_collapse import ClassCollapse, class_collapse
from isoscope.metrics.cluster_adjusted import ClusterAdjustedSimilarities, cluster_adjusted_similarities
from isoscope.metrics.clusters import (
    calinski_harabasz_score,
    davies_bouldin_score,
    dunn_index,
    knn_purity,
    linear_probe_accuracy,
)
from isoscope.metrics.collapse_debiased import nc1_debiased, nc2_debiased
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
from isoscope.metrics.correspondence import (
    linear_cka,
    linear_cka_debiased,
    neighbor_overlap,
    procrustes_distance,
)
from isoscope.metrics.cosine import (
    NormStatistics,
    alignment,
    mean_cosine,
    mean_norm,
    norm_statistics,
    norm_variation,
    uniformity,
)
from isoscope.metrics.debiased_rank import population_spectrum, rankme_debiased
from isoscope.metrics.dimensions import (
    DimensionShares,
    RogueDimension,
    dimension_contributions,
    dimensions_for_half,
    dimensions_for_share,
    rogue_dimensions,
    self_similarity_shares,
    top_dimension_share,
)
from isoscope.metrics.dissimilarity import rsa
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
from isoscope.metrics.isotropy import (
    isoscore,
    isoscore_debiased,
    isoscore_star,
    isotropy_defect,
    partition_isotropy,
)
from isoscope.metrics.manifold import hubness, k_occurrence, lid, lid_samples, twonn
from isoscope.metrics.modalities import modality_gap
from isoscope.metrics.neural_collapse import (
    class_mean_simplex_angle,
    nc1,
    nc2,
    nc2_equiangular,
    nc2_equinorm,
    nc3,
    nc4,
    nc4_debiased,
)
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
from isoscope.metrics.representation_quality import alpha_req, clid, cluster_learnability, lidar
from isoscope.metrics.scales import (
    DimensionAtScale,
    DimensionScales,
    correlation_dimension,
    dimension_scales,
    gride,
)
from isoscope.metrics.silhouette_estimate import SilhouetteEstimate, estimate_silhouette
from isoscope.metrics.silhouettes import (
    silhouette_by_cluster,
    silhouette_cosine,
    silhouette_macro,
    silhouette_samples,
    silhouette_score,
    silhouette_squared,
)
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
from isoscope.metrics.two_samples import covariance_change, mean_shift, spread_change

silhouette, calinski_harabasz, davies_bouldin = (
    silhouette_score,
    calinski_harabasz_score,
    davies_bouldin_score,
)
nesum = stable_rank

__all__ = [
    "Attribution",
    "ClassCollapse",
    "ClusterAdjustedSimilarities",
    "DimensionAtScale",
    "DimensionScales",
    "DimensionShares",
    "DirectionPart",
    "FrontierPosition",
    "LabelPart",
    "Metric",
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
    "alignment",
    "alpha_req",
    "attribute_anisotropy",
    "between_ceiling",
    "between_share",
    "calinski_harabasz",
    "calinski_harabasz_score",
    "class_collapse",
    "class_mean_simplex_angle",
    "classifier_objective",
    "classifier_objective_expansion",
    "clid",
    "cluster_adjusted_similarities",
    "cluster_learnability",
    "condition_number",
    "correlation_dimension",
    "covariance_change",
    "davies_bouldin",
    "davies_bouldin_score",
    "dimension_contributions",
    "dimension_scales",
    "dimensions_for_half",
    "dimensions_for_share",
    "dimensions_for_variance",
    "dunn_index",
    "effective_rank",
    "eigenvalues",
    "estimate_silhouette",
    "explained_variance",
    "find_sinks",
    "frontier_curve",
    "frontier_position",
    "frontier_space",
    "gride",
    "hubness",
    "informativity",
    "informativity_curve",
    "intra_similarity",
    "isoscore",
    "isoscore_debiased",
    "isoscore_star",
    "isotropy_ceiling",
    "isotropy_defect",
    "isotropy_objective",
    "k_occurrence",
    "knn_purity",
    "lid",
    "lid_samples",
    "lidar",
    "linear_cka",
    "linear_cka_debiased",
    "linear_probe_accuracy",
    "mean_cosine",
    "mean_norm",
    "mean_shift",
    "metric",
    "modality_gap",
    "nc1",
    "nc1_debiased",
    "nc2",
    "nc2_debiased",
    "nc2_equiangular",
    "nc2_equinorm",
    "nc3",
    "nc4",
    "nc4_debiased",
    "neighbor_overlap",
    "nesum",
    "norm_statistics",
    "norm_variation",
    "participation_ratio",
    "partition_isotropy",
    "points_needed",
    "population_spectrum",
    "power_law_exponent",
    "procrustes_distance",
    "rankme",
    "rankme_debiased",
    "registered",
    "rogue_dimensions",
    "rsa",
    "running_correlation",
    "s_inter",
    "s_intra",
    "sampled_anisotropy",
    "scatter_decomposition",
    "self_similarity",
    "self_similarity_change",
    "self_similarity_shares",
    "silhouette",
    "silhouette_by_cluster",
    "silhouette_cosine",
    "silhouette_macro",
    "silhouette_objective",
    "silhouette_samples",
    "silhouette_score",
    "silhouette_squared",
    "sink_thresholds",
    "spread_change",
    "stable_rank",
    "top_dimension_share",
    "triplet_bound",
    "triplet_objective",
    "twonn",
    "type_similarities",
    "uniformity",
]
