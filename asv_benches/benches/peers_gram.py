"""Gram matrices against scikit-learn, numpy, scipy and BLAS: part of peers.py, which describes the method.

Contenders. scikit-learn: its function for the kernel, with a separate routine from two sparse matrices to a dense
result. numpy: the usual expression over whole arrays, whose `X @ X.T` is BLAS's syrk with the triangle copied. scipy:
`S @ T.T`, which stays sparse, and the same with `.toarray()`. BLAS: one triangle by syrk (for a cross Gram matrix
gemm) into warm memory, plus one write of the result by one thread: into fresh pages for the fresh result, into warm
ones for out=. Speedups refer to the fresh result of kernelrules, because the others allocate theirs too. Every result
is compared with that of kernelrules before the first round.

--memory measures the peak of `gram` in a fresh process above the previous memory plus the result.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ._common import DTYPES, SHAPES, SPARSE, csr, make_kernel, normal, require, touched
from ._peers import THREADS, Table, announce, sorted_seconds, unsettled, verdict

ROUNDS = 7
HEADER = (
    "case", "fresh, ms", "out=, ms", "× faster than scikit-learn", "× faster than numpy or scipy",
    "fresh: × time of BLAS + fresh write", "out=: × time of BLAS + warm write", "goal", "verdict", "unsettled",
)  # fmt: skip
MEMORY_HEADER = ("case", "result, MB", "beyond it, MB", "goal", "verdict")
MOST_EXTRA_MB = 64
MEMORY_PROBE = """
import json, sys
import numpy as np
from kernelrules import kernels

def megabytes(entry):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(entry)) * 1024 / 1e6

n, p, dtype, name = json.loads(sys.argv[1])
X = np.random.default_rng(0).standard_normal((n, p), dtype=np.dtype(dtype))
kernel = getattr(kernels, name)(gamma=1 / p)
before = megabytes("VmRSS")
K = kernels.gram(X, kernel=kernel)
print(json.dumps([K.nbytes / 1e6, megabytes("VmHWM") - before - K.nbytes / 1e6]))
"""


@dataclass(frozen=True)
class Row:
    """A line of the table: functions that create its contenders, by name, and the goals or None."""

    case: str
    contenders: Callable[[], dict[str, Callable]]
    least_over_sklearn: float | None = None
    most_of_blas: float | None = None
    least_over_scipy: float | None = None  # least speedup over scipy's sparse product


def numpy_kernel(name, X, Z, kernel):
    """Return the kernel as an expression over whole arrays."""
    products = X @ Z.T
    if name == "RBF":
        squares = np.square(X).sum(axis=1)[:, None] + np.square(Z).sum(axis=1)
        return np.exp(-kernel.gamma * (squares - 2 * products))
    if name == "Sigmoid":
        return np.tanh(kernel.gamma * products + kernel.coef0)
    return (kernel.gamma * products + kernel.coef0) ** kernel.degree


def sklearn_kernel(name, X, Z, kernel):
    """Return scikit-learn's kernel function as a function without arguments."""
    from sklearn.metrics import pairwise

    parameters = {key: getattr(kernel, key) for key in ("gamma", "coef0", "degree") if hasattr(kernel, key)}
    return partial(getattr(pairwise, f"{name.lower()}_kernel"), X, Z, **parameters)


def dense_contenders(name, shape, dtype, cross=False):
    """Return all contenders for the Gram matrix of dense data, or for the cross Gram matrix of two of that shape."""
    from scipy.linalg import get_blas_funcs

    n, p = shape
    kernel, gram = make_kernel(name, p), require("kernels", "gram").gram
    X = normal(shape, dtype)
    Z = normal(shape, dtype, seed=1) if cross else None
    out = touched((n, n), dtype)
    calls = {
        "fresh": partial(gram, X, Z, kernel),
        "out": partial(gram, X, Z, kernel, out=out),
        "sklearn": sklearn_kernel(name, X, Z, kernel),
    }
    if name == "Laplacian":  # no numpy expression that fits in memory, and no BLAS routine
        return calls
    calls["numpy"] = partial(numpy_kernel, name, X, X if Z is None else Z, kernel)
    syrk, gemm = get_blas_funcs(("syrk", "gemm"), (X,))
    into = {"c": out.T, "overwrite_c": True}
    if cross:
        calls["blas"] = partial(gemm, 1.0, Z.T, X.T, trans_a=True, **into)
    else:
        calls["blas"] = partial(syrk, 1.0, X.T, trans=1, **into)
    calls["write fresh"] = partial(np.full, (n, n), 1.5, dtype)
    calls["write warm"] = partial(out.fill, 1.5)
    return calls


def csr_contenders(kind):
    """Return all contenders for the products of the rows of two sparse matrices."""
    from sklearn.metrics.pairwise import linear_kernel

    S, T = csr(kind), csr(kind, seed=1)
    kernel, gram = make_kernel("Linear", S.shape[1]), require("kernels", "gram").gram
    return {
        "fresh": partial(gram, S, T, kernel),
        "out": partial(gram, S, T, kernel, out=touched((S.shape[0], T.shape[0]))),
        "sklearn": partial(linear_kernel, S, T),
        "dense": lambda: (S @ T.T).toarray(),
        "sparse": lambda: S @ T.T,
    }


def case_name(name, shape, dtype):
    """Return the name of a case in the tables and for --only."""
    return f"{name} {shape[0]}×{shape[1]} {dtype}"


def all_rows():
    """Return the cases of the table, with the goals of the design notes."""

    def dense(name, shape, dtype, least=None, most=None, cross=False):
        case = case_name(f"{name} X×Z" if cross else name, shape, dtype)
        return Row(case, partial(dense_contenders, name, shape, dtype, cross), least, most)

    rows = [
        dense(name, shape, dtype, 4.0 if shape[1] <= 50 else 1.8, 1.35)
        for name in ("RBF", "Polynomial")
        for shape in SHAPES.values()
        for dtype in reversed(DTYPES)
    ]
    rows += [dense("Laplacian", shape, dtype, 3.0) for shape in ((5000, 50), (4000, 100)) for dtype in reversed(DTYPES)]
    rows += [dense("Sigmoid", (5000, 50), "float64"), dense("RBF", (5000, 50), "float64", cross=True)]
    rows += [
        Row(f"Linear CSR {kind} {n}×{p}, density {density}", partial(csr_contenders, kind), least_over_scipy=1.0)
        for kind, (n, p, density) in SPARSE.items()
    ]
    return rows


def require_agreement(contenders):
    """Run all contenders once and compare their Gram matrices, to single precision."""
    ours = contenders["fresh"]()[:100].copy()
    for name, call in contenders.items():
        result = call()
        if name in ("blas", "write fresh", "write warm"):
            continue
        some = result[:100].toarray() if name == "sparse" else result[:100]
        np.testing.assert_allclose(some, ours, rtol=2e-3, atol=2e-5, err_msg=f"{name} differs")


def cells(row, seconds):
    """Return the line of the table for these times."""
    best = {name: times[0] for name, times in seconds.items()}
    over_sklearn = best["sklearn"] / best["fresh"]
    over_arrays = {name: best[name] / best["fresh"] for name in ("numpy", "dense", "sparse") if name in best}
    of_blas = {
        name: best[name] / (best["blas"] + best[f"write {pages}"])
        for name, pages in (("fresh", "fresh"), ("out", "warm"))
        if "blas" in best
    }
    goals, missed = [], []
    if row.least_over_sklearn:
        goals.append(f"≥ {row.least_over_sklearn:g} × scikit-learn")
        missed += ["scikit-learn"] if over_sklearn < row.least_over_sklearn else []
    if row.least_over_scipy:
        goals.append(f"≥ {row.least_over_scipy:g} × scipy sparse")
        missed += ["scipy sparse"] if over_arrays["sparse"] < row.least_over_scipy else []
    if row.most_of_blas:
        goals.append(f"≤ {row.most_of_blas:g} × BLAS + write")
        missed += [{"fresh": "fresh", "out": "out="}[name] for name in of_blas if of_blas[name] > row.most_of_blas]
    return (
        row.case,
        f"{best['fresh'] * 1e3:.0f}",
        f"{best['out'] * 1e3:.0f}",
        f"{over_sklearn:.1f}",
        ", ".join(f"{ratio:.1f}{'' if name == 'numpy' else ' ' + name}" for name, ratio in over_arrays.items()) or "–",
        *(f"{of_blas[name]:.2f}" if name in of_blas else "–" for name in ("fresh", "out")),
        ", ".join(goals) or "–",
        verdict(missed) if goals else "–",
        ", ".join(unsettled(seconds)) or "–",
    )


def memory_cells(name, shape, dtype):
    """Return the line of the memory table, measured in a separate process with the same kernelrules."""
    import kernelrules

    path = [str(Path(kernelrules.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(THREADS))
    done = subprocess.run(
        [sys.executable, "-P", "-c", MEMORY_PROBE, json.dumps([*shape, dtype, name])],
        env=os.environ | threads | {"PYTHONPATH": os.pathsep.join(filter(None, path))},
        capture_output=True,
        text=True,
        check=True,
    )
    result, extra = json.loads(done.stdout)
    missed = ["memory"] if extra > MOST_EXTRA_MB else []
    return case_name(name, shape, dtype), f"{result:.0f}", f"{extra:.0f}", f"≤ {MOST_EXTRA_MB}", verdict(missed)


def tables(options, wanted):
    """Return the table of times, or with --memory that of peaks."""
    if options.memory:
        return [Table("Gram matrices: peak memory", MEMORY_HEADER, partial(memory_rows, wanted))]
    return [Table("Gram matrices", HEADER, partial(timed_rows, options.rounds or ROUNDS, wanted))]


def timed_rows(rounds, wanted):
    """Yield the lines of the table."""
    from threadpoolctl import threadpool_limits

    for row in (row for row in all_rows() if wanted(row.case)):
        announce(row.case)
        contenders = row.contenders()
        with threadpool_limits(THREADS):  # limits all libraries, which are loaded by now
            require_agreement(contenders)
            yield cells(row, sorted_seconds(contenders, rounds))


def memory_rows(wanted):
    """Yield the lines of the memory table."""
    cases = [(name, shape, dtype) for name in ("RBF", "Laplacian") for shape in SHAPES.values() for dtype in DTYPES]
    for case in cases:
        if wanted(case_name(*case)):
            announce(case_name(*case))
            yield memory_cells(*case)
