"""What trees read: every kind of data becomes the numbers it stands for, again at prediction, or is refused by name."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import dtypes, layouts
from trees import NAN, stump

from kernelrules import check, rules
from kernelrules import tree as trees
from kernelrules.check.frames import read, read_again
from kernelrules.core.simd.finite import survey
from kernelrules.tree.imputation import fill_values, filled

pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")


def same(found, expected):
    np.testing.assert_array_equal(found, np.array(expected, dtype=float))


# ---- numbers ------------------------------------------------------------------------------------------------------


@given(st.data(), dtypes, st.integers(0, 2**32 - 1))
def test_floats_are_read_where_they_are(data, dtype, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=rng.integers(1, 9, size=2)).astype(dtype)
    X[rng.random(X.shape) < 0.2] = np.nan
    given_as = data.draw(layouts(X))
    columns = read(given_as)
    assert columns.values.dtype == dtype
    assert columns.values is given_as or not given_as.flags.aligned
    np.testing.assert_array_equal(columns.values, X)
    np.testing.assert_array_equal(columns.missing, np.isnan(X).any(axis=0))
    assert columns.categories == (None,) * X.shape[1]
    assert columns.n_levels.dtype == np.int64
    assert columns.names is None
    again = read_again(stump(columns.categories), given_as)
    assert again is given_as or not given_as.flags.aligned


@given(st.data(), dtypes, st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.01, 0.5]))
def test_survey_equals_definition(data, dtype, seed, share):
    """Runs of rows that are all finite, and others; place of the first infinity, and of the first NaN up to its row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rng.integers(0, 400), rng.integers(1, 40))).astype(dtype)
    X[rng.random(X.shape) < share] = np.nan
    if len(X) and data.draw(st.booleans()):
        X[rng.integers(len(X)), rng.integers(X.shape[1])] = rng.choice([np.inf, -np.inf])
    infinite = [tuple(place) for place in np.argwhere(np.isinf(X))]
    seen = X[: infinite[0][0] + 1] if infinite else X
    absent = [tuple(place) for place in np.argwhere(np.isnan(seen))]
    given_as = data.draw(layouts(X))
    found = np.zeros(X.shape[1], dtype=np.uint8)
    places = survey(given_as if given_as.flags.aligned else X, found)
    assert places == (infinite[0] if infinite else None, absent[0] if absent else None)
    np.testing.assert_array_equal(found, np.isnan(seen).any(axis=0))


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int32, bool, np.float16, np.longdouble, ">f8", ">f4"])
def test_other_numbers_are_converted(dtype):
    X = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    values = read(X).values
    assert values.dtype == (np.float32 if dtype in (np.float16, ">f4") else np.float64)
    assert values.flags.c_contiguous
    same(values, X.astype(float))


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_array])
def test_sparse_zeros_are_zeros(form):
    X = np.array([[0.0, 2.0, 0.0], [NAN, 0.0, 0.0]], dtype=np.float32)
    columns = read(form(X))
    assert columns.values.dtype == np.float32
    same(columns.values, X)
    np.testing.assert_array_equal(columns.missing, [True, False, False])
    with pytest.raises(ValueError, match="X holds nan at row 1, column 0"):
        read(form(X), missing="error")


def test_sparse_data_that_are_not_valid():
    bad = sparse.csr_array(np.eye(3))
    bad.indices[1] = 77
    with pytest.raises(ValueError, match="X is not a valid CSR matrix"):
        read(bad)


def test_sparse_data_too_large_to_be_dense():
    wide = sparse.csr_array((1 << 20, 1 << 30), dtype=np.float64)
    with pytest.raises(MemoryError, match="X as a dense matrix"):
        read(wide)


def test_nested_lists_and_masks():
    same(read([[1, 2.5], [None, 3]]).values, [[1, 2.5], [NAN, 3]])
    masked = np.ma.masked_array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    same(read(masked).values, [[1, NAN], [3, 4]])
    words = np.ma.masked_array(np.array([["a"], ["b"]], dtype=object), mask=[[False], [True]])
    same(read(words).values, [[0], [NAN]])


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        np.asfortranarray,
        lambda X: X.astype(np.float32),
        lambda X: X[:, ::-1].copy()[:, ::-1],
        lambda X: X.astype(object),
        sparse.csr_array,
    ],
    ids=["C", "F", "float32", "reversed", "objects", "sparse"],
)
def test_infinite_values_are_refused(value, form):
    X = np.ones((5000, 3))
    X[1, 0], X[4321, 1] = NAN, value
    for categorical in ("from_dtype", [1]):
        with pytest.raises(ValueError, match=f"X holds {value} at row 4321, column 1"):
            read(form(X), categorical)
    with pytest.raises(ValueError, match=f"X holds {value} at row 4321, column 1"):
        read_again(stump([None] * 3), form(X))


def test_infinite_values_of_frames_are_refused():
    for library in (pd, pl):
        for other in ([1.0, 2.0], ["x", "y"]):
            frame = library.DataFrame({"one": other, "two": [1.0, np.inf]})
            with pytest.raises(ValueError, match="X holds inf at row 1, column 'two'"):
                read(frame)


def test_missing_values_are_refused_on_request():
    X = np.ones((5000, 3))
    X[4321, 1] = NAN
    for form in (np.asarray, np.asfortranarray, np.float32, lambda X: X.astype(object)):
        with pytest.raises(ValueError, match="X holds nan at row 4321, column 1"):
            read(form(X), missing="error")
        with pytest.raises(ValueError, match="X holds nan at row 4321, column 1"):
            trees.predict(stump([None] * 3, missing="error"), form(X))
    with pytest.raises(ValueError, match="X holds a missing value at row 1, column 'kind'"):
        read(pd.DataFrame({"kind": ["a", None]}), missing="error")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.zeros(3), r"X must be two-dimensional, got shape \(3,\); one feature is"),
        (np.zeros((2, 2, 2)), "X must be two-dimensional"),
        (pd.Series([1.0, 2.0]), "X must be two-dimensional"),
        (np.zeros((0, 3)), "X has no rows"),
        (np.zeros((3, 0)), "X has no columns"),
        (sparse.csr_array((0, 3)), "X has no rows"),
        (pd.DataFrame({"a": []}), "X has no rows"),
        (pd.DataFrame(index=[1, 2]), "X has no columns"),
        (pl.DataFrame(), "X has no columns"),
        ([[1.0], [1.0, 2.0]], "X is not a rectangular array"),
        (np.zeros((2, 2), dtype=complex), "X must hold real numbers or categories, got dtype complex128"),
        (np.zeros((2, 2), dtype="M8[s]"), "X must hold real numbers or categories, got dtype datetime64"),
        (sparse.csr_array(np.eye(2) * 1j), "X must hold real numbers, got dtype complex128"),
        (pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}), "column 'when' of X must hold real numbers"),
        (np.array([[{}], [{}]], dtype=object), "column 0 of X holds what is neither number nor category"),
        (np.array([["a"], [1]], dtype=object), "column 0 of X holds categories that cannot be ordered"),
        ([[10**400]], "column 0 of X holds 1000"),
        (None, "X must be two-dimensional"),
        ("text", "X must be two-dimensional"),
    ],
)
def test_what_is_no_table_is_refused(bad, words):
    with pytest.raises((ValueError, check.DtypeError), match=words):
        read(bad)


# ---- categories ---------------------------------------------------------------------------------------------------


def test_categories_of_pandas():
    frame = pd.DataFrame(
        {
            "size": pd.Categorical(["small", None, "large"], categories=["small", "medium", "large"], ordered=True),
            "word": ["b", None, "a"],
            "yes": [True, False, True],
            "perhaps": pd.array([True, None, True], dtype="boolean"),
            "count": pd.array([1, None, 3], dtype="Int64"),
            "share": pd.array([0.5, 0.25, None], dtype="Float32"),
            "plain": np.array([1, 2, 3], dtype=np.int8),
        }
    )
    columns = read(frame)
    assert columns.names == tuple(frame.columns)
    same(
        columns.values,
        [
            [0, 1, 1, 0, 1, 0.5, 1],
            [NAN, NAN, 0, NAN, NAN, 0.25, 2],
            [2, 0, 1, 0, 3, NAN, 3],
        ],
    )
    assert [None if c is None else c.tolist() for c in columns.categories] == [
        ["small", "medium", "large"],
        ["a", "b"],
        [False, True],
        [True],
        None,
        None,
        None,
    ]
    np.testing.assert_array_equal(columns.n_levels, [3, 2, 2, 1, 0, 0, 0])
    np.testing.assert_array_equal(columns.missing, [True, True, False, True, True, True, False])


def test_categories_of_polars():
    frame = pl.DataFrame(
        {
            "size": pl.Series(["small", None, "large"], dtype=pl.Enum(["small", "medium", "large"])),
            "kind": pl.Series(["z", "y", None], dtype=pl.Categorical),
            "word": ["b", None, "a"],
            "yes": [True, None, False],
            "count": [1, None, 3],
            "share": pl.Series([0.5, None, 1.0], dtype=pl.Float32),
        }
    )
    columns = read(frame)
    same(columns.values, [[0, 1, 1, 1, 1, 0.5], [NAN, 0, NAN, NAN, NAN, NAN], [2, NAN, 0, 0, 3, 1.0]])
    assert [None if c is None else c.tolist() for c in columns.categories] == [
        ["small", "medium", "large"],
        ["y", "z"],
        ["a", "b"],
        [False, True],
        None,
        None,
    ]
    same(read_again(stump(columns.categories, names=columns.names), frame), columns.values)


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_of_numbers(library):
    narrow = library.DataFrame({"a": np.array([1, 2], dtype=np.float32), "b": np.array([3, NAN], dtype=np.float32)})
    columns = read(narrow)
    assert columns.values.dtype == np.float32
    assert columns.names == ("a", "b")
    same(columns.values, [[1, 3], [2, NAN]])


def test_narrow_numbers_beside_categories_stay_narrow():
    frame = pd.DataFrame({"a": np.array([1, 2], dtype=np.float32), "b": ["x", "y"]})
    assert read(frame).values.dtype == np.float32
    assert read(pd.DataFrame({"b": ["x", "y"]})).values.dtype == np.float64
    assert read(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})).values.dtype == np.float64


def test_names_that_are_not_strings_are_no_names():
    columns = read(pd.DataFrame({0: ["x", "y"], 1: [1.0, 2.0]}))
    assert columns.names is None
    repeated = pd.DataFrame([["x", 1.0], ["y", 2.0]], columns=["same", "same"])
    same(read(repeated).values, [[0, 1], [1, 2]])


def test_objects_are_numbers_or_categories():
    X = np.array([["b", 1, True, np.float32(0.5), None], [None, 2.5, False, np.nan, None], ["a", pd.NA, True, 3, NAN]])
    columns = read(X.astype(object))
    same(columns.values, [[1, 1, 1, 0.5, NAN], [NAN, 2.5, 0, NAN, NAN], [0, NAN, 1, 3, NAN]])
    assert [None if c is None else c.tolist() for c in columns.categories] == [
        ["a", "b"],
        None,
        [False, True],
        None,
        None,
    ]


@pytest.mark.parametrize("dtype", ["U3", "S3", object])
def test_arrays_of_strings(dtype):
    columns = read(np.array([["10"], ["9"], ["10"]]).astype(dtype))
    same(columns.values, [[0], [1], [0]])


def test_columns_named_as_categories():
    X = np.array([[3, 1.0], [7, 2.0], [3, NAN]], dtype=np.float32)
    columns = read(X, [0])
    assert columns.values.dtype == np.float32
    same(columns.values, [[0, 1], [1, 2], [0, NAN]])
    assert columns.categories[0].tolist() == [3, 7]
    same(read(X, [-1]).values, [[3, 0], [7, 1], [3, NAN]])
    frame = pd.DataFrame(X, columns=["kind", "size"])
    same(read(frame, ["kind"]).values, columns.values)
    same(read(frame, (np.int64(0),)).values, columns.values)
    same(read(pd.DataFrame({"yes": [True, False]}), None).values, [[1], [0]])
    same(read(pd.DataFrame({"yes": pd.array([True, None], dtype="boolean")}), None).values, [[1], [NAN]])
    same(read(pd.DataFrame({"rank": pd.Categorical([20, 10, None])}), None).values, [[20], [10], [NAN]])


@pytest.mark.parametrize("categorical", [None, [1], ["size"]])
def test_strings_that_are_not_named_are_refused(categorical):
    frame = pd.DataFrame({"word": ["x", "y"], "size": [1, 2]})
    with pytest.raises(check.DtypeError, match="column 'word' of X does not hold numbers but, for example, 'x'"):
        read(frame, categorical)


@pytest.mark.parametrize(
    ("categorical", "words"),
    [
        ("size", "categorical must be"),
        (3, "categorical must be a sequence"),
        ([2], "categorical names column 2, but X has 2 columns"),
        ([-3], "categorical names column -3"),
        (["colour"], "categorical names the column 'colour'"),
        ([0.5], "categorical must hold column numbers or names"),
        ([True, False], "categorical must hold column numbers or names"),
    ],
)
def test_categorical_is_checked(categorical, words):
    with pytest.raises((ValueError, TypeError), match=words):
        read(pd.DataFrame({"word": ["x", "y"], "size": [1, 2]}), categorical)
    if categorical == ["colour"]:
        with pytest.raises(ValueError, match=words):
            read(np.zeros((2, 2)), categorical)


# ---- at prediction ------------------------------------------------------------------------------------------------


COLOURS = stump([np.array(["blue", "green", "red"]), None], flags=[0, 1, 2], names=("colour", "size"))


def colour_frames(colours, sizes):
    """The same rows in every form that can hold them."""
    yield pd.DataFrame({"colour": colours, "size": sizes})
    yield pd.DataFrame({"colour": pd.Categorical(colours), "size": sizes})
    others = ["grey", "red", "pink", "green", "blue"]
    yield pd.DataFrame({"colour": pd.Categorical(colours, categories=others), "size": sizes})
    yield pl.DataFrame({"colour": colours, "size": sizes})
    yield pl.DataFrame({"colour": pl.Series(colours, dtype=pl.Categorical), "size": sizes})
    yield pl.DataFrame({"colour": pl.Series(colours, dtype=pl.Enum(others)), "size": sizes})
    yield [[colour, size] for colour, size in zip(colours, sizes, strict=True)]
    yield np.array([colours, sizes], dtype=object).T


def test_codes_are_the_tree_s():
    for X in colour_frames(["red", None, "blue", "pink", "green"], [1.0, 2.0, None, 4.0, 5.0]):
        same(read_again(COLOURS, X), [[2, 1], [NAN, 2], [0, NAN], [-1, 4], [1, 5]])
        # red was not in the node and pink not in the data: both go to the larger child, which is the left one.
        np.testing.assert_array_equal(trees.apply(COLOURS, X), [1, 2, 2, 1, 1])
        with pytest.raises(ValueError, match=re.escape("'pink' at row 3, which is none of the tree's categories")):
            trees.apply(COLOURS, X, unseen="error")
    with pytest.raises(ValueError, match="unseen must be"):
        trees.apply(COLOURS, [["red", 1.0]], unseen="smaller")


def test_only_missing_categories():
    for X in ([[None, 1.0]], np.array([[NAN, 1.0]]), pd.DataFrame({"colour": [None], "size": [1.0]})):
        same(read_again(COLOURS, X), [[NAN, 1]])


def test_numbers_for_words_are_refused():
    with pytest.raises(check.DtypeError, match=r"column 0 of X holds .*1.*, but the tree's categories are such as"):
        read_again(COLOURS, np.ones((2, 2)))
    with pytest.raises(check.DtypeError, match="column 1 of X does not hold numbers"):
        read_again(COLOURS, [["red", "large"]])
    numbers = stump([np.array([3.0, 7.0])], flags=[1, 0])
    with pytest.raises(check.DtypeError, match="column 0 of X holds"):
        read_again(numbers, [["three"]])
    for X in ([[7], [3], [5]], np.array([[7.0], [3.0], [5.0]], dtype=np.float32), [[7], [3.0], [np.int8(5)]]):
        same(read_again(numbers, X), [[1], [0], [-1]])


def test_columns_must_be_the_tree_s():
    frame = pd.DataFrame({"colour": ["red"], "size": [1.0]})
    for wrong, words in (
        (frame[["size", "colour"]], "not in the order"),
        (frame[["colour"]], "X lacks the column 'size'"),
        (frame.assign(weight=1.0), "X has a column 'weight' that the tree was not grown on"),
        (frame.rename(columns={"size": "weight"}), "X lacks the column 'size'"),
        (np.zeros((2, 3)), "X has 3 columns but the tree was grown on 2"),
    ):
        for library in (lambda f: f, lambda f: pl.DataFrame({n: f[n].tolist() for n in f})):
            X = library(wrong) if isinstance(wrong, pd.DataFrame) else wrong
            with pytest.raises(ValueError, match=words):
                trees.predict(COLOURS, X)


@pytest.mark.parametrize("use", [trees.predict, trees.predict_proba, trees.apply, trees.decision_path])
def test_no_rows_have_no_answers(use):
    for X in (np.zeros((0, 1)), sparse.csr_array((0, 1)), pd.DataFrame({"x": np.zeros(0)})):
        assert use(stump([None]), X).shape[0] == 0
    assert use(COLOURS, pd.DataFrame({"colour": pd.Series([], dtype=str), "size": np.zeros(0)})).shape[0] == 0


# ---- filling ------------------------------------------------------------------------------------------------------


def test_fill_values():
    columns = read([[1.0, "a", None, 5], [None, "b", None, 6], [4.0, "b", None, 7]])
    same(fill_values(columns, "zero"), [0, 0, 0, 0])
    fills = np.array([fill_values(columns, "impute", seed) for seed in range(300)])
    same(fills[:, [0, 2, 3]], np.tile([2.5, 0, 6], (300, 1)))
    assert 0.55 < fills[:, 1].mean() < 0.78  # two of three are "b"
    same(fill_values(columns, "impute", 3), fills[3])
    with pytest.raises(ValueError, match="how must be"):
        fill_values(columns, "mean")


def test_fill_values_are_of_the_data_s_type():
    single = read(np.array([[0.1], [0.2], [0.4]], dtype=np.float32))
    (mean,) = fill_values(single, "impute")
    assert mean == np.float32(mean)
    huge = np.full((3, 1), np.finfo(float).max)
    same(fill_values(read(huge), "impute"), huge[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_filled(dtype):
    X = np.array([[1, NAN], [NAN, 4]], dtype=dtype)
    done = filled(X, np.array([0.5, 0.25]))
    assert done.dtype == dtype
    same(done, [[1, 0.25], [0.5, 4]])
    assert np.isnan(X).sum() == 2
    assert filled(done, np.zeros(2)) is done


@pytest.mark.parametrize("missing", ["zero", "impute"])
def test_missing_values_are_filled_before_the_walk(missing):
    for fill, leaf in ((0.0, 1), (1.0, 2)):
        tree = stump([None], missing=missing, fill=np.array([fill]))
        np.testing.assert_array_equal(trees.apply(tree, [[NAN], [0.0], [1.0]]), [leaf, 1, 2])


# ---- labels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 1, 3]),
        np.array([True, False, True]),
        np.array([True]),
        np.array([-5, 7, 7], dtype=np.int8),
        np.array([-128, 127], dtype=np.int8),
        np.array([250, 3], dtype=np.uint8),
        np.array([2**63 + 5, 2**63 + 1], dtype=np.uint64),
        np.array([-(2**63), -(2**63) + 2]),
        np.array([0, 10**9, 5]),
    ],
    ids=str,
)
def test_whole_labels_are_numbered_as_by_sorting(labels):
    classes, codes = check.labels(labels, len(labels))
    expected, inverse = np.unique(labels, return_inverse=True)
    assert classes.dtype == expected.dtype
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, inverse)


# ---- unseen categories --------------------------------------------------------------------------------------------


def test_trees_and_rules_accept_the_same_words_for_unseen_categories():
    X, y = [["red", 1.0], ["red", 2.0], ["blue", 1.0], ["blue", 3.0]], [0, 0, 1, 1]
    grown = trees.grow(X, y)
    found = rules.extract(grown)
    new = [["pink", 1.0], ["red", 1.0]]
    for module, model in ((trees, grown), (rules, found)):
        expected = module.predict(model, new)
        for word in ("allow", "larger"):
            np.testing.assert_array_equal(module.predict(model, new, unseen=word), expected)
        with pytest.raises(ValueError, match="column 0 of X holds 'pink' at row 0, which is none of"):
            module.predict(model, new, unseen="error")
        with pytest.raises(ValueError, match="unseen must be"):
            module.predict(model, new, unseen="ignore")
