"""The other ways to prune, each against the slow way: all pruned trees, one pair at a time, one leaf at a time."""

import importlib
from dataclasses import replace

import numpy as np
import prune_oracle as oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr
from trees import assert_identical, assert_well_formed, rows_of_nodes, sent_left, tables

from kernelrules import prune
from kernelrules import tree as trees
from kernelrules.prune.chi2 import p_values
from kernelrules.prune.pessimistic import extra_errors

reduced_error = importlib.import_module("kernelrules.prune.reduced_error")  # the name in prune is the function

METHODS = {
    "alpha": lambda t, X, y: prune.cost_complexity(t, 0.01),
    "size": lambda t, X, y: prune.to_size(t, max(1, t.n_leaves // 2)),
    "validation": lambda t, X, y: prune.reduced_error(t, X[::3], y[::3]),
    "pessimistic": lambda t, X, y: prune.pessimistic(t),
    "mdl": lambda t, X, y: prune.mdl(t),
    "chi2": lambda t, X, y: prune.chi2(t, 0.01),
}


def leaves_in(tree, pruned):
    """The leaves of a pruned tree, as numbers of nodes of the tree that it was."""
    found, stack = set(), [(0, 0)]
    while stack:
        mine, theirs = stack.pop()
        if pruned.left[mine] < 0:
            found.add(theirs)
        else:
            stack += [(pruned.left[mine], int(tree.left[theirs])), (pruned.right[mine], int(tree.right[theirs]))]
    return frozenset(found)


def counts_of(table, tree):
    """Whole weights of the classes in every node."""
    inside = rows_of_nodes(tree, table.X, table.sample.rows)
    weight = np.ones(len(table.y)) if table.weight is None else table.weight
    codes, k = np.searchsorted(tree.classes, table.y), len(tree.classes)
    return [np.bincount(codes[rows], weight[rows], k).astype(int).tolist() for rows in inside]


def noisy(n=300, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] > 0).astype(int) + (classes > 2) * (X[:, 1] > 0.5)
    wrong = rng.random(n) < 0.15
    return X, np.where(wrong, rng.integers(0, classes, n), y)


@pytest.mark.parametrize("name", METHODS)
def test_the_tree_stays_as_it_was_and_the_pruned_one_is_a_tree(name):
    X, y = noisy(classes=3)
    tree, same = trees.grow(X, y), trees.grow(X, y)
    pruned = METHODS[name](tree, X, y)
    assert_identical(tree, same)
    assert_well_formed(pruned)
    assert 1 <= pruned.n_leaves < tree.n_leaves
    assert_identical(METHODS[name](tree, X, y), pruned)
    leaf = trees.grow(X[:1], y[:1])
    assert METHODS[name](leaf, X[:1], y[:1]).n_nodes == 1


@pytest.mark.parametrize("name", METHODS)
def test_weight_2_is_a_row_twice(name):
    X, y = noisy(120)
    weight = np.random.default_rng(1).integers(0, 4, 120)
    weighted = METHODS[name](trees.grow(X, y, sample_weight=weight.astype(float)), X, y)
    repeated = METHODS[name](trees.grow(np.repeat(X, weight, axis=0), np.repeat(y, weight)), X, y)
    assert_identical(weighted, repeated, but=("n_samples",))


# ---- to a size ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@given(data=st.data())
def test_pairs_of_leaves_go_one_by_one(criterion, data):
    table = data.draw(tables(criterion))
    tree = table.grow(max_leaves=9)
    if criterion == "gini":
        risk = [sum(counts) - max(counts) for counts in counts_of(table, tree)]
    else:
        risk = (tree.weight * tree.impurity).tolist()
    for n_leaves in range(1, tree.n_leaves + 1):
        pruned = prune.to_size(tree, n_leaves)
        assert pruned.n_leaves == n_leaves
        assert leaves_in(tree, pruned) == oracle.to_size(tree, risk, n_leaves)


def losses_by_node(tree, X, y, weight, loss):
    """Of the rows that pass each node, about their mean, from the targets themselves."""
    found = []
    for rows in trees.decision_path(tree, X).toarray().astype(bool).T:
        w, targets = weight[rows, None], y[rows].reshape(rows.sum(), -1)
        mean = (w * targets).sum(axis=0) / w.sum()
        if loss == "squared_error":
            found.append(float((w * (targets - mean) ** 2).sum()))
        else:
            found.append(float((w * (rel_entr(targets, mean) - targets + mean)).sum()))
    return found


@pytest.mark.parametrize(
    ("criterion", "loss", "several"),
    [("squared_error", "poisson", False), ("squared_error", "poisson", True), ("poisson", "squared_error", False)],
)
def test_losses_of_numbers_that_a_tree_was_not_grown_by(criterion, loss, several):
    """From the means alone, and the same as from all targets."""
    differs = False
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 3))
        y = rng.poisson(np.exp(X[:, :2] + 0.5)).astype(float) + 1000.0 * (seed == 7)
        y, weight = y if several else y[:, 0], rng.integers(1, 4, 60).astype(float)
        tree = trees.grow(X, y, criterion=criterion, sample_weight=weight, max_leaves=12)
        risk = losses_by_node(tree, X, y, weight, loss)
        for n_leaves in range(1, tree.n_leaves + 1):
            kept = leaves_in(tree, prune.to_size(tree, n_leaves, loss))
            assert kept == oracle.to_size(tree, risk, n_leaves)
            differs |= kept != leaves_in(tree, prune.to_size(tree, n_leaves))
    assert differs


def losses_of_own(tree, X, y, weight, loss):
    """Of the rows that pass each node, one row at a time."""
    told = tree.value if tree.classes is None else tree.classes[tree.value.argmax(axis=1)]
    found = []
    for node, rows in enumerate(trees.decision_path(tree, X).toarray().astype(bool).T):
        found.append(sum(weight[i] * float(loss(y[i : i + 1], told[node : node + 1])[0]) for i in np.flatnonzero(rows)))
    return found


OWN = {
    "costs": lambda y, told: (y != told) * (1.0 + 5 * y),
    "absolute": lambda y, told: np.abs(y - told),
    "several": lambda y, told: np.abs(y - told).max(axis=1),
}


@pytest.mark.parametrize("kind", OWN)
def test_pairs_go_by_a_loss_of_the_users(kind):
    """A function of labels needs no rows; one of numbers is given them, also others than those of growing."""
    differs, loss = False, OWN[kind]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, weight = rng.normal(size=(60, 3)), rng.integers(1, 4, 60).astype(float)
        y = rng.integers(0, 3, 60) if kind == "costs" else rng.poisson(np.exp(X[:, :2])) ** 2.0
        y = y[:, 0] if kind == "absolute" else y
        criterion = "gini" if kind == "costs" else "squared_error"
        tree = trees.grow(X, y, criterion=criterion, sample_weight=weight, max_leaves=12)
        rows = {} if kind == "costs" else {"X": X, "y": y, "sample_weight": weight}
        if seed % 2 and rows:
            rows = {name: array[::2] for name, array in rows.items()}
            X, y, weight = rows.values()
        risk = losses_of_own(tree, X, y, weight, loss)
        for n_leaves in range(1, tree.n_leaves + 1):
            kept = leaves_in(tree, prune.to_size(tree, n_leaves, loss, **rows))
            assert kept == oracle.to_size(tree, risk, n_leaves)
            differs |= kept != leaves_in(tree, prune.to_size(tree, n_leaves))
            if kind == "costs":
                table = [[loss(np.array([i]), np.array([j]))[0] for j in range(3)] for i in range(3)]
                assert kept == leaves_in(tree, prune.to_size(tree, n_leaves, table))
    assert differs


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_rounding_decides_no_ties(criterion):
    """Neither the order of the rows nor the unit of weights or targets: all are full of ties here."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, order = rng.integers(0, 6, (100, 4)).astype(float), rng.permutation(100)
        if criterion == "gini":
            y = ((X[:, 0] > 2) ^ (rng.random(100) < 0.3)).astype(int)
        else:
            y = (X[:, 0] + rng.integers(0, 4, 100)) * 0.1
        tenths = rng.integers(1, 4, 100)
        whole = trees.grow(X, y, criterion=criterion, sample_weight=tenths.astype(float))
        scaled = trees.grow(X, y, criterion=criterion, sample_weight=tenths * 0.1)
        permuted = trees.grow(X[order], y[order], criterion=criterion, sample_weight=tenths[order] * 0.1)
        for other in (scaled, permuted):
            if not np.array_equal(other.feature, whole.feature):  # a tie of the growing
                continue
            for n_leaves in range(2, whole.n_leaves, 3):
                told = leaves_in(whole, prune.to_size(whole, n_leaves))
                assert leaves_in(other, prune.to_size(other, n_leaves)) == told


def test_small_differences_are_no_ties():
    """Ten digits below the loss of all rows, and still told apart."""
    steps = np.array([0.01, 0.02, 0.03, 1.0])
    X = np.arange(16, dtype=float)
    y = np.repeat([0.0, 1e3, 2e3, 3e3], 4) + np.tile([0, 0, 1, 1], 4) * np.repeat(steps, 4)
    tree = trees.grow(X[:, None], y, criterion="squared_error")
    assert tree.n_leaves == 8
    kept = [trees.apply(prune.to_size(tree, n), X[:, None]) for n in (7, 6, 5)]
    assert [[len(set(leaves[first : first + 4])) for first in (0, 4, 8, 12)] for leaves in kept] == [
        [1, 2, 2, 2],
        [1, 1, 2, 2],
        [1, 1, 1, 2],
    ]


def test_the_loss_may_be_another_than_that_of_growing():
    """Gini keeps splits that sharpen shares, the number of errors those that change a majority."""
    X, y = noisy(400, classes=3)
    tree = trees.grow(X, y)
    wrong = {
        loss: np.array([(trees.predict(prune.to_size(tree, k, loss), X) != y).sum() for k in range(1, tree.n_leaves)])
        for loss in ("zero_one", "gini", "entropy")
    }
    assert wrong["zero_one"].sum() < min(wrong["gini"].sum(), wrong["entropy"].sum())
    assert (wrong["zero_one"] != wrong["gini"]).any()
    assert (np.diff(wrong["zero_one"]) <= 0).all()


# ---- on rows held back ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "squared_error", "absolute_error", "poisson"])
@settings(max_examples=30)
@given(data=st.data())
def test_no_pruned_tree_has_a_smaller_error_on_the_held_back_rows(criterion, data):
    table = data.draw(tables(criterion))
    tree = table.grow(max_leaves=7)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    back = rng.integers(len(table.y), size=15)
    X, y, weight = table.X[back], rng.permutation(table.y)[back % len(table.y)], rng.integers(1, 4, 15).astype(float)
    pruned = prune.reduced_error(tree, X, y, sample_weight=weight)
    leaf = trees.apply(tree, X)
    above = {0: []}
    for node in range(tree.n_nodes):
        for child in oracle.children(tree, node):
            above[child] = [*above[node], node]
    loss = {
        "gini": lambda said: y != tree.classes[said.argmax()],
        "squared_error": lambda said: (y - said) ** 2,
        "absolute_error": lambda said: np.abs(y - said),
        "poisson": lambda said: np.where(y == 0, said, y * np.log(np.maximum(y, 1) / said) - y + said),
    }[criterion]
    cost = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for node in range(tree.n_nodes):
            here = np.array([node in [*above[at], at] for at in leaf.tolist()])
            cost.append(float((weight * loss(tree.value[node]))[here].sum()))
    totals = {leaves: sum(cost[i] for i in leaves) for leaves in oracle.pruned_trees(tree)}
    least = min(totals.values())
    mine = leaves_in(tree, pruned)
    np.testing.assert_allclose(totals[mine], least, rtol=1e-9, atol=1e-9)
    assert len(mine) <= min(len(leaves) for leaves, total in totals.items() if total == least)


def test_reduced_error_counts_fractions_of_rows():
    """The error of each node is that of the shares of rows that come to it, by their class."""
    X, y = noisy(200)
    X[np.random.default_rng(3).random(X.shape) < 0.1] = np.nan
    tree = trees.grow(X[:120], y[:120], missing="fractional")
    pruned = prune.reduced_error(tree, X[120:], y[120:])
    held = X[120:]

    def wrong(t):
        """Weight of the shares of rows in leaves of another class."""
        table = np.zeros((t.n_nodes, t.n_nodes))
        np.fill_diagonal(table, t.left < 0)
        shares = trees.predict_proba(replace(t, value=table, classes=np.arange(t.n_nodes)), held)
        said = t.classes[t.value.argmax(axis=1)]
        return (shares * (said != y[120:, None])).sum()

    assert pruned.n_leaves < tree.n_leaves
    assert wrong(pruned) <= wrong(tree)
    for node in np.flatnonzero(pruned.left >= 0):
        assert wrong(prune.snip(pruned, node)) > wrong(pruned)


def test_fractions_are_counted_in_blocks(monkeypatch):
    """Shares of all rows in all leaves need not fit in memory, and blocks change nothing."""
    rng = np.random.default_rng(0)
    X, y = noisy(300, classes=3)
    X[rng.random(X.shape) < 0.1] = np.nan
    tree = trees.grow(X[:200], y[:200], missing="fractional")
    leaves, codes, weight = trees.apply(tree, X[200:]), y[200:], rng.integers(0, 3, 100).astype(float)
    ends, says = np.flatnonzero(tree.left < 0), np.zeros((tree.n_nodes, tree.n_leaves))
    says[ends, np.arange(len(ends))] = 1.0
    shares = trees.predict_proba(replace(tree, value=says, classes=np.arange(len(ends))), X[200:])
    told = np.zeros((tree.n_nodes, 3))
    told[ends] = shares.T @ (weight[:, None] * (codes[:, None] == np.arange(3)))
    assert (shares > 0).sum() > 110
    for rows, some in ((4096, 256), (7, 5), (1, 1)):
        monkeypatch.setattr(reduced_error, "_ROWS_AT_A_TIME", rows)
        monkeypatch.setattr(reduced_error, "_LEAVES_AT_A_TIME", some)
        found = reduced_error._weights_by_leaf(tree, X[200:], leaves, codes, weight, 1)
        np.testing.assert_allclose(found, told, rtol=1e-12, atol=1e-12)


def test_reduced_error_reads_what_predict_reads():
    X, y = noisy(200)
    labels = np.array(["no", "yes"])[y]
    tree = trees.grow(X[:100], labels[:100])
    told = prune.reduced_error(tree, X[100:], labels[100:])
    for form in (X[100:].tolist(), np.asfortranarray(X[100:]), X[100:].astype(object)):
        assert_identical(prune.reduced_error(tree, form, labels[100:].tolist()), told)
    assert_identical(prune.reduced_error(tree, X[100:], labels[100:], n_threads=2), told)
    seen = []
    prune.reduced_error(tree, X[100:], labels[100:], callback=seen.append)
    assert seen[-1].fraction == 1


def test_several_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]) + rng.normal(size=(200, 2))
    tree = trees.grow(X[:100], Y[:100], criterion="squared_error")
    pruned = prune.reduced_error(tree, X[100:], Y[100:])
    errors = [((trees.predict(t, X[100:]) - Y[100:]) ** 2).sum() for t in (tree, pruned)]
    assert errors[1] < errors[0]
    assert prune.cost_complexity_path(tree).n_leaves[0] == tree.n_leaves


# ---- C4.5 -----------------------------------------------------------------------------------------------------------


@given(
    st.floats(0.01, 1e4),
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0, 0.5, 3.0]),
    st.sampled_from([0.5, 0.25, 0.1, 1e-3]),
)
def test_the_limit_of_errors(n, share, whole, confidence):
    errors = min(whole, n) if whole else share * n
    told = oracle.extra_errors(n, errors, confidence)
    np.testing.assert_allclose(extra_errors(np.array(n), np.array(errors), confidence), told, rtol=1e-9, atol=1e-9 * n)


def test_the_limit_in_quinlans_book():
    """U(0, 6) = 0.206, U(0, 9) = 0.143 and U(0, 1) = 0.750 at a quarter (C4.5, page 42)."""
    limits = extra_errors(np.array([6.0, 9.0, 1.0]), np.zeros(3), 0.25) / np.array([6, 9, 1])
    np.testing.assert_allclose(limits, [0.206, 0.143, 0.750], atol=5e-4)


@pytest.mark.parametrize("confidence", [0.5, 0.25, 0.05])
@given(data=st.data())
def test_pessimistic_is_c45s(confidence, data):
    table = data.draw(tables("gain_ratio"))
    tree = table.grow()
    counts = counts_of(table, tree)
    pruned = prune.pessimistic(tree, confidence)
    assert leaves_in(tree, pruned) == oracle.pessimistic(tree, counts, confidence)


def test_smaller_confidence_prunes_more():
    X, y = noisy(600)
    tree = trees.grow(X, y)
    sizes = [prune.pessimistic(tree, c).n_leaves for c in (0.5, 0.25, 0.1, 0.01, 1e-6)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] >= 1


def raisable(n=400, seed=0):
    """A first split on noise that fits a few rows, and below it on both sides what matters."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, ((X[:, 0] > 0) ^ (rng.random(n) < 0.2)).astype(int)


@pytest.mark.parametrize("missing", ["extra", "surrogate", "impute"])
def test_a_raised_tree_knows_its_rows(missing):
    """Values, weights, gains and rows of every node are those of the training rows that come to it."""
    changed = 0
    for seed in range(6):
        X, y = raisable(seed=seed)
        X[:, 5] = np.random.default_rng(seed).integers(0, 4, len(X))
        if missing != "extra":
            X[np.random.default_rng(seed).random(X.shape) < 0.05] = np.nan
        weight = np.random.default_rng(seed + 10).integers(0, 3, len(X)).astype(float)
        tree = trees.grow(X, y, sample_weight=weight, categorical=[5], missing=missing, min_leaf=2, rng=0)
        raised = prune.pessimistic(tree, raising=True, X=X, y=y, sample_weight=weight)
        assert_well_formed(raised)
        changed += not np.isin(raised.weight, tree.weight).all()
        path = trees.decision_path(raised, X).toarray().astype(bool)
        for node in range(raised.n_nodes):
            here = path[:, node]
            counts = np.bincount(y[here], weight[here], 2)
            np.testing.assert_allclose(raised.value[node] * raised.weight[node], counts, atol=1e-9)
            assert raised.n_samples[node] == (here & (weight > 0)).sum()
            np.testing.assert_allclose(raised.impurity[node], 1 - ((counts / counts.sum()) ** 2).sum(), atol=1e-12)
        leaf = raised.left < 0
        left_over = (raised.weight * raised.impurity)[leaf].sum() / raised.weight[0]
        np.testing.assert_allclose(raised.impurity[0] - raised.gain.sum(), left_over, atol=1e-9)
    assert changed >= 2, "subtrees were raised"


def test_rows_from_beside_bring_their_categories():
    """A level that a raised split had not seen has a side once it has rows there, which later weights do not change."""
    raised_somewhere = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 3)).round(1)
        X[:, 1:] = rng.integers(0, 20, (2, 300)).T
        y = ((X[:, 0] > 0) ^ (X[:, 1] % 3 == 0) ^ (rng.random(300) < 0.25)).astype(int)
        tree = trees.grow(X, y, categorical=[1, 2], min_leaf=2)
        raised = prune.pessimistic(tree, 0.5, raising=True, X=X, y=y)
        raised_somewhere += not np.isin(raised.weight, tree.weight).all()
        path = trees.decision_path(raised, X).toarray().astype(bool)
        for node in range(raised.n_nodes):
            assert raised.n_samples[node] == path[:, node].sum()
            if raised.subset_start[node] >= 0:
                codes = X[path[:, node], raised.feature[node]].astype(int)
                assert (raised.subset_left[raised.subset_start[node] :][codes] != 2).all()
    assert raised_somewhere >= 3


@pytest.mark.parametrize("missing", ["extra", "surrogate"])
@given(data=st.data())
def test_raising_goes_as_in_j48(missing, data):
    """The recursion as it is told, on lists of rows: the same rows end together."""
    table = data.draw(tables("gain_ratio"))
    confidence = data.draw(st.sampled_from([0.25, 0.5, 0.05]))
    tree = table.grow(missing=missing, max_leaves=12)
    weight = np.ones(len(table.y)) if table.weight is None else table.weight
    codes, rows = np.searchsorted(tree.classes, table.y), table.sample.rows

    def sides(node, some):
        left = sent_left(tree, node, table.X[some]) if some else np.zeros(0, dtype=bool)
        return [r for r, goes in zip(some, left, strict=True) if goes], [
            r for r, goes in zip(some, left, strict=True) if not goes
        ]

    def counts(some):
        return np.bincount(codes[some], weight[some], len(tree.classes)).tolist() if some else [0.0]

    told = oracle.raised(tree, list(rows), sides, counts, confidence)
    pruned = prune.pessimistic(tree, confidence, raising=True, X=table.X, y=table.y, sample_weight=table.weight)
    leaf = trees.apply(pruned, table.X)
    mine = {frozenset(r for r in rows if leaf[r] == node) for node in set(leaf[rows].tolist())}
    assert mine == told


# ---- description length ---------------------------------------------------------------------------------------------


@given(tables("gini"))
def test_no_pruned_tree_takes_fewer_bits(table):
    table = type(table)(table.X, table.y, None, table.categorical, table.criterion)
    tree = table.grow(max_leaves=7)
    counts = counts_of(table, tree)

    def levels_here(node):
        start = tree.subset_start[node]
        return int((tree.subset_left[start : start + len(tree.categories[tree.feature[node]])] != 2).sum())

    bits = {leaves: oracle.description_bits(tree, leaves, counts, levels_here) for leaves in oracle.pruned_trees(tree)}
    mine = leaves_in(tree, prune.mdl(tree))
    np.testing.assert_allclose(bits[mine], min(bits.values()), rtol=1e-12, atol=1e-9)


def test_description_length_finds_the_truth_and_no_more():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(500, 6)).astype(float)
    truth = (X[:, 0] == 1) & (X[:, 1] == 1)
    tree = trees.grow(X, truth ^ (rng.random(500) < 0.1))
    pruned = prune.mdl(tree)
    assert tree.n_leaves > 40
    assert (trees.predict(pruned, X) == truth).all()
    assert pruned.n_leaves == 3
    assert prune.mdl(trees.grow(X, rng.integers(0, 2, 500))).n_leaves == 1


# ---- chi-squared ----------------------------------------------------------------------------------------------------


@given(tables("gini"), st.sampled_from([0.5, 0.1, 0.01]))
def test_splits_stay_if_they_or_one_below_are_significant(table, level):
    stats = pytest.importorskip("scipy.stats")
    tree = table.grow()
    counts, p = np.array(counts_of(table, tree)), p_values(tree)
    stays = np.zeros(tree.n_nodes, dtype=bool)
    for node in np.flatnonzero(tree.left >= 0)[::-1]:
        sides = counts[[tree.left[node], tree.right[node]]]
        told = stats.chi2_contingency(sides[:, sides.any(axis=0)], correction=False)
        np.testing.assert_allclose(p[node], told.pvalue, rtol=1e-9)
        stays[node] = p[node] <= level or stays[tree.left[node]] or stays[tree.right[node]]
    pruned = prune.chi2(tree, level)
    cut = set(np.flatnonzero(~stays).tolist())
    assert leaves_in(tree, pruned) == frozenset(oracle.leaves_below(tree, 0, cut))


@given(tables("gini"), st.sampled_from([0.3, 0.01]))
def test_a_tree_grown_by_the_test_loses_nothing_to_it(table, level):
    tree = table.grow(chi2=level)
    assert prune.chi2(tree, min(level * (1 + 1e-9), 1.0)).n_leaves == tree.n_leaves
    assert prune.chi2(table.grow(), 1.0).n_leaves == table.grow().n_leaves


# ---- weights that are no numbers of rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pessimistic", "mdl", "chi2"])
def test_weights_that_are_shares_are_warned_of(name):
    X, y = noisy(100)
    with pytest.warns(prune.WeightWarning, match="weights count as numbers of rows here, and those of 100 rows sum to"):
        METHODS[name](trees.grow(X, y, sample_weight=np.full(100, 0.01)), X, y)
    METHODS[name](trees.grow(X, y, sample_weight=np.full(100, 0.2)), X, y)  # no warning, or pytest would raise it
    METHODS["size"](trees.grow(X, y, sample_weight=np.full(100, 0.01)), X, y)
