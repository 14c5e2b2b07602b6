"""Shared code of the benchmarks: kernels by name, data sets, the shared folder, and skipping.

No file imports kernelrules at its top: `require` does it in `setup`, so that the suite loads on any version, and
skips what a version does not have.
"""

import importlib
import os
from pathlib import Path

import numpy as np
from scipy import sparse

SHAPES = {"5000x50": (5000, 50), "10000x20": (10000, 20), "4000x784": (4000, 784)}
DTYPES = ["float32", "float64"]
# Rows, columns and density of sparse data: bags of words, and the one-hot columns of Adult.
SPARSE = {"text": (5000, 20000, 0.005), "a9a": (5000, 123, 0.11)}


class Repeats:
    """Repetition for benchmarks of about 0.1 s per call: two processes of two to five calls in half a second."""

    rounds = 2
    repeat = (2, 5, 0.5)
    number = 1
    warmup_time = 0.1


def require(module, *names):
    """Return kernelrules.MODULE if this version has it with these names; otherwise let asv skip the benchmark."""
    try:
        found = importlib.import_module(f"kernelrules.{module}")
    except ModuleNotFoundError as error:
        if error.name != f"kernelrules.{module}":
            raise  # a broken installation must fail, not be skipped
        raise NotImplementedError(f"no kernelrules.{module} in this version") from error
    for name in names:
        if not hasattr(found, name):
            raise NotImplementedError(f"no kernelrules.{module}.{name} in this version")
    return found


def make_kernel(name, n_features):
    """Return the named kernel with a gamma that keeps its values away from 0 on standardised data."""
    parameters = {
        "Linear": {},
        "Polynomial": {"degree": 3, "gamma": 1 / n_features, "coef0": 1.0},
        "RBF": {"gamma": 1 / n_features},
        "Laplacian": {"gamma": 1 / n_features},
        "Sigmoid": {"gamma": 1 / n_features, "coef0": 0.5},
    }
    return getattr(require("kernels", "gram", name), name)(**parameters[name])


def rbf_or_linear(gamma):
    """Return the RBF kernel with that gamma, or the linear kernel for None."""
    kernels = require("kernels", "RBF", "Linear")
    return kernels.Linear() if gamma is None else kernels.RBF(gamma)


def started_gram(kernel):
    """Return `gram` after a first call, so that its threads have started even if --quick skips the warm-up."""
    gram = require("kernels", "gram").gram
    gram(normal((300, 3)), kernel=kernel)
    return gram


def rounded(value):
    """Round to three digits, since further digits of a sum may depend on the machine's BLAS."""
    return float(f"{value:.3g}")


def normal(shape, dtype="float64", seed=0):
    """Return standard normal numbers; writing them touches their pages."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.dtype(dtype))


def csr(kind, seed=0):
    """Return a CSR matrix of a kind in SPARSE, with uniform positions and values between 0 and 1."""
    n, p, density = SPARSE[kind]
    return sparse.random_array((n, p), density=density, format="csr", rng=np.random.default_rng(seed))


def shared(name):
    """Return the path of a file in the shared folder: $KERNELRULES_SHARED, or `shared` beside the checkout."""
    places = (os.environ.get("KERNELRULES_SHARED"), Path(__file__).resolve().parents[3] / "shared")
    for folder in filter(None, places):
        if Path(folder, "data", name).is_file():
            return Path(folder, "data", name)
    raise FileNotFoundError(f"no {name} in the shared folder")


def touched(shape, dtype="float64"):
    """Return an output array whose pages are mapped already: the first write to a page costs more than later ones."""
    return np.ones(shape, dtype=dtype)
