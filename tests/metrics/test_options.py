"""Every option of every public function of `isoscope.metrics`, with values that are none of it."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import isoscope as iso
from isoscope import metrics

HOSTILE = ["a", None, 1.5, -1, 0, True, [], {}, object(), math.nan, math.inf, 10**30, b"x", np.ones(2)]
RNG = np.random.default_rng(0)
SPACE = iso.Space(RNG.normal(size=(40, 5)), token_types=[f"t{i % 5}" for i in range(40)])
GIVEN = {
    "X": RNG.normal(size=(40, 5)),
    "Y": RNG.normal(size=(40, 5)),
    "labels": np.arange(40) % 3,
    "sentences": np.arange(40) // 4,
    "token_types": np.arange(40) % 7,
    "before": SPACE,
    "after": SPACE,
    "norms": np.arange(1.0, 9.0),
    "covariance": np.eye(5),
    "isoscore": 0.5,
    "n_labels": 3,
    "n_dims": 5,
    "n_per_label": [4, 5],
    "classes": np.ones((3, 5)),
}
DATA = {"sentences", "token_types", "labels", "positions", "moments", "covariance"}  # told of every row
NOT_ALWAYS_USED = {"seed", "n_splits"}  # of an exact value, no seed is asked for
NOT_CALLED = {"metric", "registered", "running_correlation"}  # which take no vectors


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in metrics.__all__:
        value = getattr(metrics, name)
        if callable(value) and not inspect.isclass(value) and name not in NOT_CALLED:
            yield name, value


def options() -> Iterator[tuple[str, str]]:
    for name, function in functions():
        for parameter in inspect.signature(function).parameters.values():
            is_option = parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in DATA | {"progress"}
            if is_option or parameter.name in ("isoscore", "n_labels", "n_dims"):
                yield name, parameter.name


@pytest.mark.parametrize(("name", "option"), list(options()))
def test_a_value_of_the_wrong_kind_is_refused_in_one_line(name: str, option: str) -> None:
    function = getattr(metrics, name)
    parameters = inspect.signature(function).parameters
    given = {
        key: GIVEN[key]
        for key, one in parameters.items()
        if one.default is one.empty or (key in GIVEN and one.kind is one.POSITIONAL_OR_KEYWORD)
    }
    is_flag = "bool" in str(parameters[option].annotation)  # of which Python asks for the truth
    messages = []
    for value in HOSTILE:
        if is_flag and isinstance(value, np.ndarray):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(**{**given, option: value})
        except iso.IsoscopeError as error:
            messages.append(str(error))
    assert not any("\n" in message for message in messages)
    assert messages or is_flag or option in NOT_ALWAYS_USED


def test_the_list_of_options_is_not_empty() -> None:
    assert len(list(options())) > 60
    assert ("rsa", "sample") in options()
    with pytest.raises(iso.InputError, match="`sample` must be a whole number of at least 4, got 'a'"):
        metrics.rsa(GIVEN["X"], GIVEN["Y"], sample="a")
