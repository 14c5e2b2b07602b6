"""rules.predict, predict_proba, coverage: the first rule that holds, whatever way it is found."""

import dataclasses

import numpy as np
import pytest
import rules_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from real_data import spambase
from rule_lists import as_given, coded_rows, rule_lists
from scipy import sparse
from trees import tables

from kernelrules import check, rules, tree
from kernelrules.core.rules import rule_tree
from kernelrules.results import Condition, Rule, RuleList
from kernelrules.rules import matcher
from kernelrules.rules.conditions import compile_conditions

CRITERIA = ["gini", "entropy", "squared_error", "absolute_error", "poisson"]


def simple(*conditions_and_predictions, default="no", **fields):
    """A list over two columns of numbers."""
    made = tuple(Rule(tuple(c), p, 0.1, 1.0, 1, 1.0, np.array([0.5, 0.5])) for *c, p in conditions_and_predictions)
    given = {"ordered": True, "levels": (None, None), "n_features": 2, "feature_names": ("A", "B")} | fields
    return RuleList(made, default, np.array([1.0, 0.0]), np.array(["no", "yes"]), class_names=("no", "yes"), **given)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F", "gaps"])
@pytest.mark.parametrize("n_columns", [2, 40])
def test_limits_between_two_floats(monkeypatch, dtype, order, n_columns):
    """By words, rows are compared in their own type: with the nearest float32 some would pass that do not."""
    monkeypatch.setattr(matcher, "_SMALL_TREE_NODES_PER_RULE", -1)
    limits = [0.1, 1 / 3, 1e-300, -1e300, 16777217.0, np.nextafter(0.5, 1)]
    near = [np.float32(x) for x in limits if abs(x) < 1e30]
    values = np.array(
        [v for x in near for v in (np.nextafter(x, np.float32(-np.inf)), x, np.nextafter(x, np.float32(np.inf)))]
    )
    rng = np.random.default_rng(0)
    X = rng.choice(np.concatenate([values, [np.nan, 0.0, 3e38]]), size=(200, n_columns)).astype(dtype)
    wide = np.zeros((200, 2 * n_columns), dtype=dtype)
    wide[:, ::2] = X
    given = {"C": X, "F": np.asfortranarray(X), "gaps": wide[:, ::2]}[order]
    rows = [
        ([Condition(0, low=a, high=np.inf), Condition(1, low=-np.inf, high=b)], "yes") for a in limits for b in limits
    ]
    shape = {"levels": (None,) * n_columns, "n_features": n_columns, "feature_names": tuple(map(str, range(n_columns)))}
    listed = simple(*((*c, p) for c, p in rows), **shape)
    assert matcher.matcher_of(listed).nodes is None
    x, z = X[:, 0].astype(float), X[:, 1].astype(float)
    wanted = np.any([(x > a) & (z <= b) for a in limits for b in limits], axis=0)
    np.testing.assert_array_equal(rules.predict(listed, given), np.where(wanted, "yes", "no"))


# ---- as the tree ------------------------------------------------------------------------------------------------


def unseen_rows(table, rng):
    """Rows like the table's, with missing values and levels that training did not have."""
    X = table.X[rng.integers(len(table.X), size=40)].copy()
    for j in range(X.shape[1]):
        changed = rng.random(len(X)) < 0.3
        X[changed, j] = 99.0 if j in table.categorical else rng.normal(size=changed.sum()) * 3
    X[rng.random(X.shape) < 0.15] = np.nan
    return np.vstack([table.X, X])


@given(st.data(), st.sampled_from(CRITERIA), st.sampled_from(["extra", "zero", "impute"]))
def test_predicts_as_the_tree(data, criterion, missing):
    table = data.draw(tables(criterion))
    grown = table.grow(missing=missing, rng=0)
    found = rules.extract(grown)
    X = unseen_rows(table, np.random.default_rng(0))
    np.testing.assert_array_equal(rules.predict(found, X), tree.predict(grown, X))
    if grown.classes is not None:
        np.testing.assert_array_equal(rules.predict_proba(found, X), tree.predict_proba(grown, X))
        np.testing.assert_array_equal(
            rules.predict_proba(found, X, laplace=0.5), tree.predict_proba(grown, X, laplace=0.5)
        )
    leaves = np.flatnonzero(grown.left < 0)
    covered = rules.coverage(found, X)
    np.testing.assert_array_equal(leaves[covered.rule], tree.apply(grown, X))
    np.testing.assert_array_equal(covered.raw, covered.first)  # no two hold at once
    assert covered.otherwise == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_predicts_as_a_large_tree(dtype, n_threads):
    X, y = spambase()[:2]
    X = X.astype(dtype)
    grown = tree.grow(X[::2], y[::2])
    found = rules.extract(grown)
    np.testing.assert_array_equal(rules.predict(found, X, n_threads=n_threads), tree.predict(grown, X))
    made = matcher.matcher_of(found)
    assert len(made.answer) == grown.n_nodes  # the rules of a tree are a tree of its size again
    assert made.undecided is None


def test_several_targets():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(80, 3)), rng.normal(size=(80, 2))
    grown = tree.grow(X, Y, criterion="squared_error", max_leaves=9)
    found = rules.extract(grown)
    np.testing.assert_array_equal(rules.predict(found, X), tree.predict(grown, X))
    assert rules.predict(found, X).shape == (80, 2)


def test_data_frames_and_sparse_data():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"colour": ["red", "blue", None, "red"], "size": [1.0, 2.0, 3.0, np.nan]})
    grown = tree.grow(frame, ["a", "b", "b", "a"])
    found = rules.extract(grown)
    assert found.feature_names == ("colour", "size")
    np.testing.assert_array_equal(rules.predict(found, frame), tree.predict(grown, frame))
    with pytest.raises(ValueError, match="X lacks the column 'size' that the rules were grown on"):
        rules.predict(found, frame.rename(columns={"size": "length"}))
    X = sparse.random(50, 6, density=0.4, random_state=0, format="csr")
    grown = tree.grow(X, np.asarray(X.sum(axis=1)).ravel() > 1)
    np.testing.assert_array_equal(rules.predict(rules.extract(grown), X), tree.predict(grown, X))


def test_missing_values_of_sparse_rows_are_refused_in_every_column():
    """As those of dense rows are: also where no rule asks for the column."""
    X = np.array([[0.0, 0.0, 1.0], [1.0, 2.0, 0.0]] * 4)
    found = rules.extract(tree.grow(X, ["a", "b"] * 4, missing="error", max_depth=1))
    used = found[0].conditions[0].feature
    for column in range(3):
        holed = X.copy()
        holed[5, column] = np.nan
        for rows in (holed, sparse.csr_array(holed), sparse.csc_array(holed)):
            with pytest.raises(ValueError, match="X holds nan at row 5, column"):
                rules.predict(found, rows)
    holed = X.copy()
    holed[5, (used + 1) % 3] = np.nan
    allowed = rules.extract(tree.grow(X, ["a", "b"] * 4, max_depth=1))
    assert rules.predict(allowed, sparse.csr_array(holed)).tolist() == ["a", "b"] * 4


# ---- any list ---------------------------------------------------------------------------------------------------


@given(rule_lists(), st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_first_rule_that_holds(listed, seed):
    rows = coded_rows(listed, np.random.default_rng(seed), 70)
    X = as_given(listed, rows)
    expected = [oracle.first_rule(listed, row) for row in rows]
    covered = rules.coverage(listed, X)
    assert covered.rule.tolist() == expected
    assert covered.first.tolist() == [expected.count(i) for i in range(len(listed))]
    assert covered.otherwise == expected.count(-1)
    assert covered.raw.tolist() == [sum(oracle.rule_holds(rule, row) for row in rows) for rule in listed]
    assert rules.predict(listed, X).tolist() == [oracle.prediction(listed, row) for row in rows]
    shares = rules.predict_proba(listed, X)
    for i, number in enumerate(expected):
        np.testing.assert_array_equal(shares[i], listed[number].shares if number >= 0 else listed.default_shares)


def many_random_rules(n_rules, p, rng):
    found = []
    for _ in range(n_rules):
        columns = rng.permutation(p)[:4]
        conditions = [
            Condition(int(j), *sorted(rng.normal(size=2).tolist()), missing=rng.random() < 0.5) for j in columns
        ]
        found.append(Rule(tuple(conditions), float(rng.normal()), 0.1, np.nan, 1, 1.0))
    return RuleList(tuple(found), 0.0, None, None, tuple(f"x{j}" for j in range(p)), None, (None,) * p, p, ordered=True)


def test_lists_too_tangled_for_a_tree():
    """Rules that overlap everywhere: most leaves stay open, and their rules are tried one by one."""
    rng = np.random.default_rng(5)
    listed = many_random_rules(150, 12, rng)
    X = rng.normal(size=(300, 12)) * 0.7
    X[rng.random(X.shape) < 0.1] = np.nan
    assert matcher.matcher_of(listed).undecided is not None
    expected = np.array([oracle.prediction(listed, row) for row in X])
    assert len(np.unique(expected)) > 20
    for n_threads in (1, 4):
        np.testing.assert_array_equal(rules.predict(listed, X, n_threads=n_threads), expected)
    single = X.astype(np.float32)
    np.testing.assert_array_equal(rules.predict(listed, single), [oracle.prediction(listed, row) for row in single])


def test_levels_without_end():
    """A column of thousands of levels in many rules does not fill the memory."""
    rng = np.random.default_rng(0)
    levels = np.array([f"l{k:05d}" for k in range(20_000)])
    made = tuple(
        Rule((Condition(0, categories=tuple(np.flatnonzero(rng.random(20_000) < 0.5).tolist())), Condition(1, 0.1 * i)),
             float(i), 0.1, np.nan, 1, 1.0)
        for i in range(40)
    )  # fmt: skip
    listed = RuleList(made, -1.0, None, None, ("a", "b"), None, (levels, None), 2, ordered=True)
    X = np.empty((100, 2), dtype=object)
    codes = rng.integers(20_000, size=100)
    X[:, 0], X[:, 1] = levels[codes], rng.random(100) * 4
    rows = np.column_stack([codes, X[:, 1].astype(float)])
    assert rules.predict(listed, X).tolist() == [oracle.prediction(listed, row) for row in rows]


def test_no_rules_and_no_rows():
    empty = simple(default="yes")
    assert rules.predict(empty, [[1.0, 2.0]]).tolist() == ["yes"]
    assert rules.coverage(empty, [[1.0, 2.0]]).otherwise == 1
    assert str(empty) == "OTHERWISE → yes"
    assert rules.predict(simple(("yes",)), [[1.0, 2.0]]).tolist() == ["yes"]
    found = rules.extract(tree.grow([[0.0], [1.0]], ["a", "b"]))
    assert rules.predict(found, np.empty((0, 1))).shape == (0,)
    assert rules.coverage(found, np.empty((0, 1))).raw.tolist() == [0, 0]


def test_conditions_of_one_column_are_taken_together():
    listed = simple((Condition(0, low=1.0), Condition(0, high=3.0), "yes"))
    assert rules.predict(listed, [[0.0, 0], [2.0, 0], [4.0, 0]]).tolist() == ["no", "yes", "no"]


def test_known_and_missing_of_a_column_of_levels():
    levels = (np.array(["u", "v"]), None)
    listed = simple(
        (Condition(0, categories=(0,)), Condition(1, high=1.0), "yes"),
        (Condition(0), Condition(1, high=0.0), "yes"),
        (Condition(0, low=np.inf, missing=True), Condition(1, low=5.0), "yes"),
        levels=levels,
    )
    X = [["u", 1.0], ["v", 1.0], ["v", 0.0], ["new", 0.0], [None, 0.0], [None, 6.0], ["u", 6.0]]
    assert rules.predict(listed, X).tolist() == ["yes", "no", "yes", "yes", "no", "yes", "no"]


def test_a_part_of_a_list():
    found = rules.extract(tree.grow([[0.0], [1.0], [2.0]], ["a", "b", "c"]))
    part = found[1:]
    assert isinstance(part, RuleList)
    assert len(part) == 2
    assert str(part).endswith("OTHERWISE → a")
    assert rules.predict(part, [[0.0], [1.0], [2.0]]).tolist() == ["a", "b", "c"]
    assert [rule.prediction for rule in part] == ["b", "c"]


# ---- what is refused --------------------------------------------------------------------------------------------


def test_what_is_refused():
    found = rules.extract(tree.grow([["red", 1.0], ["blue", 2.0]], ["a", "b"]))
    with pytest.raises(ValueError, match="X has 3 columns but the rules were grown on 2"):
        rules.predict(found, np.zeros((1, 3)))
    with pytest.raises(ValueError, match="column 0 of X holds 'pink' at row 1, which is none of the rules' categories"):
        rules.predict(found, [["red", 1.0], ["pink", 1.0]], unseen="error")
    with pytest.raises(check.DtypeError, match="column 0 of X holds 3"):
        rules.predict(found, [[3, 1.0]])
    with pytest.raises(ValueError, match="unseen must be"):
        rules.predict(found, [["red", 1.0]], unseen="ignore")
    with pytest.raises(ValueError, match="X holds inf at row 0"):
        rules.predict(found, [["red", np.inf]])
    with pytest.raises(TypeError, match="rs must be a RuleList"):
        rules.predict(tree.grow([[0.0], [1.0]], [0, 1]), [[0.0]])
    with pytest.raises(ValueError, match="n_threads"):
        rules.predict(found, [["red", 1.0]], n_threads=0)
    with pytest.raises(ValueError, match="laplace"):
        rules.predict_proba(found, [["red", 1.0]], laplace=-1.0)
    strict = rules.extract(tree.grow([[0.0], [1.0]], ["a", "b"], missing="error"))
    with pytest.raises(ValueError, match='X holds nan at row 0, column 0, and missing is "error"'):
        rules.predict(strict, [[np.nan]])
    regression = rules.extract(tree.grow([[0.0], [1.0]], [0.0, 1.0], criterion="squared_error"))
    with pytest.raises(ValueError, match="rules of a regression"):
        rules.predict_proba(regression, [[0.0]])


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        (Condition(2), "column 2, but there are 2"),
        (Condition(-1), "column -1, but there are 2"),
        (Condition(0, low=np.nan), "NaN as a limit of column 0"),
        (Condition(0, categories=(0,)), "which column 0 does not have"),
    ],
)
def test_rules_made_by_hand_are_looked_through(condition, says):
    with pytest.raises(ValueError, match=says):
        rules.predict(simple((condition, "yes")), [[1.0, 2.0]])


def test_more_of_what_is_refused_of_rules_made_by_hand():
    levels = (np.array(["u", "v"]), None)
    with pytest.raises(ValueError, match="which column 0 does not have"):
        rules.predict(simple((Condition(0, categories=(2,)), "yes"), levels=levels), [["u", 1.0]])
    with pytest.raises(ValueError, match="compares column 0 with numbers, but it has categories"):
        rules.predict(simple((Condition(0, low=1.0), "yes"), levels=levels), [["u", 1.0]])
    with pytest.raises(ValueError, match="rule 0 predicts 'maybe', which is not one of the classes"):
        rules.predict(simple((Condition(0, low=1.0), "maybe")), [[1.0, 1.0]])
    with pytest.raises(ValueError, match="the default predicts 'maybe'"):
        rules.predict(simple(default="maybe"), [[1.0, 1.0]])
    with pytest.raises(ValueError, match="levels has 1 entries but there are 2 columns"):
        rules.predict(simple(levels=(None,)), [[1.0, 1.0]])
    shareless = dataclasses.replace(simple(), default_shares=None)
    with pytest.raises(ValueError, match="the default has no shares"):
        rules.predict_proba(shareless, [[1.0, 1.0]])


def test_progress_and_interrupts():
    found = rules.extract(tree.grow([[0.0], [1.0]], ["a", "b"]))
    reported = []
    rules.predict(found, np.zeros((5000, 1)), callback=reported.append)
    assert reported[-1].fraction == 1.0
    assert reported[-1].what == "predict"

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rules.predict(found, np.zeros((5000, 1)), callback=stop)


def test_the_core_refuses_arrays_that_do_not_agree():
    tests = compile_conditions(((Condition(0, high=1.0),),), (None,), merge=True).table
    one, none = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    with pytest.raises(ValueError, match="differ in length"):
        rule_tree.RuleTree(tests, np.array([0, 1]), none, one, np.ones(1))


# ---- values that are checked during matching -------------------------------------------------------------------


@pytest.mark.parametrize("by_words", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("odd", [None, np.nan, np.inf])
@pytest.mark.parametrize("missing", ["extra", "error"])
def test_plain_rows_answer_as_those_that_were_read_first(monkeypatch, by_words, dtype, odd, missing):
    """Also where one of them, far behind, has a missing value or is refused, which says its row's own number."""
    X, y, _, _ = spambase()
    rs = dataclasses.replace(rules.extract(tree.grow(X[::3], y[::3], max_leaves=12)), missing=missing)
    if by_words:
        monkeypatch.setattr(matcher, "_SMALL_TREE_NODES_PER_RULE", -1)
    assert (matcher.Matcher(rs).nodes is None) == by_words
    rows = np.array(X[:1000], dtype=dtype)
    if odd is not None:
        rows[777, 5] = odd
    with monkeypatch.context() as patch:
        patch.setattr("kernelrules.rules.prediction.is_plain", lambda *_: False)
        wanted = outcome(rs, rows)
    seen = []
    assert outcome(rs, rows) == wanted
    assert outcome(rs, rows, callback=seen.append) == wanted
    assert odd is None or not isinstance(wanted, str) or "row 777" in wanted
    assert [p.done for p in seen] == sorted(p.done for p in seen) or odd is not None


def outcome(rs, rows, **options):
    try:
        return rules.predict(rs, rows, **options).tolist()
    except ValueError as error:
        return str(error)
