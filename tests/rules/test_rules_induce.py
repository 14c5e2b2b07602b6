"""Induction of rules as a whole: what must hold of any list, and of any input."""

import importlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from induced import tables
from interrupting import seconds_to_stop
from scipy import sparse
from strategies import csr_forms, layouts

from kernelrules import rules


def problem(n=400, p=6, seed=0):
    """Two classes: a box, a level, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, -1] = rng.integers(3, size=n)
    y = ((X[:, 0] > 0.5) & (X[:, 1] <= 0.3)) | ((X[:, -1] == 2) & (X[:, 2] > 1))
    return X, np.where(y ^ (rng.random(n) < 0.03), "in", "out")


def described(found):
    return [(rule.conditions, rule.prediction, rule.n) for rule in found], found.default


def test_finds_the_rules():
    X, y = problem(2000)
    found = rules.induce(X, y, categorical=[-1], rng=0)
    assert (rules.predict(found, X) == y).mean() > 0.95
    assert 2 <= len(found) <= 4
    assert {c.feature for rule in found for c in rule.conditions} <= {0, 1, 2, 5}
    first = {c.feature: c for c in found[0].conditions}
    assert first[0].low == pytest.approx(0.5, abs=0.05)
    assert first[1].high == pytest.approx(0.3, abs=0.05)


def three_classes(labels):
    """Three classes of equal weight, each a stretch of the one column."""
    return np.arange(30.0).reshape(-1, 1), np.repeat(labels, 10)


def test_classes_of_equal_weight_come_in_the_order_of_their_labels():
    for labels in (["b", "c", "a"], ["c", "a", "b"]):
        X, y = three_classes(labels)
        found = rules.induce(X, y, prune=False)
        assert [rule.prediction for rule in found] == ["a", "b"]
        assert found.default == "c"
        y[0] = labels[1]  # now the first is rarer, and the second more frequent
        found = rules.induce(X, y, prune=False)
        assert found[0].prediction == labels[0]
        assert found.default == labels[1]


@pytest.mark.parametrize("order", list(itertools.permutations(["a", "b", "c"])))
def test_class_order_is_the_order_of_the_rules(order):
    X, y = three_classes(["b", "c", "a"])
    found = rules.induce(X, y, prune=False, class_order=order)
    assert ([rule.prediction for rule in found], found.default) == (list(order[:2]), order[2])
    again = rules.induce(X, np.array([order.index(label) for label in y]), prune=False)  # labels in that order
    assert [rule.conditions for rule in found] == [rule.conditions for rule in again]
    found = rules.induce(X, y, rng=0, class_order=np.array(order), sample_weight=(y != order[0]).astype(float))
    assert order[0] not in {rule.prediction for rule in found}  # no row of it counts


def test_class_order_may_be_that_of_weights():
    X, y = problem()
    first, last = sorted(np.unique(y), key=lambda label: (y == label).sum())
    same = rules.induce(X, y, rng=0, class_order=[first, last])
    assert described(same) == described(rules.induce(X, y, rng=0))
    other = rules.induce(X, y, rng=0, class_order=[last, first])
    assert {rule.prediction for rule in other} == {last}


@pytest.mark.parametrize(
    ("order", "error", "says"),
    [
        ("in", TypeError, "must be a sequence"),
        (3, TypeError, "must be a sequence"),
        (np.array("in"), TypeError, "must be a sequence"),
        ([("in", []), "out"], ValueError, "not one of the classes"),
        (["in"], ValueError, "lacks 'out'"),
        (["in", "out", "in"], ValueError, "has 'in' twice"),
        (["in", "out", "off"], ValueError, "has 'off', which is not one"),
        ([["in"], "out"], ValueError, "not one of the classes"),
        ([], ValueError, "lacks 'in'"),
    ],
)
def test_orders_that_are_none_are_refused(order, error, says):
    with pytest.raises(error, match=says):
        rules.induce(*problem(50), class_order=order)


@pytest.mark.parametrize("options", [{}, {"prune": False}, {"optimise": 0}, {"variants": 2, "min_margin": 0.0}])
def test_statistics_are_of_first_matches(options):
    X, y = problem()
    X[::7, 0] = np.nan
    w = np.random.default_rng(1).integers(0, 4, size=len(y)).astype(float)
    found = rules.induce(X, y, categorical=[-1], sample_weight=w, rng=3, **options)
    left = w > 0
    for rule in found:
        mine = left.copy()
        for c in rule.conditions:
            x = X[:, c.feature]
            known = ~np.isnan(x)
            mine &= known & (np.isin(x, c.categories) if c.categories is not None else (c.low < x) & (x <= c.high))
        left &= ~mine
        assert rule.n == mine.sum() > 0
        assert rule.weight == w[mine].sum()
        assert rule.support == pytest.approx(w[mine].sum() / w.sum())
        shares = [w[mine & (y == k)].sum() / w[mine].sum() for k in found.classes]
        np.testing.assert_allclose(rule.shares, shares)
        assert rule.confidence == shares[list(found.classes).index(rule.prediction)]
    np.testing.assert_allclose(found.default_shares, [w[left & (y == k)].sum() / w[left].sum() for k in found.classes])
    assert found.default == found.classes[found.default_shares.argmax()]
    assert found.ordered


def test_same_rules_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 30))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 1).astype(int)
    one, two, three = (described(rules.induce(X, y, rng=1, optimise=1, tries=1, n_threads=k)) for k in (1, 2, 3))
    assert one == two == three


def test_seed_decides():
    X, y = problem(seed=4)
    assert described(rules.induce(X, y, rng=5)) == described(rules.induce(X, y, rng=np.random.default_rng(5)))
    found = {str(described(rules.induce(X, y, rng=seed))) for seed in range(6)}
    assert len(found) > 1


@given(st.data())
def test_dense_is_csr(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = rng.poisson(0.4, size=(60, 5)) * 1.0
    y = (X[:, 0] > X[:, 1]) ^ (rng.random(60) < 0.1)
    w = rng.random(60) if data.draw(st.booleans()) else None
    as_sparse = data.draw(csr_forms(X))
    found = [rules.induce(x, y, rng=0, sample_weight=w, min_weight=1.0, tries=1) for x in (X, as_sparse)]
    assert described(found[0]) == described(found[1])
    assert np.array_equal(rules.predict(found[0], X), rules.predict(found[1], as_sparse))


@given(st.data())
def test_layouts_and_types(data):
    X, y = problem(120)
    X = X.astype(np.float32)
    there = data.draw(layouts(X))
    here = described(rules.induce(X, y, rng=0, tries=1))
    assert here == described(rules.induce(there, y, rng=0, tries=1))
    assert here == described(rules.induce(X.astype(float), y, rng=0, tries=1))


def test_order_of_columns():
    """Columns in another order: the same rules, but for ties."""
    X, y = problem(500)
    order = [3, 0, 5, 1, 4, 2]
    here, there = rules.induce(X, y, rng=0), rules.induce(X[:, order], y, rng=0)

    def named(found, number):
        return [{(number[c.feature], c.low, c.high) for c in rule.conditions} for rule in found]

    assert named(here, range(6)) == named(there, order)


def test_scales_do_not_matter():
    X, y = problem(500)
    here, there = rules.induce(X, y, rng=0), rules.induce(X * 1024 + 4096, y, rng=0)
    assert [rule.n for rule in here] == [rule.n for rule in there]


@given(tables(most_rows=40), st.booleans(), st.integers(1, 4), st.sampled_from(["fail", "extra"]))
def test_whatever_comes(table, prune, n_classes, missing):
    """Small nasty tables: rules cover rows, probabilities are such, predictions of training rows are consistent."""
    X, n_levels, _, weights = table
    y = np.random.default_rng(len(X)).integers(n_classes, size=len(X))
    options = {"prune": prune, "tries": 1, "missing": missing, "sample_weight": weights}
    found = rules.induce(X, y, categorical=np.flatnonzero(n_levels), rng=0, **options)
    first = rules.coverage(found, X).first
    assert [rule.n for rule in found] == np.asarray(first)[: len(found)].tolist()
    total = sum(rule.weight for rule in found)
    assert total <= (len(X) if weights is None else weights.sum())
    assert all(rule.n > 0 and rule.conditions for rule in found)
    assert found.default_shares.sum() == pytest.approx(1)
    assert set(rules.predict(found, X)) <= set(y)


def test_classes_from_the_rarest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.select([X[:, 0] > 1.3, X[:, 1] > 0.8], ["rare", "middle"], "most")
    found = rules.induce(X, y, rng=0)
    order = [str(rule.prediction) for rule in found]
    assert order == sorted(order, key=["rare", "middle", "most"].index)
    assert set(order) == {"rare", "middle"}
    assert found.default == "most"
    assert (rules.predict(found, X) == y).mean() > 0.97


def test_the_share_of_a_class_is_among_those_still_to_be_learned(monkeypatch):
    """It sets the bits of errors: with many classes, those learned before no longer count."""
    module = importlib.import_module("kernelrules.rules.induce")  # the name in rules is the function
    shares = []

    class Recorded(module.ClassLearner):
        def __init__(self, data, rows, positive, share, *rest):
            shares.append(share)
            super().__init__(data, rows, positive, share, *rest)

    monkeypatch.setattr(module, "ClassLearner", Recorded)
    y = np.repeat(["d", "c", "b", "a"], [40, 30, 20, 10])
    X = np.random.default_rng(0).normal(size=(100, 2))
    rules.induce(X, y, rng=0)
    assert shares == pytest.approx([10 / 100, 20 / 90, 30 / 70])
    shares.clear()
    rules.induce(X, y, rng=0, sample_weight=np.repeat([1.0, 1.0, 4.0, 1.0], [40, 30, 20, 10]))
    assert shares == pytest.approx([10 / 160, 30 / 150, 40 / 120])


# ---- awkward data -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0], [1.0]], [1, 1]),  # one class
        ([[3.0]], [7]),  # one row
        (np.zeros((30, 3)), [0, 1, 1] * 10),  # constant
        (np.full((9, 2), np.nan), [0, 1, 1] * 3),  # missing everywhere
        ([[1.0, 2.0]] * 8, [0, 1] * 4),  # conflicting duplicates
        ([["a"]] * 6 + [[None]] * 6, [0, 1] * 6),
    ],
)
def test_nothing_to_learn(X, y, prune):
    found = rules.induce(X, y, prune=prune, rng=0)
    assert len(found) == 0
    counts = np.bincount(y)
    assert counts[found.default] == counts.max()
    assert (rules.predict(found, X) == found.default).all()


def test_missing_fails_every_condition():
    X = np.array([[1.0], [1.0], [1.0], [np.nan], [np.nan], [np.nan], [0.0], [0.0], [0.0], [0.0]])
    y = np.array(["a", "a", "a", "b", "b", "b", "b", "b", "b", "b"])
    found = rules.induce(X, y, prune=False)
    assert str(found) == "x0 > 0.5 → a\nOTHERWISE → b"
    assert rules.predict(found, [[np.nan]]) == ["b"]
    with pytest.raises(ValueError, match="X holds nan at row 3"):
        rules.induce(X, y, missing="error")


@pytest.mark.parametrize("value", [1.0, "a"])
def test_missing_as_an_extra_condition(value):
    X = [[value, 0.0]] * 6 + [[None, 1.0]] * 4
    y = ["n"] * 6 + ["p"] * 4
    X[0] = [None, 0.0]
    found = rules.induce(X, y, prune=False, missing="extra")
    assert str(found) == "x1 > 0.5 → p\nOTHERWISE → n"
    alone = [row[:1] for row in X]
    found = rules.induce(alone, y, prune=False, missing="extra")
    assert str(found) == "x0 is missing → p\nOTHERWISE → n"
    assert found[0].n == 5
    assert list(rules.predict(found, [[None], [value]])) == ["p", "n"]
    assert len(rules.induce(alone, y, prune=False)) == 0


def test_a_known_level_against_missing():
    found = rules.induce([["a"]] * 4 + [[None]] * 6, ["p"] * 4 + ["n"] * 6, prune=False)
    assert str(found) == "x0 = a → p\nOTHERWISE → n"


def test_zero_weight_leaves_rows_out():
    X, y = problem(300)
    w = (np.arange(300) % 3 > 0).astype(float)
    part = w > 0
    assert described(rules.induce(X, y, sample_weight=w, rng=0)) == described(rules.induce(X[part], y[part], rng=0))
    absent = np.where(y == "in", 0.0, 1.0)
    found = rules.induce(X, y, sample_weight=absent, rng=0)
    assert (len(found), found.default, list(found.classes)) == (0, "out", ["in", "out"])


@pytest.mark.filterwarnings("ignore::kernelrules.rules.WeightWarning")
@pytest.mark.parametrize("scale", [1e-300, 1e-5, 0.1, 1 / 3, 1e6, 1e300])
def test_weights_of_any_size(scale):
    X, y = problem(200)
    found = rules.induce(X, y, sample_weight=np.full(200, scale), min_weight=0.0, rng=0)
    assert found.default in ("in", "out")
    assert all(np.isfinite(rule.weight) and rule.n > 0 for rule in found)


def test_many_rows_are_tried_once():
    """As the state of the generator tells afterwards."""
    X, y = problem(10_001)

    def drawn(n, **options):
        rng = np.random.default_rng(0)
        rules.induce(X[:n], y[:n], rng=rng, **options)
        return rng.random()

    assert drawn(10_001) == drawn(10_001, tries=1)
    assert drawn(10_000) == drawn(10_000, tries=3) != drawn(10_000, tries=1)


def test_limits():
    X, y = problem(800, seed=2)
    free = rules.induce(X, y, rng=0)
    assert len(free) > 1
    assert len(rules.induce(X, y, max_rules=1, rng=0)) == 1
    assert len(rules.induce(X, y, max_rules=0, rng=0)) == 0
    assert max(len(rule.conditions) for rule in rules.induce(X, y, max_conditions=1, rng=0)) == 1
    few = rules.induce(X, y, min_weight=30.0, prune=False)
    assert all(rule.shares.max() * rule.weight >= 30 for rule in few)


def test_names():
    X, y = problem(300)
    found = rules.induce(X, y, feature_names=list("abcdef"), class_names=["inside", "outside"], rng=0)
    assert str(found).endswith("OTHERWISE → outside")
    assert "a > 0." in str(found)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"prune": 1}, TypeError, "prune must be True or False"),
        ({"grow_share": 1.0}, ValueError, "grow_share must be less than 1"),
        ({"grow_share": 0}, ValueError, "grow_share must be greater than 0"),
        ({"optimise": -1}, ValueError, "optimise must be at least 0"),
        ({"variants": 0}, ValueError, "variants must be at least 1"),
        ({"tries": 0}, ValueError, "tries must be at least 1"),
        ({"min_margin": -1}, ValueError, "min_margin must be at least 0"),
        ({"min_weight": -1}, ValueError, "min_weight must be at least 0"),
        ({"min_weight": math.nan}, ValueError, "min_weight must be finite"),
        ({"max_rules": 1.5}, ValueError, "max_rules must be a whole number"),
        ({"max_conditions": 0}, ValueError, "max_conditions must be at least 1"),
        ({"missing": "impute"}, ValueError, 'missing must be "fail", "extra" or "error"'),
        ({"missing": None}, ValueError, 'missing must be "fail", "extra" or "error"'),
        ({"categorical": "some"}, ValueError, "categorical must be"),
        ({"categorical": [9]}, ValueError, "categorical names column 9"),
        ({"sample_weight": [1.0]}, ValueError, "sample_weight has 1 entries"),
        ({"sample_weight": np.full(40, 1e308)}, ValueError, "sample_weight is too large"),
        ({"feature_names": ["a"]}, ValueError, "feature_names has 1 entries but there are 6 columns"),
        ({"class_names": "ab"}, TypeError, "class_names must be a sequence of strings"),
        ({"rng": "x"}, TypeError, "rng must be"),
        ({"n_threads": 0}, ValueError, "n_threads must be at least 1"),
        ({"callback": 3}, TypeError, "callback must be callable"),
    ],
)
def test_bad_options(options, error, text):
    X, y = problem(40)
    with pytest.raises(error, match=text):
        rules.induce(X, y, **options)


@pytest.mark.parametrize(
    ("X", "y", "text"),
    [
        (np.zeros((0, 2)), [], "X has no rows"),
        (sparse.csr_array((0, 2)), [], "X has no rows"),
        (np.zeros((2, 0)), [0, 1], "X has no columns"),
        (np.zeros(3), [0, 1, 1], "X must be two-dimensional"),
        ([[math.inf], [1.0]], [0, 1], "X holds inf at row 0"),
        (sparse.csr_array([[math.nan], [1.0]]), [0, 1], "X holds nan at row 0"),
        ([[1.0], [2.0]], [0, 1, 1], "y has 3 entries but X has 2 rows"),
        ([[1.0], [2.0]], [0.0, math.nan], "y holds nan"),
        ([[1j], [2.0]], [0, 1], "dtype complex"),
    ],
)
def test_bad_data(X, y, text):
    with pytest.raises(ValueError, match=text):
        rules.induce(X, y)


def test_bad_sparse_categorical():
    with pytest.raises(ValueError, match="categorical must be"):
        rules.induce(sparse.csr_array(np.eye(3)), [0, 1, 1], categorical="some")


def test_sparse_categories():
    """Named columns of sparse data may be categories; zeros are a level."""
    X = np.array([[2.0, 0], [2, 1], [2, 0], [0, 1], [0, 0], [1, 1], [1, 0], [0, 0]])
    found = rules.induce(sparse.csr_array(X), [1, 1, 1, 0, 0, 0, 0, 0], categorical=[0], prune=False)
    assert str(found) == "x0 = 2.0 → 1\nOTHERWISE → 0"


# ---- running ----------------------------------------------------------------------------------------------------


def test_callback_is_told_and_may_stop():
    X, y = problem(200)
    seen = []
    rules.induce(X, y, rng=0, callback=seen.append)
    assert seen[-1].fraction == 1.0
    assert {progress.what for progress in seen} == {"rules"}

    def stop(progress):
        raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        rules.induce(X, y, rng=0, callback=stop)


def test_interrupt():
    code = """
import time
import numpy as np
from kernelrules import rules
rng = np.random.default_rng(0)
X = rng.normal(size=(150_000, 20))
y = rng.integers(2, size=150_000)
print("ready", flush=True)
try:
    rules.induce(X, y, rng=0, optimise=50, min_weight=0.0)
except KeyboardInterrupt:
    print("interrupted", time.time())
"""
    assert seconds_to_stop(code) < 1.0
