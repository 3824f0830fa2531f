"""isoscope shows how an embedding space is shaped: how isotropic, how clustered, how separable.

>>> import isoscope as iso
>>> iso.isoscore([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
1.0
"""

from isoscope._version import __version__
from isoscope.clustering import ChosenClusters, Clustering, choose_clusters, kmeans
from isoscope.corpora import Corpus, Texts, corpus_names, load_corpus, load_texts
from isoscope.encoders import (
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
from isoscope.errors import (
    FileError,
    InputError,
    IsoscopeError,
    LabelError,
    NotFiniteError,
    ShapeError,
    UndefinedError,
)
from isoscope.io import VectorFile, open_vectors, read, read_labels, read_texts, save
from isoscope.labels import Labels
from isoscope.layers import LayerComparison, LayerProfile, measure_layers
from isoscope.measure import measure
from isoscope.measurement import Measurement, Reading
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
    between_share,
    isotropy_ceiling,
    scatter_decomposition,
)
from isoscope.metrics.informativity import informativity, informativity_curve
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
from isoscope.metrics.registry import Metric, registered
from isoscope.metrics.separability import knn_purity, linear_probe_accuracy
from isoscope.metrics.silhouette import silhouette_by_cluster, silhouette_samples, silhouette_score
from isoscope.metrics.silhouette_estimate import SilhouetteEstimate, estimate_silhouette
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
from isoscope.training import Correlation, Trajectory, train_embeddings

__all__ = [
    "ChosenClusters",
    "ClusterAdjustedSimilarities",
    "ClusterDistances",
    "Clustering",
    "Corpus",
    "Correlation",
    "DimensionShares",
    "Directions",
    "FileError",
    "GroupDirections",
    "GroupMoments",
    "InputError",
    "IsoscopeError",
    "LabelError",
    "Labels",
    "LanguageModel",
    "LayerComparison",
    "LayerProfile",
    "Measurement",
    "Metric",
    "Moments",
    "Neighbors",
    "NormStatistics",
    "NotFiniteError",
    "Reading",
    "RogueDimension",
    "RunningCorrelation",
    "ScatterDecomposition",
    "SelfSimilarityChange",
    "Separation",
    "ShapeError",
    "SilhouetteEstimate",
    "Sinks",
    "Space",
    "TextFile",
    "Texts",
    "TokenRows",
    "TokenStates",
    "Trajectory",
    "UndefinedError",
    "VectorFile",
    "__version__",
    "adjusted_intra_similarity",
    "adjusted_self_similarity",
    "adjusted_type_similarities",
    "alignment",
    "between_share",
    "calinski_harabasz_score",
    "choose_clusters",
    "classifier_objective",
    "classifier_objective_expansion",
    "cluster_adjusted_similarities",
    "condition_number",
    "corpus_names",
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
    "linear_probe_accuracy",
    "load_corpus",
    "load_language_model",
    "load_texts",
    "mean_cosine",
    "measure",
    "measure_layers",
    "norm_statistics",
    "open_texts",
    "open_vectors",
    "participation_ratio",
    "partition_isotropy",
    "power_law_exponent",
    "rankme",
    "read",
    "read_labels",
    "read_texts",
    "registered",
    "resolve_model",
    "rogue_dimensions",
    "running_correlation",
    "s_inter",
    "s_intra",
    "sampled_anisotropy",
    "save",
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
    "token_states",
    "top_dimension_share",
    "train_embeddings",
    "triplet_bound",
    "triplet_objective",
    "twonn",
    "type_similarities",
    "uniformity",
]
