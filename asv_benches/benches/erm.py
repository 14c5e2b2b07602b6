"""Regularised risk and bounds: time, peak memory, Newton steps, and the remaining gap.

A fit takes some tenths of a second; peers_erm.py has larger sizes. The track_ benchmarks are deterministic on one
machine: more steps mean a slower solver, whatever the clock shows.
"""

from functools import partial

from ._common import Repeats, normal, rbf_or_linear, require, rounded
from ._svm_data import clusters, spam, text

# The data, gamma of the RBF kernel (None: linear), lam, the other arguments of erm.fit.
FITS = {
    "logistic RBF 1500x50": (partial(clusters, 1500, 50), 1 / 50, 1e-4, {}),
    "logistic RBF 1500x50, tiny lam": (partial(clusters, 1500, 50), 1 / 50, 1e-8, {"intercept": True}),
    "squared RBF 1500x50": (partial(clusters, 1500, 50), 1 / 50, 1e-4, {"loss": "squared"}),
    "squared hinge RBF 1500x50": (partial(clusters, 1500, 50), 1 / 50, 1e-4, {"loss": "squared_hinge"}),
    "exponential RBF 1500x50": (partial(clusters, 1500, 50), 1 / 50, 1e-4, {"loss": "exponential"}),
    "hinge RBF 1500x50": (partial(clusters, 1500, 50), 1 / 50, 1e-4, {"loss": "hinge"}),
    "logistic RBF spam 1500": (partial(spam, 1500), 1 / 57, 1e-4, {"intercept": True}),
    "ten classes RBF 800x50": (partial(clusters, 800, 50, 10), 1 / 50, 1e-4, {}),
    "logistic linear 20000x100": (partial(clusters, 20000, 100), None, 1e-4, {"intercept": True}),
    "logistic CSR linear 1000x20000": (partial(text, 1000), None, 1e-4, {}),
    "logistic CSR linear 8000x2000": (partial(text, 8000, 2000), None, 1e-4, {"intercept": True}),
}


def fit_of(name):
    """Return a function without arguments that fits, after a small warm-up fit."""
    load, gamma, lam, options = FITS[name]
    kernel, fit = rbf_or_linear(gamma), require("erm", "fit").fit
    X, y = load()
    fit(X[:100], y[:100], lam, kernel, **options)
    return partial(fit, X, y, lam, kernel, **options)


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

    def track_steps(self, problem):
        """Newton steps, each a factorisation, of all machines together."""
        return sum(certificate.iterations for certificate in self.fit().certificates)

    def track_relative_gap(self, problem):
        """The worst machine's."""
        return rounded(max(each.gap / each.primal for each in self.fit().certificates))


class Losses(Repeats):
    """A million margins."""

    params = (["squared", "logistic", "hinge", "squared_hinge", "exponential", "zero_one", "ramp"],)
    param_names = ("loss",)

    def setup(self, loss):
        self.loss = getattr(require("losses", loss), loss)
        self.u = normal(1_000_000)

    def time_value(self, loss):
        self.loss(self.u)

    def time_derivative(self, loss):
        self.loss.derivative(self.u)


class Bounds(Repeats):
    def setup(self):
        self.bounds = require("bounds", "rademacher_monte_carlo", "of_tree")
        self.K = require("kernels", "gram").gram(normal((1500, 20)))

    def time_rademacher_monte_carlo(self):
        self.bounds.rademacher_monte_carlo(self.K, 1.0, 500, rng=0)
