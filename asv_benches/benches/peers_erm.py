"""Regularised risk against scikit-learn: part of peers.py, which describes the method.

Contenders. Logistic loss and RBF kernel: GaussianProcessClassifier without a parameter search, whose Laplace
approximation starts from the same minimum, at λ = 1/(2n) (it also computes a likelihood, a small part). Logistic loss
and linear kernel: LogisticRegression by newton-cholesky, and in a separate column by lbfgs, with C = 1/(2λn).
Logistic loss and polynomial kernel: the same on the explicit features. Squared loss: KernelRidge on labels ±1, alpha
= λn. Squared hinge: LinearSVC in the primal.

All contenders get float64 data and two threads. Fits of kernelrules end at a relative gap of 1e-8. Objectives are
computed here from decision values and norms. The table shows the difference of the other library's objective from
that of kernelrules, relative to the latter: a minus sign means that the other library found a better one.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ._common import require
from ._peers import ENOUGH_SECONDS, OURS, SKLEARN, Table, on_threads, remarks_cell, rows_of_data, sorted_seconds
from ._svm_data import clusters, spam

ROUNDS = 5
LBFGS = "lbfgs"
N_WARM_UP = 300
HEADER = (
    "case", "scikit-learn, s", "ours, s", "× faster", "× faster than lbfgs", "steps", "relative gap",
    "scikit-learn's objective above ours", "remarks",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Data, loss, kernel and λ; λ is 1/(2n) if None."""

    case: str
    load: object
    loss: str
    kernel: str
    gamma: float = 1.0
    lam: float | None = None

    @property
    def spec(self):
        kernels = require("kernels", "RBF", "Linear", "Polynomial")
        known = {"rbf": lambda: kernels.RBF(self.gamma), "linear": kernels.Linear}
        return known.get(self.kernel, lambda: kernels.Polynomial(2, self.gamma, 1.0))()


CASES = [
    Case("logistic RBF spam 1500×57", partial(spam, 1500), "logistic", "rbf", 1 / 57),
    Case("logistic RBF clusters 2000×50", partial(clusters, 2000, 50), "logistic", "rbf", 1 / 50),
    Case("squared RBF clusters 2000×50", partial(clusters, 2000, 50), "squared", "rbf", 1 / 50, 1e-4),
    Case("logistic linear 50000×100", partial(clusters, 50000, 100), "logistic", "linear", lam=1e-4),
    Case("logistic linear 5000×400", partial(clusters, 5000, 400), "logistic", "linear", lam=1e-4),
    Case("logistic quadratic 10000×20", partial(clusters, 10000, 20), "logistic", "polynomial", 1 / 20, 1e-4),
    Case("squared hinge linear 50000×100", partial(clusters, 50000, 100), "squared_hinge", "linear", lam=1e-4),
]


def tables(options, wanted):
    """Return the table of fits; asv measures memory."""
    if options.memory:
        return []
    rounds = options.rounds or ROUNDS
    rows = partial(rows_of_data, CASES, HEADER, wanted, partial(cells, rounds))
    return [Table("Regularised risk", HEADER, rows)]


def signs(y):
    """Return -1 for the first of two labels and +1 for the second."""
    return 2.0 * np.unique(y, return_inverse=True)[1] - 1.0


def contenders(case, X, y):
    """Return the fitting calls, and for each a function from the result to decision values of X and ‖f‖²."""
    n = len(X)
    lam = case.lam or 1 / (2 * n)
    erm, kernels = require("erm", "fit", "decision"), require("kernels", "gram")
    calls = {OURS: partial(erm.fit, X, y, lam, case.spec, case.loss)}
    read = {OURS: lambda found: (erm.decision(found, X), float(found.norms[0] ** 2))}
    if case.kernel == "rbf" and case.loss == "logistic":
        from sklearn.gaussian_process import GaussianProcessClassifier
        from sklearn.gaussian_process.kernels import RBF

        peer = GaussianProcessClassifier(RBF((2 * case.gamma) ** -0.5), optimizer=None)

        def read_mode(found):
            inner = found.base_estimator_
            alpha = inner.y_train_ - inner.pi_
            values = kernels.gram(X, kernel=case.spec) @ alpha
            return values, float(alpha @ values)

        calls[SKLEARN], read[SKLEARN] = partial(peer.fit, X, y), read_mode
    elif case.kernel == "rbf":
        from sklearn.kernel_ridge import KernelRidge

        peer = KernelRidge(alpha=lam * n, kernel="rbf", gamma=case.gamma)
        calls[SKLEARN] = partial(peer.fit, X, signs(y))
        read[SKLEARN] = lambda found: ((values := found.predict(X)), float(found.dual_coef_ @ values))
    else:
        phi = require("kernels", "feature_map").feature_map(case.spec, X.shape[1])

        def read_weights(found):
            return found.decision_function(phi.transform(X)), float(found.coef_[0] @ found.coef_[0])

        for name, peer in linear_peers(case, lam, n).items():
            calls[name] = partial(fit_mapped, peer, phi, X, y)
            read[name] = read_weights
    return calls, read


def fit_mapped(peer, phi, X, y):
    """Return the other library's fit to explicit features, including their computation."""
    return peer.fit(phi.transform(X), y)


def linear_peers(case, lam, n):
    """Return scikit-learn's linear machines for the loss."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    C = 1 / (2 * lam * n)
    if case.loss == "squared_hinge":
        return {SKLEARN: LinearSVC(C=C, fit_intercept=False, dual=False, tol=1e-6, max_iter=10_000)}
    return {
        SKLEARN: LogisticRegression(C=C, fit_intercept=False, solver="newton-cholesky", tol=1e-6),
        LBFGS: LogisticRegression(C=C, fit_intercept=False, solver="lbfgs", tol=1e-6, max_iter=10_000),
    }


def cells(rounds, case, X, y):
    """Return the line of a case."""
    lam = case.lam or 1 / (2 * len(X))
    loss = getattr(require("losses", case.loss), case.loss)
    sign = signs(y)
    calls, read = contenders(case, X, y)
    values, certificate = {}, []

    def look(name, result):
        f, square = read[name](result)
        values[name] = float(loss(sign * f).mean()) + lam * square
        if name == OURS:
            certificate.append(result.certificate)

    with on_threads(contenders(case, X[:N_WARM_UP], y[:N_WARM_UP])[0]):
        seconds = sorted_seconds(calls, rounds, ENOUGH_SECONDS, look)
    best = {name: times[0] for name, times in seconds.items()}
    return (
        case.case,
        f"{best[SKLEARN]:.3g}",
        f"{best[OURS]:.3g}",
        f"{best[SKLEARN] / best[OURS]:.1f}",
        f"{best[LBFGS] / best[OURS]:.1f}" if LBFGS in best else "–",
        str(certificate[0].iterations),
        f"{certificate[0].gap / certificate[0].primal:.1e}",
        f"{(values[SKLEARN] - values[OURS]) / values[OURS]:+.1e}",
        remarks_cell(seconds),
    )
