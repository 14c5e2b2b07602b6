"""Rules of many rows and in any memory layout, and what stops them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupting import seconds_to_stop
from strategies import layouts

from kernelrules import rules, tree
from kernelrules.results import Condition, Rule, RuleList


def listed(p, n_rules, seed=0, most=3):
    """Rules of random intervals."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_rules):
        columns = rng.permutation(p)[: rng.integers(1, most + 1)]
        made = [
            Condition(int(j), *np.sort(rng.normal(size=2)).tolist(), missing=bool(rng.random() < 0.5)) for j in columns
        ]
        found.append(Rule(tuple(made), float(rng.normal()), 0.1, np.nan, 1, 1.0))
    return RuleList(tuple(found), 0.0, None, None, tuple(f"x{j}" for j in range(p)), None, (None,) * p, p, ordered=True)


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
    X = np.zeros((10, 5000))
    X[:5, 4999] = 1.0
    found = rules.extract(tree.grow(X, X[:, 4999]))
    np.testing.assert_array_equal(rules.predict(found, X), X[:, 4999])
    assert rules.coverage(found, X).raw.tolist() == [5, 5]


STOPPED = """
import time
import numpy as np
from kernelrules import rules, tree
import sys
sys.path.insert(0, {folder!r})
from test_rules_large import listed
rng = np.random.default_rng(0)
{prepare}
print("ready", flush=True)
try:
    while True:
        {call}
except KeyboardInterrupt:
    print("interrupted", time.time(), flush=True)
"""
CALLS = {
    "predict": ("found, X = listed(12, 300, most=6), rng.normal(size=(400_000, 12))", "rules.predict(found, X)"),
    "coverage": ("found, X = listed(12, 2000), rng.normal(size=(60_000, 12))", "rules.coverage(found, X)"),
    "simplify": (
        "X = rng.normal(size=(20_000, 8)); y = rng.normal(size=20_000) > X[:, 0]; "
        "found = rules.extract(tree.grow(X, y, max_leaves=2000))",
        "rules.simplify(found, X, y)",
    ),
    "first use": ("found, X = listed(40, 20_000, most=6), rng.normal(size=(3, 40))", "rules.predict(found[:], X)"),
}


@pytest.mark.parametrize("what", CALLS)
def test_stops_when_asked(what):
    prepare, call = CALLS[what]
    assert seconds_to_stop(STOPPED.format(folder=str(Path(__file__).parent), prepare=prepare, call=call)) < 1.0
