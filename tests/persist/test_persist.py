"""`save` and `load`: every result comes back in every bit, is saved again as the same bytes, and can be copied."""

import copy
import io
import os
import pickle
import stat
import subprocess
import sys
import zipfile
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from saved_results import EXAMPLES, TWO, X, arrays_in, assert_same, example, loaded, objects_in, saved
from scipy import sparse

import kernelrules
from kernelrules import kernels, results, rules, svm, tree
from kernelrules.persist import PersistError
from kernelrules.persist.registry import TYPES
from kernelrules.persist.verify import covered_types

# ---- every result -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_comes_back_in_every_bit(name):
    result, use = example(name)
    data = saved(result)
    again = loaded(data)
    assert_same(result, again)
    assert saved(again) == data
    assert_same(use(result), use(again))
    for array in arrays_in(again):
        assert not array.flags.writeable
        assert array.flags.aligned
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            array.flags.writeable = True
        if array.size:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = array.ravel()[0]


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))])
def test_copies_and_pickles(name, again):
    result, use = example(name)
    for one in (result, loaded(saved(result))):
        other = again(one)
        assert_same(result, other)
        assert_same(use(result), use(other))


def test_there_is_an_example_of_every_type():
    """Whoever adds a type of result adds an example of it to saved_results.py, and a line to verify.py."""
    seen = {type(found) for name in EXAMPLES for found in objects_in(example(name)[0])}
    assert set(TYPES.values()) == seen
    assert set(TYPES) <= covered_types()


def test_no_result_is_left_out():
    """Every dataclass of a file that results come from is itself one of them, and so can be saved."""
    for module in {sys.modules[getattr(results, name).__module__] for name in results.__all__}:
        named = [getattr(module, name) for name in module.__all__]
        for cls in (thing for thing in named if isinstance(thing, type) and is_dataclass(thing)):
            assert TYPES.get(cls.__name__) is cls, f"{cls.__name__} of {module.__name__} cannot be saved"
    assert set(results.__all__) - set(TYPES) == {"ConvergenceWarning"}
    n_kernels, n_maps = len(set(kernels.specs.__all__) - {"Kernel"}), 4
    assert len(set(TYPES) - set(results.__all__)) == n_kernels + n_maps >= 10


# ---- values -----------------------------------------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(),
    st.sampled_from([np.float64(0.1), np.str_("é"), np.str_(""), np.int8(-3), np.True_, np.datetime64("NaT", "s")]),
    st.sampled_from([np.str_("x\0y"), np.bytes_(b""), np.bytes_(b"x\0y"), np.timedelta64(3, "D"), np.float32(np.nan)]),
)  # fmt: skip
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=8)
DTYPES = st.one_of(
    npst.boolean_dtypes(), npst.integer_dtypes(), npst.unsigned_integer_dtypes(),
    npst.floating_dtypes(sizes=(16, 32, 64)),
    npst.unicode_string_dtypes(max_len=5), npst.byte_string_dtypes(max_len=5), npst.datetime64_dtypes(),
    npst.timedelta64_dtypes(),
)  # fmt: skip
ARRAYS = npst.arrays(DTYPES, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4), elements=None)


def with_labels(values):
    """A result that holds any values: the labels of a rule's prediction."""
    return results.Rule((), values, 0.5, 0.5, 3, 1.0)


@given(VALUES)
def test_any_labels(value):
    rule = with_labels(value)
    again = loaded(saved(rule))
    assert_same(rule, again)
    assert saved(again) == saved(rule)


@given(ARRAYS, st.sampled_from(["as it is", "transposed", "reversed", "swapped"]))
def test_any_array(array, how):
    if how == "transposed":
        array = array.T
    elif how == "reversed" and array.ndim:
        array = array[::-1]
    elif how == "swapped":
        array = array.astype(array.dtype.newbyteorder(">"))
    rule = with_labels(array)
    again = loaded(saved(rule)).prediction
    assert again.dtype == array.dtype.newbyteorder("=")
    assert again.shape == array.shape
    assert again.tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes()
    assert np.isfortran(again) == np.isfortran(array)
    assert saved(with_labels(again)) == saved(rule)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_matrices(kind, index):
    matrix = kind(np.where(X > 0.5, X, 0.0))
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    assert_same(matrix, loaded(saved(with_labels(matrix))).prediction)


def test_objects_masks_lists_and_dicts():
    objects = np.empty((2, 2), dtype=object)
    objects[...] = [["a", None], [(1, 2.0), b"\xff"]]
    masked = np.ma.array(["a", "b"], mask=[False, True])
    value = ([objects, masked, {("k", 1): [np.nan, np.inf, -np.inf, -0.0]}], {}, [], ())
    assert_same(with_labels(value), loaded(saved(with_labels(value))))


def test_large_arrays_in_tuples_are_members():
    value = (np.arange(512.0), np.arange(513.0))
    data = saved(with_labels(value))
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == ["header.json", "prediction.1.npy"]
    assert_same(with_labels(value), loaded(data))


KINDS = [st.floats(), st.integers(-(2**63), 2**63 - 1), st.integers(), st.booleans(), st.none(), SCALARS]
COLUMNS = st.one_of(
    *(st.lists(kind, min_size=16, max_size=20) for kind in KINDS),
    st.lists(st.lists(st.integers(0, 5), max_size=3).map(tuple), min_size=16, max_size=18),
    st.just([np.full(3, i, dtype=np.float32) for i in range(16)]),
    st.just([np.str_("x" * i) for i in range(17)]),
    st.just([np.int16(i) for i in range(17)]),
    st.just([np.datetime64(i, "s" if i % 2 else "D") for i in range(17)]),
    st.just([np.full(i % 3, i) for i in range(16)]),
)


@given(COLUMNS)
def test_many_objects_are_a_table(values):
    """Of one type of values a column is an array, of several a list; tuples are lengths and a column."""
    many = tuple(map(with_labels, values))
    data = saved(many)
    assert b'"table":"Rule"' in data
    assert_same(many, loaded(data))
    assert saved(loaded(data)) == data


@dataclass(frozen=True)
class Own(kernels.Kernel):
    """A kernel of someone else's."""


class Derived(results.Certificate):
    """A result of someone else's."""


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            svm.svc(X, TWO, kernel=lambda a, b: a @ b.T),
            "kernel is a function of your own, .*lambda.*no file holds code",
        ),
        ({"first": (replace(svm.one_class(X), kernel=np.dot),)}, "value.0.kernel is a function of your own, dot"),
        (replace(svm.svc(X, TWO), kernel=Own()), "kernel is of type Own, which cannot be saved"),
        (replace(svm.svc(X, TWO), support=None), "support must be ndarray, got None"),
        (replace(svm.svc(X, TWO), support=np.arange(3)), r"SVMModel.*support has shape \(3,\)"),
        (with_labels(1j), "prediction is of type complex"),
        (with_labels(np.zeros(3, dtype=complex)), "prediction is an array of dtype complex128"),
        (with_labels(np.longdouble(1)), "prediction is an array of dtype"),
        (with_labels(sparse.coo_array(X)), "prediction is a coo_array.*make it a csr_array"),
        (with_labels(np.array([object()])), "prediction.0 is of type object"),
        (with_labels((1, (2, int))), "prediction.1.1 is a function of your own, int"),
        (with_labels(10**5000), "cannot be saved"),
    ],
    ids=range(12),
)
def test_what_cannot_be_saved(result, message, tmp_path):
    with pytest.raises(PersistError, match=message):
        kernelrules.save(result, tmp_path / "it")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "thing", [None, 3, X, "model", [X], {"a": None}, kernels.Kernel(), Derived(1, 1, 0, 0, 1, True)]
)
def test_what_is_no_result(thing, tmp_path):
    with pytest.raises(TypeError, match="result must be a result of this package"):
        kernelrules.save(thing, tmp_path / "it")


def test_nested_too_deeply(tmp_path):
    value = ()
    for _ in range(100_000):
        value = (value,)
    with pytest.raises(PersistError, match="nested too deeply"):
        kernelrules.save(with_labels(value), tmp_path / "it")
    endless = [svm.svc(X, TWO)]
    endless.append(endless)
    with pytest.raises(PersistError, match="nested too deeply"):
        kernelrules.save(endless, tmp_path / "it")
    while value:  # one by one: freeing it at once would be as deep
        value = value[0]


# ---- files ------------------------------------------------------------------------------------------------------


def test_paths_of_all_kinds(tmp_path):
    model = svm.svc(X, TWO)
    for path in (tmp_path / "a", str(tmp_path / "b.npz"), os.fsencode(tmp_path / ("ç" * 100))):
        kernelrules.save(model, path)
        assert_same(model, kernelrules.load(path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b.npz", "ç" * 100]
    with pytest.raises(FileNotFoundError):
        kernelrules.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError) as caught:
        kernelrules.save(model, tmp_path / "none" / "a")
    assert caught.value.filename == str(tmp_path / "none" / "a")
    assert "kernelrules-" not in str(caught.value)
    for use in (kernelrules.load, lambda folder: kernelrules.save(model, folder)):
        with pytest.raises(OSError, match=r"directory|denied"):
            use(tmp_path)
    with pytest.raises(TypeError):
        kernelrules.save(model, 3.5)


class Dribble(io.RawIOBase):
    """A stream that cannot seek, takes 700 bytes at a time and gives 900."""

    def __init__(self, data=b""):
        self.data, self.given = bytearray(data), 0

    def writable(self):
        return True

    def write(self, piece):
        self.data += bytes(piece[:700])
        return min(len(piece), 700)

    def read(self, n=-1):
        self.given += (n := min(n, 900))
        return bytes(self.data[self.given - n : self.given])


def test_streams():
    model = svm.svc(X, TWO)
    stream = Dribble()
    kernelrules.save(model, stream)
    assert stream.data == saved(model)
    assert_same(model, kernelrules.load(Dribble(stream.data)))
    behind = io.BytesIO(b"before" + saved(model))
    behind.seek(6)
    assert_same(model, kernelrules.load(behind))
    with pytest.raises(TypeError, match="binary file"):
        kernelrules.load(io.StringIO("text"))
    with pytest.raises(TypeError):
        kernelrules.save(model, io.StringIO())


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "model"
    first, second = svm.svc(X, TWO), svm.svc(X, TWO, C=10.0)
    kernelrules.save(first, path)
    path.chmod(0o640)

    def fails(descriptor):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fails)
        with pytest.raises(KeyboardInterrupt):
            kernelrules.save(second, path)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert_same(first, kernelrules.load(path))
    kernelrules.save(second, path)
    assert_same(second, kernelrules.load(path))
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix", reason="links need a right of their own here")
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    model = svm.svc(X, TWO)
    for _ in range(2):
        kernelrules.save(model, tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert_same(model, kernelrules.load(tmp_path / "model"))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_written_to_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    model = svm.svc(X, TWO)
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        kernelrules.save(model, tmp_path / "pipe")
        assert reader.communicate()[0] == saved(model)


def test_other_programs_can_read_it(tmp_path):
    result, _ = example("prune cv")
    kernelrules.save(result, tmp_path / "cv.npz")
    with zipfile.ZipFile(tmp_path / "cv.npz") as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == "header.json"
        assert archive.namelist()[1:] == sorted(archive.namelist()[1:])
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
    with np.load(tmp_path / "cv.npz", allow_pickle=False) as arrays:
        assert_same(arrays["tree.threshold"], result.tree.threshold)
        assert_same(arrays["fold_error"], result.fold_error)


def test_archives_beyond_two_gigabytes(monkeypatch):
    """They have the ZIP64 fields; the limit is lowered so that small ones have them too."""
    model = svm.svc(X, TWO)
    narrow = saved(model)
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    wide = saved(model)
    assert wide != narrow
    assert_same(model, loaded(wide))
    assert saved(loaded(wide)) == wide
    with zipfile.ZipFile(io.BytesIO(wide)) as archive:
        assert archive.testzip() is None
        assert any(info.extract_version == 45 for info in archive.infolist())
    for array in arrays_in(loaded(wide)):
        assert array.flags.aligned
    for n in range(len(wide) - 200, len(wide)):
        with pytest.raises(PersistError):
            loaded(wide[:n])
    damaged = bytearray(wide)
    damaged[wide.rfind(b"NUMPY") + 200] ^= 1
    with pytest.raises(PersistError, match="have changed"):
        loaded(bytes(damaged))


def test_archives_of_the_first_version_beyond_two_gigabytes(monkeypatch):
    """Up to 4 GB they have no ZIP64 fields, beyond that all members have them: zip64.kr is such a one, but small."""
    narrow, wide = saved(svm.svc(X, TWO)), Path(__file__).with_name("zip64.kr").read_bytes()
    with pytest.raises(PersistError, match="damaged"):
        loaded(wide)
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    assert_same(svm.svc(X, TWO), loaded(narrow))
    assert_same(example("monomials")[0], loaded(wide))


def test_the_same_bytes_in_another_process(tmp_path):
    result, _ = example("rules of categories")
    kernelrules.save(result, tmp_path / "here")
    code = "import kernelrules, sys; kernelrules.save(kernelrules.load(sys.argv[1]), sys.argv[2])"
    subprocess.run([sys.executable, "-c", code, tmp_path / "here", tmp_path / "there"], check=True)
    assert Path(tmp_path / "here").read_bytes() == Path(tmp_path / "there").read_bytes()


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.booleans(), st.booleans())
def test_random_trees_and_their_rules(seed, n, classes, missing):
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 4, size=(n, 3)).astype(float)
    data[rng.random(data.shape) < 0.2 * missing] = np.nan
    y = rng.integers(0, 3, size=n)
    grown = tree.grow(data, y if classes else y * 0.5, criterion="gini" if classes else "squared_error")
    for result in (grown, rules.extract(grown)):
        assert_same(result, loaded(saved(result)))
    assert_same(tree.predict(grown, data), tree.predict(loaded(saved(grown)), data))
