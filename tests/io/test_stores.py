"""Stores of vectors: DuckDB, Lance, Chroma, Qdrant and PostgreSQL, each a real one made here."""

from __future__ import annotations

import hashlib
import pickle
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from file_writers import lists
from tests.raising import raises

import isoscope as iso
from isoscope.errors import FileError, InputError
from isoscope.io import open_store, open_vectors, read

N, D = 60, 4
TOPICS = [f"t{row % 3}" for row in range(N)]


@pytest.fixture(scope="module", name="X")
def stored() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)


def of_folder(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def check(file: Any, X: np.ndarray, labels: list[str]) -> None:
    """The rows, their labels and their parts are as they were stored, in order."""
    assert (file.n_rows, file.n_dims) == X.shape
    space = file.load()
    np.testing.assert_array_equal(space.vectors.numpy(), X)
    assert [space.labels.names[code] for code in space.labels.codes] == labels
    blocks = list(file.blocks(7))
    assert [len(block) for block in blocks] == [7] * (N // 7) + [N % 7]
    np.testing.assert_array_equal(np.concatenate([block.vectors for block in blocks]), X)
    again = pickle.loads(pickle.dumps(file))  # what is sent to another process is opened there
    np.testing.assert_array_equal(again.load().vectors.numpy(), X)


# DuckDB


@pytest.fixture(scope="module")
def duckdb_file(tmp_path_factory: pytest.TempPathFactory, X: np.ndarray) -> Path:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path_factory.mktemp("duckdb") / "a.duckdb"
    rows = pa.table({"id": range(N), "topic": TOPICS, "embedding": lists(X)})
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE docs AS SELECT * FROM rows")
        connection.execute('CREATE SCHEMA old; CREATE TABLE old."my ""docs""" AS SELECT * FROM rows LIMIT 5')
        connection.execute("CREATE TABLE plain AS SELECT id FROM rows")
    assert len(rows) == N
    return path


def test_duckdb(duckdb_file: Path, X: np.ndarray) -> None:
    before = of_folder(duckdb_file.parent)
    check(open_vectors(duckdb_file, key="docs", labels="topic"), X, TOPICS)
    assert len(read(duckdb_file, key='old.my "docs"')) == 5
    assert of_folder(duckdb_file.parent) == before


def test_which_table_of_duckdb(duckdb_file: Path) -> None:
    with raises(FileError, message="has 2 tables with vectors: docs, old.my", hint="key"):
        open_vectors(duckdb_file)
    with raises(FileError, argument="key", message="has no table 'doc'", hint="did you mean 'docs'"):
        open_vectors(duckdb_file, key="doc")
    with raises(FileError, message="no column of vectors"):
        open_vectors(duckdb_file, key="plain")


def test_a_strangers_duckdb_reads_no_other_file(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute(
            f"CREATE VIEW docs AS SELECT [a, b]::FLOAT[2] AS v FROM read_csv('{tmp_path / 'secret.csv'}')"
        )
    with raises(FileError, message="cannot be read.*(disabled|external access)"):
        open_vectors(tmp_path / "a.duckdb")


# Lance


@pytest.fixture
def lance_folder(tmp_path: Path, X: np.ndarray) -> Path:
    lance = pytest.importorskip("lance")
    rows = pa.table({"id": range(N), "topic": TOPICS, "vector": lists(X)})
    lance.write_dataset(rows, str(tmp_path / "docs.lance"), max_rows_per_file=25)
    return tmp_path


def test_lance(lance_folder: Path, X: np.ndarray) -> None:
    before = of_folder(lance_folder)
    check(open_vectors(lance_folder / "docs.lance", labels="topic"), X, TOPICS)
    assert len(read(lance_folder)) == N  # the folder of a LanceDB with one table
    assert of_folder(lance_folder) == before


def test_deleted_rows_of_lance_are_gone(lance_folder: Path, X: np.ndarray) -> None:
    import lance

    lance.dataset(str(lance_folder / "docs.lance")).delete("id < 10")
    np.testing.assert_array_equal(read(lance_folder / "docs.lance").vectors.numpy(), X[10:])


def test_several_tables_of_lancedb_are_a_question(lance_folder: Path) -> None:
    import lance

    lance.write_dataset(pa.table({"v": lists(np.ones((3, 2)))}), str(lance_folder / "b.lance"))
    with raises(FileError, message=r"several tables: b\.lance, docs\.lance", hint="name one"):
        open_vectors(lance_folder)


# Chroma


@pytest.fixture(scope="module")
def chroma_folder(tmp_path_factory: pytest.TempPathFactory, X: np.ndarray) -> Path:
    chromadb = pytest.importorskip("chromadb")
    folder = tmp_path_factory.mktemp("chroma")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))
        collection = client.create_collection("docs")
        collection.add(
            ids=[f"id{row}" for row in range(N)],
            embeddings=X,
            documents=[f"text {row}" for row in range(N)],
            metadatas=[{"topic": topic, "year": 2000 + row} for row, topic in enumerate(TOPICS)],
        )
    return folder


@pytest.mark.filterwarnings("ignore")
def test_chroma(chroma_folder: Path, X: np.ndarray) -> None:
    before = of_folder(chroma_folder)
    file = open_vectors(chroma_folder, labels="topic")
    assert set(file.columns) == {"id", "topic", "year", "text", "embedding"}
    check(file, X, TOPICS)
    assert file.load().texts[:2] == ["text 0", "text 1"]
    assert list(file.column("year"))[:2] == [2000, 2001]
    with raises(FileError, argument="key", message="has no collection 'other'; it has docs"):
        open_vectors(chroma_folder, key="other")
    assert of_folder(chroma_folder) == before


# Qdrant


@pytest.fixture(scope="module")
def qdrant(X: np.ndarray) -> Any:
    pytest.importorskip("qdrant_client")
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, PointStruct, VectorParams

    client = QdrantClient(":memory:")
    params = VectorParams(size=D, distance=Distance.EUCLID)
    client.create_collection("docs", vectors_config=params)
    client.create_collection("two", vectors_config={"a": params, "b": VectorParams(size=2, distance="Dot")})
    payloads = [{"topic": topic} for topic in TOPICS]
    client.upsert(
        "docs", [PointStruct(id=row, vector=X[row].tolist(), payload=payloads[row]) for row in range(N)]
    )
    both = [{"a": x.tolist(), "b": x[:2].tolist()} for x in X]
    client.upsert("two", [PointStruct(id=row, vector=both[row], payload=payloads[row]) for row in range(N)])
    return client


def test_qdrant(qdrant: Any, X: np.ndarray) -> None:
    file = open_store(qdrant, key="docs", labels="topic")
    assert file.columns == ("id", "topic", "vector")
    space = file.load()
    np.testing.assert_array_equal(space.vectors.numpy(), X)
    assert [space.labels.names[code] for code in space.labels.codes] == TOPICS
    blocks = [block.vectors for block in file.blocks(7)]
    np.testing.assert_array_equal(np.concatenate(blocks), X)
    measured = iso.measure(file, metrics=["isoscore", "silhouette"])
    assert measured["isoscore"] == pytest.approx(iso.isoscore(X), abs=1e-12)


def test_named_vectors_of_qdrant(qdrant: Any, X: np.ndarray) -> None:
    with raises(FileError, message="2 columns of vectors: a, b", hint="vectors"):
        open_store(qdrant, key="two")
    np.testing.assert_array_equal(open_store(qdrant, key="two", vectors="b").load().vectors.numpy(), X[:, :2])
    with raises(FileError, message="has 2 collections with vectors", hint="key"):
        open_store(qdrant)


def test_the_pickles_of_qdrants_folders_are_refused(tmp_path: Path, trap: tuple[bytes, Path]) -> None:
    pytest.importorskip("qdrant_client")
    (tmp_path / "meta.json").write_text("{}")
    (tmp_path / "collection" / "docs").mkdir(parents=True)
    (tmp_path / "collection" / "docs" / "storage.sqlite").write_bytes(trap[0])
    with raises(FileError, message="which holds pickles", hint="open_store"):
        open_vectors(tmp_path)
    assert not trap[1].exists()


def test_a_server_that_is_not_there_is_one_line() -> None:
    pytest.importorskip("qdrant_client")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(FileError) as caught:
            open_vectors("qdrant://:secret@localhost:9/docs")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_clients_are_refused() -> None:
    with raises(InputError, argument="store", got="object", wanted="QdrantClient"):
        open_store(object())


# PostgreSQL


@pytest.fixture(scope="module")
def postgresql(X: np.ndarray) -> Iterator[str]:
    pgserver = pytest.importorskip("pgserver", reason="pgserver is not installed")
    psycopg = pytest.importorskip("psycopg")
    folder = tempfile.mkdtemp()  # the server runs as another user, who may not enter pytest's folders
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(folder)
    address = server.get_uri()
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE EXTENSION vector")
        cursor.execute(
            "CREATE TABLE docs (id bigserial PRIMARY KEY, topic text, embedding vector(4), numbers float8[], "
            "price numeric, made date, place point)"
        )
        rows = [(topic, str(x.tolist()), x.tolist()) for topic, x in zip(TOPICS, X, strict=True)]
        cursor.executemany(
            "INSERT INTO docs (topic, embedding, numbers, price, made) "
            "VALUES (%s, %s, %s, 1.5, '2026-01-02')",
            rows,
        )
        cursor.execute("CREATE TABLE plain (id int)")
        cursor.execute("CREATE TABLE holes AS SELECT * FROM docs LIMIT 3")
        cursor.execute("UPDATE holes SET embedding = NULL WHERE id = 2")
    yield address
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def test_postgresql(postgresql: str, X: np.ndarray) -> None:
    check(open_vectors(postgresql, key="docs", vectors="embedding", labels="topic"), X, TOPICS)
    file = open_vectors(postgresql, key="docs", vectors="numbers")
    np.testing.assert_array_equal(file.load().vectors.numpy(), X.astype(np.float64))
    assert file.columns == ("id", "topic", "embedding", "numbers", "price", "made")
    assert (set(file.column("price")), set(file.column("made"))) == ({1.5}, {"2026-01-02"})


def test_which_table_and_column_of_postgresql(postgresql: str) -> None:
    with raises(FileError, message="2 columns of vectors: embedding, numbers", hint="vectors"):
        open_vectors(postgresql, key="docs")
    with raises(FileError, message="has 2 tables with vectors: docs, holes", hint="key"):
        open_vectors(postgresql)
    with raises(FileError, message="no column of vectors"):
        open_vectors(postgresql, key="plain")
    with raises(InputError, message=r"no vector in 1 of 3 rows"):
        read(postgresql, key="holes", vectors="embedding")


def test_nothing_is_written_and_no_password_is_shown(postgresql: str) -> None:
    from isoscope.io.postgresql import PostgresqlTable
    from isoscope.io.store_addresses import store_at
    from isoscope.io.table import Wanted

    address = store_at(postgresql)
    assert address is not None
    with PostgresqlTable(address, Wanted("vectors", key="docs"))._connected() as connection:
        setting = connection.execute("SHOW transaction_read_only").fetchone()
    assert setting == ("on",)
    with pytest.raises(FileError) as caught:
        open_vectors("postgresql://me:secret@localhost:9/db?password=secret")
    assert "secret" not in str(caught.value)


# Hugging Face datasets


def test_a_dataset_that_was_saved(tmp_path: Path, X: np.ndarray) -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"id": list(range(N)), "topic": TOPICS, "vector": X.tolist()}
    datasets.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "docs"), num_shards=2)
    check(open_vectors(tmp_path / "docs", labels="topic"), X, TOPICS)
