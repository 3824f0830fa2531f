"""Compression: what fewer bytes a vector cost, in recall of the exact neighbours."""

from isoscope.compression.compress import compress
from isoscope.compression.figure import plot_compression
from isoscope.compression.result import Compressed, Compression

__all__ = ["Compressed", "Compression", "compress", "plot_compression"]
