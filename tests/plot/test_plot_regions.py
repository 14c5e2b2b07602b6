"""plot.regions: the colours are predictions, the lines are levels of the decision value, for every kind of model."""

import numpy as np
import pytest
from drawn import NUMBERS, THREE, TWO, X
from scipy import sparse

from kernelrules import erm, kernels, plot, prune, ridge, rules, svm, tree

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure


@pytest.fixture
def ax():
    return Figure(figsize=(5, 4)).add_subplot()


MODELS = {
    "svc": lambda: (svm.svc(X, TWO, kernel=kernels.Linear()), TWO),
    "nu": lambda: (svm.svc(X, TWO, nu=0.4), TWO),
    "three": lambda: (svm.svc(X, THREE), THREE),
    "ovr": lambda: (svm.svc(X, THREE, multiclass="ovr"), THREE),
    "svr": lambda: (svm.svr(X, NUMBERS), NUMBERS),
    "one class": lambda: (svm.one_class(X), None),
    "calibrated": lambda: (svm.calibrate(svm.svc(X, TWO), X, TWO), TWO),
    "calibrated three": lambda: (svm.calibrate(svm.svc(X, THREE), X, THREE), THREE),
    "tuned": lambda: (svm.tune(X, TWO, Cs=[1.0], folds=2, rng=0), TWO),
    "erm": lambda: (erm.fit(X, TWO, 0.1, kernels.RBF(1.0)), TWO),
    "erm three": lambda: (erm.fit(X, THREE, 0.1, kernels.RBF(1.0)), THREE),
    "ridge": lambda: (ridge.fit(X, NUMBERS, 0.1, kernels.RBF(1.0)), NUMBERS),
    "tree": lambda: (tree.grow(X, TWO), TWO),
    "regression tree": lambda: (tree.grow(X, NUMBERS, criterion="squared_error"), NUMBERS),
    "pruned": lambda: (prune.cross_validate(X, THREE, folds=2, rng=0), THREE),
    "rules": lambda: (rules.induce(X, TWO, rng=0), TWO),
    "sum of rules": lambda: (rules.additive(X, TWO, rng=0), TWO),
    "sum of rules, three": lambda: (rules.additive(X, THREE, rng=0), THREE),
    "sum of rules, numbers": lambda: (rules.additive(X, NUMBERS, loss="squared", rng=0), NUMBERS),
    "blocks": lambda: (ridge.fit_blocks([(X, NUMBERS)], 0.1), NUMBERS),
    "root": lambda: (tree.grow(X, np.zeros(50)), np.zeros(50)),
    "constant": lambda: (tree.grow(X, np.ones(50), criterion="squared_error"), np.ones(50)),
}


@pytest.mark.parametrize("kind", MODELS)
def test_regions_of_every_model(kind, ax):
    model, y = MODELS[kind]()
    assert plot.regions(model, X, y, ax, n_grid=30) is ax
    ax.figure.canvas.draw()
    low, high = X.min(axis=0), X.max(axis=0)
    assert ax.get_xlim()[0] < low[0] < high[0] < ax.get_xlim()[1]
    assert ax.get_ylim()[0] < low[1] < high[1] < ax.get_ylim()[1]


@pytest.mark.parametrize("kind", ["svc", "three", "erm three", "tree", "rules", "sum of rules", "one class"])
def test_regions_are_predictions(kind, ax):
    model, y = MODELS[kind]()
    plot.regions(model, X, y, ax, n_grid=25)
    image = ax.get_images()[0]
    left, right, low, high = image.get_extent()
    half_x, half_y = (right - left) / 50, (high - low) / 50
    across, up = np.linspace(left + half_x, right - half_x, 25), np.linspace(low + half_y, high - half_y, 25)
    points = np.array([[a, b] for b in up for a in across])
    ask = {"erm three": erm.predict, "tree": tree.predict, "rules": rules.predict, "sum of rules": rules.predict}.get(
        kind, svm.predict
    )
    expected = ask(model, points)
    colours = np.asarray(image.get_array()).reshape(-1, 3)
    by_class = {label: np.unique(colours[expected == label], axis=0) for label in set(expected.tolist())}
    assert all(len(found) == 1 for found in by_class.values())
    assert len({tuple(found[0]) for found in by_class.values()}) == len(by_class) > 1


def test_margins_and_support_vectors(ax):
    model, _ = MODELS["svc"]()
    plot.regions(model, X, TWO, ax, n_grid=60)
    lines = {float(c.levels[0]): c for c in ax.collections if hasattr(c, "levels")}
    assert sorted(lines) == [-1.0, 0.0, 1.0]
    for level, contour in lines.items():
        points = np.concatenate([path.vertices for path in contour.get_paths()])
        np.testing.assert_allclose(svm.decision(model, points), level, atol=1e-6)
    rings = next(c for c in ax.collections if c.get_label() == "support vectors")
    np.testing.assert_allclose(rings.get_offsets(), model.support_vectors)


def test_points_inside_the_margin_are_open_and_wrong_ones_crossed(ax):
    model, _ = MODELS["svc"]()
    plot.regions(model, X, TWO, ax, n_grid=20)
    slacks = svm.slacks(model, X, TWO)
    drawn = [c for c in ax.collections if c.get_zorder() == 3 and len(c.get_offsets())]
    white = sum((c.get_facecolor()[:, :3] == 1).all(axis=1).sum() for c in drawn)
    assert white == (slacks.values > 1e-3).sum() > 0
    crosses = np.concatenate([c.get_offsets() for c in ax.collections if c.get_zorder() == 4])
    wrong = X[svm.predict(model, X) != TWO]
    np.testing.assert_allclose(crosses[np.lexsort(crosses.T)], wrong[np.lexsort(wrong.T)])


def test_other_columns_stand_at_their_medians(ax):
    wide = np.c_[X, np.random.default_rng(1).normal(size=50), np.full(50, 7.0)]
    model = svm.svc(wide, TWO, kernel=kernels.Linear())
    plot.regions(model, wide, TWO, ax, columns=(1, 0), n_grid=20)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x1", "x0")
    lines = [c for c in ax.collections if hasattr(c, "levels") and c.levels[0] == 0]
    points = np.concatenate([path.vertices for line in lines for path in line.get_paths()])
    rows = np.tile([0.0, 0.0, np.median(wide[:, 2]), 7.0], (len(points), 1))
    rows[:, [1, 0]] = points
    np.testing.assert_allclose(svm.decision(model, rows), 0.0, atol=1e-9)


def test_sparse_data_frames_and_missing_values(ax):
    dense = np.where(X > 1, 0.0, X)
    model = svm.svc(sparse.csr_array(dense), TWO, kernel=kernels.Linear())
    plot.regions(model, sparse.csr_array(dense), TWO, ax, n_grid=10)
    holes = X.copy()
    holes[:4, 0] = np.nan
    plot.regions(tree.grow(holes, TWO), holes, TWO, Figure().add_subplot(), n_grid=10)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["$a$", "b_c"])
    fresh = plot.regions(tree.grow(frame, TWO), frame, TWO, Figure().add_subplot(), n_grid=10)
    assert (fresh.get_xlabel(), fresh.get_ylabel()) == ("$a$", "b_c")
    fresh.figure.canvas.draw()


def test_constant_columns_and_one_point(ax):
    model = tree.grow(np.ones((3, 2)), [0, 1, 1])
    plot.regions(model, np.ones((1, 2)), [1], ax, n_grid=10)
    assert ax.get_xlim() == (0.5, 1.5)


def test_labels_with_an_underscore_are_in_the_legend(ax):
    labels = np.where(TWO == "up", "_up", "$down$")
    plot.regions(tree.grow(X, labels), X, labels, ax, n_grid=10)
    assert [text.get_text().strip() for text in ax.get_legend().get_texts()] == ["$down$", "_up"]
    ax.figure.canvas.draw()


def test_names_that_cannot_be_drawn(ax):
    """Tabs, line ends and mathematics that is none, in names of columns and classes; nothing warns."""
    names, labels = ["a\tb\x00 $\\bad{$", "long " * 50], np.where(TWO == "up", "$\n_^", "")
    plot.regions(tree.grow(X, labels), X, labels, ax, feature_names=names, n_grid=5)
    assert ax.get_xlabel() == "a b $\\bad{$"
    assert len(ax.get_ylabel()) == 60
    assert len(ax.get_legend().get_texts()) == 2
    found = rules.extract(tree.grow(X, labels), feature_names=names)
    bars = plot.rules(found, Figure().add_subplot())
    shares = plot.importances(tree.grow(X, labels), Figure().add_subplot(), feature_names=names)
    for axes in (ax, bars, shares):
        axes.figure.canvas.draw()
    assert all(len(label.get_text()) <= 70 for label in bars.get_yticklabels())


def test_huge_constant_columns(ax):
    points = np.full((4, 2), 1e100)
    plot.regions(tree.grow(points, [0, 1, 1, 1]), points, [0, 1, 1, 1], ax, n_grid=5)
    assert ax.get_xlim()[0] < 1e100 < ax.get_xlim()[1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"model": 3}, TypeError, "model must be one of SVMModel, CalibratedSVM"),
        ({"X": X[:, :1]}, ValueError, "the 2 columns of the model, got shape \\(50, 1\\)"),
        ({"X": X[0]}, ValueError, "X must have two dimensions"),
        ({"X": X.astype(str)}, TypeError, "X must hold real numbers, got dtype <U"),
        ({"X": X * np.nan, "y": None}, ValueError, "no finite number"),
        ({"X": X[:0], "y": TWO[:0]}, ValueError, "no finite number"),
        ({"y": TWO[:3]}, ValueError, "y"),
        ({"y": np.full(50, "other")}, ValueError, "y holds 'other', which the model does not know"),
        ({"columns": (0, 2)}, ValueError, "two different ones below 2"),
        ({"columns": (1, 1)}, ValueError, "two different ones below 2"),
        ({"columns": (0,)}, ValueError, "columns must be two numbers of columns"),
        ({"columns": "ab"}, TypeError, "columns must be two numbers of columns"),
        ({"n_grid": 1}, ValueError, "n_grid"),
        ({"feature_names": ["a"]}, ValueError, "feature_names has 1 entries"),
        ({"class_names": ["a"]}, ValueError, "class_names has 1 entries"),
    ],
)
def test_regions_refuse(arguments, error, message, ax):
    given = {"model": tree.grow(X, TWO), "X": X, "y": TWO} | arguments
    with pytest.raises(error, match=message):
        plot.regions(given.pop("model"), given.pop("X"), given.pop("y"), ax, **given)


def test_regions_refuse_models_that_no_plane_fits(ax):
    wide = np.c_[X, X]
    with pytest.raises(ValueError, match=r"the model has 4 columns: say which two to draw, as in columns=\(0, 1\)"):
        plot.regions(tree.grow(wide, TWO), wide, TWO, ax)
    with pytest.raises(ValueError, match="precomputed kernel"):
        plot.regions(svm.svc(X @ X.T, TWO, kernel=kernels.Precomputed()), X, TWO, ax)
    with pytest.raises(ValueError, match="predicts 2 numbers"):
        plot.regions(ridge.fit(X, X, 0.1, kernels.RBF(1.0)), X, None, ax, n_grid=5)
    with pytest.raises(ValueError, match="class_names are for classification"):
        plot.regions(svm.svr(X, NUMBERS), X, NUMBERS, ax, class_names=["a", "b"])
