"""Lance: a .lance folder is a table, as LanceDB keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from isoscope.errors import FileError, not_installed
from isoscope.io.store_tables import StoreTable


class LanceTable(StoreTable):
    """The newest version of a .lance folder. Its indexes are not needed."""

    @cached_property
    def schema(self) -> Any:
        """The schema of the newest version."""
        return self._dataset.schema

    def count(self) -> int:
        """Return the number of rows, without those that were deleted."""
        return int(self._dataset.count_rows())

    def _stored(self, places: list[int], n_rows: int) -> Iterator[Any]:
        columns = [self.written[place] for place in places]
        for batch in self._dataset.to_batches(columns=columns, batch_size=n_rows, scan_in_order=True):
            if len(batch):
                yield batch.select(columns)

    @cached_property
    def _dataset(self) -> Any:
        try:
            import lance
        except ImportError as error:
            raise not_installed(f"{self.path}", "pylance", extra="stores", error=FileError) from error
        return lance.dataset(str(self.path))
