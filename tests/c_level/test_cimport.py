"""Other compiled code calls the Gram functions, the solver and the split scanner: an outside package built against the
installed one, from Cython and from C; numba, cffi and ctypes by address."""

import ctypes
import os
import pickle
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

from kernelrules import cython_api, kernels, svm, tree

PROJECT = Path(__file__).with_name("cimport_project")

capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

X = np.random.default_rng(0).normal(size=(300, 5))
KERNEL = np.dtype([("kind", np.intc), ("degree", np.intc), ("gamma", np.float64), ("coef0", np.float64)], align=True)


def address(name):
    capsule = cython_api.__pyx_capi__[name]
    return capsule_pointer(capsule, capsule_name(capsule))


# The outside package in a process of its own, which answers expressions: importing NumPy for each would take longer.
ANSWERS = """
import ast, pickle, sys, traceback
import numpy as np
from outside import cython_caller, c_caller, own_stump, string_svm
for line in sys.stdin:
    try:
        answer = False, eval(ast.literal_eval(line))
    except Exception:
        answer = True, traceback.format_exc()
    print(pickle.dumps(answer).hex(), flush=True)
"""


def readme_as_a_function():
    """The README's lines of Cython: its cimport, and what follows in a function with the names that it uses."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    cimport, rest = re.search(r"^```cython\n(.*?\n)\n(.*?)^```", text, flags=re.M | re.S).groups()
    start = "def readme(const double[:, ::1] X, double[:, ::1] K, Py_ssize_t n, Py_ssize_t p, int n_threads):\n"
    return "\n\n" + cimport + "\n\n" + start + textwrap.indent(rest, "    ") + "    return status\n"


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """The outside package, built in a copy of its folder and imported from there."""
    folder = tmp_path_factory.mktemp("outside_project") / "project"
    shutil.copytree(PROJECT, folder)
    with open(folder / "outside" / "cython_caller.pyx", "a", encoding="utf-8") as lines:
        lines.write(readme_as_a_function())
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder,
        env=os.environ | {"CFLAGS": "-O0 -g0"},  # it is to link and to run; -O3 takes four times as long
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

    with subprocess.Popen(
        [sys.executable, "-c", ANSWERS], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def call(expression):
            process.stdin.write(f"{expression!r}\n")
            process.stdin.flush()
            raised, value = pickle.loads(bytes.fromhex(process.stdout.readline()))
            assert not raised, value
            return value

        yield call
        process.stdin.close()


def test_cimported_functions(outside):
    compiled, installed = outside("cython_caller.versions()")
    assert compiled == installed == 3
    data = "np.random.default_rng(0).normal(size=(300, 5))"
    for threads in (1, 2):
        got = outside(f"cython_caller.rbf({data}, 0.3, {threads}).tolist()")
        np.testing.assert_array_equal(got, kernels.gram(X, kernel=kernels.RBF(0.3)))
    got = outside(f"cython_caller.cross({data}.astype('f'), {data}[:9].astype('f'), 1, 2, 0.5, 1.0).tolist()")
    x = X.astype(np.float32)
    np.testing.assert_array_equal(got, kernels.gram(x, x[:9], kernels.Polynomial(2, 0.5, 1.0)))


def test_the_readme_compiles_and_computes(outside):
    X, K = "np.random.default_rng(0).normal(size=(300, 5))", "np.empty((300, 300))"
    status, got = outside(f"(lambda K: (cython_caller.readme({X}, K, 300, 5, 2), K.tolist()))({K})")
    assert status == 0
    np.testing.assert_array_equal(got, kernels.gram(eval(X, {"np": np}), kernel=kernels.RBF(0.5)))


def test_own_row_source(outside):
    rows, status = outside("(lambda r: (r[0].tolist(), r[1]))(cython_caller.rows_of_own_kernel(4, np.array([2, 0])))")
    assert status == 0
    assert rows == [[1, 2, 3, 3], [1, 1, 1, 1]]
    assert outside("cython_caller.rows_of_own_kernel(4, np.array([4]))[1]") == -3


def test_bad_arguments_give_a_status(outside):
    answers = outside("cython_caller.refused()")
    assert all(answers.values()), answers


def test_c_through_the_header(outside):
    line = np.arange(4.0)[:, None]
    np.testing.assert_array_equal(outside("c_caller.gram_of_line(4, 0.5)"), kernels.gram(line, kernel=kernels.RBF(0.5)))
    assert outside("c_caller.gram_of_line(0, 0.5)") == []
    with pytest.raises(AssertionError, match="an argument is out of range"):
        outside("c_caller.gram_of_line(2, -1.0)")


WORDS = [a + b + c for a in ("ka", "to", "mi") for b in ("ba", "na", "ru") for c in ("ka", "lo", "shi", "na")]
SIGNS = [1 if "ba" in word or word.endswith("shi") else -1 for word in WORDS]


def spectrum(u, v, length=2):
    pieces = [[w[i : i + length] for i in range(len(w) - length + 1)] for w in (u, v)]
    return sum(a == b for a in pieces[0] for b in pieces[1])


def word_matrix():
    K = np.array([[spectrum(u, v) for v in WORDS] for u in WORDS], dtype=float)
    return K / np.sqrt(np.outer(np.diag(K), np.diag(K)))


@pytest.mark.parametrize("cache_bytes", [0, 1])
def test_svm_with_a_string_kernel(outside, cache_bytes):
    """A row source from Cython gives the machine that svc finds on the whole matrix; with room for two rows too."""
    got = outside(f"string_svm.classify({WORDS!r}, {SIGNS!r}, 2.0, cache_bytes={cache_bytes})")
    K = word_matrix()
    model = svm.svc(K, SIGNS, C=2.0, kernel=kernels.Precomputed(), tol=1e-6)
    a = np.array(got["coefficients"])
    np.testing.assert_allclose(got["objective"], -model.certificate.dual, rtol=1e-6)
    np.testing.assert_allclose(0.5 * a @ K @ a - np.abs(a).sum(), got["objective"], rtol=1e-12)
    np.testing.assert_allclose(K @ a + got["offset"], svm.decision(model, K), atol=1e-5)
    assert abs(a.sum()) < 1e-12
    assert got["violation"] <= 1e-6
    assert got["calls"] <= got["rows"]


def test_svm_from_c(outside):
    slope, offset, questions = outside("c_caller.svm_of_line(20, 8, 100.0)")
    np.testing.assert_allclose([slope, offset], [2.0, -15.0], atol=1e-6)  # 7 at -1, 8 at +1
    assert questions >= 1
    with pytest.raises(AssertionError, match="an argument is out of range"):
        outside("c_caller.svm_of_line(0, 0, 1.0)")


STUMP = (
    "np.where(np.arange(240).reshape(60, 4) % 7 == 0, np.nan, np.random.default_rng(3).normal(size=(60, 4)).round(1))"
)
LABELS = "(np.arange(60) % 5 < 2).astype(int)"


def test_rows_in_order(outside):
    x = np.array([2.0, np.nan, -0.0, 5.0, 0.0, -1.0])
    for kind in ("float64", "float32"):
        got = outside(f"own_stump.order(np.array([2.0, np.nan, -0.0, 5.0, 0.0, -1.0], dtype={kind!r}))")
        assert got == (np.argsort(x, kind="stable").tolist(), 5, 0)


def test_stump_with_a_criterion_of_its_own(outside):
    X, y = eval(STUMP, {"np": np}), eval(LABELS, {"np": np})
    got = outside(f"own_stump.grow({STUMP}, {LABELS})")
    grown = tree.grow(X, y, criterion=lambda P: 2 * np.sqrt(P[:, 0] * P[:, 1]), max_depth=1)
    np.testing.assert_allclose(got["gain"] / 60, grown.gain[0], rtol=1e-12)
    assert (got["feature"], got["threshold"]) == (grown.feature[0], grown.threshold[0])
    assert got["missing_left"] == grown.missing_left[0]
    assert got["leaves"] == tree.apply(grown, X).tolist()
    assert got["calls"] > 100


@pytest.mark.parametrize("min_leaf", [1, 12])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kind", "criterion"),
    list(enumerate(["gini", "entropy", "misclassification", "squared_error", "poisson"])),
    ids=["gini", "entropy", "misclassification", "squared_error", "poisson"],
)
def test_stump_is_that_of_grow(outside, kind, criterion, weighted, min_leaf):
    X, labels = eval(STUMP, {"np": np}), eval(LABELS, {"np": np})
    weights = "1.0 + np.arange(60) % 3" if weighted else "None"
    got = outside(f"own_stump.grow({STUMP}, {LABELS}, {kind}, {min_leaf}, np.arange(60) % 11, {weights})")
    y, w = labels if kind < 3 else np.arange(60) % 11, eval(weights, {"np": np})
    grown = tree.grow(X, y, criterion=criterion, max_depth=1, min_leaf=min_leaf, sample_weight=w)
    np.testing.assert_allclose(got["gain"] / grown.weight[0], grown.gain[0], rtol=1e-12)
    assert (got["feature"], got["threshold"]) == (grown.feature[0], grown.threshold[0])
    assert got["n_left"] == grown.n_samples[1]
    assert got["leaves"] == tree.apply(grown, X).tolist()


def test_trees_answer_bad_arguments_by_a_status(outside):
    answers = outside("own_stump.refused()")
    assert all(answers.values()), answers


def test_header_compiles_as_plain_c_and_c_plus_plus(tmp_path):
    import kernelrules

    for suffix, language in ((".c", "c"), (".cpp", "c++")):
        source = tmp_path / f"plain{suffix}"
        source.write_text(
            '#include "kernelrules/api.h"\nint main(void) { return KR_OK + sizeof(kr_row_source) * 0; }\n'
        )
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            pytest.skip("no C compiler on the path")
        command = [compiler, "-x", language, "-Wall", "-Werror", "-fsyntax-only", "-I", kernelrules.get_include()]
        subprocess.run([*command, str(source)], check=True)


def test_ctypes_by_address():
    pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
    kr_gram = ctypes.CFUNCTYPE(
        ctypes.c_int, pointer, size, size, pointer, size, size, size, pointer, pointer, size, ctypes.c_int
    )(address("kr_gram"))
    kernel = np.array([(4, 0, 0.1, 0.2)], dtype=KERNEL)
    out = np.empty((300, 300))
    status = kr_gram(X.ctypes.data, 300, 5, None, 0, 0, 5, kernel.ctypes.data, out.ctypes.data, 300, 2)
    assert status == 0
    np.testing.assert_array_equal(out, kernels.gram(X, kernel=kernels.Sigmoid(0.1, 0.2)))
    text = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int)(address("kr_status_text"))
    assert text(-2) == b"an argument is out of range"
    assert text(12345) == b"unknown status"


def test_cffi_by_address():
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    ffi.cdef("typedef struct { int kind; int degree; double gamma; double coef0; } kr_kernel;")
    kr_gram_f = ffi.cast(
        "int (*)(const float *, ssize_t, ssize_t, const float *, ssize_t, ssize_t, ssize_t, const kr_kernel *, float *,"
        " ssize_t, int)",
        address("kr_gram_f"),
    )
    x, out = X.astype(np.float32), np.empty((300, 7), dtype=np.float32)
    kernel = ffi.new("kr_kernel *", {"kind": 3, "gamma": 0.4})
    at = lambda a: ffi.cast("float *", a.ctypes.data)  # noqa: E731
    assert kr_gram_f(at(x), 300, 5, at(x[:7]), 7, 5, 5, kernel, at(out), 7, 1) == 0
    np.testing.assert_array_equal(out, kernels.gram(x, x[:7].copy(), kernels.Laplacian(0.4)))


def test_numba_by_address():
    numba = pytest.importorskip("numba")
    from numba.extending import get_cython_function_address

    at = get_cython_function_address("kernelrules.cython_api", "kr_gram")
    assert at == address("kr_gram")
    pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
    kr_gram = ctypes.CFUNCTYPE(
        ctypes.c_int, pointer, size, size, pointer, size, size, size, pointer, pointer, size, ctypes.c_int
    )(at)

    @numba.njit
    def trace(x, kernel):
        n, p = x.shape
        out = np.empty((n, n))
        status = kr_gram(x.ctypes.data, n, p, x.ctypes.data, n, p, p, kernel.ctypes.data, out.ctypes.data, n, 1)
        return status, np.trace(out)

    status, total = trace(X, np.array([(0, 0, 1.0, 0.0)], dtype=KERNEL))
    assert status == 0
    np.testing.assert_allclose(total, (X**2).sum(), rtol=1e-12)
