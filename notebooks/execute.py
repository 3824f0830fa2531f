"""Run the notebooks and keep them with their outputs: `make notebooks`.

python notebooks/execute.py FOLDER [NAME …]

Each notebook is a script in cells, next to this file; FOLDER gets an .ipynb of each, as Jupyter opens it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def scripts() -> list[Path]:
    """Every notebook, as it is written."""
    return sorted(path for path in HERE.glob("*.py") if path.name != Path(__file__).name)


def as_notebook(script: Path) -> Any:
    """The notebook that a script in cells is."""
    import jupytext

    return jupytext.read(script)


def main() -> None:
    """Execute each in a kernel of its own and write it."""
    import nbformat
    from nbclient import NotebookClient

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for script in scripts():
        if sys.argv[2:] and script.stem not in sys.argv[2:]:
            continue
        notebook = as_notebook(script)
        NotebookClient(notebook, resources={"metadata": {"path": str(HERE)}}, timeout=600).execute()
        nbformat.write(notebook, folder / f"{script.stem}.ipynb")
        print(f"wrote {folder / script.stem}.ipynb")


if __name__ == "__main__":
    main()
