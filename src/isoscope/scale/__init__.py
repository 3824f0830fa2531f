"""Past one machine's memory: vectors in many files, passed over part by part, here or on Dask's workers.

Scale                what is asked for: memory, scheduler, checkpoint, files that may be bad
gather               the statistics of a source, part by part
DaskVectors          a dask array as a source
ring                 rows held by several processes (GPUs), passed round
"""

from __future__ import annotations

from isoscope.scale.dask_arrays import DaskVectors, is_dask_array
from isoscope.scale.gather import gather
from isoscope.scale.options import Scale, parse_memory

__all__ = ["DaskVectors", "Scale", "gather", "is_dask_array", "parse_memory"]
