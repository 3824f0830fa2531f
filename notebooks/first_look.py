# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A first look at a space
#
# Handwritten digits, 64 pixels a vector: how isotropic are they, how clustered, and what do the labels allow?
# Then word vectors, where a few coordinates decide what looks similar.

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import isoscope as iso
from isoscope_papers.corpora import load_corpus

X, y = load_digits(return_X_y=True)
iso.measure(X, labels=y)

# %% [markdown]
# IsoScore measures how evenly the variance is spread over the dimensions. The ceiling in its line is the
# highest IsoScore that 64 dimensions allow for ten labels this far apart. The mean cosine is high because no
# pixel is negative.
#
# The next figures show the points, and the variance of each principal direction:

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
iso.plots.plot_scatter(X, y, ax=left)
_ = iso.plots.plot_spectrum(X, ax=right)

# %% [markdown]
# Which labels are well separated from the others? And how far is the space from the ceiling of its labels?

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
iso.plots.plot_silhouette(X, y, ax=left)
_ = iso.plots.plot_frontier(X, y, ax=right)

# %% [markdown]
# The next space has 5,000 word vectors of GloVe. `dimensions_for_half` shows that a few coordinates account
# for half of the mean cosine.

# %%
corpus = load_corpus("pos", source="embedded")
vectors, kept = iso.models.static_vectors(list(corpus.columns[0])[:5000])
iso.measure(vectors, metrics=["isoscore", "mean_cosine", "dimensions_for_half", "top_dimension_share"])

# %%
_ = iso.plots.plot_dimensions(vectors, ax=plt.figure(figsize=(7, 3)).subplots())
