"""Chroma: a collection of a folder or of a server, or one of a client that the caller has opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.errors import FileError, not_installed
from isoscope.io.store_addresses import StoreAddress, parts_of
from isoscope.io.store_tables import Page, PointsTable, the_only

_TEXT = "text"  # the column of the documents, which become the texts of the rows
_DEFAULT_PORT = 8000


class ChromaTable(PointsTable):
    """A collection, in the order in which points were added."""

    path: StoreAddress
    vector_column = "embedding"

    def count(self) -> int:
        """Return the number of points."""
        return int(self._collection.count())

    @cached_property
    def vector_columns(self) -> Mapping[str, int]:
        """The one vector of a point."""
        first = self._collection.get(limit=1, include=["embeddings"])["embeddings"]
        if first is None or not len(first):
            raise FileError(f"{self.path} ({self._collection.name}) has no vectors")
        return {self.vector_column: len(first[0])}

    def pages(self, n_rows: int, vectors: str | None) -> Iterator[Page]:
        """Yield pages of points."""
        include = ["documents", "metadatas", *(["embeddings"] if vectors else [])]
        start = 0
        while (page := self._collection.get(limit=n_rows, offset=start, include=include))["ids"]:
            fields: list[Mapping[str, Any]] = [
                {**(values or {}), **({} if text is None else {_TEXT: text})}
                for values, text in zip(page["metadatas"], page["documents"], strict=True)
            ]
            yield Page(page["ids"], np.asarray(page["embeddings"]) if vectors else None, fields)
            start += len(page["ids"])

    @cached_property
    def _collection(self) -> Any:
        client = self._client
        asked = None if self._is_local else parts_of(self.path)[1]
        names = [one.name for one in client.list_collections()]
        return client.get_collection(the_only(names, self.wanted.key or asked, self.path, what="collection"))

    @property
    def _is_local(self) -> bool:
        return self.path.live is not None or Path(self.path.place).is_dir()

    @cached_property
    def _client(self) -> Any:
        if self.path.live is not None:
            return self.path.live
        try:
            import chromadb
        except ImportError as error:
            raise not_installed(f"{self.path}", "chromadb", extra="stores", error=FileError) from error
        settings = chromadb.Settings(anonymized_telemetry=False)
        if self._is_local:
            return chromadb.PersistentClient(self.path.place, settings)
        url, _, secrets = parts_of(self.path)
        scheme, _, host = url.partition("://")
        host, _, port = host.partition(":")
        headers = {"x-chroma-token": secrets["api_key"]} if secrets else None
        return chromadb.HttpClient(
            host, int(port or _DEFAULT_PORT), ssl=scheme == "https", headers=headers, settings=settings
        )
