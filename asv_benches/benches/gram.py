"""Gram matrices: time, peak memory and accuracy, for dense and CSR data.

`time_gram` reuses the same `out` and measures the computation alone. `time_gram_fresh` allocates its result, as most
callers do, and includes the first access to its pages. The track_ benchmarks are deterministic: a change means other
results, so a loss of accuracy is visible.
"""

import numpy as np
from scipy import sparse

from ._common import DTYPES, SHAPES, SPARSE, Repeats, csr, make_kernel, normal, require, rounded, started_gram, touched

KERNELS = ["Linear", "Polynomial", "RBF", "Laplacian"]


class OfShape(Repeats):
    """Data of one of the shapes, and a kernel."""

    params = (list(SHAPES), DTYPES, ["Linear", "RBF"])
    param_names = ("shape", "dtype", "kernel")

    def setup(self, shape, dtype, kernel):
        self.n, self.p = SHAPES[shape]
        self.kernel = make_kernel(kernel, self.p)
        self.gram = started_gram(self.kernel)
        self.X = normal((self.n, self.p), dtype)


class Dense(OfShape):
    params = (list(SHAPES), DTYPES, KERNELS)

    def setup(self, shape, dtype, kernel):
        super().setup(shape, dtype, kernel)
        self.out = touched((self.n, self.n), dtype)

    def time_gram(self, shape, dtype, kernel):
        self.gram(self.X, kernel=self.kernel, out=self.out)


class DenseFresh(OfShape):
    def time_gram_fresh(self, shape, dtype, kernel):
        self.gram(self.X, kernel=self.kernel)

    def peakmem_gram_fresh(self, shape, dtype, kernel):
        """Of the whole process: interpreter, data, result, and whatever the call needs beside them."""
        self.gram(self.X, kernel=self.kernel)


class Cross(OfShape):
    def setup(self, shape, dtype, kernel):
        super().setup(shape, dtype, kernel)
        self.Z = normal((self.n // 2, self.p), dtype, seed=1)
        self.out = touched((self.n, self.n // 2), dtype)

    def time_gram(self, shape, dtype, kernel):
        self.gram(self.X, self.Z, self.kernel, out=self.out)


class OneRow(Repeats):
    """The overhead of a call, and row-by-row use as in a solver or a prediction."""

    params = (["1x1", "1x5000"],)
    param_names = ("result",)
    number = 0  # short calls: asv chooses how many to time together

    def setup(self, result):
        self.kernel = make_kernel("RBF", 50)
        self.gram = started_gram(self.kernel)
        n_rows = int(result.removeprefix("1x"))
        self.X, self.Z = normal((1, 50)), normal((n_rows, 50), seed=1)
        self.out = touched((1, n_rows))

    def time_gram(self, result):
        self.gram(self.X, self.Z, self.kernel, out=self.out)


class Csr(Repeats):
    """CSR data. A dense × sparse product has 500 dense rows, because 5000 of the text's width would take 800 MB."""

    params = (list(SPARSE), ["sparse", "sparse x sparse", "dense x sparse"], ["Linear", "RBF", "Laplacian"])
    param_names = ("data", "operands", "kernel")

    def setup(self, data, operands, kernel):
        n, p, _ = SPARSE[data]
        self.kernel = make_kernel(kernel, p)
        self.gram = started_gram(self.kernel)
        self.Z = None if operands == "sparse" else csr(data, seed=1)
        self.X = normal((500, p)) if operands == "dense x sparse" else csr(data)
        self.out = touched((self.X.shape[0], n))

    def time_gram(self, data, operands, kernel):
        self.gram(self.X, self.Z, self.kernel, out=self.out)

    def peakmem_gram(self, data, operands, kernel):
        self.gram(self.X, self.Z, self.kernel, out=self.out)


class RbfError:
    """Largest relative error against exp(-γ |x-z|²) computed from differences in long double."""

    params = ([0.0, 1e6], DTYPES, ["dense", "CSR"])
    param_names = ("offset", "dtype", "data")
    unit = "ulps"

    def setup(self, offset, dtype, data):
        self.kernel = make_kernel("RBF", 20)
        self.gram = require("kernels", "gram").gram
        self.X = (normal((200, 20)) + offset).astype(dtype)

    def track_rbf_error_ulps(self, offset, dtype, data):
        given = sparse.csr_array(self.X) if data == "CSR" else self.X
        wide = self.X.astype(np.longdouble)
        squares = np.square(wide[:, None] - wide[None]).sum(axis=2)
        exact = np.exp(-np.longdouble(self.kernel.gamma) * squares)
        error = np.abs(self.gram(given, kernel=self.kernel) / exact - 1).max()
        return rounded(error / np.finfo(dtype).eps)


class Exactness:
    """Asymmetry and differences between threads, which are 0; the diagonal's error, 0 for RBF and Laplacian."""

    params = (DTYPES, KERNELS)
    param_names = ("dtype", "kernel")

    def setup(self, dtype, kernel):
        self.kernel = make_kernel(kernel, 30)
        self.gram = require("kernels", "gram").gram
        self.X = normal((700, 30), dtype)

    def track_asymmetry(self, dtype, kernel):
        K = self.gram(self.X, kernel=self.kernel)
        return rounded(np.abs(K - K.T).max())

    def track_diagonal_error(self, dtype, kernel):
        """Against kernels.diagonal, in ulps."""
        diagonal = require("kernels", "diagonal").diagonal(self.X, self.kernel)
        error = np.abs(self.gram(self.X, kernel=self.kernel).diagonal() / diagonal - 1).max()
        return rounded(error / np.finfo(dtype).eps)

    def track_entries_changed_by_threads(self, dtype, kernel):
        alone = self.gram(self.X, kernel=self.kernel, n_threads=1)
        return sum(
            int(np.count_nonzero(alone != self.gram(self.X, kernel=self.kernel, n_threads=n))) for n in (2, 3, 5)
        )


def track_threads():
    """How many the timings use: if these are not the two that asv.conf.json sets, no timing is comparable."""
    return require("parallel", "n_threads_or_default").n_threads_or_default()


track_threads.unit = "threads"
