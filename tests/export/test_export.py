"""export: every format is run or read back, and predicts as the tree or the rule list does."""

import json
import math
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from exported import read_dot, read_graph, read_mermaid, read_rules, read_tree
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_lists import as_given, coded_rows, rule_lists
from test_rules_predict import unseen_rows
from trees import assert_identical, tables

from kernelrules import datasets, export, rules, tree
from kernelrules.results import Condition, Rule, RuleList

NASTY = ["select", 'say "hi"', "it's", "größe\nin m", "class", "back\\slash", "a#b;<br>&`", "%s {x}"]


def run_python(source, rows):
    module = {}
    exec(compile(source, "exported", "exec"), module)
    return [module["predict"](row) for row in rows]


def run_sql(expression, names, rows):
    """NaN and None become NULL."""
    database = sqlite3.connect(":memory:")
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    database.execute(f"CREATE TABLE points ({quoted})")
    marks = ", ".join("?" * len(names))
    for row in rows:
        cells = [None if cell is None or cell != cell else cell for cell in row]
        database.execute(f"INSERT INTO points VALUES ({marks})", cells)
    answers = [answer for (answer,) in database.execute(f"SELECT {expression} FROM points ORDER BY rowid")]
    database.close()  # Python 3.13 warns where it is not
    return answers


def same(found, expected):
    """Equal; for SQLite's sake, whose decimals may be off by the last bit, equal up to that."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, float):
            assert math.isclose(one, other, rel_tol=1e-15)
        else:
            assert one == other


# ---- what runs --------------------------------------------------------------------------------------------------


@given(st.data(), st.sampled_from(["gini", "squared_error", "poisson"]), st.sampled_from(["extra", "impute"]))
@settings(max_examples=50)
def test_sources_predict_as_the_tree(data, criterion, missing):
    table = data.draw(tables(criterion))
    grown = table.grow(missing=missing, rng=0)
    X = unseen_rows(table, np.random.default_rng(1))
    names = [f"f{j}" for j in range(X.shape[1])]
    expected = tree.predict(grown, X).tolist()
    assert run_python(export.to_python(grown), X.tolist()) == expected
    same(run_sql(export.to_sql(grown, names), names, X.tolist()), expected)
    found = rules.extract(grown)
    assert run_python(export.to_python(found), X.tolist()) == expected
    same(run_sql(export.to_sql(found, names), names, X.tolist()), expected)


@given(rule_lists(), st.integers(0, 2**32 - 1))
@settings(max_examples=80)
def test_sources_of_any_list(listed, seed):
    rows = as_given(listed, coded_rows(listed, np.random.default_rng(seed), 30))
    expected = rules.predict(listed, rows).tolist()
    assert run_python(export.to_python(listed), rows.tolist()) == expected
    assert run_sql(export.to_sql(listed), listed.feature_names, rows.tolist()) == expected
    again = export.from_json(export.to_json(listed))
    assert rules.predict(again, rows).tolist() == expected
    assert str(again) == str(listed)


def test_names_and_strings_of_every_kind():
    levels = ["it's", 'say "hi"', "größe", "NULL", "", "a or b"]
    rng = np.random.default_rng(0)
    rows = [[*(str(rng.choice(levels)) for _ in range(3)), *rng.normal(size=5).tolist()] for _ in range(60)]
    y = np.array([f"class '{len(row[0]) % 3}\"" for row in rows])
    grown = tree.grow(rows, y)
    rows += [[None] * 8, ["unseen"] * 3 + [0.0] * 5]
    expected = tree.predict(grown, rows).tolist()
    assert run_python(export.to_python(grown, NASTY), rows) == expected
    assert run_sql(export.to_sql(grown, NASTY), NASTY, rows) == expected
    for read, written in ((read_dot, export.to_dot), (read_mermaid, export.to_mermaid)):
        labels, _ = read(written(grown, NASTY))
        asked = set("\n".join(labels.values()).split("\n"))
        assert {f"class '{k}\"" for k in {len(row[0]) % 3 for row in rows[:60]}} <= asked
        first = NASTY[grown.feature[0]]
        assert labels["0"].replace("\n", " ").startswith(first.replace("\n", " "))


@pytest.mark.parametrize("labels", [[0, 1], [False, True], [-1.5, 2.5], ["a", "b"]])
def test_labels_of_every_kind(labels):
    grown = tree.grow([[0.0], [1.0]], labels)
    assert run_python(export.to_python(grown), [[0.2], [0.8]]) == labels
    assert run_sql(export.to_sql(grown), ["x0"], [[0.2], [0.8]]) == labels
    found = export.from_json(export.to_json(rules.extract(grown)))
    np.testing.assert_array_equal(rules.predict(found, [[0.2], [0.8]]), labels)
    assert rules.predict(found, [[0.2]]).dtype == np.array(labels).dtype


def test_truth_values_and_whole_numbers_as_levels():
    X = np.array([[True, 3], [False, 4], [True, 5], [False, 5]], dtype=object)
    grown = tree.grow(X, [0, 1, 2, 3], categorical=[0, 1])
    assert run_python(export.to_python(grown), X.tolist()) == [0, 1, 2, 3]
    assert run_sql(export.to_sql(grown), ["x0", "x1"], X.tolist()) == [0, 1, 2, 3]
    np.testing.assert_array_equal(tree.predict(export.from_json(export.to_json(grown)), X), [0, 1, 2, 3])


def test_large_and_deep_trees():
    """Thousands of leaves: no nesting that a parser would refuse."""
    X = np.arange(4000.0)[:, None]
    grown = tree.grow(X, np.arange(4000) % 2)
    some = X[::37].tolist()
    expected = tree.predict(grown, X[::37]).tolist()
    assert run_python(export.to_python(grown), some) == expected
    assert run_sql(export.to_sql(grown), ["x0"], some) == expected
    assert export.to_text(grown).count("\n") == grown.n_nodes - 2
    assert len(read_dot(export.to_dot(grown))[0]) == grown.n_nodes


def test_real_data():
    X, y, names, _ = datasets.spambase()
    grown = tree.grow(X, y, max_leaves=40)
    rows, expected = X[::9].tolist(), tree.predict(grown, X[::9]).tolist()
    assert run_python(export.to_python(grown, names), rows) == expected
    assert run_sql(export.to_sql(grown, names), names, rows) == expected
    assert (
        run_python(export.to_python(grown, names), X[::9].astype(np.float32))
        == tree.predict(grown, X[::9].astype(np.float32)).tolist()
    )


def test_several_targets():
    X, Y = np.arange(4.0)[:, None], np.arange(8.0).reshape(4, 2)
    grown = tree.grow(X, Y, criterion="squared_error")
    assert run_python(export.to_python(grown), X.tolist()) == [tuple(row) for row in Y.tolist()]
    assert run_sql(export.to_sql(grown, output=1), ["x0"], X.tolist()) == Y[:, 1].tolist()
    with pytest.raises(ValueError, match="2 are predicted: choose one by output="):
        export.to_sql(grown)
    with pytest.raises(ValueError, match="output is 2, but there are 2"):
        export.to_sql(grown, output=2)
    assert_identical(export.from_json(export.to_json(grown)), grown)


# ---- what is read -----------------------------------------------------------------------------------------------


@given(st.data(), st.sampled_from(["gini", "squared_error"]))
@settings(max_examples=50)
def test_text_and_graphs_say_the_same(data, criterion):
    table = data.draw(tables(criterion))
    grown = table.grow(missing=data.draw(st.sampled_from(["extra", "impute"])), rng=0)
    names = [f"f{j}" for j in range(table.X.shape[1])]
    X = unseen_rows(table, np.random.default_rng(2))
    expected = tree.predict(grown, X).tolist()
    written = {
        "tree": read_tree(export.to_text(grown, names, exact=True, figures=False)),
        "rules": read_rules(export.to_text(rules.extract(grown, names), exact=True, figures=False)),
        "list": read_rules(export.to_text(rules.decision_list(rules.extract(grown, names)), exact=True, figures=False)),
        "dot": read_graph(*read_dot(export.to_dot(grown, names, exact=True))),
        "mermaid": read_graph(*read_mermaid(export.to_mermaid(grown, names, exact=True))),
        "dot of rules": read_graph(*read_dot(export.to_dot(rules.extract(grown, names), exact=True))),
        "mermaid of rules": read_graph(*read_mermaid(export.to_mermaid(rules.extract(grown), names, exact=True))),
    }
    for how, predict in written.items():
        assert [float(predict(row)) for row in X.tolist()] == expected, how


def test_text_of_a_tree():
    X, y, names, _ = datasets.lecture_table()
    grown = tree.grow(X, y, criterion="entropy", max_leaves=4)
    assert export.to_text(grown, names, ["one", "two"]) == "\n".join(
        [
            "x2 ≤ 0.05: two (2, 1.00)",
            "x2 > 0.05",
            "|   x2 ≤ 0.15: one (2, 1.00)",
            "|   x2 > 0.15",
            "|   |   x1 ≠ green: one (2, 0.50)",
            "|   |   x1 = green: two (2, 1.00)",
        ]
    )
    listed = rules.extract(grown, names)
    assert export.to_text(listed, class_names=["one", "two"]).splitlines()[0] == "x2 ≤ 0.05 → two (2, 1.00)"
    assert export.to_text(rules.decision_list(listed)).splitlines()[-1] == "OTHERWISE → 2"
    assert export.to_text(tree.grow([[0.0]], ["a"])) == "ALWAYS: a (1, 1.00)"


def test_text_of_other_trees():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    oblique = tree.grow(X, X[:, 0] - X[:, 1] > 0, splits="oblique", max_depth=1)
    first = export.to_text(oblique, ["A", "B"]).splitlines()[0]
    assert "·A" in first
    assert "·B ≤ " in first
    linear = tree.grow(X, 2 * X[:, 0] + 1, criterion="squared_error", leaf="linear", max_depth=0)
    assert "·x0 + " in export.to_text(linear)
    for grown in (oblique, linear):
        again = export.from_json(export.to_json(grown))
        assert_identical(again, grown)
        np.testing.assert_array_equal(tree.predict(again, X), tree.predict(grown, X))


# ---- JSON -------------------------------------------------------------------------------------------------------


@given(st.data(), st.sampled_from(["gini", "squared_error"]))
@settings(max_examples=30)
def test_trees_come_back_bit_for_bit(data, criterion):
    grown = data.draw(tables(criterion)).grow(missing=data.draw(st.sampled_from(["extra", "surrogate", "impute"])))
    again = export.from_json(export.to_json(grown))
    assert_identical(again, grown)
    assert again.criterion == grown.criterion
    assert again.missing == grown.missing
    for one, other in zip(again.categories, grown.categories, strict=True):
        assert (one is None) == (other is None)
        np.testing.assert_array_equal(one, other)
    found = rules.extract(grown, approximate=True)
    listed = export.from_json(export.to_json(found))
    for one, other in zip(listed, found, strict=True):
        assert one.conditions == other.conditions
        assert one.prediction == other.prediction
        np.testing.assert_array_equal(one.shares, other.shares)
        assert (one.n, one.weight, one.support) == (other.n, other.weight, other.support)
    assert (listed.ordered, listed.complete, listed.n_train) == (found.ordered, found.complete, found.n_train)


def test_labels_that_json_has_no_word_for():
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    grown = tree.grow([[0.0], [1.0]], dates)
    again = export.from_json(export.to_json(grown))
    np.testing.assert_array_equal(tree.predict(again, [[0.0], [1.0]]), dates)
    with pytest.raises(ValueError, match="neither a string nor a number"):
        export.to_python(grown)
    pairs = np.empty(2, dtype=object)
    pairs[:] = [(1, 2), (3, 4)]
    with pytest.raises(ValueError, match=r"classes holds \(1, 2\), which JSON cannot represent"):
        export.to_json(tree.grow([[0.0], [1.0]], pairs))


def test_documents_that_are_none():
    good = json.loads(export.to_json(tree.grow([[0.0], [1.0]], ["a", "b"])))
    listed = json.loads(export.to_json(rules.extract(tree.grow([[0.0], [1.0]], ["a", "b"]))))
    rule = listed["rules"][0]
    cases = [
        ("{", "text is not JSON"),
        ("[" * 100_000, "text is not JSON"),
        ("[1]", "it has no entry kernelrules"),
        (json.dumps(good | {"kernelrules": 2}), "text has the format 2, and this version reads 1"),
        (json.dumps(good | {"kind": "forest"}), 'kind of a document is "tree" or "rules"'),
        (json.dumps({k: v for k, v in good.items() if k != "left"}), "does not describe a tree: 'left' is missing"),
        (json.dumps(good | {"left": good["right"]}), "does not describe a tree"),
        (json.dumps(good | {"value": good["left"] | {"data": [0], "shape": [1]}}), "differ in length"),
        (json.dumps(good | {"threshold": good["threshold"] | {"dtype": "V8"}}), "does not describe a tree"),
        (json.dumps(good | {"threshold": good["threshold"] | {"shape": [7]}}), "does not describe a tree"),
        (json.dumps(good | {"feature": None}), "does not describe a tree"),
        (json.dumps(listed | {"rules": [{}]}), "does not describe a rule: 'support' is missing"),
        (json.dumps(listed | {"rules": [rule | {"support": "much"}]}), "'much' is not a number"),
        (json.dumps(listed | {"rules": [rule | {"conditions": [{"categories": None, "feature": "A", "missing": 1}]}]}),
         "is not a condition"),
    ]  # fmt: skip
    for text, says in cases:
        with pytest.raises(ValueError, match=says):
            export.from_json(text)
    with pytest.raises(TypeError, match="text must be a string"):
        export.from_json(good)


def test_induced_lists_come_back():
    X = np.random.default_rng(0).normal(size=(200, 3))
    found = rules.induce(X, np.where(X[:, 0] > 0.5, "a", "b"), rng=0)
    again = export.from_json(export.to_json(found))
    assert len(again) == len(found) > 0
    assert str(again) == str(found)
    for mine, theirs in zip(again, found, strict=True):
        assert (mine.conditions, mine.prediction, mine.n) == (theirs.conditions, theirs.prediction, theirs.n)
        assert (mine.support, mine.confidence, mine.weight) == (theirs.support, theirs.confidence, theirs.weight)
    by_hand = replace(found[0], support=np.float64(found[0].support))
    again = export.from_json(export.to_json(replace(found, rules=(by_hand,))))
    assert again[0].support == found[0].support


def replaced_in(document, way, value):
    """The document with one entry changed: `way` leads to it."""
    changed = json.loads(json.dumps(document))
    inner = changed
    for step in way[:-1]:
        inner = inner[step]
    inner[way[-1]] = value
    return json.dumps(changed)


def test_documents_whose_fields_do_not_belong_together():
    frame = np.array([["u", 0.0], ["v", 1.0], ["w", 2.0]] * 4, dtype=object)
    grown = tree.grow(frame, ["a", "b", "a"] * 4)
    numbers = tree.grow([[0.0], [1.0]], [0.0, 1.0], criterion="squared_error")
    good, listed = json.loads(export.to_json(grown)), json.loads(export.to_json(rules.extract(grown)))
    regression = json.loads(export.to_json(rules.extract(numbers)))
    condition = ("rules", 0, "conditions", 0)
    for document in (good, listed, regression):
        export.from_json(json.dumps(document))
    for document, way, value, says in [
        (good, ("kind",), {}, 'kind of a document is "tree" or "rules"'),
        (good, ("gain",), 5, "gain must be an array"),
        (good, ("n_samples",), None, "n_samples must be an array"),
        (good, ("weight", "dtype"), "<i8", "weight has the dtype int64"),
        (good, ("classes",), None, "value has shape"),
        (good, ("classes", "data"), ["a"], "describe a tree"),
        (good, ("feature_names",), 3, "feature_names must be 2 strings"),
        (good, ("feature_names",), ["A"], "feature_names must be 2 strings"),
        (good, ("criterion",), 4, "criterion must be a string"),
        (good, ("n_features",), -3, "n_features must be a whole number, at least 1"),
        (good, ("n_train",), True, "n_train must be a whole number"),
        (good, ("categories",), [None], "categories must have an entry for each of 2 columns"),
        (good, ("categories", 0), 7, "categories of column 0 must be an array"),
        (good, ("fill",), good["gain"], "fill has shape"),
        (listed, (*condition, "feature"), 7, "rule 0 has a condition on column 7, but there are 2"),
        (listed, (*condition, "feature"), -1, "rule 0 has a condition on column -1"),
        (listed, (*condition, "feature"), True, "is not a condition"),
        (listed, (*condition, "categories"), [5], "rule 0 has the code 5 of column 0, which has 3 levels"),
        (listed, (*condition, "categories"), [0.5], "is not a condition"),
        (listed, (*condition, "feature"), 1, "rule 0 has a condition on categories of column 1"),
        (listed, ("levels",), None, "levels must have an entry for each of 2 columns"),
        (listed, ("rules", 0, "prediction"), "zzz", "rule 0 predicts 'zzz', which is none of the classes"),
        (listed, ("rules", 0, "shares"), [0.5], "shares of rule 0 must be an array"),
        (listed, ("rules", 0, "n"), True, "True is not a number"),
        (listed, ("default",), None, "the default predicts None"),
        (listed, ("default_shares", "shape"), [1, 2], "shares of the default has shape"),
        (listed, ("n_features",), 3, "levels must have an entry for each of 3 columns"),
        (listed, ("class_names",), ["a"], "class_names must be 2 strings"),
        (listed, ("feature_names",), None, "feature_names must be 2 strings, got None"),
        (listed, ("ordered",), 1, "ordered must be true or false"),
        (listed, ("missing",), None, "missing must be a string"),
        (listed, ("classes",), None, "'a' is not a number"),
        (regression, ("class_names",), ["a"], "class_names are for classes"),
        (regression, ("rules", 0, "prediction"), "much", "'much' is not a number"),
        (regression, ("rules", 0, "prediction"), None, "rule 0 predicts None, which is not a number"),
        (regression, ("n_outputs",), 2, "prediction of the default must be an array"),
        (regression, (*condition, "high"), "nan", "has a limit of column 0 that is no number"),
    ]:
        with pytest.raises(ValueError, match=says):
            export.from_json(replaced_in(document, way, value))


# ---- what is refused --------------------------------------------------------------------------------------------


def test_what_is_refused():
    grown = tree.grow([[0.0, 0.0], [1.0, 0.0]], ["a", "b"])
    everything = [export.to_text, export.to_dot, export.to_mermaid, export.to_python, export.to_sql]
    for write in everything:
        with pytest.raises(TypeError, match="t must be a Tree or a RuleList, got list"):
            write([1, 2])
        for t in (grown, rules.extract(grown)):
            with pytest.raises(ValueError, match="feature_names has 1 entries but there are 2 columns"):
                write(t, ["A"])
    for write in everything[:3]:
        for t in (grown, rules.extract(grown)):
            with pytest.raises(ValueError, match="class_names has 1 entries but there are 2 classes"):
                write(t, class_names=["a"])
        regression = tree.grow([[0.0], [1.0]], [0.0, 1.0], criterion="squared_error")
        for t in (regression, rules.extract(regression)):
            with pytest.raises(ValueError, match="class_names are for classification"):
                write(t, class_names=["a"])
    with pytest.raises(TypeError, match="t must be a Tree or a RuleList"):
        export.to_json(None)
    for name in ("float", "isinstance", "print"):
        with pytest.raises(ValueError, match="name must not be that of one of Python's own functions"):
            export.to_python(grown, name=name)
    for name in ("class", "2x", "", 3):
        with pytest.raises(ValueError, match="name must be a Python identifier"):
            export.to_python(grown, name=name)
    with pytest.raises(ValueError, match="feature_names has 'A' twice"):
        export.to_sql(grown, ["A", "A"])
    with pytest.raises(ValueError, match="cannot be a name in SQL"):
        export.to_sql(grown, ["A\0", "B"])
    with pytest.raises(ValueError, match="cannot be a name in SQL"):
        export.to_sql(grown, table="")


def test_a_query_and_an_empty_list():
    database = sqlite3.connect(":memory:")
    database.execute('CREATE TABLE "my ""table" ("A")')
    database.execute('INSERT INTO "my ""table" VALUES (2.5)')
    listed = RuleList((), "N", None, np.array(["N", "Y"]), ("A",), ("N", "Y"), (None,), 1, ordered=True)
    query = export.to_sql(listed, table='my "table')
    assert database.execute(query).fetchall() == [("N",)]
    assert run_python(export.to_python(listed), [[1.0]]) == ["N"]
    always = RuleList(
        (Rule((), "Y", 1.0, 1.0, 1, 1.0),), "N", None, np.array(["N", "Y"]), ("A",), None, (None,), 1, True
    )
    assert database.execute(export.to_sql(always, table='my "table')).fetchall() == [("Y",)]
    never = Rule((Condition(0, 2.0, 1.0),), "Y", 0.0, 0.0, 0, 0.0)
    barred = RuleList((never,), "N", None, np.array(["N", "Y"]), ("A",), None, (None,), 1, ordered=True)
    assert database.execute(export.to_sql(barred, table='my "table')).fetchall() == [("N",)]
    database.close()
    assert run_python(export.to_python(barred), [[1.5]]) == ["N"]
