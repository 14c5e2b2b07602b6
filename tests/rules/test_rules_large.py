"""Rules of many rows and in any memory layout, and what stops them."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupting import seconds_of_all
from many_rules import listed
from places import HELPERS
from scipy import sparse
from strategies import layouts

from kernelrules import rules, tree
from kernelrules.results import Condition, Rule, RuleList


def holding(found, X):
    """Which rules hold for which rows, column by column."""
    held = np.ones((len(found), len(X)), dtype=bool)
    for i, rule in enumerate(found):
        for c in rule.conditions:
            x = X[:, c.feature]
            held[i] &= np.where(np.isnan(x), c.missing, (x > c.low) & (x <= c.high))
    return held


@pytest.mark.parametrize("n", [1, 63, 64, 65, 511, 512, 513, 1200, 66_000])
def test_any_number_of_rows(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    found = listed(4, 12)
    held = holding(found, X)
    expected = np.where(held.any(axis=0), held.argmax(axis=0), -1)
    for n_threads in (1, 3):
        covered = rules.coverage(found, X, n_threads=n_threads)
        np.testing.assert_array_equal(covered.rule, expected)
        np.testing.assert_array_equal(covered.raw, held.sum(axis=1))


@pytest.mark.parametrize("n", [1, 64, 70, 200])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_limits_of_one_column(n, dtype):
    """Rows are sorted then, and from limit to limit only those between them change."""
    rng = np.random.default_rng(n)
    X = rng.integers(0, 30, size=(n, 2)).astype(dtype) / 10
    X[rng.random(X.shape) < 0.2] = np.nan
    limits = np.append(np.unique(X[~np.isnan(X)]).astype(float), rng.normal(size=30)).tolist()
    made = [Condition(0, low=limit, missing=limit > 0.5) for limit in limits]
    made += [Condition(0, high=limit, missing=limit > 1.0) for limit in limits]
    found = listed(2, 1)
    rest = tuple(Rule((condition, Condition(1, high=2.0)), 1.0, 0.1, np.nan, 1, 1.0) for condition in made)
    found = dataclasses.replace(found, rules=found.rules + rest)
    np.testing.assert_array_equal(rules.coverage(found, X).raw, holding(found, X).sum(axis=1))


@given(st.data(), st.sampled_from([np.float64, np.float32]))
@settings(max_examples=40)
def test_any_memory_layout(data, dtype):
    X = np.random.default_rng(0).normal(size=(90, 3)).astype(dtype)
    X[::7, 1] = np.nan
    found, y = listed(3, 9), np.arange(90.0) % 4
    given_as = data.draw(layouts(X))
    expected = rules.coverage(found, X)
    covered = rules.coverage(found, given_as)
    np.testing.assert_array_equal(covered.rule, expected.rule)
    np.testing.assert_array_equal(covered.raw, expected.raw)
    assert str(rules.simplify(found, given_as, y)) == str(rules.simplify(found, X, y))


def test_many_more_columns_than_rules_need():
    X = np.zeros((10, 600))
    X[:5, 599] = 1.0
    found = rules.extract(tree.grow(X, X[:, 599]))
    np.testing.assert_array_equal(rules.predict(found, X), X[:, 599])
    assert rules.coverage(found, X).raw.tolist() == [5, 5]


@given(st.integers(0, 2**32 - 1), st.sampled_from(["csr", "csc", "coo"]))
@settings(max_examples=30)
def test_sparse_rows_are_dense_rows(seed, form):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((60, 30), density=0.2, rng=rng, format=form)
    found, y = listed(30, 6, seed, most=2), rng.integers(0, 3, size=60).astype(float)
    dense, given_as = rules.coverage(found, X.toarray()), rules.coverage(found, X)
    np.testing.assert_array_equal(given_as.rule, dense.rule)
    np.testing.assert_array_equal(given_as.raw, dense.raw)
    np.testing.assert_array_equal(rules.predict(found, X), rules.predict(found, X.toarray()))
    one, other = rules.simplify(found, X, y), rules.simplify(found, X.toarray(), y)
    assert [rule.conditions for rule in one] == [rule.conditions for rule in other]
    assert str(one) == str(other)
    assert one.n_features == 30


def test_only_columns_that_are_asked_for_become_dense():
    """Dense, these rows would take 4 TB."""
    n, p = 1_000_000, 500_000
    X = sparse.csr_array(([1.0, 3.0], ([5, 999_999], [499_999, 7])), shape=(n, p))
    made = Rule((Condition(499_999, low=0.5),), 1.0, 0.1, np.nan, 1, 1.0)
    found = RuleList((made,), 0.0, None, None, ("x",) * p, None, (None,) * p, p, ordered=True)
    assert np.flatnonzero(rules.predict(found, X)).tolist() == [5]
    assert rules.coverage(found, X).raw.tolist() == [1]
    always = RuleList((Rule((), 2.0, 1.0, np.nan, 1, 1.0),), 0.0, None, None, ("x",) * p, None, (None,) * p, p, True)
    assert (rules.predict(always, X) == 2.0).all()


def test_sparse_rows_that_are_refused():
    found = listed(30, 2, most=1)
    X = sparse.random_array((5, 30), density=0.5, rng=np.random.default_rng(0), format="csr")
    X.data[3] = np.inf
    place = (int(np.searchsorted(X.indptr, 3, side="right")) - 1, int(X.indices[3]))
    with pytest.raises(ValueError, match=f"X holds inf at row {place[0]}, column {place[1]}"):
        rules.predict(found, X)
    with pytest.raises(ValueError, match="X has 29 columns but the rules were grown on 30"):
        rules.predict(found, X[:, :29])
    broken = sparse.csr_array((5, 30))
    broken.data, broken.indices, broken.indptr = np.ones(1), np.array([77]), np.array([0, 1, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="not a valid CSR matrix"):
        rules.predict(found, broken)


PREPARE = f"""
import sys
import numpy as np
from kernelrules import rules, tree
sys.path.insert(0, {str(HELPERS)!r})
from many_rules import listed
rng = np.random.default_rng(0)

def for_ever(call):
    while True:
        call()
"""
CALLS = {
    "predict": ("found, X = listed(12, 300, most=6), rng.normal(size=(400_000, 12))", "rules.predict(found, X)"),
    "simplify": (
        "X = rng.normal(size=(20_000, 8)); y = rng.normal(size=20_000) > X[:, 0]; "
        "found = rules.extract(tree.grow(X, y, max_leaves=2000))",
        "rules.simplify(found, X, y)",
    ),
    "decision_list": (
        "found = rules.extract(tree.grow(rng.normal(size=(20_000, 8)), rng.integers(0, 2, 20_000)))",
        "rules.decision_list(found)",
    ),
    "first use": ("found, X = listed(40, 20_000, most=6), rng.normal(size=(3, 40))", "rules.predict(found[:], X)"),
}


@pytest.fixture(scope="module")
def seconds():
    """Seconds that each of CALLS takes to stop."""
    return seconds_of_all(PREPARE, {name: (make, f"for_ever(lambda: {call})") for name, (make, call) in CALLS.items()})


@pytest.mark.parametrize("what", CALLS)
def test_stops_when_asked(seconds, what):
    assert seconds[what] is not None
    assert seconds[what] < 1.0
