"""Test the theory of Mickus, Grönroos and Attieh 2024: statements, deep classifiers, triplets, trade-offs.

With --output, runs are saved, and the page covers all runs in the folder.

**Examples**

Everything, about ten minutes on two cores: `isoscope reproduce theory --data data -o results`

Only the statements, which need no data: `isoscope reproduce theory --setup statements`
"""

from isoscope_papers.options import Options

__all__ = ["Options"]
