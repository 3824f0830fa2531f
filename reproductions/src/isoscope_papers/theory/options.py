"""Test the theory of Mickus, Grönroos and Attieh 2024: statements, deep classifiers, triplets, trade-offs.

With --output each setup is kept, and the page is of all setups the folder holds.

**Examples**

Everything, some ten minutes on two cores: `isoscope reproduce theory --data data -o results`

The statements alone, which need no data: `isoscope reproduce theory --setup statements`
"""

from isoscope_papers.options import Options

__all__ = ["Options"]
