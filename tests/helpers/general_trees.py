"""Small problems for the node-by-node builder, and how its trees are compared."""

import math

import numpy as np
import tree_general_oracle as oracle
from hypothesis import strategies as st

from kernelrules.tree.numpy_builder import build_node_by_node
from kernelrules.tree.problem import Problem, Settings

ways_of_missing = st.sampled_from(["extra", "fractional"])


def problem(X, y, n_levels=None, weights=None, n_classes=None):
    X = np.asarray(X, dtype=np.float64 if np.asarray(X).dtype != np.float32 else np.float32)
    n_levels = np.zeros(X.shape[1], dtype=np.int64) if n_levels is None else np.asarray(n_levels)
    y = np.asarray(y)
    weights = None if weights is None else np.asarray(weights, dtype=np.float64)
    if y.dtype.kind == "f":
        return Problem(X, n_levels, None, 0, y.reshape(len(y), -1), weights)
    return Problem(X, n_levels, y.astype(np.int32), n_classes or int(y.max()) + 1, None, weights)


def grow(given_problem, **settings):
    return build_node_by_node(given_problem, Settings(**settings))


def of_oracle(data):
    X = [[math.nan if cell is None else cell for cell in row] for row in data.X]
    y = np.array(data.y, dtype=np.int32 if data.n_classes else np.float64)
    return problem(X, y, data.n_levels, data.weights, data.n_classes or None)


@st.composite
def datasets(draw, *, regression=False, categories=True, n_outputs=1, most_rows=9):
    """Few rows of few values: ties everywhere, some missing, whole weights."""
    n, p = draw(st.integers(1, most_rows)), draw(st.integers(1, 3))
    n_levels = [draw(st.sampled_from([0, 0, 4])) if categories else 0 for _ in range(p)]
    cells = st.one_of(st.integers(0, 3), st.integers(0, 3), st.none())
    X = [[draw(cells) for _ in range(p)] for _ in range(n)]
    n_classes = 0 if regression else draw(st.integers(2, 4))
    one = st.tuples(*[st.integers(0, 4)] * n_outputs) if regression else st.integers(0, n_classes - 1)
    y = [draw(one) for _ in range(n)]
    if regression:
        y[0] = (1,) * n_outputs  # not all 0: poisson's mean is above 0
    weights = [draw(st.integers(0, 3)) for _ in range(n)]
    weights[0] += not any(weights)
    return oracle.Data(X, n_levels, y, n_classes, weights)


def noisy(n=150, p=4, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).round(1)
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0).astype(int)


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, expected in one.items():
        if expected is None:
            assert other[name] is None
        elif expected.dtype.kind == "f":
            np.testing.assert_allclose(other[name], expected, rtol=1e-12, atol=1e-14, err_msg=name)
        else:
            np.testing.assert_array_equal(other[name], expected, err_msg=name)


def own_gini(P):
    return 1 - np.sum(P**2, axis=1)
