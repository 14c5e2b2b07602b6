"""Feature maps: the time to construct and to apply them, and the error of their inner products.

The errors come from fixed seeds and are deterministic.
"""

import numpy as np

from ._common import DTYPES, Repeats, make_kernel, normal, require, rounded

N_ROWS, N_FEATURES = 5000, 50
MAPS = ["monomials", "nystroem RBF", "nystroem Laplacian", "fourier RBF"]


def map_maker(name, X):
    """Return a function without arguments that constructs the named map for data like X."""
    kernels = require("kernels", "feature_map", "nystroem", "random_fourier")
    p = X.shape[1]
    if name == "monomials":
        quadratic = kernels.Polynomial(degree=2, gamma=1 / p, coef0=1.0)
        return lambda: kernels.feature_map(quadratic, p)
    method, kernel_name = name.split()
    kernel = make_kernel(kernel_name, p)
    if method == "fourier":
        return lambda: kernels.random_fourier(kernel, p, n_components=1000, rng=0)
    return lambda: kernels.nystroem(X, kernel, n_components=300, rng=0)


class Maps(Repeats):
    params = (MAPS, DTYPES)
    param_names = ("map", "dtype")

    def setup(self, name, dtype):
        self.X = normal((N_ROWS, N_FEATURES), dtype)
        self.make = map_maker(name, self.X)
        self.map = self.make()

    def time_make(self, name, dtype):
        self.make()

    def time_transform(self, name, dtype):
        self.map.transform(self.X)

    def peakmem_transform(self, name, dtype):
        self.map.transform(self.X)

    def track_relative_error(self, name, dtype):
        """Of the Gram matrix, in the Frobenius norm; of 500 rows."""
        some = self.X[:500]
        mapped = self.map.transform(some).astype(np.float64)
        exact = require("kernels", "gram").gram(some.astype(np.float64), kernel=self.map.kernel)
        return rounded(np.linalg.norm(mapped @ mapped.T - exact) / np.linalg.norm(exact))
