from __future__ import annotations

import numpy as np
import torch
from scipy.stats import t, ttest_1samp

from isoscope.advice.validation import gain, splits


def test_every_row_is_held_out_once_a_repeat_and_labels_evenly() -> None:
    codes = torch.tensor([0] * 30 + [1] * 70)
    parts = list(splits(100, folds=5, repeats=2, seed=0, strata=codes))
    assert len(parts) == 10
    for repeat in (parts[:5], parts[5:]):
        assert torch.cat([one.test for one in repeat]).sort().values.tolist() == list(range(100))
    for one in parts:
        assert not set(one.train.tolist()) & set(one.test.tolist())
        assert codes[one.test].bincount().tolist() == [6, 14]
    assert not torch.equal(parts[0].test, parts[5].test)
    assert len({one.seed for one in parts}) == 10


def test_gain_is_nadeau_and_bengios(rng: np.random.Generator) -> None:
    x = rng.normal(size=15) + 0.5
    found = gain(x.tolist(), test_share=0.25)
    error = np.sqrt((1 / 15 + 0.25) * x.var(ddof=1))
    assert np.isclose(found.mean, x.mean())
    assert np.allclose(found.interval, x.mean() + np.array([-1, 1]) * t.ppf(0.975, 14) * error)
    assert np.isclose(found.p_value, 2 * t.sf(abs(x.mean()) / error, 14))
    plain = gain(x.tolist(), test_share=0.0)  # folds taken for independent: the ordinary t test
    assert np.isclose(plain.p_value, ttest_1samp(x, 0).pvalue)
    assert found.p_value > plain.p_value
    assert gain([0.0] * 5, test_share=0.25).p_value == 1.0
    assert gain([0.25] * 5, test_share=0.25).p_value == 2 / 2**5  # equal gains prove no more than one sign
