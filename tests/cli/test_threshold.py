from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import isoscope as iso


def test_the_command(rng, tmp_path: Path, monkeypatch, command) -> None:
    monkeypatch.chdir(tmp_path)
    first = rng.normal(size=(300, 16))
    X = np.vstack([first, first + 0.8 * rng.normal(size=(300, 16))])
    own, other = np.arange(300), 300 + rng.permutation(300)
    pairs = [*zip(own, 300 + own, [1] * 300, strict=True), *zip(own, other, [0] * 300, strict=True)]
    np.save("v.npy", X)
    np.save("w.npy", X + 1)
    lines = [f"{int(a)},{int(b)},{int(y)}" for a, b, y in pairs]
    Path("p.csv").write_text("\n".join(["i,j,label", *lines]) + "\n")
    done = command("threshold", "v.npy", "--pairs", "p.csv", "--precision", "0.9", "--to", "w.npy", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    wanted = iso.threshold(X, pairs=pairs, precision=0.9, to=X + 1).to_dict()
    assert found["guarantees"] == wanted["guarantees"]
    assert found["by_rate"] == wanted["by_rate"]
    done = command("threshold", "v.npy", "--rates", "0.1,0.01")
    assert "1 in 10" in done.out
    assert command("threshold", "v.npy", "--queries", "w.npy").code == 0


def test_queries_with_relevance(rng, tmp_path: Path, monkeypatch, command) -> None:
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    topics = rng.normal(size=(5, 8))
    tables = {}
    for name, n in (("d", 200), ("q", 60)):
        topic = np.arange(n) % 5
        vectors = list((topics[topic] + 0.5 * rng.normal(size=(n, 8))).astype("f4"))
        ids = [f"{name}{row}" for row in range(n)]
        tables[name] = pd.DataFrame({"id": ids, "topic": [f"t{one}" for one in topic], "vector": vectors})
        tables[name].to_parquet(f"{name}.parquet")
    rows = [(query, row) for query in range(60) for row in range(query % 5, 200, 5)]
    Path("rows.csv").write_text("query,document\n" + "".join(f"{a},{b}\n" for a, b in rows))
    Path("ids.csv").write_text("query,document\n" + "".join(f"q{a},d{b}\n" for a, b in rows))
    base = ("threshold", "d.parquet", "--queries", "q.parquet", "--json")
    ways = (
        ("--relevance", "topic"),
        ("--relevance", "rows.csv"),
        ("--relevance", "ids.csv", "--ids", "id"),
    )
    found = []
    for way in ways:
        done = command(*base, *way)
        assert done.code == 0, done.err
        found.append(json.loads(done.out))
    assert found[0]["by_rate"] == found[1]["by_rate"] == found[2]["by_rate"]
    assert found[0]["guarantees"][0] == found[2]["guarantees"][0]
    assert found[0]["by_rate"][0]["found"] > 0.3
    plain = json.loads(command(*base).out)
    assert plain["by_rate"][0]["cosine"] != found[0]["by_rate"][0]["cosine"]
    assert command(*base, *ways[0], "--pairs", "rows.csv").code == 2
    assert command("threshold", "d.parquet", "--relevance", "topic").code == 2
