"""Oblique splits and linear leaves as rules and as source: conditions on sums, predictions by linear functions."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from exported import read_dot, read_mermaid
from saved_results import loaded, saved
from scipy import sparse
from test_export import run_python, run_sql

from kernelrules import export, rules, tree
from kernelrules.results import LinearFunction

MISSING = ["extra", "impute", "zero", "error"]
NAMES = ["f0", "f1", "f2", "f3"]


def table(kind, missing, seed=0, n=160):
    """Rows, of which some lack values, and a tree with sums."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(2)
    X[:, 3] = rng.integers(3, size=n)
    signal = X[:, 0] - 2 * X[:, 1] + np.where(X[:, 3] == 1, X[:, 2], 0)
    if missing != "error":
        X[:, 2:][rng.random((n, 2)) < 0.1] = np.nan  # columns that lack values in a node are in none of its sums
    options = {"missing": missing, "max_depth": 4, "rng": 0, "categorical": [3]}
    if kind == "classes":
        return X, tree.grow(X, np.where(signal > 0.3, "a", "b"), splits="oblique", **options)
    splits = "axis" if kind == "linear leaves" else "oblique"
    leaf = "constant" if kind == "numbers" else "linear"
    return X, tree.grow(X, signal, criterion="squared_error", splits=splits, leaf=leaf, **options)


def new_rows(missing, seed=1, n=300):
    rng = np.random.default_rng(seed)
    X = 2 * rng.normal(size=(n, 4))
    X[:, 3] = rng.integers(4, size=n)  # one level is new
    if missing != "error":
        X[rng.random(X.shape) < 0.15] = np.nan
    return X


KINDS = ["classes", "numbers", "linear leaves", "both"]


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("kind", KINDS)
def test_rules_and_sources_answer_as_the_tree(kind, missing):
    X, grown = table(kind, missing)
    assert kind == "linear leaves" or (grown.feature >= 4).any()
    rows = np.vstack([X, new_rows(missing)])
    found = rules.extract(grown, NAMES)
    for some in (rows, rows.astype(np.float32)):
        expected = tree.predict(grown, some)
        np.testing.assert_array_equal(rules.predict(found, some), expected)
        leaves = np.flatnonzero(grown.left < 0)
        np.testing.assert_array_equal(leaves[rules.coverage(found, some).rule], tree.apply(grown, some))
        short = rules.decision_list(found)
        assert short.n_conditions <= found.n_conditions
        np.testing.assert_array_equal(rules.predict(short, some), expected)
    expected = tree.predict(grown, rows).tolist()
    covered = rules.coverage(found, rows)
    assert covered.raw.sum() == len(rows)  # one rule for each row
    for model in (grown, found, short):
        assert run_python(export.to_python(model), rows.tolist()) == expected
        answers = run_sql(export.to_sql(model, NAMES), NAMES, rows.tolist())
        if kind == "classes":
            assert answers == expected
        else:
            np.testing.assert_allclose(answers, expected, rtol=1e-12, atol=1e-12)
    if kind == "classes":
        np.testing.assert_array_equal(rules.predict_proba(found, rows), tree.predict_proba(grown, rows))


def summed(row, direction):
    """As the core does it, one product after the other."""
    total = 0.0
    for value, factor in zip(row, direction, strict=True):
        total += value * factor
    return total


@pytest.mark.parametrize("seed", range(20))
def test_rows_on_the_boundary(seed):
    """The threshold is the sum of one row, or the number before or after it: no other order of the terms would do."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6))
    grown = tree.grow(X, X.sum(axis=1) > 0, splits="oblique", max_depth=1)
    direction = grown.directions[0]
    for row in X[:10]:
        here = summed(row, direction)
        for threshold in (np.nextafter(here, -np.inf), here, np.nextafter(here, np.inf)):
            moved = replace(grown, threshold=np.array([threshold, np.nan, np.nan]))
            expected = grown.value.argmax(axis=1)[1 if here <= threshold else 2] == 1
            assert tree.predict(moved, row[None])[0] == expected
            found = rules.extract(moved)
            assert rules.predict(found, row[None])[0] == expected
            assert run_python(export.to_python(moved), [row.tolist()]) == [expected]
            assert run_python(export.to_python(found), [row.tolist()]) == [expected]


def test_the_order_of_terms_matters():
    """Otherwise the test above would show nothing."""
    rng = np.random.default_rng(0)
    rows, direction = rng.normal(size=(100, 6)), rng.normal(size=6)
    assert any(summed(row, direction) != summed(row[::-1], direction[::-1]) for row in rows)


def test_boundaries_in_sql():
    """Of numbers that every database reads and adds without rounding."""
    grown = tree.grow(np.eye(3)[[0, 1, 2, 2]], [0, 0, 1, 1], splits="oblique", max_depth=1)
    slanted = replace(
        grown,
        feature=np.array([3, -1, -1]),
        directions=np.array([[0.5, -1.25, 0.0]]),
        threshold=np.array([0.75, np.nan, np.nan]),
        missing_left=np.array([False, False, False]),
    )
    rows = [[1.5, 0.0, 9.0], [4.0, 1.0, 9.0], [1.75, 0.0, 9.0], [-1.0, -1.0, None], [None, 1.0, 0.0], [4.0, 2.0, None]]
    expected = [0, 0, 1, 0, 1, 0]
    names = ["a", "b", "c"]
    assert run_sql(export.to_sql(slanted, names), names, rows) == expected
    assert run_python(export.to_python(slanted), rows) == expected
    assert tree.predict(slanted, np.array(rows, dtype=float)).tolist() == expected
    assert '(0.5 * "a" - 1.25 * "b") <= 0.75 THEN' in export.to_sql(slanted, names)
    assert str(rules.extract(slanted, names)) == "0.5·a - 1.25·b ≤ 0.75 → 0\n0.5·a - 1.25·b > 0.75 → 1"


def test_sums_that_overflow():
    """Infinite sums lie beyond every threshold, and those that are no number are missing, in the tree as in rules."""
    X, _ = table("classes", "error")
    grown = tree.grow(X[:, :3], X[:, 0] - X[:, 1] > 0, splits="oblique", max_depth=2)
    huge = 1e308 * np.array(list(itertools.product([-1.7, 0.0, 1.7], repeat=3)))
    found = rules.extract(replace(grown, directions=1e3 * grown.directions))
    expected = tree.predict(replace(grown, directions=1e3 * grown.directions), huge)
    np.testing.assert_array_equal(rules.predict(found, huge), expected)
    assert run_python(export.to_python(found), huge.tolist()) == expected.tolist()


# ---- what is made of such rules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_documents(kind):
    X, grown = table(kind, "impute")
    extracted = rules.extract(grown, NAMES)
    ordered = rules.decision_list(extracted)
    assert isinstance(ordered.default, LinearFunction) == (kind in ("linear leaves", "both"))
    for found in (extracted, ordered):
        for again in (export.from_json(export.to_json(found)), loaded(saved(found))):
            assert str(again) == str(found)
            assert [rule.prediction for rule in again] == [rule.prediction for rule in found]
            assert again.default == found.default
            np.testing.assert_array_equal(rules.predict(again, X), rules.predict(found, X))


def test_pictures_say_sums():
    _, grown = table("both", "error")
    node = int(np.flatnonzero(grown.feature >= 4)[0])
    asked = export.to_text(grown, NAMES).splitlines()
    for read, write in ((read_dot, export.to_dot), (read_mermaid, export.to_mermaid)):
        labels, _ = read(write(grown, NAMES))
        assert any(labels[str(node)] in line for line in asked)
        assert "·f0" in labels[str(node)]
        labels, _ = read(write(rules.extract(grown, NAMES)))
        assert "·f0" in labels["1"]  # what the first rule predicts
    exact = export.to_text(rules.extract(grown, NAMES), exact=True)
    assert repr(abs(float(grown.directions[0][0]))) in exact


def test_missing_values_of_sums_are_said_where_there_were_any():
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = X[:, 0] > X[:, 1]
    options = {"splits": "oblique", "max_depth": 1}
    assert "missing" not in export.to_text(tree.grow(X, y, **options))
    assert export.to_text(tree.grow(X, y, **options), exact=True).count(" or missing") == 1
    grown = tree.grow(X, y, **options)
    assert export.to_text(replace(grown, missing_seen=np.array([True, False]))).count(" or missing") == 1
    assert "missing" not in export.to_text(tree.grow(X, y, missing="impute", **options), exact=True)


def test_simplify_takes_sums_and_refuses_functions():
    X, grown = table("classes", "extra")
    y = tree.predict(grown, X)
    found = rules.extract(grown, NAMES)
    short = rules.simplify(found, X, y)
    assert (rules.predict(short, X) == y).mean() > 0.97
    assert short.n_conditions < found.n_conditions
    assert any(c.feature >= 4 for rule in short for c in rule.conditions)
    X, grown = table("linear leaves", "error")
    with pytest.raises(ValueError, match="predict linear functions"):
        rules.simplify(rules.extract(grown), X, X[:, 0])


@pytest.mark.parametrize("kind", ["oblique", "linear"])
def test_sparse_rows(kind):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((90, 5)) < 0.5, rng.normal(size=(90, 5)), 0.0)
    options = {"splits": "oblique"} if kind == "oblique" else {"leaf": "linear"}
    grown = tree.grow(sparse.csr_array(X), X[:, 0] + X[:, 1], criterion="squared_error", max_depth=2, **options)
    found = rules.extract(grown)
    np.testing.assert_array_equal(rules.predict(found, sparse.csr_array(X)), tree.predict(grown, X))


def test_sums_of_many_columns():
    """Longer than a parser would nest."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3000))
    grown = tree.grow(X, X[:, 0], criterion="squared_error", leaf="linear", max_depth=0)
    assert run_python(export.to_python(grown), X[:3].tolist()) == tree.predict(grown, X[:3]).tolist()


# ---- what is refused ----------------------------------------------------------------------------------------------


def test_documents_that_point_outside_are_refused():
    _, grown = table("both", "error")
    good = json.loads(export.to_json(rules.extract(grown)))
    functions = [rule for rule in good["rules"] if isinstance(rule["prediction"], dict)]
    sums = [c for rule in good["rules"] for c in rule["conditions"] if c["feature"] >= 4]
    for where, name, wrong in (
        (functions[0]["prediction"], "features", [0, 99]),
        (functions[0]["prediction"], "features", [3, 1, 0]),
        (functions[0]["prediction"], "features", [0.5]),
        (functions[0]["prediction"], "coefficients", [1.0]),
        (functions[0]["prediction"], "constant", "much"),
        (sums[0], "feature", 4 + len(grown.directions)),
        (sums[0], "categories", [0]),
        (good, "directions", None),
        (good, "fill", {"dtype": "<f8", "shape": [1], "data": [0.0]}),
        (good["directions"], "shape", [4, len(grown.directions)]),
    ):
        kept, where[name] = where[name], wrong
        with pytest.raises(ValueError, match="does not describe a rule"):
            export.from_json(json.dumps(good))
        where[name] = kept
    export.from_json(json.dumps(good))


def test_functions_compare_by_what_they_hold():
    one, other = LinearFunction((0, 2), (1.0, -2.0), 3.0, 4.0), LinearFunction((0, 2), (1.0, -2.0), 3.0, 4.0)
    assert one == other
    assert len({one, other, replace(one, constant=5.0)}) == 2
    assert one.row(3).tolist() == [1.0, 0.0, -2.0, 3.0]
    assert repr(one) == "LinearFunction(2 features, constant 3)"
