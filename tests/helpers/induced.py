"""What tests of induction share: small tables with everything that makes them awkward."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def tables(draw, most_rows=24, weighted=True):
    """Columns of numbers and categories with ties and gaps, which rows are positive, and whole weights."""
    n, p = draw(st.integers(1, most_rows)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_levels = rng.integers(0, 4, size=p) * rng.integers(0, 2, size=p)
    X = np.empty((n, p))
    for column in range(p):
        few = draw(st.sampled_from([2, 4, 100]))
        X[:, column] = rng.integers(n_levels[column] or few, size=n)
        X[rng.random(n) < draw(st.sampled_from([0.0, 0.0, 0.3])), column] = np.nan
    positive = (rng.random(n) < draw(st.sampled_from([0.2, 0.5, 0.8]))).astype(np.uint8)
    weights = rng.integers(1, 4, size=n).astype(float) if weighted and draw(st.booleans()) else None
    return X, n_levels.astype(np.intp), positive, weights
