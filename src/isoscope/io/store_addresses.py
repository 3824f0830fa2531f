"""`StoreAddress`: a table of a database or of a store of vectors, used where readers take a path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from isoscope.errors import FileError
from isoscope.io.addresses import Address, is_address, shown

# the scheme of an address, and the suffix under which its format is declared
SCHEMES = {
    "qdrant": ".qdrant",
    "qdrant+https": ".qdrant",
    "chroma": ".chroma",
    "chroma+https": ".chroma",
    "postgresql": ".postgresql",
    "postgres": ".postgresql",
}
_CHROMA_FILE = "chroma.sqlite3"
_QDRANT_FILE = "meta.json"
_PASSWORD = re.compile(r"(?i)(password|api_key|apikey)=[^&\s]*")


class StoreAddress(Address):
    """Where a store is: the address of a server, or a folder.

    Attributes:
        place: the address, or the folder.
        live: a client that the caller has opened; None where the reader opens one.
    """

    def __init__(self, place: str, suffix: str, name: str, live: Any = None) -> None:
        listing: Mapping[str, Any] = {"type": "file", "size": 1}
        super().__init__(place, listing)
        self.name = name + suffix
        self.place, self.live = place, live

    def __str__(self) -> str:
        return _PASSWORD.sub(r"\1=…", shown(self.place))


def store_at(path: Any) -> StoreAddress | None:
    """Return the store that a path or an address stands for; None where it is no store.

    Raises:
        FileError: a folder of Qdrant's local mode, whose points are pickles.
    """
    if is_address(path):
        scheme = path.split("://")[0].lower()
        name = urlsplit(path).path.strip("/") or scheme
        return StoreAddress(path, SCHEMES[scheme], name) if scheme in SCHEMES else None
    folder = Path(path)
    if not folder.is_dir():
        return None
    if (folder / _CHROMA_FILE).is_file():
        return StoreAddress(str(folder), ".chroma", folder.name)
    if (folder / _QDRANT_FILE).is_file() and (folder / "collection").is_dir():
        raise FileError(
            f"{folder} is a folder of Qdrant's local mode, which holds pickles",
            wanted="a server, such as qdrant://localhost:6333/COLLECTION",
            hint="where you trust it, open it with QdrantClient(path=…) and pass the client to "
            "isoscope.io.open_store",
        )
    return None


def parts_of(address: StoreAddress) -> tuple[str, str | None, dict[str, str]]:
    """Return the URL of a server over HTTP, the collection its path names, and the key in it.

    >>> parts_of(StoreAddress("qdrant+https://key@example.org:6333/docs", ".qdrant", "docs"))
    ('https://example.org:6333', 'docs', {'api_key': 'key'})
    """
    split = urlsplit(address.place)
    secure = split.scheme.endswith("+https")
    url = f"{'https' if secure else 'http'}://{split.hostname}" + (f":{split.port}" if split.port else "")
    secret = split.password or split.username
    return url, split.path.strip("/") or None, {"api_key": secret} if secret else {}
