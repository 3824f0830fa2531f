"""The sides of one space: queries and documents, languages, images and texts.

sides(A, B)     the gap between them, how well they are told apart, how well each finds its partners on the
                other side, what centring each side buys, and what looks wrong -> Sides
"""

from __future__ import annotations

from isoscope.sides.result import Sides
from isoscope.sides.sides import sides

__all__ = ["Sides", "sides"]
