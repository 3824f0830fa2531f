"""The widget: its Python side by anywidget, and its page in Chromium with a model like a notebook's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises

import isoscope as iso

pytest.importorskip("anywidget")

HOSTILE = "</script><script>window.parent.ran = 1</script><img src=x onerror='window.parent.ran = 2'>"


def vectors(n: int = 60) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 5)) * [5, 3, 1, 1, 1] + np.repeat(np.eye(5)[:2] * 9, n // 2, axis=0)


@pytest.fixture(scope="module")
def report() -> iso.Report:
    texts = [f"{HOSTILE} {i}" for i in range(60)]
    return iso.report(vectors(), labels=[HOSTILE] * 30 + ["b"] * 30, texts=texts, title=HOSTILE)


@pytest.fixture(scope="module")
def made(report: iso.Report) -> Any:
    return report.widget()


def test_selected_is_a_list_of_rows(made: Any) -> None:
    told = []
    made.observe(lambda change: told.append(change["new"]), names="selected")
    made.selected = [7, 3, 3]
    assert made.selected == [3, 7]
    assert told == [[3, 7]]
    for wrong in ([60], [-1]):
        with pytest.raises(iso.InputError) as raised:
            made.selected = wrong
        assert raised.value.argument == "selected"
    assert made.selected == [3, 7]
    made.unobserve_all()
    made.selected = []


def test_the_state_that_a_notebook_gets(made: Any) -> None:
    state = made.get_state()
    assert state["selected"] == []
    assert "is_widget" in state["page"]
    assert "export default { render }" in state["_esm"]
    assert "<img" not in state["page"]  # texts are data, spelled out


def test_a_report_makes_the_same_widget() -> None:
    report = iso.report(vectors())
    assert report.widget().page == iso.widget(vectors()).page
    assert "is_widget" not in report.contents


def test_a_space_of_one_direction_has_no_widget() -> None:
    with raises(iso.InputError, argument="X", wanted="2 or more for a widget"):
        iso.widget(np.outer(np.arange(10.0), [1, 2, 3]))


def test_without_anywidget_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    report = iso.report(vectors())
    monkeypatch.delitem(sys.modules, "isoscope.report.notebook_widget", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(iso.InputError) as raised:
        report.widget()
    assert raised.value.hint == ("pip install 'isoscope[widget]'",)


_NOTEBOOK = """async ([esm, page]) => {
    const heard = {};
    window.model = {
        state: { page, selected: [] }, saved: [],
        get(name) { return this.state[name]; },
        set(name, value) { this.state[name] = value; (heard[`change:${name}`] ?? []).forEach((f) => f()); },
        save_changes() { this.saved.push([...this.state.selected]); },
        on(name, f) { (heard[name] ??= []).push(f); },
        off(name, f) { heard[name] = heard[name].filter((g) => g !== f); },
    };
    window.heard = heard;
    const module = await import(URL.createObjectURL(new Blob([esm], { type: 'text/javascript' })));
    window.cleanup = module.default.render({ model, el: document.getElementById('cell') });
}"""


class Notebook:
    """A tab with the widget in a cell, and a model in place of the notebook's."""

    def __init__(self, page: Any, widget: Any) -> None:
        self.page = page
        self.said: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.evaluate(_NOTEBOOK, [str(widget._esm), widget.page])
        self.frame = page.frame_locator("iframe")
        self.frame.locator("#scatter .mark").first.wait_for()

    def selected(self) -> list[int]:
        return self.page.evaluate("model.state.selected")

    def place(self, i: int) -> tuple[float, float]:
        box = self.frame.locator("#scatter .mark").nth(i).bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.fixture
def notebook(browser: Any, made: Any, tmp_path: Path) -> Iterator[Notebook]:
    path = tmp_path / "notebook.html"
    path.write_text("<!doctype html><title>notebook</title><div id='cell'></div>")
    context = browser.new_context(viewport={"width": 1100, "height": 1200}, color_scheme="light")
    page = context.new_page()
    page.goto(path.as_uri())
    yield Notebook(page, made)
    context.close()


@pytest.mark.slow
def test_the_sliders_of_the_report_work_in_a_cell(notebook: Notebook) -> None:
    frame = notebook.frame
    assert frame.locator("#what-if").is_visible()
    assert frame.locator("#numbers").is_hidden()
    before = float(frame.locator("#readouts dd[data-name=isoscore]").get_attribute("data-value"))
    assert before == pytest.approx(iso.isoscore(vectors()), abs=1e-6)
    frame.get_by_role("button", name="Whitened", exact=True).click()
    after = float(frame.locator("#readouts dd[data-name=isoscore]").get_attribute("data-value"))
    assert after == pytest.approx(1.0, abs=1e-6)
    assert notebook.said == []
    assert notebook.page.evaluate("window.ran") is None


@pytest.mark.slow
def test_the_frame_is_as_high_as_its_page(notebook: Notebook) -> None:
    inner = notebook.frame.locator("body").evaluate("(body) => body.offsetHeight")
    assert inner > 300
    notebook.page.wait_for_function(
        f"Math.abs(document.querySelector('iframe').clientHeight - {inner}) < 20", timeout=5000
    )


@pytest.mark.slow
def test_a_rectangle_selects_the_rows_inside_and_tells_python(notebook: Notebook, report: iso.Report) -> None:
    mouse = notebook.page.mouse
    marks = [notebook.place(i) for i in range(60)]
    wanted = marks[7]
    mouse.move(wanted[0] - 60, wanted[1] - 60)
    mouse.down()
    mouse.move(wanted[0], wanted[1])
    mouse.move(wanted[0] + 30, wanted[1] + 30)
    mouse.up()
    notebook.page.wait_for_function("model.saved.length > 0")
    shown = report.contents["points"]["rows"]
    inside = [
        shown[i]
        for i, (x, y) in enumerate(marks)
        if wanted[0] - 60 <= x <= wanted[0] + 30 and wanted[1] - 60 <= y <= wanted[1] + 30
    ]
    rows = notebook.selected()
    assert shown[7] in rows
    assert 1 < len(rows) < 60
    assert rows == sorted(inside)
    assert notebook.frame.locator("#scatter .mark.selected").count() == len(rows)
    assert notebook.frame.locator("#selected").text_content().startswith(f"{len(rows)} selected: rows ")


@pytest.mark.slow
def test_a_click_a_key_and_escape(notebook: Notebook) -> None:
    x, y = notebook.place(11)
    notebook.page.mouse.click(x, y)
    notebook.page.wait_for_function("model.saved.length === 1")
    (row,) = notebook.selected()
    notebook.frame.locator("#scatter svg").focus()
    notebook.page.keyboard.press("ArrowRight")
    notebook.page.keyboard.press(" ")
    notebook.page.wait_for_function("model.saved.length === 2")
    assert len(notebook.selected()) == 2
    assert row in notebook.selected()
    notebook.page.keyboard.press("Escape")
    notebook.page.wait_for_function("model.saved.length === 3")
    assert notebook.selected() == []


@pytest.mark.slow
def test_rows_set_in_python_are_shown_and_not_told_back(notebook: Notebook) -> None:
    notebook.page.evaluate("model.set('selected', [0, 5, 41])")
    notebook.frame.locator("#scatter .mark.selected").nth(2).wait_for()
    assert notebook.frame.locator("#scatter .mark.selected").count() == 3
    assert notebook.frame.locator("#selected").text_content() == "3 selected: rows 0, 5, 41"
    assert notebook.page.evaluate("model.saved") == []


@pytest.mark.slow
def test_other_windows_are_not_listened_to(notebook: Notebook) -> None:
    notebook.page.evaluate("window.postMessage({ isoscope: true, rows: [1] }, '*')")
    notebook.page.wait_for_timeout(50)
    assert notebook.selected() == []


@pytest.mark.slow
def test_a_closed_cell_listens_no_more(notebook: Notebook) -> None:
    assert notebook.page.evaluate("heard['change:selected'].length") == 1
    notebook.page.evaluate("cleanup()")
    assert notebook.page.evaluate("heard['change:selected'].length") == 0
