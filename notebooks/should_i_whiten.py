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
# # Should I whiten?
#
# Whitening rescales the principal directions until all have the same variance, which makes a space isotropic.
# Whether that helps depends on the task. This notebook tests it on two spaces:
# handwritten digits, and word vectors of GloVe with their parts of speech.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import isoscope as iso
from isoscope_papers.corpora import load_corpus

digits, digit = load_digits(return_X_y=True)
corpus = load_corpus("pos", source="embedded")
one = [place for place, parts in enumerate(corpus.labels) if len(parts) == 1]
words, kept = iso.models.static_vectors([corpus.columns[0][place] for place in one])
part = np.array([next(iter(corpus.labels[one[place]])) for place in kept.tolist()])
spaces = {"digits": (digits, digit), "words": (words, part)}

# %% [markdown]
# Whitening makes the words fully isotropic, and the digits nearly so. Some directions of the digits
# hardly vary, and whitening does not scale them up to the size of the others.

# %%
for name, (X, _) in spaces.items():
    white = iso.Whiten().fit_transform(X)
    print(f"{name}: IsoScore {iso.isoscore(X):.2f} → {iso.isoscore(white):.2f}")

# %% [markdown]
# Does it help to find items of the same label? `advise` fits each correction on training rows, without
# labels, and scores rows that were held out.

# %%
tries = ["center", "all_but_the_top", "whiten_soft", "whiten"]
advice = {
    name: iso.advise(X, labels=y, tasks=["knn", "retrieval"], corrections=tries, max_rows=800)
    for name, (X, y) in spaces.items()
}
for name, found in advice.items():
    print(f"{name}: {found.headline}")

# %%
advice["words"]

# %% [markdown]
# The figure shows the gain of each correction over no correction, with its 95 % interval, for each task.

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
for ax, (name, found) in zip(axes, advice.items(), strict=True):
    for shift, task in enumerate(found.tasks):
        gains = [outcome.gain for outcome in task.outcomes]
        low, high = np.transpose([outcome.interval for outcome in task.outcomes])
        places = np.arange(len(tries)) + 0.2 * shift
        ax.errorbar(gains, places, xerr=[gains - low, high - gains], fmt="o", label=task.task)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_title(name)
    ax.set_xlabel("gain")
axes[0].set_yticks(range(len(tries)), tries)
_ = axes[0].legend(frameon=False)

# %% [markdown]
# Whitening hurts the digits and helps the words. For neither is it better than subtracting the mean.
# So test it on your own task, and apply no correction where none helps. The page "Should I whiten?"
# has the results of four encoders on many tasks.
