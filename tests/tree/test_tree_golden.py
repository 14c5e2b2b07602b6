"""Trees as rpart grows them, node by node; the lectures' table.

rpart's trees are taken apart: on the rows of each of its nodes one split is grown here, and must be rpart's if no other
split gains the same (by the oracle, which looks at all of them). Whole trees are then compared from the root down to
the first tie. Left and right may be exchanged, as rpart puts sides in an order of its own.

Documented differences: where the split's variable is missing, no surrogate helps and the sides are equally large, rpart
leaves the row at the node; here it goes left. rpart means to have two rows on either side of a surrogate on categories,
but counts rows that agree and rows that do not, and so loses those that agree (nearly) everywhere; they are kept here.
With cp = 0 rpart takes back splits that do not lower its risk (for classes the number of errors), so its leaves may be
nodes here.
"""

import csv
import gzip
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
import pytest
import tree_oracle as oracle
from trees import decided, rows_of_nodes

from kernelrules import datasets
from kernelrules import tree as trees

FILES = {
    "kyphosis": "rpart_kyphosis.csv.gz",
    "cu_summary": "rpart_cu_summary.csv.gz",
    "iris": "r_iris.csv.gz",
    "car_test_frame": "rpart_car_test_frame.csv.gz",
}
NAMES = [
    f"{name}_ms{minsplit}"
    for name in (
        "kyphosis_gini",
        "kyphosis_information",
        "iris_gini",
        "iris_information",
        "cu_summary_type_gini",
        "cu_summary_type_information",
        "cu_summary_price",
        "cu_summary_mileage",
        "car_test_frame_mileage",
        "car_test_frame_mileage_weight",
    )
    for minsplit in (20, 2)
]
CRITERION = {"gini": "gini", "information": "entropy"}
each_tree = pytest.mark.parametrize("name", NAMES)


def read(shared, file, names):
    """Columns as numbers, categories (of ordered factors, too) as codes; and the kinds and levels of the columns."""
    with gzip.open(shared / "data" / file, "rt", encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    told = json.loads((shared / "data" / "schema.json").read_text(encoding="utf-8"))[file]["columns"]
    told = {column["name"]: column for column in told}
    columns = []
    for name in names:
        levels = told[name].get("levels")
        cells = [row[header.index(name)] for row in rows]
        columns.append([np.nan if c == "" else float(levels.index(c) if levels else c) for c in cells])
    return np.column_stack(columns), [told[name] for name in names]


@dataclass(frozen=True)
class Golden:
    """One of rpart's trees and its data."""

    X: np.ndarray
    y: np.ndarray
    names: list
    levels: list
    categorical: list
    criterion: str
    told: dict

    @cached_property
    def sample(self):
        return oracle.Sample.of(self.X, self.y, self.criterion, categorical=self.categorical)

    @cached_property
    def nodes(self):
        return {node["node"]: node for node in self.told["nodes"]}

    @cached_property
    def inside(self):
        """Those in each node or below it."""
        inside = {node: [] for node in self.nodes}
        for row, at in enumerate(self.told["where"]):
            while at:
                inside[at].append(row)
                at //= 2
        return inside

    def rows(self, node):
        return self.inside[node]

    def grow(self, rows=None, **options):
        rows = slice(None) if rows is None else rows
        return trees.grow(
            self.X[rows],
            self.y[rows],
            criterion=self.criterion,
            categorical=self.categorical or None,
            missing="surrogate",
            min_split=self.told["minsplit"],
            min_leaf=self.told["minbucket"],
            **options,
        )

    def one_side(self, split, rows):
        """Of the rows where the split's variable is known, those that rpart sends to the side it calls left."""
        column = self.names.index(split["var"])
        x = self.X[rows, column]
        if split["kind"] == "numeric":
            left = x >= split["threshold"] if split["left"] == "x >= threshold" else x < split["threshold"]
        else:
            left = np.isin(x, [self.levels[column].index(level) for level in split["left_levels"]])
        return column, np.isnan(x), left

    def ties(self, rows):
        """What the best splits gain, by the oracle, and these. Where categories are put in order of their means, only
        those are searched that cut this order: with a least size of leaves another subset may gain more."""
        if tuple(rows) in self.known_ties:
            return self.known_ties[tuple(rows)]
        sample = self.sample
        scored = [
            (gain, split)
            for split, gain in oracle.candidates(
                sample, rows, missing="surrogate", min_leaf=self.told["minbucket"], subsets=oracle.by_cuts(sample)
            )
        ]
        best = max(gain for gain, _ in scored)
        ties = [split for gain, split in scored if float(gain) >= float(best) * (1 - 1e-9)]
        self.known_ties[tuple(rows)] = best, ties
        return best, ties

    @cached_property
    def known_ties(self):
        """Of nodes that were asked for before: the tests below ask for the same."""
        return {}


@cache
def everything(shared):
    return json.loads((shared / "golden" / "rpart.json").read_text(encoding="utf-8"))["trees"]


@cache
def golden(shared, name):
    (told,) = (tree for tree in everything(shared) if tree["name"] == name)
    file = next(file for start, file in FILES.items() if name.startswith(start))
    target, features = told["formula"].split(" ~ ")
    if features == ".":
        features = "Sepal.Length + Sepal.Width + Petal.Length + Petal.Width"
    names = [feature.strip() for feature in features.split("+")]
    table, kinds = read(shared, file, [*names, target])
    table = table[np.array(told["train_rows_used"]) - 1]
    categorical = [j for j, kind in enumerate(kinds[:-1]) if kind["kind"] == "categorical"]
    criterion = CRITERION[told["parms"]["split"]] if told["method"] == "class" else "squared_error"
    levels = [kind.get("levels") for kind in kinds[:-1]]
    table.flags.writeable = False  # the tests share it
    return Golden(table[:, :-1], table[:, -1], names, levels, categorical, criterion, told)


def same_up_to_sides(a, b):
    return bool((a == b).all() or (a != b).all())


def assert_node(case, tree, node, told):
    """n, deviance and prediction."""
    assert tree.n_samples[node] == told["n"]
    if case.told["method"] == "anova":
        np.testing.assert_allclose(tree.impurity[node] * tree.weight[node], told["dev"], rtol=1e-9, atol=1e-8)
        np.testing.assert_allclose(tree.value[node], told["yval"], rtol=1e-9)
    else:
        np.testing.assert_allclose((1 - tree.value[node].max()) * told["n"], told["dev"], atol=1e-9)
        counts = np.zeros(len(told["class_counts"]))
        counts[tree.classes.astype(int)] = tree.value[node] * told["n"]
        np.testing.assert_allclose(counts, told["class_counts"], atol=1e-9)


@each_tree
def test_every_split_of_rpart(shared, name):
    """On the rows of each node, one by one."""
    case = golden(shared, name)
    untied = 0
    for told in case.told["nodes"]:
        rows = case.rows(told["node"])
        assert len(rows) == told["n"]
        tree = case.grow(rows, max_depth=1)
        assert_node(case, tree, 0, told)
        if told["leaf"]:
            continue
        assert tree.n_nodes == 3
        best, ties = case.ties(rows)
        column, unknown, left = case.one_side(told["split"], rows)
        X = case.X[rows]
        mine, _ = decided(tree, X[:, tree.feature[0]], tree.feature[0], tree.threshold[0], True, tree.subset_start[0])
        chosen = known_gain(case.sample, rows, tree, X)
        np.testing.assert_allclose(float(chosen), float(best), rtol=1e-9)
        scale = {"squared_error": 1 / float(case.sample.loss(rows) or 1), "entropy": np.log(2)}
        np.testing.assert_allclose(float(best) * scale.get(case.criterion, 1.0), told["split"]["improve"], rtol=1e-9)
        if len(ties) > 1:
            continue
        untied += 1
        assert tree.feature[0] == column
        assert same_up_to_sides(mine[~unknown], left[~unknown])
        if told["split"]["kind"] == "numeric":
            np.testing.assert_allclose(tree.threshold[0], told["split"]["threshold"], rtol=1e-12)
    assert untied >= 0.5 * sum(not told["leaf"] for told in case.told["nodes"])


def known_gain(sample, rows, tree, X):
    """Of a stump's split, among the rows where its variable is known."""
    x = X[:, tree.feature[0]]
    mine, known = decided(tree, x, tree.feature[0], tree.threshold[0], True, tree.subset_start[0])
    rows = np.array(rows)
    sides = rows[known & mine].tolist(), rows[known & ~mine].tolist()
    return oracle.gain_of(sample, rows[known].tolist(), *sides)


@each_tree
def test_whole_trees_of_rpart(shared, name):
    """From the root down, as far as the same rows are in a node."""
    case = golden(shared, name)
    tree = case.grow()
    inside = rows_of_nodes(tree, case.X)
    compared, stack = 0, [(0, 1)]
    while stack:
        mine, theirs = stack.pop()
        told, rows = case.nodes[theirs], case.rows(theirs)
        assert sorted(inside[mine].tolist()) == rows
        assert_node(case, tree, mine, told)
        compared += 1
        if told["leaf"]:
            continue
        children = {frozenset(case.rows(child)): child for child in (2 * theirs, 2 * theirs + 1)}
        both = [frozenset(inside[child].tolist()) for child in (tree.left[mine], tree.right[mine])]
        if set(both) == children.keys():
            stack += [(tree.left[mine], children[both[0]]), (tree.right[mine], children[both[1]])]
        elif len(case.ties(rows)[1]) == 1:
            # Only rows whose variable is missing have parted: rpart left them at the node, or has lost a surrogate.
            _, unknown, _ = case.one_side(told["split"], rows)
            known = set(np.array(rows)[~unknown].tolist())
            assert {part & known for part in both} == {part & known for part in children}
            used = tree.surrogates.feature[slice(*tree.surrogates.start[mine : mine + 2])]
            lost = {case.names[j] for j in used} - {stand_in["var"] for stand_in in told.get("surrogates", [])}
            assert theirs in case.told["where"] or lost
    assert compared >= 0.65 * len(case.nodes)


# ---- surrogates ---------------------------------------------------------------------------------------------------


def best_agreement(x, left, levels):
    """Rows that the best stand-in on a column sends where the split does, of those that have both; and how many
    stand-ins do as well. At least two rows go either way, as in rpart."""
    here = ~np.isnan(x)
    x, left = x[here], left[here]
    if levels is not None:
        counts = [(int(left[x == level].sum()), int((~left[x == level]).sum())) for level in set(x.tolist())]
        return sum(map(max, counts)), 1 + sum(a == b for a, b in counts)
    scores = []
    values = np.unique(x)
    for a, b in pairwise(values):
        below = x <= (a + b) / 2
        if 2 <= below.sum() <= len(x) - 2:
            scores += [(below == left).sum(), (below != left).sum()]
    best = max(scores, default=0)
    return best, scores.count(best)


@each_tree
def test_surrogates_of_rpart(shared, name):
    case = golden(shared, name)
    compared = 0
    for told in case.told["nodes"]:
        if told["leaf"]:
            continue
        rows = case.rows(told["node"])
        if len(case.ties(rows)[1]) > 1:
            continue
        tree, X = case.grow(rows, max_depth=1), case.X[rows]
        s = tree.surrogates
        mine = {int(s.feature[i]): i for i in range(s.start[0], s.start[1])}
        column, unknown, left = case.one_side(told["split"], rows)
        theirs = {case.names.index(split["var"]): split for split in told.get("surrogates", [])}
        assert len(mine) == s.start[1] - s.start[0] <= case.told["maxsurrogate"]
        assert column not in mine
        assert (np.diff(s.agreement) <= 0).all()
        agreed = {j: best_agreement(X[~unknown, j], left[~unknown], tree.categories[j])[0] for j in range(X.shape[1])}
        known = int((~unknown).sum())
        majority = max(left[~unknown].sum(), known - left[~unknown].sum())
        better = {j for j, best in agreed.items() if best > majority and j != column}
        if len(better) <= case.told["maxsurrogate"]:
            assert mine.keys() == better
        for j in mine.keys() - theirs.keys():  # rpart loses those on categories that disagree in less than two rows
            assert tree.categories[j] is not None
            together = ~np.isnan(X[~unknown, j])
            assert together.sum() - agreed[j] < 2
        for j in mine.keys() & theirs.keys():
            np.testing.assert_allclose(s.agreement[mine[j]], theirs[j]["adj"], rtol=1e-9)
            best, ties = best_agreement(X[~unknown, j], left[~unknown], tree.categories[j])
            np.testing.assert_allclose(best / known, theirs[j]["improve"], rtol=1e-9)
            if ties > 1:
                continue
            compared += 1
            i = mine[j]
            goes, can = decided(tree, X[:, j], j, s.threshold[i], s.below_left[i], s.subset_start[i])
            _, absent, stand_in = case.one_side(theirs[j], rows)
            first = decided(tree, X[:, column], column, tree.threshold[0], True, tree.subset_start[0])[0]
            exchanged = bool((first != left)[~unknown].all())
            told_levels = can & ~absent  # a level seen only where the split's variable is missing says nothing
            np.testing.assert_array_equal(goes[told_levels], stand_in[told_levels] != exchanged)
            if theirs[j]["kind"] == "numeric":
                np.testing.assert_allclose(s.threshold[i], theirs[j]["threshold"], rtol=1e-12)
    if len(case.names) > 1 and name != "iris_gini_ms20":
        assert compared >= 1


def test_a_row_that_rpart_leaves_at_the_node(shared):
    """It goes to the larger child, and left where they tie: the rows are those of the note in rpart.json."""
    seen = 0
    for name in NAMES:
        case = golden(shared, name)
        for told in case.told["nodes"]:
            at = np.array(case.told["where"]) == told["node"]
            if told["leaf"] or not at.any():
                continue
            rows = case.rows(told["node"])
            tree = case.grow(rows, max_depth=1)
            _, unknown, left = case.one_side(told["split"], rows)
            assert 2 * left[~unknown].sum() == (~unknown).sum(), "rpart leaves rows only where sides tie"
            assert (tree.n_samples[1:].sum()) == len(rows)
            seen += 1
            if len(case.ties(rows)[1]) == 1:
                stay = np.isin(rows, np.flatnonzero(at))
                inside = rows_of_nodes(tree, case.X[rows])
                assert set(np.flatnonzero(stay)) <= set(inside[1].tolist())
    assert seen == 15


def test_golden_file_has_every_tree(shared):
    assert sorted(tree["name"] for tree in everything(shared)) == sorted(NAMES)


# ---- the lectures' table ------------------------------------------------------------------------------------------


def lecture():
    table = datasets.lecture_table()
    colours, numbers = table.X[:, 0].astype(str), table.X[:, 1].astype(float)
    return colours, numbers, table.y


def remaining(tree):
    """Weighted entropy after the first split."""
    return float((tree.weight[1:3] * tree.impurity[1:3]).sum() / tree.weight[0])


def test_the_lectures_best_split():
    colours, x2, y = lecture()
    X = np.column_stack([np.unique(colours, return_inverse=True)[1], x2])
    tree = trees.grow(X, y, criterion="entropy", categorical=[0], max_depth=1)
    assert (tree.feature[0], tree.threshold[0]) == (1, 0.05)
    assert remaining(tree) == 0.75
    np.testing.assert_allclose(tree.impurity[0], 0.954434002924965, rtol=1e-15)
    np.testing.assert_allclose(tree.gain[0], 0.20443400292496505, rtol=1e-14)


@pytest.mark.parametrize(("colour", "entropy"), [("red", 0.9512), ("green", 0.9512), ("blue", 0.9387)])
def test_the_lectures_colours(colour, entropy):
    colours, _, y = lecture()
    tree = trees.grow((colours == colour)[:, None].astype(float), y, criterion="entropy", max_depth=1)
    assert round(remaining(tree), 4) == entropy
    alone = trees.grow(
        np.unique(colours, return_inverse=True)[1][:, None].astype(float), y, criterion="entropy", categorical=[0],
        max_depth=1, subsets="one",
    )  # fmt: skip
    assert round(remaining(alone), 4) == 0.9387
    assert alone.left_levels(0).tolist() in ([0.0], [1.0, 2.0])


def test_every_split_of_the_lectures_table(shared):
    """Each cut alone: a column that says only on which side a row is."""
    told = json.loads((shared / "golden" / "lecture_table.json").read_text(encoding="utf-8"))
    colours, x2, y = lecture()
    assert told["x1"] == colours.tolist()
    assert told["x2"] == x2.tolist()
    assert told["y"] == y.tolist()
    for split in told["splits"]:
        if len(split["parts_rows"]) != 2:
            continue
        inside = np.isin(np.arange(1, 9), split["parts_rows"][0])[:, None].astype(float)
        tree = trees.grow(inside, y, criterion="entropy", max_depth=1)
        np.testing.assert_allclose(remaining(tree), split["entropy"], rtol=1e-14)
        np.testing.assert_allclose(tree.gain[0], split["gain"], rtol=1e-12)
        tree = trees.grow(inside, y, criterion="gini", max_depth=1)
        np.testing.assert_allclose(remaining(tree), split["gini"], rtol=1e-14)
        np.testing.assert_allclose(tree.gain[0], split["gini_gain"], rtol=1e-12)


def test_the_lectures_thresholds(shared):
    """Those between different classes, and all; each is found once it is the only cut left."""
    told = json.loads((shared / "golden" / "lecture_table.json").read_text(encoding="utf-8"))
    _, x2, y = lecture()
    values = np.unique(x2)
    for low, high, threshold in zip(values[:-1], values[1:], told["thresholds"], strict=True):
        tree = trees.grow(x2[:, None], x2 <= low, criterion="entropy", max_depth=1)
        assert tree.threshold[0] == threshold == (low + high) / 2
        assert Fraction(tree.threshold[0]) < Fraction(high)
    used = trees.grow(x2[:, None], y, criterion="entropy").threshold
    assert {round(t, 9) for t in used[~np.isnan(used)]} <= {0.05, 0.15, 0.45}
