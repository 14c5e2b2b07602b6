"""What the benchmark files share: kernels by name, data of a few kinds, the shared folder, and the rule for skipping.

Nothing of kernelrules is imported when asv imports a file: `require` does it in `setup`, so that the suite loads on any
version, and what a version does not have is skipped.
"""

import importlib
import os
from pathlib import Path

import numpy as np
from scipy import sparse

SHAPES = {"5000x50": (5000, 50), "10000x20": (10000, 20), "4000x784": (4000, 784)}
DTYPES = ["float32", "float64"]
# Rows, columns and density of sparse data: bags of words, and the one-hot columns of the Adult data.
SPARSE = {"text": (5000, 20000, 0.005), "a9a": (5000, 123, 0.11)}


class Repeats:
    """For classes of benchmarks of about 0.1 s a call: two processes, each of two to five calls in half a second."""

    rounds = 2
    repeat = (2, 5, 0.5)
    number = 1
    warmup_time = 0.1


def require(module, *names):
    """The module kernelrules.MODULE if this version has it, with these names; otherwise asv skips the benchmark."""
    try:
        found = importlib.import_module(f"kernelrules.{module}")
    except ModuleNotFoundError as error:
        if error.name != f"kernelrules.{module}":
            raise  # a broken installation is a failure, not a thing to skip
        raise NotImplementedError(f"no kernelrules.{module} in this version") from error
    for name in names:
        if not hasattr(found, name):
            raise NotImplementedError(f"no kernelrules.{module}.{name} in this version")
    return found


def make_kernel(name, n_features):
    """The kernel of that name, with the gamma that keeps its values far from 0 on standardised data."""
    parameters = {
        "Linear": {},
        "Polynomial": {"degree": 3, "gamma": 1 / n_features, "coef0": 1.0},
        "RBF": {"gamma": 1 / n_features},
        "Laplacian": {"gamma": 1 / n_features},
        "Sigmoid": {"gamma": 1 / n_features, "coef0": 0.5},
    }
    return getattr(require("kernels", "gram", name), name)(**parameters[name])


def rbf_or_linear(gamma):
    """RBF with that gamma; linear for None."""
    kernels = require("kernels", "RBF", "Linear")
    return kernels.Linear() if gamma is None else kernels.RBF(gamma)


def started_gram(kernel):
    """The function `gram`, called once already: its threads have started, also where --quick leaves out warming up."""
    gram = require("kernels", "gram").gram
    gram(normal((300, 3)), kernel=kernel)
    return gram


def rounded(value):
    """To three digits: further ones of a sum may depend on the BLAS that another machine has."""
    return float(f"{value:.3g}")


def normal(shape, dtype="float64", seed=0):
    """Standard normal numbers; their pages are touched by being written."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.dtype(dtype))


def csr(kind, seed=0):
    """A CSR matrix of one of the kinds in SPARSE, its places uniform, its values between 0 and 1."""
    n, p, density = SPARSE[kind]
    return sparse.random_array((n, p), density=density, format="csr", rng=np.random.default_rng(seed))


def shared(name):
    """The path of a file in the shared folder: $KERNELRULES_SHARED, or `shared` beside the checkout."""
    places = (os.environ.get("KERNELRULES_SHARED"), Path(__file__).resolve().parents[3] / "shared")
    for folder in filter(None, places):
        if Path(folder, "data", name).is_file():
            return Path(folder, "data", name)
    raise FileNotFoundError(f"no {name} in the shared folder")


def touched(shape, dtype="float64"):
    """An array to write into, whose pages exist already: the first write to a page costs more than the later ones."""
    return np.ones(shape, dtype=dtype)
