"""Pictures look as they did: compared with the ones in tests/plot/images, pixel by pixel.

Texts and legends are taken out, and the letters of a tree counted as equally wide, so that fonts do not matter. What is
left may differ by a pixel along edges from one version of matplotlib to the next: a root mean square of 5 of 255 is
allowed, and a missing line is more than that (the last test). After a change that is meant:
`python tests/plot/test_plot_images.py` writes them anew; look at them.
"""

from pathlib import Path

import numpy as np
import pytest

from kernelrules import datasets, erm, kernels, plot, prune, ridge, rules, svm, tree
from kernelrules.plot import trees

pytest.importorskip("matplotlib")
import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread, imsave
from matplotlib.text import Text

FOLDER = Path(__file__).parent / "images"
TOLERANCE = 5.0


def points():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    return X, np.where(X @ [1.0, 0.6] + 0.4 * rng.normal(size=60) > 0, "up", "down")


def spam():
    X, y, names, _ = datasets.spambase()
    return X[::10], y[::10], names


def wave():
    x = np.linspace(-1, 1, 25)
    return x, np.sin(4 * x) + 0.1 * np.cos(50 * x)


def draw_tree(ax):
    X, y, names = spam()
    plot.tree(tree.grow(X, y, max_leaves=6), ax, feature_names=names)


def draw_wide_tree(ax):
    X, y, names = spam()
    plot.tree(tree.grow(X, y, max_leaves=14), ax, feature_names=names)


def draw_regression_tree(ax):
    x, y = wave()
    plot.tree(tree.grow(x[:, None], y, criterion="squared_error", max_leaves=6), ax, direction="right")


def draw_cv_curve(ax):
    X, y, _ = spam()
    plot.cv_curve(prune.cross_validate(X, y, folds=4, rng=0), ax)


def draw_grid(ax):
    plot.cv_curve(svm.tune(*points(), Cs=[0.1, 1, 10], gammas=[0.1, 1.0], folds=3, rng=0), ax)


def draw_margin(ax):
    X, y = points()
    plot.regions(svm.svc(X, y, kernel=kernels.Linear(), tol=1e-8), X, y, ax)


def draw_three_classes(ax):
    X, _ = points()
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    plot.regions(tree.grow(X, y), X, y, ax)


def draw_boundary(ax):
    X, y = points()
    plot.regions(erm.fit(X, y, 0.01, kernels.RBF(1.0)), X, y, ax)


def draw_levels(ax):
    X, _ = points()
    plot.regions(ridge.fit(X, X[:, 0] ** 2, 0.01, kernels.RBF(0.5)), X, X[:, 0] ** 2, ax)


def draw_one_class(ax):
    X, _ = points()
    plot.regions(svm.one_class(X, nu=0.2, kernel=kernels.RBF(0.5), tol=1e-8), X, None, ax)


def draw_pruning_path(ax):
    X, y, _ = spam()
    plot.path(prune.cost_complexity_path(tree.grow(X, y)), ax)


def draw_ridge_path(ax):
    x, y = wave()
    plot.path(ridge.path(x[:, None], y, np.logspace(-3, 1, 20), kernels.RBF(2.0)), ax)


def draw_machines(ax):
    plot.path(svm.path(*points(), [0.01, 0.1, 1, 10], kernel=kernels.Linear()), ax, show="margin")


def draw_forms(ax):
    plot.ridge_forms(*wave(), 1e-3, ax=ax)


def draw_importances(ax):
    X, y, names = spam()
    plot.importances(tree.grow(X, y), ax, feature_names=names, top=8)


def draw_rules(ax):
    X, y, names = spam()
    plot.rules(rules.extract(tree.grow(X, y, max_leaves=6), feature_names=names), ax)


PICTURES = {
    "tree": draw_tree,
    "wide_tree": draw_wide_tree,
    "regression_tree": draw_regression_tree,
    "cv_curve": draw_cv_curve,
    "grid": draw_grid,
    "margin": draw_margin,
    "three_classes": draw_three_classes,
    "boundary": draw_boundary,
    "levels": draw_levels,
    "one_class": draw_one_class,
    "pruning_path": draw_pruning_path,
    "ridge_path": draw_ridge_path,
    "machines": draw_machines,
    "criteria": plot.criteria,
    "losses": plot.losses,
    "forms": draw_forms,
    "importances": draw_importances,
    "rules": draw_rules,
}


def axes():
    return Figure(figsize=(3.2, 2.4), dpi=60).add_axes((0.02, 0.02, 0.96, 0.96))


def pixels(ax):
    """Without texts and legends, as numbers from 0 to 255."""
    if ax.get_legend() is not None:
        ax.get_legend().remove()
    for text in ax.figure.findobj(Text):
        text.set_visible(False)
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].astype(float)


def picture(name):
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        ax = axes()
        PICTURES[name](ax)
        return pixels(ax)


def difference(a, b):
    """Root mean square over pixels and colours."""
    return float(np.sqrt(np.mean((a - b) ** 2)))


@pytest.fixture(autouse=True)
def _letters_of_one_width(monkeypatch):
    monkeypatch.setattr(trees, "_measure", lambda size: lambda text, bold: 0.6 * size * len(text))


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_look_as_they_did(name):
    before = imread(FOLDER / f"{name}.png")[:, :, :3] * 255.0
    now = picture(name)
    assert before.shape == now.shape
    assert difference(before, now) < TOLERANCE


def test_there_are_no_other_pictures():
    assert sorted(path.stem for path in FOLDER.glob("*.png")) == sorted(PICTURES)


@pytest.mark.parametrize("name", ["losses", "margin", "criteria"])
def test_a_missing_line_is_seen(name):
    """What the tolerance forgives is less than what matters."""
    ax = axes()
    PICTURES[name](ax)
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) > 1]
    contours = [each for each in ax.collections if hasattr(each, "levels")]
    (lines or contours)[1].remove()
    assert difference(imread(FOLDER / f"{name}.png")[:, :, :3] * 255.0, pixels(ax)) > TOLERANCE


if __name__ == "__main__":
    trees._measure = lambda size: lambda text, bold: 0.6 * size * len(text)
    FOLDER.mkdir(exist_ok=True)
    for each in PICTURES:
        imsave(FOLDER / f"{each}.png", picture(each).astype(np.uint8))
