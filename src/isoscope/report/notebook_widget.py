"""The class of notebook widgets; it needs anywidget, so it is imported when a widget is made."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from isoscope.errors import InputError
from isoscope.report.page import assemble, asset


class ReportWidget(anywidget.AnyWidget):
    """The what-if part of a report in a notebook: sliders, spectrum, and points that can be selected.

    Select points with a click, by dragging a rectangle, or with the space bar; Shift adds to the selection.

    Attributes:
        selected: the row numbers of the selected points, in order. Set it to select points from Python.
        page: the HTML page that the widget shows, in a frame without access to the notebook.
    """

    _esm = asset("widget.js")
    page = traitlets.Unicode().tag(sync=True)
    selected = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(self, contents: dict[str, Any]) -> None:
        self._n_rows = contents["n"]
        super().__init__(page=assemble({**contents, **_LEFT_OUT, "is_widget": True}))

    @traitlets.validate("selected")
    def _in_range(self, proposal: Any) -> list[int]:
        rows = proposal["value"]
        for row in rows:
            if not 0 <= row < self._n_rows:
                raise InputError(
                    argument="selected", got=row, wanted=f"row numbers from 0 to {self._n_rows - 1}"
                )
        return sorted(set(rows))


_LEFT_OUT = dict.fromkeys(("cosines", "silhouette", "dimensions", "corrections", "trajectory"))
