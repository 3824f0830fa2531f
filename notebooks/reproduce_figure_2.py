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
# # Figure 2 of "Isotropy, Clusters, and Classifiers", a small run
#
# Mickus, Grönroos and Attieh (2024) take sentence vectors out of an encoder, train them together with a
# linear classifier, and measure at every update. Clusters form, and isotropy decreases. The full run has
# 10,662 film reviews, 1,000 updates and 5 seeds. This run has 200 reviews, 500 updates and 2 seeds.

# %%
from pathlib import Path

import matplotlib.pyplot as plt

import isoscope as iso
from isoscope_papers.corpora import load_corpus

N_REVIEWS = 200
reviews = load_corpus("polarity", source="embedded")
each = len(reviews.labels) // N_REVIEWS
texts, labels = list(reviews.columns[0])[::each][:N_REVIEWS], list(reviews.labels)[::each][:N_REVIEWS]
X = iso.encode(texts, model="all-MiniLM-L6-v2")
print(f"{X.shape[0]} reviews × {X.shape[1]} dimensions")

# %%
run = iso.train_embeddings(
    X, labels, steps=500, seeds=2, every=10, metrics=["isoscore", "silhouette", "between_share"]
)
print(run)

# %% [markdown]
# The small run is above and the full run below: the silhouette rises, and IsoScore falls. The values of the
# full run are stored in the repository; `isoscope reproduce classifiers` computes them again.

# %%
root = next(folder for folder in (Path.cwd(), *Path.cwd().parents) if (folder / "docs/reproduction").is_dir())
full = root / "docs/reproduction/runs/polarity-all-MiniLM-L6-v2"
figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
runs: list[tuple[str, iso.Trajectory | Path]] = [("in small", run), ("in full", full)]
for row, (size, one) in zip(axes, runs, strict=True):
    row[0].set_title(size, loc="left")
    for ax, metric in zip(row, ("silhouette", "isoscore"), strict=True):
        iso.plots.plot_trajectory(one, metric=metric, ax=ax)

# %% [markdown]
# The small run has fewer reviews than dimensions, so it starts at a lower IsoScore. This is the bias of a
# small sample, which `isoscore_debiased` removes.
#
# The means of two labels span one direction. The larger the share of the variance in this direction, the
# lower the highest possible IsoScore. The next figure shows the small run below this frontier.

# %%
ax = plt.figure(figsize=(5, 4)).subplots()
_ = iso.plots.plot_against_frontier(runs={"reviews": run}, n_labels=2, n_dims=X.shape[1], ax=ax)
