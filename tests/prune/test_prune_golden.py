"""Pruned trees of the classical systems: rpart's complexity tables, J48's pruned trees.

rpart. Its own trees are read in, node by node, and pruned here: splits, relative errors and CP of every row of its
tables. CP is the fall of the relative error for each leaf less. In five rows of the golden tables rpart prints a
smaller number, which its own columns contradict: it looks for the weakest link only among a node and its two children,
not among all of its pruned subtrees. There the exact alpha must come out here. Where two of rpart's alphas are equal up
to rounding, it has two rows and we have one.

J48. Weka with -B splits categories one against the rest, so its trees can be grown here; all attributes of vote have
two values, so its other trees are the same ones.
"""

import csv
import gzip
import json
from collections import Counter

import numpy as np
import pytest
from test_tree_golden import NAMES, golden
from test_tree_weka import read as read_weka
from test_tree_weka import result_of

from kernelrules import prune
from kernelrules import tree as trees
from kernelrules.results import Tree

CONTRADICTED = {
    "kyphosis_information_ms20": 1,
    "kyphosis_information_ms2": 1,
    "cu_summary_type_information_ms20": 1,
    "cu_summary_type_information_ms2": 1,
    "cu_summary_price_ms2": 1,
}
# Trees that are grown alike here: no tie, and no row that rpart leaves at an inner node, on the way.
GROWN_ALIKE = [
    "kyphosis_gini_ms20", "kyphosis_gini_ms2", "iris_gini_ms20", "iris_gini_ms2", "iris_information_ms20",
    "iris_information_ms2", "cu_summary_type_gini_ms20", "cu_summary_mileage_ms20", "car_test_frame_mileage_ms20",
    "car_test_frame_mileage_ms2", "car_test_frame_mileage_weight_ms20", "car_test_frame_mileage_weight_ms2",
]  # fmt: skip


def tree_of(told):
    """What pruning needs to know of rpart's tree: children, weights, classes or means, and risks."""
    nodes = {node["node"]: node for node in told["nodes"]}
    order, stack = [], [1]
    while stack:
        k = stack.pop()
        order.append(k)
        if not nodes[k]["leaf"]:
            stack += [2 * k + 1, 2 * k]
    place = {k: i for i, k in enumerate(order)}
    left, right = (np.array([-1 if nodes[k]["leaf"] else place[2 * k + side] for k in order]) for side in (0, 1))
    weight, dev = (np.array([float(nodes[k][field]) for k in order]) for field in ("wt", "dev"))
    of_classes = told["method"] == "class"
    if of_classes:
        counts = np.array([nodes[k]["class_counts"] for k in order], dtype=float)
        value = counts / counts.sum(axis=1, keepdims=True)
    else:
        value = np.array([nodes[k]["yval"] for k in order])
    inner = left >= 0
    return Tree(
        feature=np.where(inner, 0, -1), threshold=np.where(inner, 0.0, np.nan), left=left, right=right, value=value,
        n_samples=np.array([nodes[k]["n"] for k in order]), weight=weight, impurity=dev / weight,
        gain=np.zeros(len(order)), missing_left=np.zeros(len(order), dtype=bool),
        subset_start=np.full(len(order), -1), subset_left=np.zeros(0, dtype=np.uint8),
        criterion="gini" if of_classes else "squared_error", missing="extra",
        classes=np.arange(value.shape[1]) if of_classes else None, categories=(None,), n_features=1, n_outputs=1,
        n_train=told["n"],
    )  # fmt: skip


def compare(path, table):
    """Row by row, the largest tree first; returns how many CP contradict their own table."""
    cp, splits, error = (np.array([row[name] for row in table])[::-1] for name in ("CP", "nsplit", "rel error"))
    fall = np.append(0.0, -np.diff(error) / np.diff(splits))
    twice = np.append(False, np.abs(np.diff(cp)) < 1e-9 * cp[1:])  # the same step once more
    kept = ~np.append(twice[1:], False)
    np.testing.assert_array_equal(path.n_leaves - 1, splits[kept])
    np.testing.assert_allclose(path.risk / path.risk[-1], error[kept], rtol=1e-9, atol=1e-11)
    right = np.isclose(cp, fall, rtol=1e-9, atol=1e-12)[kept]
    mine = path.alphas / path.risk[-1]
    np.testing.assert_allclose(mine[right], cp[kept][right], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mine[~right], fall[kept][~right], rtol=1e-9)
    assert (mine[~right] > cp[kept][~right]).all()
    return int((~right).sum())


@pytest.mark.parametrize("name", NAMES)
def test_complexity_tables_of_rpart(shared, name):
    told = golden(shared, name).told
    contradicted = compare(prune.cost_complexity_path(tree_of(told)), told["cptable"])
    assert contradicted == CONTRADICTED.get(name, 0)


@pytest.mark.parametrize("name", GROWN_ALIKE)
def test_complexity_tables_of_trees_grown_here(shared, name):
    case = golden(shared, name)
    assert compare(prune.cost_complexity_path(case.grow()), case.told["cptable"]) == 0


# ---- J48 ------------------------------------------------------------------------------------------------------------


def vote(shared):
    """Votes as 0 and 1, NaN for unknown; party; names of the bills."""
    with gzip.open(shared / "data" / "weka_vote.csv.gz", "rt", encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    code = {"n": 0.0, "y": 1.0}
    X = np.array([[code.get(cell, np.nan) for cell in row[:-1]] for row in rows])
    return X, np.array([row[-1] for row in rows]), header[:-1]


def leaves_as_weka_prints_them(tree):
    """(class, weight, weight of the others), rounded as in "democrat (253.41/3.75)"."""
    leaf = tree.left < 0
    label = tree.classes[tree.value[leaf].argmax(axis=1)]
    wrong = (1 - tree.value[leaf].max(axis=1)) * tree.weight[leaf]
    return Counter(zip(label.tolist(), tree.weight[leaf].round(2).tolist(), wrong.round(2).tolist(), strict=True))


def leaves_of_weka(model):
    found = Counter()
    for line in model.splitlines():
        if line.endswith(")") and ": " in line:
            label, _, numbers = line.rpartition(": ")[2].partition(" (")
            weight, _, wrong = numbers.rstrip(")").partition("/")
            found[label, float(weight), float(wrong or 0)] += 1
    return found


@pytest.mark.parametrize("method", ["J48_pruned", "J48_binary", "J48_no_subtree_raising"])
def test_vote_is_the_pruned_tree_of_j48(shared, method):
    """Fractions of rows and all: the same six leaves, to the second decimal."""
    X, y, names = vote(shared)
    told = result_of(shared, "vote", method)
    grown = trees.grow(X, y, criterion="gain_ratio", missing="fractional", min_leaf=2, categorical=range(len(names)))
    pruned = prune.pessimistic(grown)
    assert grown.n_leaves > 15
    assert pruned.n_leaves == told["n_leaves"] == 6
    assert leaves_as_weka_prints_them(pruned) == leaves_of_weka(told["model"])
    asked = [names[j] for j in pruned.feature[pruned.left >= 0]]
    assert all(name in told["model"] for name in asked)
    wrong = (trees.predict(pruned, X) != y).sum()
    assert wrong == told["train"]["incorrect"]


@pytest.mark.parametrize("method", ["J48_pruned", "J48_binary", "J48_no_subtree_raising"])
@pytest.mark.parametrize("raising", [False, True])
def test_contact_lenses_is_the_pruned_tree_of_j48(shared, method, raising):
    X, y, names, _ = read_weka(shared, "contact-lenses")
    told = result_of(shared, "contact-lenses", method)
    grown = trees.grow(X, y, criterion="gain_ratio", min_leaf=2, subsets="one", categorical=range(len(names)))
    pruned = prune.pessimistic(grown, raising=raising, **({"X": X, "y": y} if raising else {}))
    assert pruned.n_leaves == told["n_leaves"] == 4
    assert leaves_as_weka_prints_them(pruned) == leaves_of_weka(told["model"])


def test_weather_is_the_raised_tree_of_j48(shared):
    """With -B, where J48 raises a subtree: without raising another tree comes out. (The numerical version of the data
    is grown otherwise: C4.5 charges thresholds for their number.)"""
    X, y, names, _ = read_weka(shared, "weather.nominal")
    told = result_of(shared, "weather.nominal", "J48_binary")
    grown = trees.grow(X, y, criterion="gain_ratio", min_leaf=2, subsets="one", categorical=range(len(names)))
    pruned = prune.pessimistic(grown, raising=True, X=X, y=y)
    assert leaves_as_weka_prints_them(pruned) == leaves_of_weka(told["model"])
    assert leaves_as_weka_prints_them(prune.pessimistic(grown)) != leaves_of_weka(told["model"])
    assert (trees.predict(pruned, X) != y).sum() == told["train"]["incorrect"]


def test_the_golden_file_has_these(shared):
    everything = json.loads((shared / "golden" / "weka.json").read_text(encoding="utf-8"))["results"]
    assert {f"{name}|J48_binary" for name in ("vote", "contact-lenses", "weather.nominal")} <= everything.keys()
