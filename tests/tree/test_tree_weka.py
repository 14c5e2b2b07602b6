"""Gain ratio as C4.5 uses it: the rule between columns, and trees of Weka's J48.

J48 splits categories into as many branches as there are, or with -B one against the rest; here every split has two
sides. What corresponds: the first split of J48 -B is the first split here with subsets="one"; the same tree comes out
where J48's collapsing of subtrees that save no training error is done here, too, and it has raised none (contact
lenses); and where J48 fits the training data (weather), so does a tree here.
"""

import csv
import gzip
import itertools
import json
import re
import textwrap

import numpy as np
import pytest
import tree_oracle as oracle
from hypothesis import given
from places import ROOT
from trees import rows_of_nodes, tables

from kernelrules import tree as trees

PAGES = ROOT / "docs" / "guide"
FILES = {
    "weather.nominal": "weka_weather_nominal.csv.gz",
    "weather.numeric": "weka_weather_numeric.csv.gz",
    "contact-lenses": "weka_contact_lenses.csv.gz",
}


def read(shared, name):
    """Numbers, categories as codes; labels; names of the columns; which of them are categorical, and their levels."""
    with gzip.open(shared / "data" / FILES[name], "rt", encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    told = json.loads((shared / "data" / "schema.json").read_text(encoding="utf-8"))[FILES[name]]["columns"]
    levels = [column.get("levels") for column in told[:-1]]
    assert header == [column["name"] for column in told]
    cells = [[float(ls.index(c)) if ls else float(c) for c, ls in zip(row, levels, strict=False)] for row in rows]
    labels = np.array([row[-1] for row in rows])
    return np.array(cells), labels, header[:-1], levels


def grow(X, y, levels, **options):
    categorical = [j for j, of_column in enumerate(levels) if of_column]
    return trees.grow(X, y, criterion="gain_ratio", categorical=categorical, **options)


def result_of(shared, name, method):
    everything = json.loads((shared / "golden" / "weka.json").read_text(encoding="utf-8"))["results"]
    return everything[f"{name}|{method}"]


def collapsed(tree):
    """Leaves after subtrees have gone that make no fewer errors than a leaf would, as J48 does also when unpruned."""
    errors = np.round((1 - tree.value.max(axis=1)) * tree.n_samples).astype(int)
    below, leaves = errors.copy(), {node: {node} for node in range(tree.n_nodes)}
    for node in np.flatnonzero(tree.left >= 0)[::-1]:
        left, right = tree.left[node], tree.right[node]
        if below[left] + below[right] < errors[node]:
            below[node] = below[left] + below[right]
            leaves[node] = leaves[left] | leaves[right]
    return leaves[0]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("subsets", ["one", "best"])
def test_the_first_split_of_j48(shared, name, subsets):
    X, y, names, levels = read(shared, name)
    model = result_of(shared, name, "J48_binary")["model"].splitlines()
    first = next(line for line in model if " = " in line)  # as: outlook = overcast: yes (4.0)
    column, _, level = first.partition(" = ")
    level = level.partition(":")[0]
    tree = grow(X, y, levels, subsets=subsets, min_leaf=2)
    j = names.index(column)
    assert tree.feature[0] == j
    codes = {levels[j].index(level)}
    assert set(tree.left_levels(0).astype(int)) in (codes, set(range(len(levels[j]))) - codes)


@pytest.mark.parametrize("subsets", ["one", "best"])
@pytest.mark.parametrize("method", ["J48_unpruned", "J48_binary"])
def test_contact_lenses_is_the_tree_of_j48(shared, subsets, method):
    """tear-prod-rate, then astigmatism, then spectacle-prescrip: 12, 6, 3 and 3 rows, two of them wrong."""
    X, y, names, levels = read(shared, "contact-lenses")
    told = result_of(shared, "contact-lenses", method)
    tree = grow(X, y, levels, subsets=subsets, min_leaf=2)
    leaves = collapsed(tree)
    assert len(leaves) == told["n_leaves"] == 4
    assert told["model"].count("tear-prod-rate") == 2
    rows = {frozenset(inside.tolist()) for node, inside in enumerate(rows_of_nodes(tree, X)) if node in leaves}
    column = {name: X[:, j] for j, name in enumerate(names)}
    reduced, no = column["tear-prod-rate"] == 0, column["astigmatism"] == 0
    myope = column["spectacle-prescrip"] == 0
    parts = [reduced, ~reduced & no, ~reduced & ~no & myope, ~reduced & ~no & ~myope]
    assert rows == {frozenset(np.flatnonzero(part).tolist()) for part in parts}
    wrong = sum(round((1 - tree.value[leaf].max()) * tree.n_samples[leaf]) for leaf in leaves)
    assert wrong == told["train"]["incorrect"] == 2


@pytest.mark.parametrize("name", ["weather.nominal", "weather.numeric"])
@pytest.mark.parametrize("subsets", ["one", "best"])
def test_weather_is_learned_without_error(shared, name, subsets):
    X, y, _, levels = read(shared, name)
    assert result_of(shared, name, "J48_unpruned")["train"]["accuracy"] == 1.0
    tree = grow(X, y, levels, subsets=subsets)
    assert (trees.predict(tree, X) == y).all()
    assert tree.impurity[tree.left < 0].max() == 0


def told_by(tree, names, levels, classes, node=0, bar=""):
    """The lines of a tree as docs/guide/coming_from_tree.rst writes them: the single level first, then the others."""
    j = tree.feature[node]
    inside, child, other = set(tree.left_levels(node).astype(int)), tree.left[node], tree.right[node]
    if len(inside) > 1:
        inside, child, other = set(range(len(levels[j]))) - inside, other, child
    (code,) = inside
    for ask, below in ((f"{names[j]} = {levels[j][code]}", child), ("otherwise", other)):
        if tree.left[below] >= 0:
            yield f"{bar}{ask}"
            yield from told_by(tree, names, levels, classes, below, bar + "|   ")
        else:
            wrong = round((1 - tree.value[below].max()) * tree.n_samples[below])
            remark = f"{tree.n_samples[below]}" + (", one wrong" if wrong == 1 else "")
            yield f"{bar}{ask}: {classes[tree.value[below].argmax()]} ({remark})"


def test_weather_on_the_page(shared):
    """Three trees side by side in docs/guide/coming_from_tree.rst: two that Weka printed, and the one grown here."""
    page = (PAGES / "coming_from_tree.rst").read_text(encoding="utf-8")
    block = re.search(r"\(nominal, 14 rows\) give:\n\n.. code-block:: none\n\n((?:   .*\n|\n)+)", page)[1]
    heads, _, *lines = textwrap.dedent(block).rstrip().splitlines()
    starts = [found.start() for found in re.finditer(r"J48 -U|J48 -B|gain_ratio", heads)]
    parts = [[line[a:b].rstrip() for line in lines] for a, b in itertools.zip_longest(starts, starts[1:])]
    unpruned, binary, ours = ([line for line in part if line] for part in parts)
    for part, method in ((unpruned, "J48_unpruned"), (binary, "J48_binary")):
        model = result_of(shared, "weather.nominal", method)["model"]
        assert part == [re.sub(r" \(.*", "", line) for line in model.splitlines() if "=" in line]
    X, y, names, levels = read(shared, "weather.nominal")
    tree = grow(X, y, levels, subsets="one", min_leaf=2)
    assert ours == list(told_by(tree, names, levels, tree.classes))


# ---- the rule between columns -------------------------------------------------------------------------------------


def allowed_splits(sample, rows):
    """Ratios and parts of the splits that the rule may choose, up to rounding and ties, by column.

    In each column the split that gains most; of the columns whose gain is at least the average of these, the one with
    the largest ratio of gain and split information.
    """
    columns = {}
    for split, gain in oracle.candidates(sample, rows):
        columns.setdefault(split.column, []).append((float(gain), split))
    best = {j: max(gain for gain, _ in splits) for j, splits in columns.items()}
    average = sum(best.values()) / len(best)
    allowed = {}
    for j, splits in columns.items():
        for gain, split in splits:
            if gain >= best[j] - 1e-9 and gain >= average - 1e-9:
                left, right = split.parts(sample, rows)
                ratio = gain / float(sample.total(rows)) / float(oracle.split_information(sample, left, right))
                allowed.setdefault(j, []).append((ratio, {frozenset(left), frozenset(right)}))
    return allowed


@given(tables("gain_ratio"))
def test_gain_ratio_decides_between_columns(table):
    tree, sample = table.grow(), table.sample
    inside = [rows.tolist() for rows in rows_of_nodes(tree, table.X, sample.rows)]
    for node in np.flatnonzero(tree.left >= 0):
        allowed = allowed_splits(sample, inside[node])
        parts = {frozenset(inside[child]) for child in (tree.left[node], tree.right[node])}
        ours = [ratio for ratio, found in allowed.get(int(tree.feature[node]), []) if found == parts]
        assert ours, "a split that gains less than others of its column, or than the average"
        # Of splits of a column that gain the same, the first counts, which need not have the larger ratio.
        assert max(ours) >= max(min(ratio for ratio, _ in splits) for splits in allowed.values()) - 1e-9
        gain = oracle.gain_of(sample, inside[node], *(sorted(part) for part in parts))
        root = float(sample.total(sample.rows))
        np.testing.assert_allclose(tree.gain[node], float(gain) / root, rtol=1e-11, atol=1e-12)


def test_the_average_keeps_small_cuts_out():
    """A column that cuts off two rows has the larger ratio, but gains less than the average of the columns."""
    y = np.repeat([0, 1], 10)
    small = (np.arange(20) < 2).astype(float)
    large = np.isin(np.arange(20), [*range(7), 10, 11, 12]).astype(float)
    X = np.column_stack([small, large])
    sample = oracle.Sample.of(X, y, "gain_ratio")
    rows = sample.rows
    gains, ratios = [], []
    for split, gain in oracle.candidates(sample, rows):
        left, right = split.parts(sample, rows)
        gains.append(float(gain))
        ratios.append(float(gain) / 20 / float(oracle.split_information(sample, left, right)))
    assert gains[0] < np.mean(gains) < gains[1]
    assert ratios[0] > ratios[1]
    tree = trees.grow(X, y, criterion="gain_ratio", max_depth=1)
    assert tree.feature[0] == 1
    np.testing.assert_allclose(tree.gain[0], gains[1] / 20, rtol=1e-12)
    # Alone with a column that gains next to nothing it is above the average, and its ratio decides.
    weak = np.arange(20) % 2
    tree = trees.grow(np.column_stack([small, weak]), y, criterion="gain_ratio", max_depth=1)
    assert tree.feature[0] == 0
