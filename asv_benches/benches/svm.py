"""Support vector machines: time, peak memory, solver steps, kernel rows, and the remaining gap.

A fit takes some tenths of a second; peers_svm.py has larger sizes. The data come from seeds and from the package. The
track_ benchmarks are deterministic on one machine: more steps or rows mean a slower solver, whatever the clock shows,
and a larger gap means speed at the expense of accuracy.
"""

from functools import partial

from ._common import Repeats, require, rounded
from ._common import rbf_or_linear as kernel
from ._svm_data import clusters, response, spam, text

# The data, the function of kernelrules.svm, gamma of the RBF kernel (None: linear), the other arguments.
FITS = {
    "spam C=1": (spam, "svc", 1 / 57, {"C": 1.0}),
    "spam C=100": (spam, "svc", 1 / 57, {"C": 100.0}),
    "RBF 5000x50": (partial(clusters, 5000, 50), "svc", 1 / 50, {"C": 1.0}),
    "linear 5000x50": (partial(clusters, 5000, 50), "svc", None, {"C": 1.0}),
    "linear 5000x50, C=100": (partial(clusters, 5000, 50), "svc", None, {"C": 100.0}),  # solved by interior points
    "CSR linear 3000x20000": (partial(text, 3000), "svc", None, {"C": 1.0}),
    "CSR RBF 3000x20000": (partial(text, 3000), "svc", 1.0, {"C": 1.0}),
    "ten classes, ovo": (partial(clusters, 4000, 50, 10), "svc", 1 / 50, {"C": 1.0}),
    "ten classes, ovr": (partial(clusters, 4000, 50, 10), "svc", 1 / 50, {"C": 1.0, "multiclass": "ovr"}),
    "nu-SVC": (partial(clusters, 5000, 50), "svc", 1 / 50, {"nu": 0.3}),
    "eps-SVR C=1": (partial(response, 3000), "svr", 0.1, {"C": 1.0}),
    "eps-SVR C=10": (partial(response, 3000), "svr", 0.1, {"C": 10.0}),
    "nu-SVR": (partial(response, 3000), "svr", 0.1, {"C": 1.0, "nu": 0.5}),
    "one class": (partial(clusters, 5000, 50), "one_class", 1 / 50, {"nu": 0.1}),
}
BEYOND_CACHE = {"n": 10000, "cache_mb": 20}  # the Gram matrix would be 400 MB in float32


def require_rows_computed():
    """Skip a benchmark if models do not report the number of computed kernel rows."""
    if not hasattr(require("results", "SVMModel").SVMModel, "rows_computed"):
        raise NotImplementedError("no SVMModel.rows_computed in this version")


def fit_of(name):
    """Return a function without arguments that trains, after a small fit has started the threads."""
    load, function, gamma, parameters = FITS[name]
    train = getattr(require("svm", function), function)
    X, y = load()
    arguments = {"kernel": kernel(gamma), **parameters}
    given = (lambda n: (X[:n],)) if function == "one_class" else (lambda n: (X[:n], y[:n]))
    train(*given(300), **arguments)
    return partial(train, *given(None), **arguments)


class OfProblem(Repeats):
    """Training of the problems."""

    params = (list(FITS),)
    param_names = ("problem",)

    def setup(self, problem):
        self.fit = fit_of(problem)


class Fit(OfProblem):
    def time_fit(self, problem):
        self.fit()

    def peakmem_fit(self, problem):
        """Of the whole process; the cache may take a quarter of the memory that is free."""
        self.fit()

    def track_iterations(self, problem):
        """Of all machines together."""
        return sum(certificate.iterations for certificate in self.fit().certificates)

    def track_relative_gap(self, problem):
        """The worst machine's, relative to its primal objective: what is left to gain at most."""
        return rounded(max(abs(each.gap / each.primal) for each in self.fit().certificates))

    def track_support_vectors(self, problem):
        """What prediction pays for."""
        return len(self.fit().support)


class KernelRows(OfProblem):
    """Computed rows: all if the whole Gram matrix is kept; for the linear kernel those of its working sets."""

    unit = "rows"

    def setup(self, problem):
        require_rows_computed()
        super().setup(problem)

    def track_kernel_rows(self, problem):
        return self.fit().rows_computed


class BeyondCache(Repeats):
    """A cache for a twentieth of the Gram matrix: rows are recomputed, and memory must stay within the limit."""

    def setup(self):
        require_rows_computed()
        X, y = clusters(BEYOND_CACHE["n"], 50)
        svc = require("svm", "svc").svc
        self.fit = partial(svc, X, y, kernel=kernel(1 / 50), cache_mb=BEYOND_CACHE["cache_mb"])
        svc(X[:300], y[:300], kernel=kernel(1 / 50))

    def time_fit(self):
        self.fit()

    def peakmem_fit(self):
        self.fit()

    def track_iterations(self):
        return self.fit().certificate.iterations

    def track_kernel_rows(self):
        return self.fit().rows_computed


class Choose(Repeats):
    """Many fits to the same data, which share kernel rows and are warm-started."""

    Cs = tuple(10.0**k for k in range(-2, 3))
    gammas = (0.004, 0.016, 0.064)

    def setup(self):
        self.svm = require("svm", "svc", "path", "tune", "budget")
        self.X, self.y = spam(2000)
        self.model = self.svm.svc(self.X, self.y, C=10.0, kernel=kernel(1 / 57))

    def path(self):
        return self.svm.path(self.X, self.y, self.Cs, kernel=kernel(1 / 57))

    def tune(self):
        return self.svm.tune(self.X, self.y, Cs=self.Cs, gammas=self.gammas, folds=3, rng=0)

    def time_path(self):
        self.path()

    def track_path_iterations(self):
        return sum(model.certificate.iterations for model in self.path())

    def time_warm_start(self):
        self.svm.svc(self.X, self.y, C=11.0, kernel=kernel(1 / 57), warm_start=self.model)

    def track_warm_start_iterations(self):
        model = self.svm.svc(self.X, self.y, C=11.0, kernel=kernel(1 / 57), warm_start=self.model)
        return model.certificate.iterations

    def time_budget(self):
        self.svm.budget(self.X, self.y, 300.0, kernel=kernel(1 / 57))

    def time_tune(self):
        self.tune()

    def peakmem_tune(self):
        self.tune()

    def track_tune_error(self):
        """The smallest of the mean errors: speed bought by worse fits shows here."""
        return rounded(self.tune().mean.min())


class OfMachine(Repeats):
    """Prediction with a machine trained on 2000 rows."""

    params = (["two classes", "ten classes, ovo", "ten classes, ovr", "CSR"],)
    param_names = ("machine",)
    n_points = 5000

    def setup(self, machine):
        self.svm = require("svm", "svc", "predict", "decision")
        if machine == "CSR":
            (X, y), chosen = text(2000 + self.n_points), kernel(None)
        else:
            X, y = clusters(2000 + self.n_points, 50, 2 if machine == "two classes" else 10)
            chosen = kernel(1 / 50)
        multiclass = "ovr" if machine.endswith("ovr") else "ovo"
        self.model = self.svm.svc(X[:2000], y[:2000], kernel=chosen, multiclass=multiclass)
        self.X = X[2000:]


class Predict(OfMachine):
    def time_predict(self, machine):
        self.svm.predict(self.model, self.X)

    def time_decision(self, machine):
        self.svm.decision(self.model, self.X)

    def peakmem_predict(self, machine):
        self.svm.predict(self.model, self.X)


class PredictOne(OfMachine):
    """The overhead of a call."""

    n_points = 1
    number = 0  # short calls: asv chooses how many to time together

    def time_predict(self, machine):
        self.svm.predict(self.model, self.X)
