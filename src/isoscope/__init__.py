"""isoscope shows how an embedding space is shaped: how isotropic, how clustered, how separable.

>>> import isoscope as iso
>>> iso.isoscore([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
1.0
"""

from isoscope._version import __version__
from isoscope.corpora import Corpus, corpus_names, load_corpus
from isoscope.encoders import encode, resolve_model, static_vectors
from isoscope.errors import (
    FileError,
    InputError,
    IsoscopeError,
    LabelError,
    NotFiniteError,
    ShapeError,
    UndefinedError,
)
from isoscope.io import VectorFile, open_vectors, read, read_labels, save
from isoscope.labels import Labels
from isoscope.measure import measure
from isoscope.measurement import Measurement, Reading
from isoscope.metrics.clusters import calinski_harabasz_score, davies_bouldin_score, dunn_index
from isoscope.metrics.contextual import (
    adjusted_intra_similarity,
    adjusted_self_similarity,
    intra_similarity,
    s_inter,
    s_intra,
    self_similarity,
    type_similarities,
)
from isoscope.metrics.cosine import NormStatistics, alignment, mean_cosine, norm_statistics, uniformity
from isoscope.metrics.dimensions import (
    RogueDimension,
    dimension_contributions,
    dimensions_for_share,
    informativity,
    rogue_dimensions,
    top_dimension_share,
)
from isoscope.metrics.frontier import (
    ScatterDecomposition,
    between_share,
    isotropy_ceiling,
    scatter_decomposition,
)
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
    "ClusterDistances",
    "Corpus",
    "Correlation",
    "Directions",
    "FileError",
    "GroupDirections",
    "GroupMoments",
    "InputError",
    "IsoscopeError",
    "LabelError",
    "Labels",
    "Measurement",
    "Metric",
    "Moments",
    "Neighbors",
    "NormStatistics",
    "NotFiniteError",
    "Reading",
    "RogueDimension",
    "ScatterDecomposition",
    "Separation",
    "ShapeError",
    "SilhouetteEstimate",
    "Space",
    "Trajectory",
    "UndefinedError",
    "VectorFile",
    "__version__",
    "adjusted_intra_similarity",
    "adjusted_self_similarity",
    "alignment",
    "between_share",
    "calinski_harabasz_score",
    "classifier_objective",
    "classifier_objective_expansion",
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
    "hubness",
    "informativity",
    "intra_similarity",
    "isoscore",
    "isoscore_star",
    "isotropy_ceiling",
    "isotropy_defect",
    "isotropy_objective",
    "k_occurrence",
    "knn_purity",
    "lid",
    "lid_samples",
    "linear_probe_accuracy",
    "load_corpus",
    "mean_cosine",
    "measure",
    "norm_statistics",
    "open_vectors",
    "participation_ratio",
    "partition_isotropy",
    "power_law_exponent",
    "rankme",
    "read",
    "read_labels",
    "registered",
    "resolve_model",
    "rogue_dimensions",
    "s_inter",
    "s_intra",
    "save",
    "scatter_decomposition",
    "self_similarity",
    "silhouette_by_cluster",
    "silhouette_objective",
    "silhouette_samples",
    "silhouette_score",
    "stable_rank",
    "static_vectors",
    "top_dimension_share",
    "train_embeddings",
    "triplet_bound",
    "triplet_objective",
    "twonn",
    "type_similarities",
    "uniformity",
]
