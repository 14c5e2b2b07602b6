"""rules.extract: conditions merged, figures of the leaves, and the text of rules."""

import dataclasses
import math

import numpy as np
import pytest
import rules_oracle as oracle
import tree_walk_oracle as tree_walk
from hypothesis import given
from hypothesis import strategies as st
from trees import tables

from kernelrules import datasets, export, rules, tree
from kernelrules.results import Condition, Rule, RuleList
from kernelrules.results.rule_text import list_text, number_text
from kernelrules.results.rules import UNSEEN


def flu():
    """A table of risks of avian flu that the lectures' four rules describe; more people feed than live close."""
    rows, risks = [], []
    for close in ("yes", "no"):
        for feeding in ("yes", "yes", "no"):
            for contact in ("yes", "no"):
                for gender in ("male", "female"):
                    rows.append([close, feeding, contact, gender])
                    low = "medium-risk" if "yes" in (feeding, close) else "low-risk"
                    risks.append("high-risk" if contact == "yes" else low)
    return rows, risks, ["close-living", "feeding", "contact", "gender"]


# ---- rules of trees ---------------------------------------------------------------------------------------------


@given(st.data(), st.sampled_from(["gini", "squared_error", "misclassification"]))
def test_a_rule_for_each_leaf(data, criterion):
    table = data.draw(tables(criterion))
    grown = table.grow()
    found = rules.extract(grown)
    leaves = np.flatnonzero(grown.left < 0)
    assert len(found) == len(leaves)
    assert not found.ordered
    assert found.complete
    codes = coded(grown, table.X)
    for rule, leaf in zip(found, leaves, strict=True):
        assert rule.n == grown.n_samples[leaf]
        assert rule.weight == grown.weight[leaf]
        assert rule.support == grown.weight[leaf] / grown.weight[0]
        if grown.classes is not None:
            np.testing.assert_array_equal(rule.shares, grown.value[leaf])
            assert rule.confidence == rule.shares.max()
            assert rule.prediction == grown.classes[rule.shares.argmax()]
        else:
            assert math.isnan(rule.confidence)
            assert rule.prediction == grown.value[leaf]
        columns = [condition.feature for condition in rule.conditions]
        assert len(columns) == len(set(columns))  # merged
        assert columns == list(dict.fromkeys(grown.feature[node] for node, _ in oracle.path_tests(grown, leaf)))
        for row in codes:  # a row satisfies the conditions exactly if its way ends here
            assert oracle.rule_holds(rule, row) == (tree_walk.leaf(grown, row) == leaf)
    assert math.isclose(sum(rule.support for rule in found), 1.0)


def coded(grown, X):
    """Rows as numbers and codes, -1 for levels that the tree does not know; and some more like them."""
    rng = np.random.default_rng(0)
    rows = np.vstack([X, X[rng.integers(len(X), size=20)] + rng.normal(size=(20, X.shape[1]))])
    for j, levels in enumerate(grown.categories):
        if levels is not None:
            known = {float(level): code for code, level in enumerate(levels)}
            rows[:, j] = [np.nan if v != v else known.get(v, -1.0) for v in rows[:, j]]
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def test_tests_of_one_column_are_merged():
    X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]])
    grown = tree.grow(X, [0, 1, 0, 1, 0, 1])
    found = rules.extract(grown, ["A"])
    assert sorted(str(found).splitlines()) == sorted(
        [
            "A ≤ 1.5 → 0",
            "1.5 < A ≤ 2.5 → 1",
            "2.5 < A ≤ 3.5 → 0",
            "3.5 < A ≤ 4.5 → 1",
            "4.5 < A ≤ 5.5 → 0",
            "A > 5.5 → 1",
        ]
    )


def test_a_lone_leaf_always_holds():
    found = rules.extract(tree.grow([[1.0], [2.0]], ["a", "a"]))
    assert str(found) == "ALWAYS → a"
    assert found[0].conditions == ()
    assert rules.predict(found, [[7.0]]).tolist() == ["a"]


def test_weights_and_fractions_count():
    X = [[0.0], [1.0], [2.0]]
    found = rules.extract(tree.grow(X, ["a", "b", "b"], sample_weight=[1.0, 2.0, 5.0]))
    assert [(rule.n, rule.weight, rule.support) for rule in found] == [(1, 1.0, 0.125), (2, 7.0, 0.875)]
    grown = tree.grow([[0.0], [1.0], [None]], ["a", "b", "b"], missing="fractional")
    assert [rule.n for rule in rules.extract(grown, approximate=True)] == [1.5, 1.5]


def test_a_deep_tree():
    """A path of thousands of splits: no recursion, and one condition per column."""
    X = np.arange(3000.0)[:, None]
    grown = tree.grow(X, np.arange(3000) % 2)
    found = rules.extract(grown)
    assert len(found) == 3000
    assert found.n_conditions == 3000
    np.testing.assert_array_equal(rules.predict(found, X), tree.predict(grown, X))


def test_many_nodes_in_a_row():
    """A tree as deep as its leaves are many, as best-first growing can give."""
    n = 1500
    names = ("feature", "left", "right", "subset_start")
    whole = {name: np.full(2 * n + 1, -1) for name in names}
    threshold = np.full(2 * n + 1, np.nan)
    inner = np.arange(0, 2 * n, 2)
    whole["feature"][inner], whole["left"][inner], whole["right"][inner] = inner % 7, inner + 1, inner + 2
    threshold[inner] = -inner.astype(float)
    template = tree.grow(np.zeros((2, 7)), [0.0, 1.0], criterion="squared_error")
    value = np.arange(2 * n + 1.0)
    zeros = {name: np.zeros(2 * n + 1) for name in ("impurity", "gain")}
    grown = dataclasses.replace(
        template, **whole, **zeros, threshold=threshold, value=value, weight=value[::-1] + 1,
        n_samples=whole["left"] * 0, missing_left=np.zeros(2 * n + 1, dtype=bool),
    )  # fmt: skip
    assert grown.depth == n
    found = rules.extract(grown)
    X = -np.random.default_rng(0).random((200, 7)) * 2 * n
    np.testing.assert_array_equal(rules.predict(found, X), tree.predict(grown, X))
    ordered = rules.decision_list(found[:40])
    assert len(ordered) == 40


# ---- what no rule can say ---------------------------------------------------------------------------------------


def test_trees_that_are_no_rules():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[:, 2] = X[:, 0] + 0.1 * X[:, 2]  # can stand in for the first
    X[rng.random(X.shape) < 0.2] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) > 0
    for missing, reason in (("surrogate", "stand in"), ("fractional", "several leaves at once")):
        grown = tree.grow(X, y, missing=missing, max_depth=3)
        with pytest.raises(ValueError, match=f'missing="{missing}".*{reason}.*approximate=True'):
            rules.extract(grown)
        for write in (export.to_python, export.to_sql):
            with pytest.raises(ValueError, match=r"rules\.extract\(t, approximate=True\)"):
                write(grown)
        found = rules.extract(grown, approximate=True)
        known = rng.normal(size=(100, 3))
        np.testing.assert_array_equal(rules.predict(found, known), tree.predict(grown, known))
    grown = tree.grow(X[:, :1], y, missing="surrogate")  # one column has nothing to stand in for it
    np.testing.assert_array_equal(rules.predict(rules.extract(grown), X[:, :1]), tree.predict(grown, X[:, :1]))


def test_what_is_refused():
    grown = tree.grow([[0.0, 1.0], [1.0, 1.0]], ["a", "b"])
    with pytest.raises(TypeError, match=r"t must be a tree that tree\.grow returned, got int"):
        rules.extract(3)
    with pytest.raises(ValueError, match="feature_names has 1 entries but there are 2 columns"):
        rules.extract(grown, ["A"])
    with pytest.raises(ValueError, match="class_names has 3 entries but there are 2 classes"):
        rules.extract(grown, class_names=["a", "b", "c"])
    with pytest.raises(TypeError, match="feature_names must be a sequence of strings, got 'AB'"):
        rules.extract(grown, "AB")
    with pytest.raises(TypeError, match="feature_names must hold strings, got 3"):
        rules.extract(grown, ["A", 3])
    regression = tree.grow([[0.0], [1.0]], [0.0, 1.0], criterion="squared_error")
    with pytest.raises(ValueError, match="class_names are for classification"):
        rules.extract(regression, class_names=["a"])


# ---- text -------------------------------------------------------------------------------------------------------


def test_the_lectures_rules_of_avian_flu():
    rows, risks, names = flu()
    found = rules.extract(tree.grow(rows, risks), names)
    assert set(str(found).splitlines()) == {
        "contact = yes → high-risk",
        "contact = no & feeding = yes → medium-risk",
        "contact = no & feeding = no & close-living = yes → medium-risk",
        "contact = no & feeding = no & close-living = no → low-risk",
    }
    assert {rule.prediction: rule.support for rule in found}["high-risk"] == 0.5


def test_the_lectures_table():
    X, y, names, _ = datasets.lecture_table()
    found = rules.extract(tree.grow(X, y, criterion="entropy"), names, ["one", "two"])
    assert str(found).splitlines() == [
        "x2 ≤ 0.05 → two",
        "0.05 < x2 ≤ 0.15 → one",
        "0.15 < x2 ≤ 0.35 & x1 ≠ green → two",
        "x2 > 0.35 & x1 ≠ green → one",
        "x2 > 0.15 & x1 = green → two",
    ]
    assert repr(found) == "RuleList(5 disjoint rules, 8 conditions, 2 features)"


def listed(*rules_given, **fields):
    made = tuple(Rule(tuple(c), p, 0.1, 1.0, 1, 1.0, np.array([0.5, 0.5])) for *c, p in rules_given)
    given_fields = {"feature_names": ("A", "B", "colour"), "levels": (None, None, np.array(["red", "green", "blue"]))}
    return RuleList(
        made, "N", np.array([1.0, 0.0]), np.array(["N", "Y"]), class_names=("N", "Y"), n_features=3, ordered=True,
        **(given_fields | fields),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("conditions", "text", "exact"),
    [
        ([Condition(1, 2, 4), Condition(0, high=2)], "2 < B ≤ 4 & A ≤ 2", None),
        ([Condition(0, high=2, missing=True)], "A ≤ 2 or missing", None),
        ([Condition(0, high=2, missing=True), Condition(1, low=0)], "(A ≤ 2 or missing) & B > 0", None),
        ([Condition(0, low=math.inf, missing=True)], "A is missing", None),
        ([Condition(0)], "A is known", None),
        ([Condition(2, categories=(0,))], "colour = red", None),
        ([Condition(2, categories=(0, 2))], "colour in {red, blue}", None),
        ([Condition(2, categories=(UNSEEN, 0, 2))], "colour ≠ green", None),
        ([Condition(2, categories=(UNSEEN, 0))], "colour = red", "colour not in {green, blue}"),
        ([Condition(2, categories=(UNSEEN,))], "colour not in {red, green, blue}", None),
        ([Condition(2, categories=(UNSEEN, 0, 1, 2))], "colour is known", None),
        ([Condition(2, categories=(), missing=True)], "colour is missing", None),
        ([Condition(2, categories=(1,), missing=True)], "colour = green or missing", None),
        ([Condition(0, 1.0, 1.0 + 2**-40)], "1 < A ≤ 1.000000000000909", "1 < A ≤ 1.0000000000009095"),
        ([Condition(0, low=0.1 + 0.2)], "A > 0.3", "A > 0.30000000000000004"),
        ([], "ALWAYS", None),
    ],
)
def test_conditions_as_a_person_writes_them(conditions, text, exact):
    made = listed((*conditions, "Y"))
    assert str(made) == f"{text} → Y\nOTHERWISE → N"
    assert list_text(made, exact=True) == f"{exact or text} → Y\nOTHERWISE → N"


def test_missing_values_are_named_where_training_had_some():
    X = [[1.0, 1.0], [2.0, 1.0], [None, 1.0], [3.0, 2.0]]
    found = rules.extract(tree.grow(X, ["a", "b", "a", "b"]), ["A", "B"])
    assert str(found) == "A ≤ 1.5 or missing → a\nA > 1.5 → b"
    silent = rules.extract(tree.grow([[1.0], [2.0], [3.0]], ["a", "b", "b"]), ["A"])
    assert str(silent) == "A ≤ 1.5 → a\nA > 1.5 → b"
    assert list_text(silent, exact=True) == "A ≤ 1.5 → a\nA > 1.5 or missing → b"


def test_numbers_in_text():
    expected = {
        0.15000000000000002: "0.15",
        1234567.5: "1234567.5",
        -2.0: "-2",
        1e-9: "1e-09",
        0.0: "0",
        1e300: "1e+300",
    }
    assert {number: number_text(number) for number in expected} == expected
    assert number_text(1700000000000.5) == "1700000000000.5"
    assert number_text(1 / 3) == "0.3333333333"
    assert float(number_text(1 / 3, exact=True)) == 1 / 3


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exact_numbers_read_back(number):
    assert float(number_text(number, exact=True)) == number
    assert math.isclose(float(number_text(number)), number, rel_tol=1e-9, abs_tol=0.0)


@given(st.integers(-(10**7), 10**7), st.integers(-(10**7), 10**7), st.integers(0, 6))
def test_halfway_points_of_decimals_stay_between_them(a, b, places):
    """Text separates what the threshold does, for data of up to seven digits."""
    low, high = sorted((a / 10**places, b / 10**places))
    if low < high:
        assert low <= float(number_text(low + (high - low) / 2)) < high


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1234567890.12, 1234567890.14], "A ≤ 1234567890.13 → 0\nA > 1234567890.13 → 1"),
        (
            [1.0, 1 + 2e-11, 1 + 4e-11],
            "A ≤ 1.00000000001 → 0\n1.00000000001 < A ≤ 1.00000000003 → 1\nA > 1.00000000003 → 0",
        ),
        ([123456789.125, 123456789.25], "A ≤ 123456789.1875 → 0\nA > 123456789.1875 → 1"),
        ([0.1, 0.2], "A ≤ 0.15 → 0\nA > 0.15 → 1"),
        ([-1.1, 1.2], "A ≤ 0.05 → 0\nA > 0.05 → 1"),
    ],
)
def test_text_is_right_about_rows_that_are_close(values, text):
    X, y = np.array([values]).T, np.arange(len(values)) % 2
    found = rules.extract(tree.grow(X, y), ["A"])
    assert str(found) == text
    assert text.split(" ≤ ")[1].split()[0] in export.to_text(tree.grow(X, y), ["A"])


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=8, unique=True), st.integers(0, 17), st.floats(-1e3, 1e3))
def test_thresholds_of_a_column_read_in_their_order(steps, places, offset):
    """However close they are: each lies in text between those beside it."""
    different = sorted({offset + step * 10.0**-places for step in steps})
    found = listed(*((Condition(0, high=high), "Y") for high in different))
    reported = [float(line.split(" ≤ ")[1].split(" →")[0]) for line in str(found).splitlines()[:-1]]
    assert reported == sorted(set(reported))
    for low, high, said in zip(different, different[1:], reported, strict=False):
        assert abs(said - low) <= 0.01 * (high - low)


def test_predictions_in_text():
    X = [[0.0], [1.0]]
    assert str(rules.extract(tree.grow(X, [1 / 3, 2 / 3], criterion="squared_error"), ["A"])) == (
        "A ≤ 0.5 → 0.333333\nA > 0.5 → 0.666667"
    )
    both = rules.extract(tree.grow(X, [[0.0, 1.0], [2.0, 3.5]], criterion="squared_error"), ["A"])
    assert str(both) == "A ≤ 0.5 → (0, 1)\nA > 0.5 → (2, 3.5)"
    named = rules.extract(tree.grow(X, [False, True]), ["A"], ["ham", "spam"])
    assert str(named) == "A ≤ 0.5 → ham\nA > 0.5 → spam"
