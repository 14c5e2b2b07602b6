"""Kernel ridge: time, peak memory, iterations and the remaining gap of fits, posteriors and paths.

A call takes some tenths of a second; peers_ridge.py has larger sizes. The data come from seeds. The track_ benchmarks
are deterministic: more iterations mean a slower solver, whatever the clock shows.
"""

from functools import partial

import numpy as np

from ._common import Repeats, normal, require, rounded

# The shape, the kernel (name and parameters), the arguments of kernelrules.ridge.fit.
FITS = {
    "RBF 3000x50": ((3000, 50), ("RBF", {"gamma": 0.02}), {}),
    "RBF 3000x50 intercept": ((3000, 50), ("RBF", {"gamma": 0.02}), {"intercept": True}),
    "RBF 3000x50 float64 factor": ((3000, 50), ("RBF", {"gamma": 0.02}), {"keep_factor": True}),
    "RBF 1500x50 dual": ((1500, 50), ("RBF", {"gamma": 0.02}), {"form": "dual"}),
    "RBF 1000x50 rkhs": ((1000, 50), ("RBF", {"gamma": 0.02}), {"form": "rkhs"}),
    "linear 50000x50": ((50000, 50), ("Linear", {}), {}),
    "quadratic 5000x20": ((5000, 20), ("Polynomial", {"degree": 2, "gamma": 0.1}), {}),
    "RBF 4000x20 cg": ((4000, 20), ("RBF", {"gamma": 0.05}), {"solver": "cg"}),
    "RBF 4000x20 cg, ten targets": ((4000, 20), ("RBF", {"gamma": 0.05}), {"solver": "cg", "targets": 10}),
}
LAM = 1e-4


def problem(shape, targets=1):
    """Return normal points, and smooth functions of them with noise."""
    X = normal(shape)
    noise = normal((shape[0], targets), seed=1)
    y = np.sin(X[:, :1]) + 0.5 * X[:, 1:2] ** 2 + 0.1 * noise
    return X, y[:, 0] if targets == 1 else y


def fit_of(name):
    """Return a function without arguments that fits, after a small fit has started the threads."""
    shape, (kind, parameters), options = FITS[name]
    options = dict(options)
    X, y = problem(shape, options.pop("targets", 1))
    kernel = getattr(require("kernels", kind), kind)(**parameters)
    fit = require("ridge", "fit").fit
    fit(X[:300], y[:300], LAM, kernel, **options)
    return partial(fit, X, y, LAM, kernel, **options)


class Fit(Repeats):
    params = (list(FITS),)
    param_names = ("problem",)

    def setup(self, problem):
        self.fit = fit_of(problem)

    def time_fit(self, problem):
        self.fit()

    def peakmem_fit(self, problem):
        """Of the whole process."""
        self.fit()

    def track_iterations(self, problem):
        """Conjugate gradients, or improvements of what a factor gave."""
        return self.fit().certificate.iterations

    def track_relative_gap(self, problem):
        found = self.fit().certificate
        return rounded(abs(found.gap / found.primal))


class Posterior(Repeats):
    params = (["float32", "float64"],)
    param_names = ("dtype",)

    def setup(self, dtype):
        ridge = require("ridge", "posterior")
        X, y = problem((2000, 20))
        self.new = normal((2000, 20), dtype, seed=2)
        kernel = require("kernels", "RBF").RBF(0.05)
        self.fit = ridge.fit(X.astype(dtype), y, LAM, kernel, keep_factor=dtype == "float64")
        self.posterior = ridge.posterior

    def time_posterior(self, dtype):
        self.posterior(self.fit, self.new)

    def peakmem_posterior(self, dtype):
        self.posterior(self.fit, self.new)


class Path(Repeats):
    params = (["RBF 1000x20", "linear 20000x50"],)
    param_names = ("problem",)

    def setup(self, name):
        kernels = require("kernels", "RBF")
        shape, kernel = ((1000, 20), kernels.RBF(0.05)) if "RBF" in name else ((20000, 50), kernels.Linear())
        self.path = partial(require("ridge", "path").path, *problem(shape), np.logspace(-7, 1, 50), kernel)

    def time_path(self, name):
        self.path()

    def peakmem_path(self, name):
        self.path()


class LargePath:
    """Paths with so many points that a band replaces eigenvectors."""

    timeout = 300
    number = repeat = rounds = 1
    warmup_time = 0

    def setup(self):
        kernel = require("kernels", "RBF").RBF(0.05)
        path = require("ridge", "path").path
        path(*problem((300, 20)), [1e-3], kernel)
        self.path = partial(path, *problem((4500, 20)), np.logspace(-7, 1, 50), kernel)

    def time_path(self):
        self.path()

    def peakmem_path(self):
        self.path()


class Beyond:
    """Memory of conjugate gradients on points whose kernel matrix would take 7 GB, to a loose tolerance."""

    timeout = 300
    number = repeat = rounds = 1
    warmup_time = 0

    def setup(self):
        X, y = problem((30000, 10))
        kernel = require("kernels", "RBF").RBF(0.1)
        self.fit = partial(require("ridge", "fit").fit, X, y, 1e-3, kernel, solver="cg", tol=1e-3)

    def time_conjugate_gradients(self):
        self.fit()

    def peakmem_conjugate_gradients(self):
        self.fit()
