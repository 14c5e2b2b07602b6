"""The C level by address, as a caller without a compiler has it: so that the run with sanitizers sees these functions.

Each is called with what the contract allows and with what it refuses, on arrays that have no byte to spare; tests
outside of this folder compare more results.
"""

import ctypes
from ctypes import POINTER, byref, c_double, c_int, c_size_t, c_ssize_t, c_void_p

import numpy as np
import pytest

from kernelrules import cython_api, kernels, svm, tree

INT_MAX = 2**31 - 1
BAD, CALLBACK = -2, -3
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))


class Kernel(ctypes.Structure):
    _fields_ = (("kind", c_int), ("degree", c_int), ("gamma", c_double), ("coef0", c_double))


FILL = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_ssize_t), c_ssize_t, POINTER(c_double))
PROCEED = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
LOSS = ctypes.CFUNCTYPE(c_double, c_void_p, POINTER(c_double), c_ssize_t)


class Source(ctypes.Structure):
    _fields_ = (("state", c_void_p), ("fill", FILL))


class Problem(ctypes.Structure):
    _fields_ = (
        *((name, c_ssize_t) for name in ("n_points", "n_variables", "split")),
        *((name, c_void_p) for name in ("diagonal", "linear", "lower", "upper")),
        ("kink", c_double),
    )


class State(ctypes.Structure):
    _fields_ = (("a", c_void_p), ("gradient", c_void_p))


class Report(ctypes.Structure):
    _fields_ = (
        ("objective", c_double),
        ("violation", c_double),
        ("offset", c_double * 2),
        ("n_steps", c_ssize_t),
        ("n_rows", c_ssize_t),
    )


class Options(ctypes.Structure):
    _fields_ = (
        ("tol", c_double),
        ("max_steps", c_ssize_t),
        ("cache_bytes", c_size_t),
        ("n_threads", c_int),
        ("proceed", PROCEED),
        ("context", c_void_p),
    )


class Column(ctypes.Structure):
    _fields_ = (
        ("n", c_ssize_t),
        ("x", c_void_p),
        ("order", c_void_p),
        ("n_known", c_ssize_t),
        ("labels", c_void_p),
        ("n_classes", c_ssize_t),
        ("y", c_void_p),
        ("weights", c_void_p),
        ("min_leaf", c_ssize_t),
    )


class Criterion(ctypes.Structure):
    _fields_ = (("kind", c_int), ("state", c_void_p), ("loss", LOSS))


class Split(ctypes.Structure):
    _fields_ = (("gain", c_double), ("threshold", c_double), ("n_left", c_ssize_t), ("missing_left", c_int))


class Tree(ctypes.Structure):
    _fields_ = (
        ("n_nodes", c_ssize_t),
        ("n_features", c_ssize_t),
        *((name, c_void_p) for name in ("feature", "threshold", "left", "right", "missing_left")),
    )


def function(name, *kinds):
    """One of the exported functions, which returns a status."""
    get, named = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_GetName
    named.argtypes, named.restype = [ctypes.py_object], ctypes.c_char_p
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], c_void_p
    capsule = cython_api.__pyx_capi__[name]
    return ctypes.CFUNCTYPE(c_int, *kinds)(get(capsule, named(capsule)))


GRAM = (c_void_p, c_ssize_t, c_ssize_t) * 2 + (c_ssize_t, c_void_p, c_void_p, c_ssize_t, c_int)
kr_gram, kr_gram_f = function("kr_gram", *GRAM), function("kr_gram_f", *GRAM)
kr_smo_solve = function("kr_smo_solve", *(c_void_p,) * 5)
PRESORT = (c_void_p, c_ssize_t, c_void_p, c_void_p)
kr_presort, kr_presort_f = function("kr_presort", *PRESORT), function("kr_presort_f", *PRESORT)
kr_scan_column = function("kr_scan_column", *(c_void_p,) * 3)
kr_tree_apply = function("kr_tree_apply", c_void_p, c_void_p, c_ssize_t, c_ssize_t, c_void_p, c_int)


def at(array):
    return None if array is None else array.ctypes.data


# ---- kernel values ------------------------------------------------------------------------------------------------

KINDS = (kernels.Linear(), kernels.Polynomial(2, 0.5, 1.0), kernels.RBF(0.5), kernels.Laplacian(0.5))


@pytest.mark.parametrize(("dtype", "call"), [(np.float64, kr_gram), (np.float32, kr_gram_f)])
@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("n_threads", [1, 2, INT_MAX])
def test_gram(dtype, call, kind, n_threads):
    x, z = X.astype(dtype), X[:7].astype(dtype)
    kernel, spec = Kernel(kind, 2, 0.5, 1.0), KINDS[kind]
    out = np.empty((40, 7), dtype=dtype)
    assert call(at(x), 40, 3, at(z), 7, 3, 3, byref(kernel), at(out), 7, n_threads) == 0
    np.testing.assert_array_equal(out, kernels.gram(x, z, spec))
    own = np.empty((40, 40), dtype=dtype)
    assert call(at(x), 40, 3, None, 0, 0, 3, byref(kernel), at(own), 40, n_threads) == 0
    np.testing.assert_array_equal(own, kernels.gram(x, kernel=spec))


def test_gram_refuses():
    out, kernel = np.zeros((40, 40)), Kernel(2, 0, 0.5, 0.0)
    good = [at(X), 40, 3, at(X), 40, 3, 3, byref(kernel), at(out), 40, 1]
    assert kr_gram(*good) == 0
    for place, wrong in (
        (0, None), (1, -1), (2, 2), (4, -1), (5, 2), (6, 0), (7, None), (8, None), (9, 39), (10, 0), (10, -5),
        (7, byref(Kernel(9, 0, 1.0, 0.0))), (7, byref(Kernel(2, 0, -1.0, 0.0))), (7, byref(Kernel(2, 0, np.nan, 0.0))),
        (7, byref(Kernel(1, -1, 1.0, 0.0))), (7, byref(Kernel(1, 2, 1.0, np.inf))),
    ):  # fmt: skip
        assert kr_gram(*good[:place], wrong, *good[place + 1 :]) == BAD, (place, wrong)
    assert kr_gram(None, 0, 3, None, 0, 0, 3, byref(kernel), None, 0, 1) == 0


# ---- the solver ---------------------------------------------------------------------------------------------------


class Machine:
    """A C-SVC of two classes, and everything that must live while it is solved."""

    def __init__(self, n=40, fails_at=None, **options):
        self.K = kernels.gram(X[:n], kernel=kernels.RBF(0.5))
        self.y = np.where(X[:n, 0] * X[:n, 1] > 0, 1.0, -1.0)
        self.asked = 0

        def fill(_, rows, n_rows, out):
            self.asked += n_rows
            if fails_at is not None and self.asked > fails_at:
                return CALLBACK
            np.ctypeslib.as_array(out, (n_rows * n,))[:] = self.K[np.ctypeslib.as_array(rows, (n_rows,))].ravel()
            return 0

        self.source = Source(None, FILL(fill))
        self.arrays = {
            "diagonal": np.ones(n),
            "linear": -self.y,
            "lower": np.minimum(self.y, 0.0),
            "upper": np.maximum(self.y, 0.0),
        }
        self.problem = Problem(n, n, n, *map(at, self.arrays.values()), 0.0)
        self.a, self.gradient = np.zeros(n), np.zeros(n)
        self.state, self.report = State(at(self.a), at(self.gradient)), Report()
        self.options = Options(1e-6, 0, 0, 1, PROCEED())
        for name, value in options.items():
            setattr(self.options, name, value)

    def solve(self, **replaced):
        parts = {name: byref(getattr(self, name)) for name in ("source", "problem", "options", "state", "report")}
        return kr_smo_solve(*(parts | replaced).values())


@pytest.mark.parametrize("n_threads", [1, 2, INT_MAX])
@pytest.mark.parametrize("cache", [0, 1, 40 * 8 * 10, 2**63 - 1, 2**63, 2**64 - 1])
def test_smo(n_threads, cache):
    machine, usual = Machine(n_threads=n_threads, cache_bytes=cache), Machine(cache_bytes=min(cache, 10**6))
    assert usual.solve() == machine.solve() == 0
    np.testing.assert_array_equal(machine.a, usual.a)  # which rows are at hand decides the way to the solution
    model = svm.svc(X, machine.y, C=1.0, kernel=kernels.RBF(0.5), tol=1e-6)
    expected = np.zeros(40)
    expected[model.support] = model.dual_coef[0]
    np.testing.assert_allclose(machine.a, expected, atol=1e-4)
    np.testing.assert_allclose(machine.gradient, machine.K @ machine.a - machine.y, atol=1e-9)
    assert (machine.report.n_rows <= 40) == (cache == 0 or cache > 10**6)  # none is asked for twice, where all fit


def test_the_same_bits_for_any_number_of_threads(monkeypatch):
    """On enough points that threads have something to share: Gram matrices, solutions and leaves."""
    many = np.random.default_rng(1).normal(size=(1500, 3))
    monkeypatch.setitem(globals(), "X", many)
    kernel, spec = Kernel(2, 2, 0.5, 1.0), kernels.RBF(0.5)
    grown = tree.grow(many, many[:, 0] * many[:, 1] > 0)
    columns = [np.ascontiguousarray(getattr(grown, name), dtype=np.intp) for name in ("feature", "left", "right")]
    walked = Tree(grown.n_nodes, 3, at(columns[0]), at(grown.threshold), at(columns[1]), at(columns[2]), None)
    found = []
    for n_threads in (1, 2, 3):
        gram, leaves = np.empty((1500, 1500)), np.empty(1500, dtype=np.intp)
        assert kr_gram(at(many), 1500, 3, None, 0, 0, 3, byref(kernel), at(gram), 1500, n_threads) == 0
        machine = Machine(1500, n_threads=n_threads)
        assert machine.solve() == 0
        assert kr_tree_apply(byref(walked), at(many), 1500, 3, at(leaves), n_threads) == 0
        found.append([part.tobytes() for part in (gram, machine.a, machine.gradient, leaves)])
        np.testing.assert_array_equal(gram, kernels.gram(many, kernel=spec))
        np.testing.assert_array_equal(leaves, tree.apply(grown, many))
    assert found[1:] == [found[0], found[0]]


@pytest.mark.parametrize("kind", range(4))
def test_the_scanner_finds_what_a_tree_does(kind):
    """The same threshold, bit for bit; the gain of a tree is one per unit of weight."""
    scanned = Scanned(kind)
    assert scanned.scan() == 0
    name = ("gini", "entropy", "misclassification", "squared_error")[kind]
    y = scanned.labels if kind < 3 else scanned.y
    grown = tree.grow(scanned.x[:, None], y, criterion=name, max_depth=1)
    assert grown.threshold[0] == scanned.split.threshold
    assert grown.n_samples[grown.left[0]] == scanned.split.n_left
    assert grown.gain[0] * 40 == pytest.approx(scanned.split.gain)


def test_smo_ends_early():
    assert Machine(max_steps=1).solve() == 1
    assert Machine(fails_at=4).solve() == CALLBACK
    stop = PROCEED(lambda context, report: 0)
    assert Machine(tol=1e-300, proceed=stop).solve() in (2, 3)


def test_smo_of_twice_as_many_variables():
    machine = Machine()
    n, C = 40, 1.0
    machine.arrays = {
        "diagonal": np.ones(n),
        "linear": -X[:, 0].copy(),
        "lower": np.repeat([0.0, -C], n),
        "upper": np.repeat([C, 0.0], n),
    }
    machine.problem = Problem(n, 2 * n, n, *map(at, machine.arrays.values()), 0.0)
    machine.a = np.repeat([0.25, -0.25], n)
    machine.state = State(at(machine.a), at(machine.gradient))
    assert machine.solve() == 0
    np.testing.assert_allclose([machine.a[:n].sum(), machine.a[n:].sum()], [10.0, -10.0])
    beta = machine.a[:n] + machine.a[n:]
    np.testing.assert_allclose(machine.gradient, machine.K @ beta - X[:, 0], atol=1e-9)


@pytest.mark.parametrize("part", ["source", "problem", "options", "state", "report"])
def test_smo_refuses_null(part):
    assert Machine().solve(**{part: None}) == BAD


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        *(("problem", name, None) for name in ("diagonal", "linear", "lower", "upper")),
        *(("problem", name, value) for name in ("n_points", "n_variables", "split") for value in (0, -1)),
        ("problem", "n_variables", 39), ("problem", "split", 41), ("problem", "kink", -1.0),
        ("problem", "kink", np.nan),
        ("options", "tol", 0.0), ("options", "tol", np.nan), ("options", "max_steps", -1), ("options", "n_threads", 0),
        ("state", "a", None), ("state", "gradient", None), ("source", "fill", FILL()),
    ],
)  # fmt: skip
def test_smo_refuses(part, name, value):
    machine = Machine()
    setattr(getattr(machine, part), name, value)
    assert machine.solve() == BAD


def test_smo_refuses_a_start_outside_of_its_bounds():
    for wrong in (-2.0, 2.0, np.nan):
        machine = Machine()
        machine.a[3] = wrong
        assert machine.solve() == BAD


# ---- trees --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "call"), [(np.float64, kr_presort), (np.float32, kr_presort_f)])
@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_presort(dtype, call, n):
    x = rng.normal(size=n).round(1).astype(dtype)
    x[::5] = np.nan
    order, known = np.empty(n, dtype=np.intp), c_ssize_t(-1)
    assert call(at(x), n, at(order), byref(known)) == 0
    assert known.value == np.isfinite(x).sum()
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
    if n:
        assert call(None, n, at(order), byref(known)) == call(at(x), n, None, byref(known)) == BAD
    assert call(None, 0, None, byref(known)) == known.value * 0 == 0
    assert call(at(x), n, at(order), None) == call(at(x), -1, at(order), byref(known)) == BAD
    assert call(at(x), 1 << 31, at(order), byref(known)) == BAD


class Scanned:
    """A column with a hole, its classes and targets."""

    def __init__(self, kind=0, loss=None, weights=None):
        self.x, self.labels = X[:, 0].copy(), (X[:, 0] > 0.3).astype(np.intp)
        self.x[5] = np.nan
        self.y = np.abs(X[:, 1])
        self.order, known = np.empty(40, dtype=np.intp), c_ssize_t()
        assert kr_presort(at(self.x), 40, at(self.order), byref(known)) == 0
        of_classes = kind not in (3, 4)
        self.column = Column(
            40, at(self.x), at(self.order), known, at(self.labels) if of_classes else None, 2,
            None if of_classes else at(self.y), at(weights), 1,
        )  # fmt: skip
        self.criterion, self.split = Criterion(kind, None, LOSS() if loss is None else LOSS(loss)), Split()

    def scan(self):
        return kr_scan_column(byref(self.column), byref(self.criterion), byref(self.split))


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_scan(kind, weighted):
    weights = rng.random(40) + 0.5 if weighted else None
    scanned = Scanned(kind, weights=weights)
    assert scanned.scan() == 0
    assert scanned.split.gain > 0
    left = scanned.x <= scanned.split.threshold
    if scanned.split.missing_left:
        left |= np.isnan(scanned.x)
    assert left.sum() == scanned.split.n_left
    if kind < 3:
        np.testing.assert_array_equal(scanned.labels[~np.isnan(scanned.x)], ~left[~np.isnan(scanned.x)])


def test_scan_by_a_criterion_of_the_caller():
    def loss(state, weights, n):
        w = np.ctypeslib.as_array(weights, (n,))
        return float(w.sum() - (w**2).sum() / w.sum()) if w.sum() else 0.0

    own, gini = Scanned(5, loss), Scanned(0)
    assert own.scan() == gini.scan() == 0
    assert own.split.threshold == gini.split.threshold
    assert own.split.gain == pytest.approx(gini.split.gain)
    assert Scanned(5).scan() == BAD  # without its function


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 0), ("n", -1), ("n", 1 << 31), ("x", None), ("order", None), ("n_known", -1), ("n_known", 41),
        ("labels", None), ("n_classes", 0), ("n_classes", 1 << 31), ("n_classes", 1), ("min_leaf", 0),
    ],
)  # fmt: skip
def test_scan_refuses(name, value):
    scanned = Scanned()
    setattr(scanned.column, name, value)
    assert scanned.scan() == BAD


@pytest.mark.parametrize(
    ("n", "n_classes", "status"),
    [
        ((1 << 20) - 1, 2047, 0), ((1 << 20) - 1, 2048, 0), ((1 << 20) - 1, 2049, BAD), (1 << 20, 2047, BAD),
        (1 << 20, 1024, 0), (1 << 20, 1025, BAD), (40, 3 << 24, BAD),
    ],
)  # fmt: skip
def test_scan_takes_what_fits_31_bits(n, n_classes, status):
    """The limit that the documentation states: n times the least power of 2 that is not below n_classes, below 2³¹."""
    power = 1 << (n_classes - 1).bit_length()
    assert (n * power < 1 << 31) == (status == 0)
    scanned = Scanned()
    x, order, labels = np.arange(n, dtype=float), np.arange(n), np.zeros(n, dtype=np.intp)
    labels[n // 2 :] = n_classes - 1
    scanned.column = Column(n, at(x), at(order), n, at(labels), n_classes, None, None, 1)
    assert scanned.scan() == status
    if status == 0:
        assert scanned.split.n_left == n // 2
        assert scanned.split.threshold == n // 2 - 0.5


def test_scan_refuses_more():
    assert kr_scan_column(None, byref(Criterion()), byref(Split())) == BAD
    assert kr_scan_column(byref(Scanned().column), None, byref(Split())) == BAD
    assert kr_scan_column(byref(Scanned().column), byref(Criterion()), None) == BAD
    for kind in (-1, 6):
        assert Scanned(kind).scan() == BAD
    of_targets = Scanned(3)
    of_targets.column.y = None
    assert of_targets.scan() == BAD
    for rows in (-1, 40, 1 << 40):
        scanned = Scanned()
        scanned.order[7] = rows
        assert scanned.scan() == BAD
    for label in (-1, 2, 1 << 40):
        scanned = Scanned()
        scanned.labels[7] = label
        assert scanned.scan() == BAD


class Walked:
    """A tree that was grown, as arrays of C."""

    def __init__(self):
        self.grown = tree.grow(X, X[:, 0] * X[:, 1] > 0, max_depth=4)
        self.arrays = {
            "feature": np.maximum(self.grown.feature, 0).astype(np.intp),
            "threshold": self.grown.threshold.astype(float),
            "left": self.grown.left.astype(np.intp),
            "right": self.grown.right.astype(np.intp),
        }
        self.tree = Tree(len(self.grown.left), 3, *map(at, self.arrays.values()), None)
        self.leaves = np.full(40, -1, dtype=np.intp)

    def apply(self, x=X, n=40, stride=3, n_threads=1):
        return kr_tree_apply(byref(self.tree), at(x), n, stride, at(self.leaves), n_threads)


@pytest.mark.parametrize("n_threads", [1, 2, INT_MAX])
def test_apply(n_threads):
    walked = Walked()
    assert walked.apply(n_threads=n_threads) == 0
    np.testing.assert_array_equal(walked.leaves, tree.apply(walked.grown, X))
    assert walked.apply(None, 0, n_threads=n_threads) == 0


def test_apply_refuses():
    walked = Walked()
    assert walked.apply(None) == walked.apply(n=-1) == walked.apply(stride=2) == walked.apply(n_threads=0) == BAD
    assert kr_tree_apply(None, at(X), 40, 3, at(walked.leaves), 1) == BAD
    assert kr_tree_apply(byref(walked.tree), at(X), 40, 3, None, 1) == BAD
    for name, value in (
        ("n_nodes", 0), ("n_features", 0), ("feature", None), ("threshold", None), ("left", None), ("right", None),
    ):  # fmt: skip
        walked = Walked()
        setattr(walked.tree, name, value)
        assert walked.apply() == BAD, name
    for name, value in (("left", 0), ("left", -1), ("right", 1 << 40), ("feature", 3), ("feature", -1)):
        walked = Walked()
        walked.arrays[name][0] = value
        assert walked.apply() == BAD, (name, value)
