"""faiss indexes: the vectors that an index stores, exactly or as its codes decode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from isoscope.arrays import block_rows
from isoscope.errors import FileError, ShapeError, not_installed
from isoscope.io.chunks import Chunk, Reader
from isoscope.io.formats import reads

_EXACT = ("IndexFlat", "IndexFlatIP", "IndexFlatL2", "IndexHNSWFlat", "IndexIVFFlat", "IndexNSGFlat")
_ID = "id"


@reads(".faiss", ".index", by_ranges=False)
class FaissReader(Reader):
    """A file that faiss.write_index wrote. It is mapped into memory where its kind allows it."""

    def open(self) -> None:
        """Read the index; n and d are its own."""
        try:
            import faiss
        except ImportError as error:
            raise not_installed(f"{self.path}", "faiss-cpu", extra="stores", error=FileError) from error
        flags = faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY
        self._owner = faiss.read_index(str(self.here), flags)  # the others point into it
        self._index = index = faiss.downcast_index(self._owner)
        self.n_rows, self.n_dims = int(index.ntotal), int(index.d)
        if not self.n_rows:
            raise ShapeError(f"{self.path} is an index without vectors", wanted="at least one vector")
        inner = index
        while isinstance(inner, faiss.IndexIDMap | faiss.IndexPreTransform):
            if isinstance(inner, faiss.IndexIDMap):
                self._ids: np.ndarray | None = faiss.vector_to_array(inner.id_map)
                self.columns = (_ID,)
                self._index = index = faiss.downcast_index(inner.index)
            inner = faiss.downcast_index(inner.index)
        if isinstance(inner, faiss.IndexIVF):
            inner.make_direct_map()  # of the copy in memory: where each vector lies in the lists
        stored = type(inner).__name__
        if stored not in _EXACT:
            self.notes.append(f"{stored} stores codes: these are the vectors that they decode to")
        self.seeks = True

    def pieces(self) -> Iterator[Chunk]:
        """Yield all rows, a block at a time."""
        yield from self.rows(0, None, block_rows(self.n_dims))

    def rows(self, start: int, stop: int | None, step: int) -> Iterator[Chunk]:
        """Yield rows start … stop−1, in the order in which they were added."""
        stop = self.n_rows if stop is None else stop
        assert stop is not None
        for first in range(start, stop, step):
            yield Chunk(self._index.reconstruct_n(first, min(step, stop - first)))

    def label_values(self, column: str) -> Any:
        """Return the identifiers of the vectors."""
        assert column == _ID
        return self._ids
