"""Results are frozen: no array in one can be written to, however it came about, and none is the caller's.

Every type of result has an example (test_persist.py sees to that), and all of them are walked.
"""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from saved_results import (
    EXAMPLES,
    GRAM,
    HOLES,
    MIXED,
    NEW,
    RBF,
    SPARSE,
    THREE,
    TWO,
    N,
    X,
    Y,
    arrays_in,
    example,
    loaded,
    objects_in,
    saved,
)
from scipy import sparse

from kernelrules import erm, graph, kernels, ridge, rules, svm, tree
from kernelrules.persist.registry import TYPES
from kernelrules.results.frozen import Frozen, read_only

WAYS = {
    "fitted": lambda result: result,
    "loaded": lambda result: loaded(saved(result)),
    "unpickled": lambda result: pickle.loads(pickle.dumps(result)),
    "unpickled, protocol 2": lambda result: pickle.loads(pickle.dumps(result, protocol=2)),
    "copied": copy.copy,
    "deep-copied": copy.deepcopy,
    "replaced": lambda result: replace(result) if is_dataclass(result) else result,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_no_array_can_be_written_to(name, way):
    for array in arrays_in(WAYS[way](example(name)[0])):
        assert not array.flags.writeable
        if array.size:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = array.ravel()[0]


def test_every_result_with_arrays_is_walked():
    """A type that holds arrays, in a field of whatever annotation, takes part in this by its base."""
    held = {type(found) for name in EXAMPLES for found in objects_in(example(name)[0]) if list(arrays_in(found))}
    assert len(held) >= 20
    assert all(issubclass(cls, Frozen) for cls in held)
    for cls in TYPES.values():
        if is_dataclass(cls) and not issubclass(cls, kernels.Kernel):
            assert issubclass(cls, Frozen), f"{cls.__name__} is a result, but not frozen"
            assert fields(cls)


def test_no_array_is_the_callers():
    """What the caller does to his data later does not change a result; and they stay as writeable as they were."""
    given = [X, Y, NEW, GRAM, TWO, THREE, HOLES, MIXED, SPARSE.data, SPARSE.indices, SPARSE.indptr]
    for name in EXAMPLES:
        for array in arrays_in(example(name)[0]):
            assert not any(np.shares_memory(array, mine) for mine in given), name
    assert all(mine.flags.writeable for mine in given)


def test_neither_are_weights_grids_and_numbers_of_points():
    weight, grid, points, codes = np.ones(N), np.array([1.0, 0.1]), np.arange(5), np.arange(N) % 2
    values = np.linspace(0.0, 1.0, 5)
    made = [
        ridge.fit(X, Y, 0.1, RBF, sample_weight=weight),
        ridge.path(X, Y, grid, RBF, sample_weight=weight),
        ridge.at(ridge.path(X, Y, grid, RBF, sample_weight=weight)),
        erm.fit(X, codes, 0.1, RBF, sample_weight=weight),
        svm.tune(X, codes, Cs=grid, gammas=grid, folds=3, rng=0, sample_weight=weight),
        graph.fit(graph.knn_graph(X, 5), values, 0.1, points, unreached="nan"),
        tree.grow(X, codes, sample_weight=weight, max_depth=2),
        tree.grow(X, Y, criterion="squared_error", sample_weight=weight, max_depth=2),
        rules.induce(X, codes, sample_weight=weight, rng=0),
    ]
    given = [weight, grid, points, codes, values, X, Y]
    for result in made:
        for array in arrays_in(result):
            assert not array.flags.writeable
            assert not any(np.shares_memory(array, mine) for mine in given), type(result).__name__
    assert all(mine.flags.writeable for mine in given)


def test_results_of_other_processes():
    """They come over a pipe, which makes arrays anew."""
    with ProcessPoolExecutor(1) as pool:
        found = svm.svc(X, THREE, kernel=RBF, executor=pool), pool.submit(tree.grow, X, TWO).result(timeout=60)
    for array in arrays_in(found):
        assert not array.flags.writeable


def test_what_a_walk_relies_on_stays():
    """A node that is its own child would be a walk without an end."""
    grown = tree.grow(X, TWO)
    with pytest.raises(ValueError, match="read-only"):
        grown.left[0] = 0
    with pytest.raises(ValueError, match="do not describe a tree"):
        tree.predict(replace(grown, left=np.zeros_like(grown.left)), NEW)


# ---- how ----------------------------------------------------------------------------------------------------------


def test_views_of_everything():
    array, mask = np.arange(4.0), np.array([True, False, False, False])
    made = read_only((array, [array], {"a": array}, np.ma.MaskedArray(array, mask), np.ma.MaskedArray(array), "b"))
    assert not any(part.flags.writeable for part in arrays_in(made))
    assert array.flags.writeable
    assert mask.flags.writeable
    for masked in made[3:5]:
        with pytest.raises(ValueError, match="read-only"):
            masked[1] = np.ma.masked
        with pytest.raises(ValueError, match="read-only"):
            masked[1] = 7.0
    np.testing.assert_array_equal(made[3].mask, mask)
    assert read_only(made) is made


def test_views_of_sparse_matrices():
    for kind in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix):
        matrix = kind(np.eye(3))
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        made = read_only(matrix)
        assert type(made) is kind
        assert made.indices.dtype == np.int64
        assert not any(part.flags.writeable for part in arrays_in(made))
        assert all(part.flags.writeable for part in arrays_in(matrix))
        np.testing.assert_array_equal(made.toarray(), np.eye(3))


def test_functions_of_ones_own_are_left_alone():
    fit = ridge.fit(X, Y, 0.1, own_kernel)
    assert fit.kernel is own_kernel
    assert not fit.alpha.flags.writeable


def own_kernel(a, b):
    return a @ b.T


def test_a_copy_of_an_array_can_be_written_to():
    model = example("svc")[0]
    other = replace(model, dual_coef=model.dual_coef.copy() * 0)
    assert not other.dual_coef.flags.writeable
    assert set(svm.predict(other, NEW)) <= set(TWO)
