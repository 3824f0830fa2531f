"""Write the paper from text.md: every number of it is a value that a command computed or recorded.

python docs/paper/write.py            paper.md and paper.tex (the latter needs pandoc)
python docs/paper/write.py --compute  compute computed.json again first (two minutes)
python docs/paper/write.py --check    exit with 1 if paper.md is not what this would write
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path

import jinja2
from values import KEPT, compute, values

HERE = Path(__file__).parent
PAPER, TEX = HERE / "paper.md", HERE / "paper.tex"
LETTERS = {"−": "-", "α": r"\alpha", "ρ": r"\rho", "λ": r"\lambda"}  # that pdfTeX does not know
HEADER = "<!-- written by docs/paper/write.py from text.md; do not edit -->\n\n"


def number(value: float, digits: int = 2) -> str:
    """Write a number with that many digits after the point, and a true minus sign."""
    return f"{value:z,.{digits}f}".replace("-", "−")


def power(value: float) -> str:
    """Write a small number as a power of ten, rounded up: 3·10⁻¹⁵ as $10^{-14}$."""
    return f"$10^{{{math.ceil(math.log10(value))}}}$"


def percent(value: float, digits: int = 0) -> str:
    """Write a share as a percentage."""
    return f"{100 * value:.{digits}f} %"


def paper() -> str:
    """Return paper.md."""
    environment = jinja2.Environment(  # the text is our own, and what it fills in is Markdown
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": number, "power": power, "percent": percent}
    template = environment.from_string((HERE / "text.md").read_text(encoding="utf-8"))
    return HEADER + template.render(values())


def signature(text: str) -> str:
    """Return the line of paper.tex that says which paper.md it was written from."""
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return f"% written by docs/paper/write.py; paper.md has SHA-256 {checksum}\n"


def tex(text: str) -> str:
    """Return paper.tex, by pandoc."""
    title, _, body = text.removeprefix(HEADER).partition("\n")
    command = ["pandoc", "--standalone", "--from=markdown-auto_identifiers", "--to=latex"]
    options = ["--shift-heading-level-by=-1", "--variable=geometry:margin=2.7cm", "--variable=colorlinks"]
    known = "".join(
        rf"\DeclareUnicodeCharacter{{{ord(letter):04X}}}{{\ensuremath{{{symbol}}}}}"
        for letter, symbol in LETTERS.items()
    )
    options.append(rf"--variable=header-includes:\ifPDFTeX{known}\fi")
    named = f"--metadata=title:{title.removeprefix('# ')}"
    made = subprocess.run(
        [*command, *options, named], input=body, capture_output=True, text=True, check=True
    ).stdout
    return signature(text) + made


def main() -> int:
    """Write or check the paper."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--compute", action="store_true")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    if asked.compute:
        KEPT.write_text(json.dumps(compute(), indent=2) + "\n", encoding="utf-8")
    text = paper()
    if asked.check:
        return int(PAPER.read_text(encoding="utf-8") != text)
    PAPER.write_text(text, encoding="utf-8")
    try:
        TEX.write_text(tex(text), encoding="utf-8")
    except FileNotFoundError:
        print("pandoc is not installed: paper.tex was not written", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
