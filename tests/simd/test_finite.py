"""The pass that finds the largest magnitude and the first number that is not finite."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kernelrules.core.simd.finite import magnitude


def obvious(x):
    """The definition, entry by entry."""
    most = 0.0
    for i, row in enumerate(x):
        for j, value in enumerate(row):
            if not np.isfinite(value):
                return np.nan, (i, j)
            most = max(most, abs(float(value)))
    return most, None


@given(st.data(), st.sampled_from([np.float32, np.float64]))
def test_equals_definition(data, dtype):
    shape = data.draw(st.tuples(st.integers(0, 6), st.integers(0, 40)))
    width = np.dtype(dtype).itemsize * 8
    x = data.draw(hnp.arrays(dtype, shape, elements=st.floats(width=width)))
    wide = np.full((shape[0], shape[1] + 5), np.nan, dtype=dtype)
    wide[:, : shape[1]] = x
    for rows in (x, wide[:, : shape[1]]):
        most, place = magnitude(rows)
        expected, where = obvious(x)
        assert place == where
        assert most == expected or (np.isnan(most) and np.isnan(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremes_are_finite(dtype):
    limits = np.finfo(dtype)
    x = np.full((7, 33), limits.max, dtype=dtype)
    x[::2] = -limits.max
    assert magnitude(x) == (limits.max, None)
    tiny = np.full((1, 3), limits.smallest_subnormal)
    assert magnitude(-tiny.astype(dtype))[0] == limits.smallest_subnormal
