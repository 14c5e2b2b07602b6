"""rules.simplify and rules.decision_list: fewer conditions, against plain Python and against what must hold."""

import csv
import dataclasses
import gzip
import tracemalloc

import numpy as np
import pytest
import rules_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from real_data import spambase
from rule_lists import as_given, coded_rows, rule_lists
from scipy import sparse
from test_rules_extract import coded, flu
from trees import tables

from kernelrules import check, rules, tree
from kernelrules.rules.conditions import halves, merged
from kernelrules.rules.simplify import _read, _simplified


def noisy(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    return X, np.where(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0, "yes", "no")


# ---- one rule ---------------------------------------------------------------------------------------------------


@given(rule_lists(), st.integers(0, 2**32 - 1), st.sampled_from([None, 0.25, 0.05, 0.5]), st.booleans())
@settings(max_examples=150)
def test_conditions_dropped_as_in_plain_python(listed, seed, confidence, weighted):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 90))
    rows = coded_rows(listed, rng, n)
    y = rng.choice(listed.classes, size=n)
    weights = rng.integers(0, 4, size=n).astype(float) if weighted else np.ones(n)
    weights[0] = 1.0
    data = _read(listed, as_given(listed, rows), y, weights, "validation")
    found = _simplified(listed, data, confidence or 0.0, 2, None)
    for rule, judged in zip(listed, found, strict=True):
        parts = halves(rule.conditions)
        kept, (score, covered) = oracle.drop_parts(parts, rows, y == rule.prediction, weights, confidence)
        assert judged.conditions == merged(kept, 0)
        assert judged.covered == covered
        if score is None:
            assert judged.score == -np.inf
        else:
            np.testing.assert_allclose(judged.score, float(score), rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=30)
def test_regression_is_judged_by_squared_error(seed, weighted):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, size=(40, 3)).astype(float), rng.integers(0, 5, size=40).astype(float)
    found = rules.extract(tree.grow(X[:20], y[:20], criterion="squared_error", max_leaves=6))
    weights = rng.integers(1, 4, size=20).astype(float) if weighted else np.ones(20)
    data = _read(found, X[20:], y[20:], weights, "validation")
    for rule, judged in zip(found, _simplified(found, data, 0.0, 1, None), strict=True):
        holds = np.array([all(oracle.holds(c, row) for c in judged.conditions) for row in X[20:]])
        if holds.any():
            error = np.average((y[20:][holds] - rule.prediction) ** 2, weights=weights[holds])
            np.testing.assert_allclose(judged.score, -error, rtol=1e-12)
        for c in judged.conditions:  # no removal would do without a worse rule
            for part in halves((c,)):
                rest = [p for p in halves(judged.conditions) if p != part]
                wider = np.array([all(oracle.holds(p, row) for p in rest) for row in X[20:]])
                error = np.average((y[20:][wider] - rule.prediction) ** 2, weights=weights[wider])
                assert error > -judged.score


# ---- the list ---------------------------------------------------------------------------------------------------


def loss(listed, X, y):
    return float((rules.predict(listed, X) != y).mean())


@pytest.mark.parametrize("method", ["validation", "pessimistic"])
def test_what_a_simplified_list_is(method):
    X, y = noisy()
    V, u = noisy(seed=1) if method == "validation" else (X, y)
    full = rules.extract(tree.grow(X, y))
    short = rules.simplify(full, V, u, method=method)
    assert short.ordered
    assert 0 < len(short) < len(full)
    assert short.n_conditions < full.n_conditions / 2
    assert len({frozenset(rule.conditions) for rule in short}) == len(short)
    answering = rules.coverage(short, V)
    for i, rule in enumerate(short):
        here = answering.rule == i
        assert rule.n == here.sum() > 0
        assert rule.support == here.sum() / len(V)
        np.testing.assert_allclose(rule.shares, [(u[here] == c).mean() for c in short.classes])
        assert rule.confidence == rule.shares[list(short.classes).index(rule.prediction)]
        without = short[:i].rules + short[i + 1 :].rules
        assert loss(replaced(short, without), V, u) > loss(short, V, u)  # every rule is needed
    rest = answering.rule < 0
    np.testing.assert_allclose(short.default_shares, [(u[rest] == c).mean() for c in short.classes])
    if method == "validation":
        assert loss(short, V, u) <= loss(full, V, u)


def replaced(listed, kept):
    return dataclasses.replace(listed, rules=kept)


def test_rules_help_on_fresh_data():
    """What post-pruning is for: fewer conditions, and no worse on new rows."""
    X, y = spambase()[:2]
    order = np.random.default_rng(0).permutation(len(y))
    train, fresh = order[:3000], order[3000:]
    full = rules.extract(tree.grow(X[train], y[train]))
    short = rules.simplify(full, X[train], y[train], method="pessimistic")
    assert short.n_conditions < full.n_conditions / 5
    assert loss(short, X[fresh], y[fresh]) <= loss(full, X[fresh], y[fresh])


def test_smaller_confidence_drops_more():
    X, y = noisy(400)
    full = rules.extract(tree.grow(X, y))
    sizes = [rules.simplify(full, X, y, method="pessimistic", confidence=c).n_conditions for c in (0.5, 0.1, 0.001)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_weights_are_repeated_rows():
    X, y = noisy(80)
    full = rules.extract(tree.grow(X, y))
    weights = np.random.default_rng(3).integers(0, 4, size=80)
    for method in ("validation", "pessimistic"):
        weighted = rules.simplify(full, X, y, method=method, sample_weight=weights)
        repeated = rules.simplify(full, np.repeat(X, weights, axis=0), np.repeat(y, weights), method=method)
        assert str(weighted) == str(repeated)
        np.testing.assert_allclose([r.support for r in weighted], [r.support for r in repeated])


def test_order_of_rows_and_threads_do_not_matter():
    X, y = noisy(300)
    full = rules.extract(tree.grow(X, y))
    order = np.random.default_rng(0).permutation(300)
    texts = {str(rules.simplify(full, X, y, n_threads=k)) for k in (1, 2, 5)}
    texts.add(str(rules.simplify(full, X[order], y[order])))
    assert len(texts) == 1


@pytest.mark.parametrize("method", ["validation", "pessimistic", "regression"])
def test_rounding_decides_no_ties(method):
    """Neither the order of the rows nor the unit of weights or targets, in tables that are full of ties."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X, order = rng.integers(0, 3, (120, 4)).astype(float), rng.permutation(60)
        y = ((X[:, 0] > 0) ^ (rng.random(120) < 0.3)).astype(int)
        options = {"method": method}
        if method == "regression":
            y, options = X[:, 0] + rng.integers(0, 3, 120), {}
        grow = {"criterion": "squared_error"} if method == "regression" else {}
        full = rules.extract(tree.grow(X[:60], y[:60], **grow))
        V, u, tenths = X[60:], y[60:], rng.integers(1, 4, 60) * 0.1
        reported = str(rules.simplify(full, V, u, sample_weight=tenths, **options))
        assert str(rules.simplify(full, V[order], u[order], sample_weight=tenths[order], **options)) == reported
        if method != "pessimistic":  # that counts weights as rows
            assert str(rules.simplify(full, V, u, sample_weight=np.rint(10 * tenths), **options)) == reported
            alike = [rules.simplify(full, V, u, sample_weight=np.full(60, w), **options) for w in (0.1, 1.0, 3.3)]
            assert len(set(map(str, alike))) == 1


def test_regression_lists():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = 2.0 * (X[:, 0] > 0) + rng.normal(size=300)
    full = rules.extract(tree.grow(X[:150], y[:150], criterion="squared_error"))
    short = rules.simplify(full, X[150:], y[150:])
    before, after = (np.mean((rules.predict(r, X[150:]) - y[150:]) ** 2) for r in (full, short))
    assert after <= before
    assert short.n_conditions < full.n_conditions
    both = rules.extract(tree.grow(X, np.column_stack([y, -y]), criterion="squared_error", max_leaves=5))
    assert rules.predict(rules.simplify(both, X, np.column_stack([y, -y])), X).shape == (300, 2)


def test_missing_values_and_levels(shared):
    with gzip.open(shared / "data" / "weka_vote.csv.gz", "rt") as lines:
        _, *rows = list(csv.reader(lines))
    X = np.array([[None if cell in ("", "?", "NA") else cell for cell in row[:-1]] for row in rows], dtype=object)
    y = np.array([row[-1] for row in rows])
    grown = tree.grow(X[::2], y[::2])
    short = rules.simplify(rules.extract(grown), X[1::2], y[1::2])
    assert loss(short, X[1::2], y[1::2]) <= 0.05
    assert len(short) <= 5


def test_one_class_one_row_and_constant_columns():
    found = rules.extract(tree.grow([[0.0], [1.0]], ["a", "b"]))
    one = rules.simplify(found, [[0.0]], ["a"])
    assert rules.predict(one, [[5.0]]).tolist() == ["a"]
    assert str(rules.simplify(found, np.ones((9, 1)), ["b"] * 9)) == "OTHERWISE → b"
    lone = rules.extract(tree.grow([[0.0], [0.0]], ["a", "a"]))
    assert str(rules.simplify(lone, [[0.0]], ["a"])) == "OTHERWISE → a"


def test_what_simplify_refuses():
    X, y = noisy(50)
    full = rules.extract(tree.grow(X, y))
    of_numbers = rules.extract(tree.grow(X, (X[:, 0] > 0).astype(int)))
    regression = rules.extract(tree.grow(X, X[:, 0], criterion="squared_error"))
    endless = np.where(np.arange(8).reshape(2, 4) == 6, np.inf, X[:2])
    for says, kind, call in [
        ("simplify needs X_val and y_val.*a validation set", ValueError, lambda: rules.simplify(full)),
        ("the training data", ValueError, lambda: rules.simplify(full, X, method="pessimistic")),
        ("X_val has 3 columns but the rules were grown on 4", ValueError, lambda: rules.simplify(full, X[:, :3], y)),
        ("y_val holds 'maybe', which", ValueError, lambda: rules.simplify(full, X[:1], ["maybe"])),
        ("y_val holds 2, which", ValueError, lambda: rules.simplify(of_numbers, X[:3], [0, 1, 2])),
        ("X_val holds inf at row 1, column 2", ValueError, lambda: rules.simplify(full, endless, y[:2])),
        (
            "X_val holds inf at row 1, column 2",
            ValueError,
            lambda: rules.simplify(full, sparse.csr_array(endless), y[:2]),
        ),
        ("y_val has 49 entries but X_val has 50 rows", ValueError, lambda: rules.simplify(full, X, y[:49])),
        ("X_val has no rows", ValueError, lambda: rules.simplify(full, X[:0], y[:0])),
        ("method must be", ValueError, lambda: rules.simplify(full, X, y, method="guess")),
        ("confidence must be in", ValueError, lambda: rules.simplify(full, X, y, confidence=0.6)),
        ("confidence must be greater than 0", ValueError, lambda: rules.simplify(full, X, y, confidence=0.0)),
        ("confidence must be a number", TypeError, lambda: rules.simplify(full, X, y, confidence="a")),
        (
            "sample_weight must not be negative",
            ValueError,
            lambda: rules.simplify(full, X, y, sample_weight=-np.ones(50)),
        ),
        ("for a regression use", ValueError, lambda: rules.simplify(regression, X, X[:, 0], method="pessimistic")),
        ("y_val must hold real numbers", check.DtypeError, lambda: rules.simplify(regression, X, y)),
        ("rs must be a RuleList", TypeError, lambda: rules.simplify("rules", X, y)),
        ('order must be "short", "support"', ValueError, lambda: rules.decision_list(full, order="long")),
        ("rs must be a RuleList", TypeError, lambda: rules.decision_list(None)),
    ]:
        with pytest.raises(kind, match=says):
            call()


def test_simplify_tells_of_progress():
    X, y = noisy(50)
    reported = []
    rules.simplify(rules.extract(tree.grow(X, y)), X, y, callback=reported.append)
    assert reported[-1].what == "simplify"
    assert reported[-1].fraction == 1.0


def test_no_rule_comes_after_one_that_always_holds():
    """A rule without rows loses all conditions; what is worth less than it does not count, and the default decides."""
    cuts = tree.grow([[0.0], [10.0], [1000.0]] * 4, ["a", "b", "a"] * 4)
    full = rules.extract(cuts, ["A"])
    assert str(full) == "A ≤ 5 → a\n5 < A ≤ 505 → b\nA > 505 → a"
    X, y = np.repeat([[0.0], [10.0]], [16, 4], axis=0), ["a"] * 17 + ["b"] * 3
    assert str(rules.simplify(full, X, y)) == "A ≤ 5 → a\nOTHERWISE → b"


# ---- decision lists ---------------------------------------------------------------------------------------------


@given(
    st.data(), st.sampled_from(["gini", "squared_error"]), st.sampled_from(["short", "support", "confidence", "given"])
)
def test_a_decision_list_answers_as_the_tree(data, criterion, order):
    table = data.draw(tables(criterion))
    grown = table.grow()
    full = rules.extract(grown)
    ordered = rules.decision_list(full, order=order)
    assert ordered.ordered
    assert len(ordered) < len(full)
    assert ordered.n_conditions <= full.n_conditions
    for row in coded(grown, table.X):
        assert oracle.prediction(ordered, row) == oracle.prediction(full, row)
    X = table.X
    np.testing.assert_array_equal(rules.predict(ordered, X), tree.predict(grown, X))
    # The same rows come to each rule, so that its figures stay right.
    covered, before = rules.coverage(ordered, X), rules.coverage(full, X)
    rows = {frozenset(np.flatnonzero(before.rule == i)) for i in range(len(full))}
    assert all(frozenset(np.flatnonzero(covered.rule == i)) in rows for i in range(len(ordered)))


@given(
    st.data(), st.sampled_from(["gini", "squared_error"]), st.sampled_from(["short", "support", "confidence", "given"])
)
def test_conditions_go_one_after_the_other(data, criterion, order):
    """Each against all later rules, in plain Python."""
    full = rules.extract(data.draw(tables(criterion)).grow())
    ordered = rules.decision_list(full, order=order)
    last = [rule for rule in full if rule.prediction == ordered.default]
    listed = [rule for rule in full if rule.prediction != ordered.default]
    keys = {
        "short": lambda rule: (len(rule.conditions), -rule.support),
        "support": lambda rule: -rule.support,
        "confidence": lambda rule: (-rule.confidence if rule.confidence == rule.confidence else 0.0, -rule.support),
        "given": lambda rule: 0,
    }
    listed.sort(key=keys[order])
    assert len(listed) == len(ordered)
    for place, (rule, found) in enumerate(zip(listed, ordered, strict=True)):
        assert found.conditions == oracle.needed(rule.conditions, [*listed[place + 1 :], *last])


def test_a_decision_list_of_thousands_of_rules():
    """Boxes are searched by their hulls: those of a large tree lose the same conditions as one by one."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(3000, 4)), rng.integers(0, 6, (3000, 2))])
    X[rng.random(X.shape) < 0.03] = np.nan
    full = rules.extract(tree.grow(X, rng.integers(0, 3, 3000), categorical=[4, 5]))
    ordered = rules.decision_list(full, order="given")
    last = [rule for rule in full if rule.prediction == ordered.default]
    listed = [rule for rule in full if rule.prediction != ordered.default]
    assert len(full) > 500
    for place in range(0, len(listed), 97):
        later = [*listed[place + 1 :], *last]
        assert ordered[place].conditions == oracle.needed(listed[place].conditions, later)


def test_the_lectures_rules_in_order():
    rows, risks, names = flu()
    ordered = rules.decision_list(rules.extract(tree.grow(rows, risks), names))
    assert str(ordered).splitlines() == [
        "contact = yes → high-risk",
        "feeding = no & close-living = no → low-risk",
        "OTHERWISE → medium-risk",
    ]
    np.testing.assert_array_equal(rules.predict(ordered, rows), risks)
    np.testing.assert_allclose(ordered.default_shares, [0, 0, 1])


def test_decision_lists_of_other_lists():
    found = rules.extract(tree.grow([[0.0], [1.0], [2.0]], ["a", "b", "c"]))
    ordered = rules.decision_list(found)
    assert rules.decision_list(ordered) is ordered
    part = rules.decision_list(found[1:])
    assert rules.predict(part, [[0.0], [1.0], [2.0]]).tolist() == ["a", "b", "c"]
    assert part.default == "a"


def test_columns_that_no_rule_asks_for_cost_nothing():
    """A million columns, of which a tree uses four: reading all of them for each rule would take 17 GB."""
    X, y = noisy(300)
    full = rules.extract(tree.grow(X, y))
    p = 10**6
    spread = [
        dataclasses.replace(
            rule, conditions=tuple(dataclasses.replace(c, feature=250_000 * c.feature + 7) for c in rule.conditions)
        )
        for rule in full
    ]
    wide = dataclasses.replace(
        full, rules=tuple(spread), levels=(None,) * p, feature_names=("w",) * p, n_features=p, missing_seen=None
    )
    tracemalloc.start()
    found = rules.decision_list(wide)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24
    reported = rules.decision_list(full)
    assert [[(c.feature - 7) // 250_000 for c in rule.conditions] for rule in found] == [
        [c.feature for c in rule.conditions] for rule in reported
    ]


def test_weights_that_are_shares_are_warned_of():
    X, y = noisy(100)
    full, shares = rules.extract(tree.grow(X, y)), np.full(100, 0.01)
    for call in (
        lambda **given: rules.simplify(full, X, y, method="pessimistic", **given),
        lambda **given: rules.induce(X, y, rng=0, **given),
    ):
        with pytest.warns(rules.WeightWarning, match="those of 100 rows sum to 1 only") as reported:
            call(sample_weight=shares)
        assert reported[0].filename == __file__
        call(sample_weight=20 * shares)
    rules.simplify(full, X, y, sample_weight=shares)
