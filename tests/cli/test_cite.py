from __future__ import annotations

import json
import re
from pathlib import Path


def keys(text: str) -> list[str]:
    return re.findall(r"^@\w+\{(\w+),", text, flags=re.MULTILINE)


def test_cited_are_isoscope_the_metrics_named_and_those_of_a_result(command, tmp_path: Path) -> None:
    assert keys(command("cite").out) == ["isoscope"]
    assert keys(command("cite", "-m", "lid").out) == ["isoscope", "levina2004", "amsaleg2015", "cai2021"]
    result = tmp_path / "result.json"
    result.write_text(json.dumps({"metrics": {"twonn": {}}, "changes": [{"metric": "rankme"}]}))
    assert set(keys(command("cite", result).out)) == {"isoscope", "facco2017", "garrido2023"}
    result.write_text(json.dumps({"nothing": 1}))
    assert keys(command("cite", result).out) == ["isoscope"]
    assert command("cite", tmp_path / "absent.json").code == 2
    named = keys(command("cite", "rankme,twonn", "-m", "lid").out)
    assert {"garrido2023", "facco2017", "levina2004"} <= set(named)
    assert "Did you mean isoscore" in command("cite", "IsoScor").err
