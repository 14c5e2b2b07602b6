"""What hypothesis draws: kernels, and data of awkward shapes, scales and layouts."""

import gram_oracle
import numpy as np
from hypothesis import strategies as st
from scipy import sparse


def kernel_specs():
    """Kernels of every class, as the oracle of Gram matrices draws them."""
    return st.one_of(*(definition.drawn for definition in gram_oracle.KERNELS.values()))


@st.composite
def matrices(draw, n_columns=None, most_rows=12):
    """Rows of ties, repeats, zeros, and values of one scale far from or near the origin."""
    n, p = draw(st.integers(1, most_rows)), n_columns or draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = 10.0 ** draw(st.integers(-3, 2))
    X = rng.normal(size=(n, p)) * scale
    X *= rng.random((n, p)) < draw(st.sampled_from([0.2, 0.6, 1.0]))
    if draw(st.booleans()):
        X = np.round(X / scale) * scale
    if draw(st.booleans()):
        X[rng.integers(n, size=n // 2)] = X[0]
    return X + scale * draw(st.sampled_from([0.0, 0.0, 1.0, 1e6]))


dtypes = st.sampled_from([np.float64, np.float32])


@st.composite
def layouts(draw, X):
    """The same numbers in another memory layout."""
    match draw(st.sampled_from(["C", "F", "strided", "reversed", "read-only", "rows apart", "offset"])):
        case "F":
            return np.asfortranarray(X)
        case "strided":
            wide = np.full((X.shape[0], 2 * X.shape[1]), np.nan, dtype=X.dtype)
            wide[:, ::2] = X
            return wide[:, ::2]
        case "reversed":
            return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
        case "read-only":
            copy = X.copy()
            copy.flags.writeable = False
            return copy
        case "rows apart":
            wide = np.full((2 * X.shape[0], X.shape[1] + 3), np.nan, dtype=X.dtype)
            wide[::2, :-3] = X
            return wide[::2, :-3]
        case "offset":
            buffer = bytearray(X.nbytes + 3)
            shifted = np.frombuffer(buffer, dtype=X.dtype, count=X.size, offset=3).reshape(X.shape)  # not aligned
            shifted[...] = X
            return shifted
    return np.ascontiguousarray(X)


@st.composite
def csr_forms(draw, X):
    """The same numbers as CSR: array or matrix, 32- or 64-bit indices, unsorted, with duplicates or stored zeros."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, columns = np.nonzero(X)
    values = X[rows, columns]
    if draw(st.booleans()):  # entries split in two that add up exactly
        rows, columns = np.tile(rows, 2), np.tile(columns, 2)
        values = np.concatenate([values / 2, values / 2])
    if draw(st.booleans()):  # stored zeros
        zeros = np.argwhere(X == 0)
        rows, columns = np.append(rows, zeros[:, 0]), np.append(columns, zeros[:, 1])
        values = np.append(values, np.zeros(len(zeros), dtype=X.dtype))
    order = rng.permutation(len(rows)) if draw(st.booleans()) else np.arange(len(rows))
    order = order[np.argsort(rows[order], kind="stable")]
    index = draw(st.sampled_from([np.int32, np.int64]))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))]).astype(index)
    kind = draw(st.sampled_from([sparse.csr_array, sparse.csr_matrix]))
    result = kind((len(X), X.shape[1]), dtype=X.dtype)
    # Set by hand: the constructor would narrow the indices and trust a canonical order.
    result.data, result.indices, result.indptr = values[order], columns[order].astype(index), indptr
    return result
