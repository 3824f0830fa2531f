from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np
import pytest
import torch

from isoscope.report.page import as_json, assemble, packed


@pytest.mark.parametrize(
    "text", ["</script>", "<!--", "<script>", "a & b", "\u2028\u2029", "{{SCRIPT}}", "\"'\\", "\x00"]
)
def test_json_holds_its_text_and_cannot_end_its_element(text: str) -> None:
    written = as_json({"text": text})
    assert json.loads(written) == {"text": text}
    assert not set(written) & set("<>&\u2028\u2029")


def test_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json(float("nan"))


def test_places_are_filled_once_and_the_policy_names_what_is_there() -> None:
    html = assemble({"title": "{{SCRIPT}} <b>", "note": "{{STYLE}}"})
    assert "<title>{{SCRIPT}} &lt;b&gt;</title>" in html
    assert html.count("</script>") == 2
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for kind, part in (
        ("script-src", re.search(r"<script>(.*?)</script>", html, re.S)[1]),
        ("style-src", re.search(r"<style>(.*?)</style>", html, re.S)[1]),
    ):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_nothing_is_loaded_and_no_text_becomes_markup() -> None:
    html = assemble({"title": ""})
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", html)
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", html)
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|@import|url\(", html)


def test_packed_numbers_are_little_endian() -> None:
    for dtype, code in ((torch.float32, "<f4"), (torch.float64, "<f8")):
        values = torch.tensor([[1.5, -2.0], [3.25, 0.0]], dtype=dtype)
        found = np.frombuffer(base64.b64decode(packed(values)), dtype=code)
        np.testing.assert_array_equal(found, values.flatten().numpy())
