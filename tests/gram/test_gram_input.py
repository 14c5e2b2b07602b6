"""Bad input: an error that names the argument and the place, before anything is computed."""

import re
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from kernelrules import check, kernels

X = np.arange(12.0).reshape(4, 3)


def with_value(value, dtype=np.float64):
    bad = X.astype(dtype)
    bad[2, 1] = value
    bad[3, 0] = value
    return bad


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_matrix])
def test_nonfinite_values_are_named(value, dtype, form):
    place = re.escape(f"{value} at row 2, column 1")
    with pytest.raises(ValueError, match=f"X holds {place}"):
        kernels.gram(form(with_value(value, dtype)))
    with pytest.raises(ValueError, match=f"Z holds {place}"):
        kernels.gram(X, form(with_value(value, dtype)))
    with pytest.raises(ValueError, match=f"X holds {place}"):
        kernels.diagonal(form(with_value(value, dtype)))
    with pytest.raises(ValueError, match=f"X holds {place}"):
        kernels.nystroem(form(with_value(value, dtype)))


def test_nan_beyond_the_first_rows_is_found():
    tall = np.zeros((10000, 2))
    tall[9000, 1] = np.nan
    with pytest.raises(ValueError, match="row 9000, column 1"):
        kernels.gram(tall, X[:, :2])


def test_large_finite_values_are_not_mistaken_for_infinite():
    huge = np.full((3, 3), 1e308)
    assert (kernels.gram(huge, kernel=kernels.RBF(1.0)) == 1).all()
    with pytest.raises(ValueError, match=r"variance of X is (inf|nan)"):
        kernels.gram(np.array([[1e308], [-1e308]]), kernel=kernels.RBF("scale"))
    with pytest.raises(ValueError, match="variance of X is"):
        kernels.gram(np.array([[1e-160], [0.0]]), kernel=kernels.RBF("scale"))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros(3), r"X must be two-dimensional, got shape \(3,\).*reshape"),
        (np.float64(1.0), r"X must be two-dimensional, got shape \(\)"),
        (np.zeros((2, 2, 2)), r"X must be two-dimensional, got shape \(2, 2, 2\)"),
        (np.zeros((3, 0)), "X has no columns"),
        ([[1.0, 2.0], [3.0]], "X is not a rectangular array"),
        (np.array([[1, "a"]], dtype=object), "X must hold real numbers, got dtype object"),
        (np.array([[1.0, 2.0]], dtype=object), "X must hold real numbers, got dtype object"),
        (np.array([[1j]]), "X must hold real numbers, got dtype complex128"),
        (np.array([["a"]]), "X must hold real numbers, got dtype <U1"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "X must hold real numbers"),
        (sparse.csr_array(np.array([[1j]])), "X must hold real numbers, got dtype complex128"),
        (np.ma.masked_array(X, mask=X == 5), r"X has masked entries, first at \(1, 2\)"),
        (None, "X must"),
        ("text", "X must"),
    ],
)
def test_what_is_not_a_matrix_of_numbers(bad, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kernels.gram(bad)
    with pytest.raises((TypeError, ValueError), match=message):
        kernels.diagonal(bad, kernels.Linear())


def test_dtype_errors_are_of_both_kinds():
    for kind in (TypeError, ValueError, check.DtypeError):
        with pytest.raises(kind, match="complex"):
            kernels.gram(X + 1j)


def test_widths_must_match():
    for Z in (X[:, :2], sparse.csr_array(X[:, :2])):
        with pytest.raises(ValueError, match="Z has 2 columns but X has 3"):
            kernels.gram(X, Z)
    phi = kernels.feature_map(kernels.Linear(), 2)
    with pytest.raises(ValueError, match="X has 3 columns but the map was made for 2"):
        phi.transform(X)


@pytest.mark.parametrize("kind", [kernels.RBF, kernels.Laplacian, kernels.Sigmoid, lambda g: kernels.Polynomial(3, g)])
def test_gamma_is_refused(kind):
    for bad in (0, -1.0, np.nan, np.inf, 10**400, "large", None, True, "1.0", [1.0], 1j):
        with pytest.raises((ValueError, TypeError), match="gamma"):
            kind(bad)


def test_other_parameters_are_refused():
    for bad in (-1, 2.5, np.nan, "3", None, 10**9):
        with pytest.raises((ValueError, TypeError), match="degree"):
            kernels.Polynomial(degree=bad)
    for bad in (np.nan, np.inf, "1", None):
        with pytest.raises((ValueError, TypeError), match="coef0"):
            kernels.Polynomial(coef0=bad)
        with pytest.raises((ValueError, TypeError), match="coef0"):
            kernels.Sigmoid(coef0=bad)
    for bad in ("rbf", kernels.RBF, kernels.Kernel(), None, 3):
        with pytest.raises(TypeError, match="kernel must be one of"):
            kernels.gram(X, kernel=bad)
    for bad in (0, -2, 1.5, "two"):
        with pytest.raises((ValueError, TypeError), match="n_threads"):
            kernels.gram(X, n_threads=bad)
    for bad in (int, np.float16, np.complex128, "text"):
        with pytest.raises(TypeError, match="dtype must be float32 or float64"):
            kernels.gram(X, dtype=bad)
    with pytest.raises(TypeError, match="callback must be callable"):
        kernels.gram(X, callback=3)


def test_kernels_are_frozen_values():
    a, b = kernels.RBF(2), kernels.RBF(np.float32(2))
    assert a == b
    assert hash(a) == hash(b)
    assert repr(a) == "RBF(gamma=2.0)"
    assert repr(kernels.Linear()) == "Linear()"
    assert isinstance(kernels.Polynomial(np.int64(2)).degree, int)
    with pytest.raises(AttributeError):
        a.gamma = 3.0


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty((4, 3)), r"out has shape \(4, 3\) but the result has shape \(4, 4\)"),
        (np.empty((4, 4), dtype=np.float32), "out has dtype float32 but the result has dtype float64"),
        (np.empty((4, 4), dtype=">f8"), "out has dtype >f8"),
        (np.empty((4, 4, 1)), "out has shape"),
        ([[0.0] * 4] * 4, "out must be a numpy array"),
        (np.empty((8, 8))[::2, ::2], "contiguous rows or contiguous columns"),
        (np.broadcast_to(np.zeros(4), (4, 4)), "out is read-only"),
        (np.lib.stride_tricks.as_strided(np.zeros(8), (4, 4), (8, 8), writeable=True), "contiguous"),
        (np.frombuffer(bytearray(129), dtype=np.float64, count=16, offset=1).reshape(4, 4), "not aligned"),
    ],
)
def test_out_is_refused(out, message):
    with pytest.raises((ValueError, TypeError), match=message):
        kernels.gram(X, out=out)


@pytest.mark.parametrize("kernel", [kernels.RBF(1.0), kernels.Precomputed()])
def test_out_must_not_overlap_the_input(kernel):
    square = np.arange(16.0).reshape(4, 4)
    with pytest.raises(ValueError, match="out overlaps the input"):
        kernels.gram(square, kernel=kernel, out=square)
    buffer = np.arange(64.0)
    data, out = buffer[:16].reshape(4, 4), buffer[12:28].reshape(4, 4)
    with pytest.raises(ValueError, match="out overlaps the input"):
        kernels.gram(data, kernel=kernel, out=out)
    with pytest.raises(ValueError, match="out overlaps the input"):
        kernels.gram(np.ones((4, 4)), data, kernels.RBF(1.0), out=out)
    s = sparse.csr_array(np.ones((4, 4)))
    with pytest.raises(ValueError, match="out overlaps the input"):
        kernels.gram(s, kernel=kernel, out=s.data.reshape(4, 4))
    np.testing.assert_array_equal(square, np.arange(16.0).reshape(4, 4))


def test_matrix_that_cannot_fit_is_refused_before_it_is_allocated():
    many = np.zeros((3_000_000, 1))
    with pytest.raises(MemoryError, match=r"3000000 × 3000000 float64\) would take 72000\.00 GB; .* GB are free"):
        kernels.gram(many)
    with pytest.raises(MemoryError, match="36000"):
        kernels.gram(sparse.csr_array(many), dtype=np.float32)
    with pytest.raises(MemoryError, match="the Gram matrix"):
        kernels.gram(sparse.csr_array((10, 2**36)), kernel=kernels.Precomputed())
    with pytest.raises(MemoryError, match="monomials"):
        kernels.feature_map(kernels.Polynomial(degree=8), 10_000)
    phi = kernels.random_fourier(kernels.RBF(1.0), 1, 10_000, rng=0)
    with pytest.raises(MemoryError, match="mapped data"):
        phi.transform(many)


def test_overflowing_products_are_refused():
    big = np.array([[1e200, 1e200], [1e200, -1e200]])
    with pytest.raises(ValueError, match=r"could overflow float64.*1e\+200"):
        kernels.gram(big, kernel=kernels.Linear())
    with pytest.raises(ValueError, match="use dtype=float64"):
        kernels.gram((big / 1e180).astype(np.float32), kernel=kernels.Sigmoid(0.1))
    with pytest.raises(ValueError, match="could overflow float64"):
        kernels.gram(sparse.csr_array(big), kernel=kernels.RBF(1.0))
    for data in (np.array([[1e308, 1e308], [1e308, 0.5e308]]), np.array([[1e308], [0.9e308]])):
        with pytest.raises(ValueError, match="could overflow float64"):
            kernels.gram(sparse.csr_array(data), kernel=kernels.Laplacian(1.0))
    for kernel in (kernels.Polynomial(2, 1e40, 1.0), kernels.Sigmoid(1e40, 1.0), kernels.Polynomial(2, 1.0, 1e39)):
        with pytest.raises(ValueError, match="does not fit float32"):
            kernels.gram(np.eye(2, dtype=np.float32), kernel=kernel)
    with pytest.raises(ValueError, match="could overflow"):
        kernels.diagonal(big, kernels.Linear())
    with pytest.raises(ValueError, match="projections of X overflow float32"):
        kernels.random_fourier(kernels.RBF(1e80), 2, 4, rng=0).transform(np.eye(2, dtype=np.float32))
    with pytest.raises(ValueError, match="weights of the feature map"):
        kernels.feature_map(kernels.Polynomial(4, 1.0, 1e300), 3)
    with pytest.raises(ValueError, match=r"X does not fit float32 at row 0, column 0: .*1e\+200"):
        kernels.gram(big, dtype=np.float32)


def test_extreme_gamma_keeps_duplicates_at_one():
    for kind in (kernels.RBF, kernels.Laplacian):
        assert (kernels.gram(np.full((2, 1), 1e308), kernel=kind(1.7e308)) == 1).all()
        assert (kernels.gram(np.full((2, 1), 3e38, dtype=np.float32), kernel=kind(1e300)) == 1).all()


def test_out_beside_the_input_in_one_array():
    base = np.ones((4, 12))
    kernels.gram(base[:, :3], kernel=kernels.Linear(), out=base[:, 6:10])
    np.testing.assert_array_equal(base[:, 6:10], 3)
    with pytest.raises(ValueError, match="overlaps"):
        kernels.gram(base[:, :3], kernel=kernels.Linear(), out=base[:, 2:6])


def broken_csr(**changes):
    s = sparse.csr_array(X)
    for name, value in changes.items():
        setattr(s, name, np.asarray(value))
    return s


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 7]}, "column 7 in row 3"),
        ({"indices": [0, -1, 2, 0, 1, 2, 0, 1, 2, 0, 1]}, "column -1 in row 0"),
        ({"indptr": [0, 2, 1, 8, 11]}, "indptr does not ascend"),
        ({"indptr": [1, 2, 5, 8, 11]}, "indptr does not ascend from 0"),
        ({"indptr": [0, 2, 5, 8, 99]}, "points past the entries"),
        ({"indptr": [0, 2, 5]}, "indptr"),
        ({"indptr": [0.0, 2, 5, 8, 11]}, "whole numbers"),
        ({"indices": [0.5, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1]}, "whole numbers"),
        ({"indptr": np.array([0, 5, 2, 8, 11], dtype=np.uint64)}, "indptr does not ascend"),
        ({"data": np.ones((1, 11))}, "flat"),
    ],
)
def test_broken_csr_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        kernels.gram(broken_csr(**changes))


def test_input_is_never_changed():
    s = broken_csr(indices=[2, 0, 1, 0, 0, 2, 0, 1, 2, 0, 1])
    before = s.data.copy(), s.indices.copy(), s.indptr.copy()
    kernels.gram(s, kernel=kernels.Linear())
    for now, then in zip((s.data, s.indices, s.indptr), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(
    "same", [X.astype(int), X.astype(np.int8), X.astype(">f8"), X.tolist(), np.matrix(X), np.ma.masked_array(X),
             X.astype(np.longdouble), sparse.coo_array(X), sparse.csc_array(X), sparse.lil_matrix(X)]
)  # fmt: skip
def test_other_forms_of_the_same_numbers(same):
    np.testing.assert_allclose(kernels.gram(same, kernel=kernels.RBF(0.1)), kernels.gram(X, kernel=kernels.RBF(0.1)))


def test_booleans_count_as_numbers():
    np.testing.assert_array_equal(kernels.gram(X > 4, kernel=kernels.Linear()), (X > 4.0) @ (X > 4).T.astype(float))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"a": [1.0, 2.0], "b": [3, 4], "c": [True, False]})
    expected = kernels.gram(np.array([[1.0, 3, 1], [2, 4, 0]]), kernel=kernels.Linear())
    np.testing.assert_array_equal(kernels.gram(frame, kernel=kernels.Linear()), expected)
    with pytest.raises(TypeError, match="column 'colour' of X does not hold numbers"):
        kernels.gram(frames.DataFrame({"a": [1.0, 2.0], "colour": ["red", "blue"]}))
    with pytest.raises(ValueError, match="X holds nan at row 1, column 0"):
        kernels.gram(frames.DataFrame({"a": [1.0, None], "b": [1.0, 2.0]}))


def test_pandas_columns_that_are_not_numbers():
    pandas = pytest.importorskip("pandas")
    whole = pandas.array([1, 2], dtype="Int64")
    for bad in (["1", "2"], pandas.Categorical(["1", "2"]), pandas.to_datetime(["2020-01-01", "2021-01-01"]),
                pandas.to_timedelta([1, 2]), [1j, 2j]):  # fmt: skip
        with pytest.raises(TypeError, match="column 'b' of X does not hold numbers"):
            kernels.gram(pandas.DataFrame({"a": whole, "b": bad}))
    twice = pandas.concat([pandas.Series(whole), pandas.Series([0.5, 1.5])], axis=1)
    twice.columns = ["a", "a"]
    np.testing.assert_array_equal(kernels.gram(twice, kernel=kernels.Linear()), [[1.25, 2.75], [2.75, 6.25]])


def test_nullable_pandas_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": pandas.array([1, 2], dtype="Int64"), "b": [0.5, 1.5]})
    np.testing.assert_array_equal(kernels.gram(frame, kernel=kernels.Linear()), [[1.25, 2.75], [2.75, 6.25]])
    frame.loc[1, "a"] = pandas.NA
    with pytest.raises(ValueError, match="X holds nan at row 1, column 0"):
        kernels.gram(frame)


def test_feature_maps_refuse():
    with pytest.raises(ValueError, match="no finite exact feature map"):
        kernels.feature_map(kernels.RBF(1.0), 3)
    with pytest.raises(ValueError, match="coef0 < 0"):
        kernels.feature_map(kernels.Polynomial(coef0=-1.0), 3)
    with pytest.raises(ValueError, match='"scale" needs data'):
        kernels.feature_map(kernels.Polynomial(gamma="scale"), 3)
    with pytest.raises(ValueError, match='"scale" needs data'):
        kernels.random_fourier(kernels.RBF(), 3)
    with pytest.raises(ValueError, match="need RBF or Laplacian"):
        kernels.random_fourier(kernels.Linear(), 3)
    with pytest.raises(ValueError, match="n_features must be at least 1"):
        kernels.feature_map(kernels.Linear(), 0)
    with pytest.raises(ValueError, match="n_components must be at least 1"):
        kernels.nystroem(X, kernels.RBF(1.0), 0)
    with pytest.raises(ValueError, match="no rows"):
        kernels.nystroem(X[:0], kernels.RBF(1.0), 2)
    with pytest.raises(ValueError, match="no positive eigenvalue"):
        kernels.nystroem(np.zeros((3, 2)), kernels.Linear(), 2)
    with pytest.raises(ValueError, match="square"):
        kernels.nystroem(X, kernels.Precomputed(), 2)
    with pytest.raises((TypeError, ValueError), match="rng must be"):
        kernels.nystroem(X, kernels.RBF(1.0), 2, rng="seed")


def test_simd_level_is_refused_by_name():
    code = "import kernelrules"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"KERNELRULES_SIMD": "fast"}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "KERNELRULES_SIMD is 'fast'" in done.stderr
