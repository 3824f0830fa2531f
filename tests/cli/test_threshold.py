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
