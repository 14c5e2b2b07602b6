"""What the fuzz tests pass to public functions: for every kind of argument good values and hostile ones.

A kind is a pair of functions of (draw, case): `good` gives what a careful user may pass, in any type and layout that
promises to work, `bad` what a careless one does, or a program that is wrong. A case holds the sizes that the arguments
of one call have in common. Calls have at most twelve rows, so that nothing can take long.
"""

import decimal
import fractions
import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from kernelrules import kernels

MOST_ROWS = 12


@dataclass
class Case:
    """The sizes of one call, and its source of numbers."""

    n: int  # rows
    p: int  # columns
    rng: np.random.Generator
    own_matrix: bool = False  # X is a kernel matrix
    n_classes: int = 2
    has_nan: bool = False  # whether something that was drawn holds NaN


@dataclass(frozen=True)
class Kind:
    """How to draw one argument."""

    good: Any
    bad: Any


@st.composite
def cases(draw, p=None, n=None):
    """Sizes."""
    return Case(
        n=n or draw(st.integers(1, MOST_ROWS)),
        p=p or draw(st.integers(1, 4)),
        rng=np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        n_classes=draw(st.sampled_from([2, 2, 3, 1])),
    )


def pick(draw, *choices):
    return draw(st.sampled_from(choices))


# ---- numbers in arrays -------------------------------------------------------------------------------------------

SHAPES_OF_VALUES = (
    "normal",
    "normal",
    "ties",
    "constant",
    "repeats",
    "tiny",
    "huge",
    "denormal",
    "negative zero",
    "wide",
)


def numbers(draw, case, shape):
    """Finite float64 numbers, of scales from denormal to 1e150."""
    values = case.rng.normal(size=shape)
    match pick(draw, *SHAPES_OF_VALUES):
        case "ties":
            return np.round(values)
        case "constant":
            return np.full(shape, pick(draw, 0.0, 1.0, -3.5, 1e8))
        case "repeats":
            return values[case.rng.integers(max(1, shape[0] // 3), size=shape[0])] if shape[0] else values
        case "tiny":
            return values * 1e-160
        case "huge":
            return values * pick(draw, 1e30, 1e100, 1e150)
        case "denormal":
            return np.round(values * 3) * 5e-324
        case "negative zero":
            return np.where(values > 0, -0.0, 0.0)
        case "wide":
            return values * 10.0 ** case.rng.integers(-12, 12, size=shape)
    return values


TYPES = ("f8", "f8", "f8", "f4", "f2", "g", ">f8", "i8", "i4", "u1", "i1", "?")


def typed(draw, values):
    """The numbers in some real type that they fit; halves are rounded to it."""
    name = pick(draw, *TYPES)
    kind = np.dtype(name)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return np.clip(np.round(values), max(info.min, -1e9), min(info.max, 1e9)).astype(kind)
    if kind.kind == "b":
        return values > 0
    most = float(np.finfo(kind).max) if kind.itemsize < 8 else np.inf
    return np.clip(values, -most, most).astype(kind)


def laid_out(draw, a):
    """The same numbers otherwise in memory."""
    match pick(draw, "C", "C", "F", "strided", "reversed", "read-only", "offset", "list", "broadcast", "subclass"):
        case "F":
            return np.asfortranarray(a)
        case "strided":
            wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), dtype=a.dtype)
            wide[..., ::2] = a
            return wide[..., ::2]
        case "reversed":
            return np.ascontiguousarray(np.flip(a)).reshape(a.shape)[tuple(slice(None, None, -1) for _ in a.shape)]
        case "read-only":
            copy = a.copy()
            copy.flags.writeable = False
            return copy
        case "offset":
            shifted = np.frombuffer(bytearray(a.nbytes + 1), dtype=a.dtype, count=a.size, offset=1).reshape(a.shape)
            shifted[...] = a
            return shifted
        case "list":
            return a.tolist() if a.dtype.itemsize <= 8 else a
        case "broadcast":  # rows that share their memory
            return np.broadcast_to(a[:1], a.shape) if len(a) else a
        case "subclass":
            return np.ma.masked_array(a)
    return np.ascontiguousarray(a)


def sparse_form(draw, a):
    """The same numbers as a sparse array of some format, at times with long indices, unsorted, or entries in halves."""
    a = np.asarray(a)
    if a.dtype in (np.float16, np.longdouble) or not a.dtype.isnative:
        a = a.astype(np.float64)
    made = sparse.coo_array(a)
    match pick(draw, "csr", "csr", "csc", "coo", "long", "unsorted", "halves", "zeros", "lil", "dia", "bsr", "matrix"):
        case "long":
            made = made.tocsr()
            made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
        case "unsorted":
            made = made.tocsr()
            for row in range(a.shape[0]):
                part = slice(made.indptr[row], made.indptr[row + 1])
                made.indices[part], made.data[part] = made.indices[part][::-1].copy(), made.data[part][::-1].copy()
            made.has_sorted_indices = False
        case "halves":
            half = (made.data / 2).astype(made.dtype) if made.dtype.kind == "f" else made.data
            rows, columns = made.coords
            made = sparse.coo_array(
                (np.concatenate([half, half]), (np.tile(rows, 2), np.tile(columns, 2))), shape=a.shape
            )
        case "zeros":
            made = made.tocsr()
            made.data[::2] = 0
        case "matrix":
            made = sparse.csr_matrix(made)
        case "csr" | "csc" | "lil" | "dia" | "bsr" as name:
            made = made.asformat(name)
    return made


def broken_sparse(draw, case):
    """A CSR array whose own arrays contradict one another."""
    made = sparse.csr_array(np.ones((max(case.n, 2), case.p)))
    match pick(draw, "column", "negative", "past the end", "descending", "short", "NaN", "wide", "one dimension"):
        case "column":
            made.indices[0] = case.p + 7
        case "negative":
            made.indices[-1] = -2
        case "past the end":
            made.indptr[-1] += 1000
        case "descending":
            made.indptr[1] = made.indptr[-1] + 1
        case "short":
            made.data = made.data[:1]
        case "NaN":
            made.data[0] = np.nan
        case "wide":
            return sparse.csr_array(([1.0], ([0], [2**40])), shape=(made.shape[0], 2**41))
        case "one dimension":
            return sparse.coo_array(np.ones(case.n))
    return made


def hostile_array(draw, case, shape):
    """An array that is not what any function asks for, or hardly."""
    values = case.rng.normal(size=shape)
    flat = values.reshape(-1)
    match pick(
        draw, "NaN", "inf", "-inf", "1e300", "all 1e308", "all NaN", "3-d", "0-d", "1-d", "2-d", "no rows",
        "no columns",
        "object", "text", "bytes", "complex", "masked", "dates", "ragged", "more rows", "fewer rows", "more columns",
        "record", "None in it", "dict", "set", "generator", "scalar", "none", "raises", "void", "long ints",
        "strided 0",
    ):  # fmt: skip
        case "NaN":
            case.has_nan = True
            flat[case.rng.integers(max(flat.size, 1)) :] = np.nan
        case "inf":
            flat[:1] = np.inf
        case "-inf":
            flat[-1:] = -np.inf
        case "1e300":
            return values * 1e300
        case "all 1e308":
            return np.full(shape, 1e308)
        case "all NaN":
            case.has_nan = True
            return np.full(shape, np.nan)
        case "3-d":
            return values[..., None, None]
        case "0-d":
            return np.array(1.5)
        case "1-d":
            return flat
        case "2-d":
            return np.atleast_2d(values)
        case "no rows":
            return values[:0]
        case "no columns":
            return np.empty((shape[0], 0))
        case "object":
            return values.astype(object)
        case "text":
            return np.round(values, 2).astype(str)
        case "bytes":
            return np.round(values, 2).astype("S")
        case "complex":
            return values + 1j
        case "masked":
            return np.ma.masked_array(values, mask=case.rng.random(shape) < 0.5)
        case "dates":
            return np.round(values * 1000).astype("i8").astype("M8[s]")
        case "ragged":
            return [[1.0, 2.0], [1.0]]
        case "more rows":
            return np.concatenate([values, values[:1]])
        case "fewer rows":
            return values[:-1]
        case "more columns":
            return np.concatenate([values, values], axis=-1)
        case "record":
            return np.zeros(shape, dtype=[("a", "f8"), ("b", "i4")])
        case "None in it":
            mixed = values.astype(object)
            mixed.reshape(-1)[:1] = None
            case.has_nan = True
            return mixed
        case "dict":
            return {"a": [1.0, 2.0]}
        case "set":
            return {1.0, 2.0}
        case "generator":
            return (row for row in values)
        case "scalar":
            return 3.0
        case "none":
            return None
        case "raises":
            return Raises()
        case "void":
            return np.zeros(shape, dtype="V4")
        case "long ints":
            return np.full(shape, 2**63 - 1, dtype=np.int64) - np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1))
        case "strided 0":
            return np.lib.stride_tricks.as_strided(values, shape=shape, strides=(0,) * len(shape))
    return values


class Raises:
    """Looks like an array, and is none."""

    shape, dtype, ndim = (3, 2), np.dtype(float), 2

    def __array__(self, dtype=None, copy=None):
        raise ValueError("this array cannot be read")

    def __len__(self):
        return 3


# ---- kinds of arguments ------------------------------------------------------------------------------------------


def gram_of(case, n, m=None):
    points = case.rng.normal(size=(n, 2))
    return points @ (points if m is None else case.rng.normal(size=(m, 2))).T


def rows_kind(*, may_be_sparse=True, missing=False, categories=False, p=None):
    """X: n rows, p columns."""

    def good(draw, case):
        if case.own_matrix:
            return laid_out(draw, gram_of(case, case.n))
        columns = p or case.p
        values = numbers(draw, case, (case.n, columns))
        form = pick(draw, *["dense"] * 5, "frame", *["sparse"] * (2 * may_be_sparse), *["words"] * (2 * categories))
        if form == "words":
            return np.array(["a", "b", "c"], dtype=object)[case.rng.integers(3, size=(case.n, columns))]
        if missing and draw(st.booleans()):
            case.has_nan = True
            values[case.rng.random(values.shape) < 0.3] = np.nan
            return values if form != "frame" else frame(values)
        values = typed(draw, values)
        if form == "sparse":
            return sparse_form(draw, values)
        return frame(values) if form == "frame" and values.dtype != np.longdouble else laid_out(draw, values)

    def bad(draw, case):
        if pick(draw, 0, 0, 0, 0, 1):
            case.has_nan = True
            return broken_sparse(draw, case)
        return hostile_array(draw, case, (case.n, p or case.p))

    return Kind(good, bad)


def frame(values):
    """A data frame where pandas is there, else the array."""
    if importlib.util.find_spec("pandas") is None:
        return values
    pandas = importlib.import_module("pandas")
    native = values.astype(values.dtype.newbyteorder("="))
    return pandas.DataFrame(native, columns=[f"c{i}" for i in range(values.shape[1])])


def _labels(draw, case):
    codes = case.rng.integers(case.n_classes, size=case.n)
    match pick(draw, "int", "int", "sign", "text", "bool", "float", "object", "list", "u8", "strided", "dates"):
        case "sign":
            return np.where(codes == 1, 1, -1)
        case "text":
            return np.array(["no", "yes", "perhaps"])[codes]
        case "bool":
            return codes == 1
        case "float":
            return codes.astype(np.float32)
        case "object":
            return np.array(["no", "yes", "perhaps"], dtype=object)[codes]
        case "list":
            return codes.tolist()
        case "u8":
            return codes.astype(np.uint64) + np.uint64(2**63)
        case "strided":
            return np.repeat(codes, 2)[::-2]
        case "dates":
            return codes.astype("M8[D]")
    return codes


def _hostile_labels(draw, case):
    match pick(draw, "array", "array", "mixed", "NaT", "nan in objects", "many", "unhashable"):
        case "mixed":
            return np.array(["a", 1, 2.5, None] * case.n, dtype=object)[: case.n]
        case "NaT":
            return np.array(["NaT"] * case.n, dtype="M8[D]")
        case "nan in objects":
            case.has_nan = True
            return np.array([np.nan, "a"] * case.n, dtype=object)[: case.n]
        case "many":
            return np.arange(case.n) * 10**15
        case "unhashable":
            made = np.empty(case.n, dtype=object)
            made[:] = [[1]] * case.n
            return made
    return hostile_array(draw, case, (case.n,))


def _targets(draw, case):
    return laid_out(draw, typed(draw, numbers(draw, case, (case.n,))))


def _either(first, second):
    return lambda draw, case: pick(draw, first, second)(draw, case)


def _several_targets(draw, case):
    return laid_out(draw, numbers(draw, case, (case.n, 2)))


def _hostile_targets(draw, case):
    return hostile_array(draw, case, pick(draw, (case.n,), (case.n, 2)))


def _weights(draw, case):
    match pick(draw, "none", "ones", "counts", "any", "tiny", "huge", "wide", "list"):
        case "none":
            return None
        case "counts":
            return case.rng.integers(3, size=case.n) + (np.arange(case.n) == 0)
        case "any":
            return case.rng.random(case.n) + 0.1
        case "tiny":
            return np.full(case.n, 1e-300)
        case "huge":
            return np.full(case.n, 1e300)
        case "wide":
            return 10.0 ** case.rng.uniform(-15, 15, size=case.n)
        case "list":
            return [1] * case.n
    return np.ones(case.n)


def _hostile_weights(draw, case):
    match pick(draw, "array", "array", "negative", "zero", "denormal"):
        case "negative":
            return -np.ones(case.n)
        case "zero":
            return np.zeros(case.n)
        case "denormal":
            return np.full(case.n, 5e-324)
    return hostile_array(draw, case, (case.n,))


HOSTILE_SCALARS = (
    None, True, "text", "", float("nan"), float("inf"), -float("inf"), 0, 0.0, -0.0, -1, 0.5, 1, 5e-324, 1e-300, 1e300,
    2**70, -(2**70), 1 + 2j, b"x", (), [], {}, object(), np.array(3.0), np.array([1.0, 2.0]), np.float32(0.25),
    np.int8(-3), np.bool_(True), np.datetime64("2020-01-01"), decimal.Decimal("NaN"), fractions.Fraction(1, 3), len,
    int,
)  # fmt: skip


def hostile_scalar(draw, case):
    return pick(draw, *HOSTILE_SCALARS)


def scalar_kind(*good, without=()):
    """A number, a word or a flag: the good ones are listed; the hostile ones are those of all, but for `without`."""
    left = [s for s in HOSTILE_SCALARS if not any(s is w or (type(s) is type(w) and s == w) for w in without)]
    return Kind(lambda draw, case: pick(draw, *good), lambda draw, case: pick(draw, *left))


KERNELS = (
    kernels.Linear(),
    kernels.RBF(0.5),
    kernels.RBF(),
    kernels.RBF("auto"),
    kernels.RBF(1e300),
    kernels.RBF(5e-324),
    kernels.Laplacian(),
    kernels.Laplacian(2.0),
    kernels.Polynomial(2, 0.5, 1.0),
    kernels.Polynomial(0),
    kernels.Polynomial(9, 1e10, -1.0),
    kernels.Sigmoid(0.1, -1.0),
)


def inner(A, B):
    """A kernel of the caller's own."""
    A, B = (M.toarray() if sparse.issparse(M) else np.asarray(M, dtype=float) for M in (A, B))
    with np.errstate(all="ignore"):
        return np.tanh(A) @ np.tanh(B).T


def raising(*arguments):
    raise ValueError("this function of the caller's own does not work")


BAD_KERNELS = (
    kernels.RBF,
    kernels.Kernel(),
    "linear",
    raising,
    lambda A, B: None,
    lambda A, B: np.full((A.shape[0], B.shape[0]), np.inf),
    lambda A, B: np.zeros((1, 1, 1)),
    lambda A, B: "text",
    lambda A: A,
    lambda A, B: np.arange(A.shape[0] * B.shape[0], dtype=float).reshape(A.shape[0], B.shape[0]),  # not symmetric
    lambda A, B: -np.ones((A.shape[0], B.shape[0])),  # not semi-definite
    lambda A, B: 1e200 * np.ones((A.shape[0], B.shape[0])),
)


def _kernel(draw, case):
    if case.own_matrix:
        return kernels.Precomputed()
    return pick(draw, *KERNELS, inner)


def told(progress):
    """A callback."""


X_DENSE = rows_kind(may_be_sparse=False)
X_ANY = rows_kind()
X_MISSING = rows_kind(missing=True)
X_TABLE = rows_kind(missing=True, categories=True)
LABELS = Kind(_labels, _hostile_labels)
TARGETS = Kind(_targets, _hostile_targets)
TARGETS_OR_SEVERAL = Kind(_either(_targets, _several_targets), _hostile_targets)
LABELS_OR_TARGETS = Kind(_either(_labels, _targets), _hostile_targets)
WEIGHTS = Kind(_weights, _hostile_weights)
KERNEL = Kind(
    _kernel, lambda draw, case: pick(draw, *BAD_KERNELS) if draw(st.booleans()) else hostile_scalar(draw, case)
)
THREADS = scalar_kind(None, 1, 2, 3, without=(2**70, 1e300))  # a thousand threads would be started, as asked for
CALLBACK = scalar_kind(None, told)
RNG = scalar_kind(None, 0, 7, np.random.default_rng(1), [1, 2], np.random.SeedSequence(3))
FLAG = scalar_kind(True, False)
DTYPE = scalar_kind(None, np.float32, "f8", "float64", np.dtype("f4"))
CLASS_ORDER = scalar_kind(None, None, [0, 1], (1, 0), [0, 1, 2], ["b", "a"], np.array([1, 0]))
CLASS_WEIGHT = Kind(
    lambda draw, case: pick(draw, None, "balanced", {}),
    lambda draw, case: pick(draw, {"x": 1.0}, {0: -1.0}, {0: 0.0}, {1: np.nan}, {1: 1e300}, [1, 2], *HOSTILE_SCALARS),
)


def names_kind(n=None):
    """Names of columns or classes."""

    def good(draw, case):
        return pick(draw, None, [f"name {i}" for i in range(n or case.p)], ["same"] * (n or case.p))

    def bad(draw, case):
        return pick(draw, "abc", [1] * (n or case.p), ["a"] * 9, [None] * (n or case.p), ["\x00", '"', "'; --"], 3, {})

    return Kind(good, bad)


def model_kind(make):
    """One of the fitted models that a function gives as a dict, or something else: at times a model of another kind."""
    return Kind(
        lambda draw, case: make()[draw(st.sampled_from(sorted(make())))],
        lambda draw, case: hostile_scalar(draw, case),
    )
