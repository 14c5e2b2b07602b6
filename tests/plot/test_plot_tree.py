"""plot.tree: every node once, nothing over anything else, and what is written is true."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelrules import datasets, plot, prune, tree
from kernelrules.plot.layout import depths_of, tidy

pytest.importorskip("matplotlib")
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


@pytest.fixture(scope="module")
def spam():
    """A tree of 30 leaves on real data, and the names of its columns."""
    X, y, names, _ = datasets.spambase()
    return tree.grow(X[::2], y[::2], max_leaves=30), names


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def axes(width=12.0, height=8.0):
    """With enough pixels for a letter of two points not to be rounded to them."""
    return Figure(figsize=(width, height), dpi=300).add_axes((0, 0, 1, 1))


def boxes(ax, kind="node"):
    """Patches by node."""
    found = {}
    for patch in ax.patches:
        if str(patch.get_gid()).startswith(f"{kind}-"):
            found.setdefault(int(patch.get_gid().split("-")[1]), []).append(patch)
    return found


def extents(ax):
    """Where texts and boxes are on paper, in pixels."""
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    texts = {text.get_text() + f" #{k}": text.get_window_extent(renderer).extents for k, text in enumerate(ax.texts)}
    rectangles = {node: patches[0].get_window_extent(renderer).extents for node, patches in boxes(ax).items()}
    return texts, rectangles


def overlapping(rectangles):
    """Pairs that share more than half a pixel each way."""
    names, r = list(rectangles), np.array(list(rectangles.values()))
    shared_x = np.minimum(r[:, None, 2], r[None, :, 2]) - np.maximum(r[:, None, 0], r[None, :, 0])
    shared_y = np.minimum(r[:, None, 3], r[None, :, 3]) - np.maximum(r[:, None, 1], r[None, :, 1])
    return [(names[i], names[j]) for i, j in np.argwhere((shared_x > 0.5) & (shared_y > 0.5)) if i < j]


def assert_readable(ax):
    texts, rectangles = extents(ax)
    assert overlapping(texts) == []
    assert overlapping(rectangles) == []
    frame = ax.get_window_extent().extents
    for name, (left, low, right, high) in texts.items():
        assert left > frame[0] - 1, name
        assert low > frame[1] - 1, name
        assert right < frame[2] + 1, name
        assert high < frame[3] + 1, name
        inside = [
            box for box in rectangles.values() if left < box[2] and right > box[0] and low < box[3] and high > box[1]
        ]
        assert all(left > box[0] - 1 and right < box[2] + 1 for box in inside), f"{name} leaves its box"


# ---- the layout -----------------------------------------------------------------------------------------------


def random_shape(draws):
    """Children of a random binary tree in depth-first order."""
    left, right = [], []

    def grow(depth):
        node = len(left)
        left.append(-1)
        right.append(-1)
        if depth < 12 and draws and draws.pop():
            left[node] = grow(depth + 1)
            right[node] = grow(depth + 1)
        return node

    grow(0)
    return np.array(left), np.array(right)


@given(st.lists(st.booleans(), max_size=120), st.data())
@settings(max_examples=40)
def test_tidy_layout(draws, data):
    left, right = random_shape(draws)
    n = len(left)
    extent = np.array(data.draw(st.lists(st.floats(0.5, 9.0), min_size=n, max_size=n)))
    gap = data.draw(st.sampled_from([0.0, 0.7]))
    middle, depth = tidy(left, right, extent, gap), depths_of(left, right)
    inner = np.flatnonzero(left >= 0)
    np.testing.assert_allclose(middle[inner], (middle[left[inner]] + middle[right[inner]]) / 2, atol=1e-9)
    assert (middle[left[inner]] < middle[right[inner]]).all()
    np.testing.assert_allclose((middle - extent / 2).min(), 0.0, atol=1e-9)
    for level in range(depth.max() + 1):
        row = np.flatnonzero(depth == level)
        row = row[np.argsort(middle[row])]
        room = (middle[row] - extent[row] / 2)[1:] - (middle[row] + extent[row] / 2)[:-1]
        assert (room >= gap - 1e-9).all()
    # Siblings are as near as they can be: somewhere below them two neighbours touch.
    for node in inner[:3]:
        below = [_below(left, right, child) for child in (left[node], right[node])]
        shared = set(depth[below[0]]) & set(depth[below[1]])
        nearest = min(
            (middle - extent / 2)[below[1]][depth[below[1]] == d].min()
            - (middle + extent / 2)[below[0]][depth[below[0]] == d].max()
            for d in shared
        )
        np.testing.assert_allclose(nearest, gap, atol=1e-9)


def _below(left, right, node):
    found, waiting = [], [int(node)]
    while waiting:
        here = waiting.pop()
        found.append(here)
        if left[here] >= 0:
            waiting += [int(left[here]), int(right[here])]
    return np.array(found)


# ---- the drawing ----------------------------------------------------------------------------------------------


def test_thirty_leaves_can_be_read(spam):
    grown, names = spam
    assert grown.n_leaves == 30
    ax = plot.tree(grown, feature_names=names)
    assert_readable(ax)
    assert {text.get_fontsize() for text in ax.texts} == {8.0}
    assert max(ax.figure.get_size_inches()) < 30


@pytest.mark.parametrize("direction", ["down", "right"])
@pytest.mark.parametrize("size", [(5.0, 3.0), (40.0, 25.0)])
def test_given_axes_of_any_size(spam, direction, size):
    ax = axes(*size)
    assert plot.tree(spam[0], ax, direction=direction) is ax
    assert_readable(ax)
    assert max(text.get_fontsize() for text in ax.texts) <= 8.0


def test_every_node_is_drawn_once(spam):
    grown, names = spam
    ax = plot.tree(grown, axes(), feature_names=names)
    assert sorted(boxes(ax)) == list(range(grown.n_nodes))
    assert all(len(patches) == 1 for patches in boxes(ax).values())
    assert sorted(boxes(ax, "line")) == list(range(1, grown.n_nodes))
    lines = [text.get_text() for text in ax.texts]
    for node in range(grown.n_nodes):
        rows = f"{grown.n_samples[node]:.0f}"
        if grown.left[node] >= 0:
            assert f"n = {rows}" in lines
            assert any(line.startswith(f"{names[grown.feature[node]]} ≤ ") for line in lines)
        else:
            assert f"{grown.value[node].max():.0%} of {rows}" in lines
    assert lines.count("yes") == lines.count("no") == 1
    answers = grown.classes[grown.value[grown.left < 0].argmax(axis=1)]
    for label in grown.classes:
        assert lines.count(label) == (answers == label).sum() + 1  # and once in the legend


def test_bars_are_the_shares(spam):
    grown, _ = spam
    ax = plot.tree(grown, axes())
    widths = {node: [part.get_width() for part in parts] for node, parts in boxes(ax, "share").items()}
    for node in range(grown.n_nodes):
        shares = grown.value[node][grown.value[node] > 0]
        np.testing.assert_allclose(np.array(widths[node]) / sum(widths[node]), shares, atol=1e-12)


def test_lines_are_as_thick_as_their_share_of_the_rows(spam):
    grown, _ = spam
    lines = boxes(plot.tree(grown, axes()), "line")
    for node, (line,) in lines.items():
        assert line.get_linewidth() == pytest.approx(0.5 + 3.5 * grown.weight[node] / grown.weight[0])


def test_left_is_left_or_up(spam):
    grown, _ = spam
    for direction, side in (("down", 0), ("right", 1)):
        ax = plot.tree(grown, axes(), direction=direction)
        corner = {node: patch.get_xy()[side] for node, (patch,) in boxes(ax).items()}
        for node in np.flatnonzero(grown.left >= 0):
            assert corner[grown.left[node]] < corner[grown.right[node]]
    assert ax.yaxis_inverted()


def test_max_depth(spam):
    grown, _ = spam
    depth = depths_of(grown.left, grown.right)
    ax = plot.tree(grown, axes(), max_depth=2)
    assert sorted(boxes(ax)) == np.flatnonzero(depth <= 2).tolist()
    cut = ((depth == 2) & (grown.left >= 0)).sum()
    assert sum(text.get_text().endswith(" …") for text in ax.texts) == cut > 0
    only_root = plot.tree(grown, axes(), max_depth=0)
    assert list(boxes(only_root)) == [0]


def test_direction_follows_the_size(spam):
    for grown, side in ((prune.to_size(spam[0], 8), 1), (spam[0], 0)):
        corners = {node: patch.get_xy()[side] for node, (patch,) in boxes(plot.tree(grown)).items()}
        assert all(corners[0] < corner for node, corner in corners.items() if node)


def test_a_pruned_cross_validated_tree_is_drawn(spam):
    X, y, *_ = datasets.spambase()
    cv = prune.cross_validate(X[::30], y[::30], folds=2, rng=0)
    assert len(boxes(plot.tree(cv, axes()))) == cv.tree.n_nodes


KINDS = {
    "one node": lambda x: tree.grow(x, np.zeros(len(x), dtype=int)),
    "regression": lambda x: tree.grow(x, x[:, 0] ** 2, criterion="squared_error", max_leaves=12),
    "constant": lambda x: tree.grow(x, np.ones(len(x)), criterion="squared_error"),
    "linear leaves": lambda x: tree.grow(x, x[:, 0] ** 2, criterion="squared_error", max_leaves=4, leaf="linear"),
    "two targets": lambda x: tree.grow(x, x[:, :2] ** 2, criterion="squared_error", max_leaves=5),
    "oblique": lambda x: tree.grow(x, (x.sum(axis=1) > 0).astype(int), splits="oblique", max_leaves=6),
    "chain": lambda x: tree.grow(np.arange(25.0)[:, None], np.arange(25) % 2),
    "categories": lambda x: tree.grow(np.array([[c] for c in "abcdefghijklmnopqrst" * 3]), np.arange(60) % 7),
    "many classes": lambda x: tree.grow(x, np.arange(60) % 30, max_leaves=10),
    "missing": lambda x: tree.grow(np.where(x > 1, np.nan, x), (x[:, 0] > 0).astype(int)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", ["auto", "down"])
def test_every_kind_of_tree(kind, direction):
    grown = KINDS[kind](np.random.default_rng(0).normal(size=(60, 3)))
    ax = plot.tree(grown, direction=direction)
    assert len(boxes(ax)) == grown.n_nodes
    assert_readable(ax)


def test_hostile_names():
    x = np.arange(8.0)[:, None] * 1e-7
    grown = tree.grow(x, np.repeat(["$x_$", "\\frac{"], 4))
    ax = plot.tree(grown, feature_names=["$\\undefined$ " + "very long name " * 10 + "\n%&#_"])
    texts = [text.get_text() for text in ax.texts]
    assert "$x_$" in texts
    asked = next(text for text in texts if " ≤ " in text)
    assert len(asked) <= 40
    assert asked.endswith("≤ 3.5e-07")
    assert_readable(ax)


def test_a_legend_wider_than_the_tree_is_left_out():
    x = np.arange(4.0)[:, None]
    for length, in_legend in ((3, 1), (30, 0)):
        labels = [f"{letter * length}" for letter in "abcd"]
        lines = [text.get_text() for text in plot.tree(tree.grow(x, labels)).texts]
        assert all(lines.count(label) == 1 + in_legend for label in labels)


def test_numbers_that_are_close_are_told_apart():
    x = np.array([0.123451, 0.123452, 0.123453, 0.123454])[:, None]
    ax = plot.tree(tree.grow(x, [0, 1, 0, 1]), axes())
    asked = [text.get_text() for text in ax.texts if " ≤ " in text.get_text()]
    assert len(set(asked)) == 3


def test_huge_trees_shrink():
    """A figure of more than 65536 pixels cannot be drawn at all."""
    grown = tree.grow(np.arange(200.0)[:, None], np.arange(200) % 2)
    ax = plot.tree(grown, direction="right", fontsize=30)
    assert max(ax.figure.get_size_inches()) <= 100.01
    assert len(boxes(ax)) == 399
    assert ax.texts[0].get_fontsize() < 30


def test_bad_input(spam):
    grown, _ = spam
    with pytest.raises(TypeError, match="t must be a Tree or a PruneCV, got int"):
        plot.tree(3)
    with pytest.raises(ValueError, match='direction must be "auto", "down" or "right", got \'up\''):
        plot.tree(grown, direction="up")
    with pytest.raises(ValueError, match="feature_names has 1 entries but there are 57 columns"):
        plot.tree(grown, feature_names=["a"])
    with pytest.raises(ValueError, match="class_names has 1 entries"):
        plot.tree(grown, class_names=["a"])
    with pytest.raises(ValueError, match="max_depth"):
        plot.tree(grown, max_depth=-1)
    with pytest.raises(ValueError, match="fontsize"):
        plot.tree(grown, fontsize=0)
    with pytest.raises(TypeError, match="ax must be an Axes of matplotlib or None, got str"):
        plot.tree(grown, "here")
