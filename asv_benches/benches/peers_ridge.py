"""Kernel ridge against scikit-learn and LAPACK: part of peers.py, which describes the method.

Fits: KernelRidge, and the Gram matrix of kernelrules with LAPACK's dposv on it, in place: no fit by a float64 factor
can be faster.

Posterior: mean and variance of 10 000 points by GaussianProcessRegressor, fitted before, and the triangular solve
alone with the same right-hand sides. kernelrules has its factor from the fit (float64), or computes it (float32,
which it cannot keep). The columns compare equal precision: float32 is required only to float32 accuracy.

Path: 50 values of λ with leave-one-out errors, against 50 single fits of kernelrules without them, of which five are
timed; and RidgeCV on the explicit features of a linear kernel.

Conjugate gradients run in a separate process; the peak of memory is relative to the memory before.
"""

import json
import sys
from functools import partial

import numpy as np

from ._common import normal, require
from ._peers import (
    ENOUGH_SECONDS,
    OURS,
    SKLEARN,
    THREADS,
    Table,
    announce,
    measured_alone,
    on_threads,
    remarks_cell,
    sorted_seconds,
    verdict,
    with_peak,
)

ROUNDS = 5
LAM = 1e-4
N_WARM_UP = 300
RAW = "LAPACK"
HEADER = ("case", "scikit-learn, s", "LAPACK, s", "ours, s", "× faster than scikit-learn", "ours / LAPACK", "goal",
          "difference", "verdict", "remarks")  # fmt: skip
PATH_HEADER = ("case", "peer, s", "ours, s", "ours / peer", "goal", "verdict", "remarks")
LARGE_HEADER = ("case", "s", "iterations", "relative gap", "peak, MB", "goal", "verdict")
# Rows and columns, least speedup over scikit-learn, largest share of LAPACK's time.
FITS = {"fit RBF 5000×50": (5000, 50, 2.0, 1.0), "fit RBF 10000×20": (10000, 20, 2.0, 1.0)}
POSTERIORS = {
    "posterior of 10000, n = 5000, float64": ("float64", 1.4, 1.2),
    "posterior of 10000, n = 5000, float32": ("float32", 2.5, None),
}
PATHS = {"path of 50 λ, RBF 2000×20": 2000, "path of 50 λ, RBF 5000×20": 5000}
LINEAR_PATH = "path of 50 λ, linear 20000×50, against RidgeCV"
LARGE = {"cg RBF 20000×20": (20000, 600), "cg RBF 100000×20": (100000, 2000)}
SINGLE_FITS = 5


def tables(options, wanted):
    """Return all tables, or with --memory only that of large problems."""
    rounds = options.rounds or ROUNDS
    if not options.memory:
        yield Table("Kernel ridge: fits and posterior", HEADER, lambda: fit_rows(rounds, wanted))
        yield Table("Kernel ridge: paths of λ", PATH_HEADER, lambda: path_rows(rounds, wanted))
    yield Table("Kernel ridge: more points than a matrix holds", LARGE_HEADER, lambda: large_rows(options, wanted))


def data(n, p, dtype="float64"):
    """Return normal points, and a smooth function of them with noise."""
    X = normal((n, p), dtype)
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * normal(n, seed=1)


def fit_rows(rounds, wanted):
    """Yield the lines of fits, then of posteriors."""
    for case, (n, p, least, most) in FITS.items():
        if wanted(case):
            announce(case)
            yield cells(case, partial(fit_calls, p), data(n, p), rounds, least, most)
    for case, (dtype, least, most) in POSTERIORS.items():
        if wanted(case):
            announce(case)
            yield cells(case, posterior_calls, data(5000, 20, dtype), rounds, least, most)


def fit_calls(p, X, y):
    """Return the fitting calls, which return coefficients."""
    from scipy.linalg import lapack
    from sklearn.kernel_ridge import KernelRidge

    kernels, ridge = require("kernels", "gram"), require("ridge", "fit")
    kernel, n = kernels.RBF(1 / p), len(y)

    def raw():
        K = kernels.gram(X, kernel=kernel, n_threads=THREADS)
        K.flat[:: n + 1] += LAM * n
        return lapack.dposv(K.T, y, overwrite_a=1)[1]

    return {
        OURS: lambda: ridge.fit(X, y, LAM, kernel, n_threads=THREADS).alpha,
        SKLEARN: lambda: KernelRidge(alpha=LAM * n, kernel="rbf", gamma=1 / p).fit(X, y).dual_coef_,
        RAW: raw,
    }


def posterior_calls(X, y):
    """Return the calls that compute variances, after the fits."""
    from scipy.linalg import blas
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    kernels, ridge = require("kernels", "gram"), require("ridge", "posterior")
    n, p = X.shape
    new = normal((2 * n, p), X.dtype, seed=2)
    fit = ridge.fit(X, y, LAM, kernels.RBF(1 / p), keep_factor=True, n_threads=THREADS)
    theirs = GaussianProcessRegressor(RBF(np.sqrt(p / 2), "fixed"), alpha=LAM * n, optimizer=None).fit(X, y)
    lower = np.asfortranarray(theirs.L_)
    right = np.asfortranarray(kernels.gram(X, new, kernels.RBF(1 / p), dtype=np.float64))
    return {
        OURS: lambda: ridge.posterior(fit, new, n_threads=THREADS).variance,
        SKLEARN: lambda: theirs.predict(new, return_std=True)[1] ** 2,
        RAW: lambda: 1.0 - np.square(blas.dtrsm(1.0, lower, right, lower=1)).sum(axis=0),
    }


def cells(case, calls, problem, rounds, least, most):
    """Return one line: times, ratios, and the difference of the results."""
    X, y = problem
    answers = {}
    with on_threads(calls(X[:N_WARM_UP], y[:N_WARM_UP])):
        seconds = sorted_seconds(calls(X, y), rounds, ENOUGH_SECONDS, answers.__setitem__)
    best = {who: times[0] for who, times in seconds.items()}
    apart = max(np.abs(answers[who] - answers[OURS]).max() for who in (SKLEARN, RAW)) / np.abs(answers[RAW]).max()
    faster, share = best[SKLEARN] / best[OURS], best[OURS] / best[RAW]
    missed = ["speed"] if faster < least else []
    missed += ["LAPACK"] if most is not None and share > most else []
    missed += ["answer"] if apart > (1e-4 if X.dtype == np.float32 else 1e-8) else []
    return (
        case,
        f"{best[SKLEARN]:.3g}",
        f"{best[RAW]:.3g}",
        f"{best[OURS]:.3g}",
        f"{faster:.2f}",
        f"{share:.2f}",
        f"≥ {least:g}" + (f", ≤ {most:g}" if most is not None else ""),
        f"{apart:.0e}",
        verdict(missed),
        remarks_cell(seconds),
    )


def path_rows(rounds, wanted):
    """Yield the lines of paths against single fits, and against RidgeCV."""
    kernels, ridge = require("kernels", "gram"), require("ridge", "path")
    lams = np.logspace(-7, 1, 50)
    for case, n in PATHS.items():
        if wanted(case):
            announce(case)
            X, y = data(n, 20)
            kernel = kernels.RBF(0.05)
            few = lams[:: len(lams) // SINGLE_FITS]
            calls = {
                OURS: partial(ridge.path, X, y, lams, kernel, n_threads=THREADS),
                "fits": lambda X=X, y=y, few=few, k=kernel: [
                    ridge.fit(X, y, lam, k, n_threads=THREADS).lam for lam in few
                ],
            }
            with on_threads({}):
                seconds = sorted_seconds(calls, rounds, ENOUGH_SECONDS)
            yield path_cells(case, seconds, len(lams) / len(few), 0.5)
    if wanted(LINEAR_PATH):
        from sklearn.linear_model import RidgeCV

        announce(LINEAR_PATH)
        X, y = data(20000, 50)
        calls = {
            OURS: partial(ridge.path, X, y, lams, kernels.Linear(), n_threads=THREADS),
            "fits": lambda: RidgeCV(lams * len(y), fit_intercept=False).fit(X, y),
        }
        with on_threads({}):
            seconds = sorted_seconds(calls, rounds, ENOUGH_SECONDS)
        yield path_cells(LINEAR_PATH, seconds, 1.0, 1.0)


def path_cells(case, seconds, times, most):
    """Return one line; the other library's time is multiplied by a factor."""
    peer, ours = seconds["fits"][0] * times, seconds[OURS][0]
    missed = ["speed"] if ours > most * peer else []
    remarks = remarks_cell(seconds)
    return case, f"{peer:.3g}", f"{ours:.3g}", f"{ours / peer:.2f}", f"≤ {most:g}", verdict(missed), remarks


def large_rows(options, wanted):
    """Yield the lines of conjugate gradients, each in a separate process."""
    for case, (n, most) in LARGE.items():
        if wanted(case):
            announce(case)
            report = measured_alone("peers_ridge", (str(n),), options.limit)
            if "remark" in report:
                yield case, *["–"] * (len(LARGE_HEADER) - 2), report["remark"]
                continue
            missed = (["memory"] if report["peak"] > most else []) + ([] if report["converged"] else ["gap"])
            yield (
                case,
                f"{report['seconds']:.3g}",
                f"{report['iterations']}",
                f"{report['gap']:.1e}",
                f"{report['peak']:.0f}",
                f"≤ {most}",
                verdict(missed),
            )


def measure(n):
    """Fit once in this process, after a small warm-up problem."""
    kernels, ridge = require("kernels", "RBF"), require("ridge", "fit")
    X, y = data(n, 20)
    call = partial(ridge.fit, lam=LAM, kernel=kernels.RBF(0.05), solver="cg", tol=1e-6)
    call(X[:1500], y[:1500])
    found, seconds, peak = with_peak(partial(call, X, y))
    c = found.certificate
    return {
        "seconds": seconds,
        "peak": peak,
        "iterations": c.iterations,
        "gap": c.gap / c.primal,
        "converged": c.converged,
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
