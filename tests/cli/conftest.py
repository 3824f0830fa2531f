from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from isoscope.cli import main


@pytest.fixture
def fail(capsys, monkeypatch) -> Callable[..., str]:
    """Run a command that must fail: the one line on standard error, and exit code 2."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["isoscope", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("isoscope: error: ")
        assert err.count("\n") == 1
        return err

    return run
