"""Qdrant: a collection at qdrant://HOST:PORT/COLLECTION, or of a client that the caller has opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from isoscope.errors import FileError, not_installed
from isoscope.io.store_addresses import StoreAddress, parts_of
from isoscope.io.store_tables import Page, PointsTable, the_only


class QdrantTable(PointsTable):
    """A collection, in the order of its identifiers. Each named vector is a column."""

    path: StoreAddress

    def count(self) -> int:
        """Return the number of points."""
        return int(self._client.count(self._collection, exact=True).count)

    @cached_property
    def vector_columns(self) -> Mapping[str, int]:
        """The dense vectors of the collection, by name; the one without a name is `vector`."""
        held = self._held
        if not isinstance(held, Mapping):
            return {self.vector_column: int(held.size)}
        return {name: int(one.size) for name, one in held.items()}

    def pages(self, n_rows: int, vectors: str | None) -> Iterator[Page]:
        """Yield pages of points."""
        asked = None if vectors is None else [vectors] if self._named else True
        offset = None
        while True:
            points, offset = self._client.scroll(
                self._collection, limit=n_rows, offset=offset, with_payload=True, with_vectors=asked or False
            )
            if points:
                held = [point.vector for point in points]
                rows = [vector.get(vectors) if self._named else vector for vector in held] if asked else None
                if rows is not None and any(row is None for row in rows):
                    raise FileError(f"{self.path} has points without a vector {vectors!r}")
                ids = [point.id for point in points]
                yield Page(
                    ids, None if rows is None else np.asarray(rows), [point.payload or {} for point in points]
                )
            if offset is None:
                return

    @property
    def _named(self) -> bool:
        return isinstance(self._held, Mapping)

    @cached_property
    def _held(self) -> Any:
        held = self._client.get_collection(self._collection).config.params.vectors
        if not held:
            raise FileError(f"{self.path} ({self._collection}) has no dense vectors")
        return held

    @cached_property
    def _collection(self) -> str:
        asked = None if self.path.live is not None else parts_of(self.path)[1]
        names = [one.name for one in self._client.get_collections().collections]
        return the_only(names, self.wanted.key or asked, self.path, what="collection")

    @cached_property
    def _client(self) -> Any:
        if self.path.live is not None:
            return self.path.live
        try:
            from qdrant_client import QdrantClient
        except ImportError as error:
            raise not_installed(f"{self.path}", "qdrant-client", extra="stores", error=FileError) from error
        url, _, secrets = parts_of(self.path)
        return QdrantClient(url=url, check_compatibility=False, **secrets)
