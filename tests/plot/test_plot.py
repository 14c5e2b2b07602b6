"""Curves, bars and shapes: what is drawn are the numbers of the result; axes in, the same axes out."""

import dataclasses
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from drawn import NUMBERS, TWO, X
from places import ROOT

from kernelrules import datasets, kernels, plot, prune, ridge, rules, svm, tree
from kernelrules import losses as loss_functions

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

SPAM, LABELS, NAMES, _ = datasets.spambase()
SPAM, LABELS = SPAM[::20], LABELS[::20]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture
def ax():
    return Figure(figsize=(5, 4)).add_subplot()


@pytest.fixture(scope="module")
def pruned():
    return prune.cross_validate(SPAM, LABELS, folds=3, rng=0)


@pytest.fixture(scope="module")
def tuned():
    return svm.tune(X, TWO, Cs=[10, 0.1, 1], gammas=[0.1, 1.0], folds=3, rng=0)


@pytest.fixture(scope="module")
def ridges():
    return ridge.path(X, NUMBERS, [1.0, 1e-3, 0.1], kernels.RBF(1.0))


def levels_of(ax):
    """Heights of the horizontal lines."""
    return [
        line.get_ydata()[0] for line in ax.get_lines() if len(set(line.get_ydata())) == 1 and line.get_xdata()[-1] == 1
    ]


def bars_of(ax, k=0):
    """Lowest and highest end of each error bar of line k, and the line's data."""
    container = ax.containers[k]
    segments = np.array(container.lines[2][0].get_segments())
    return segments[:, :, 1], container.lines[0].get_xydata()


# ---- cross-validation -----------------------------------------------------------------------------------------


def test_cv_curve_of_pruning(pruned, ax):
    assert plot.cv_curve(pruned, ax) is ax
    ends, data = bars_of(ax)
    np.testing.assert_allclose(data, np.c_[pruned.n_leaves, pruned.error])
    np.testing.assert_allclose(ends, np.c_[pruned.error - pruned.se, pruned.error + pruned.se])
    best = pruned.error.argmin()
    np.testing.assert_allclose(levels_of(ax), [pruned.error[best] + pruned.se[best]])
    training = next(line for line in ax.get_lines() if line.get_label() == "training rows")
    np.testing.assert_allclose(training.get_ydata(), pruned.risk)
    chosen = next(line for line in ax.get_lines() if str(line.get_label()).startswith("chosen"))
    assert set(chosen.get_xdata()) == {pruned.n_leaves[pruned.chosen]}
    assert ax.get_xscale() == "log"


def test_cv_curve_of_a_grid(tuned, ax):
    plot.cv_curve(tuned, ax)
    assert len(ax.containers) == 2
    order = np.argsort(tuned.Cs)
    for k in (0, 1):
        ends, data = bars_of(ax, k)
        np.testing.assert_allclose(data, np.c_[tuned.Cs[order], tuned.mean[k, order]])
        np.testing.assert_allclose(ends.mean(axis=1), tuned.mean[k, order], atol=1e-12)
        np.testing.assert_allclose(np.diff(ends, axis=1)[:, 0], 2 * tuned.se[k, order], atol=1e-12)
    chosen = next(line for line in ax.get_lines() if str(line.get_label()).startswith("chosen"))
    assert set(chosen.get_xdata()) == {tuned.best["C"]}
    ring = next(line for line in ax.get_lines() if line.get_label() == "_chosen")
    g = tuned.gammas.tolist().index(tuned.best["gamma"])
    assert ring.get_ydata()[0] == tuned.mean[g, tuned.Cs.tolist().index(tuned.best["C"])]
    assert "γ = 0.1" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_cv_curve_of_a_grid_without_gamma(ax):
    found = svm.tune(X, TWO, Cs=[1, 10], folds=3, rng=0, kernel=kernels.Linear())
    plot.cv_curve(found, ax)
    assert len(ax.containers) == 1


def test_cv_curve_of_ridges(ridges, ax):
    plot.cv_curve(ridges, ax)
    ends, data = bars_of(ax)
    order = np.argsort(ridges.lams)
    np.testing.assert_allclose(data, np.c_[ridges.lams, ridges.loo_errors][order])
    squares = ridges.loo_residuals[order] ** 2
    np.testing.assert_allclose(np.diff(ends, axis=1)[:, 0] / 2, squares.std(axis=1, ddof=1) / np.sqrt(50))


def test_standard_errors_of_ridges_count_rows_by_weight():
    """Rows of weight 0 do not count, whatever their residual; weights that are all 3 count as 1."""
    weights = np.r_[np.ones(40), np.zeros(10)]
    some, few = (
        plot.cv_curve(ridge.path(x, t, [0.1, 1.0], kernels.RBF(1.0), sample_weight=w), Figure().add_subplot())
        for x, t, w in ((X, NUMBERS, 3 * weights), (X[:40], NUMBERS[:40], None))
    )
    np.testing.assert_allclose(bars_of(some)[0], bars_of(few)[0], rtol=1e-9)


def test_cv_curve_of_several_targets(ax):
    found = ridge.path(X, np.c_[NUMBERS, -NUMBERS], [0.1, 1.0], kernels.RBF(1.0))
    plot.cv_curve(found, ax)
    np.testing.assert_allclose(bars_of(ax)[1][:, 1], found.loo_errors)


def test_cv_curve_of_one_candidate(ax):
    found = prune.cross_validate(X, np.zeros(50), folds=2, rng=0, criterion="squared_error")
    plot.cv_curve(found, ax)
    assert ax.get_xscale() == "linear"
    assert "chosen: 1 leaf" in [text.get_text() for text in ax.get_legend().get_texts()]


# ---- paths ------------------------------------------------------------------------------------------------------


def test_path_of_pruning(pruned, ax):
    found = prune.cost_complexity_path(pruned.grown)
    for show in ("n_leaves", "risk"):
        fresh = Figure().add_subplot()
        (line,) = plot.path(found, fresh, show=show).get_lines()
        np.testing.assert_allclose(line.get_xdata(), found.alphas)
        np.testing.assert_allclose(line.get_ydata(), getattr(found, show))
        assert line.get_drawstyle() == "steps-post"
        assert fresh.get_xscale() == "symlog"
    only_root = prune.cost_complexity_path(tree.grow(X, np.zeros(50)))
    assert plot.path(only_root, ax).get_xscale() == "linear"


def test_path_of_ridges(ridges, ax):
    lines = plot.path(ridges, ax).get_lines()
    assert len(lines) == 40
    order = np.argsort(ridges.lams)
    largest = np.abs(ridges.alphas).max(axis=0)
    shown = [int(np.flatnonzero((ridges.alphas[order] == np.c_[line.get_ydata()]).all(axis=0))[0]) for line in lines]
    assert set(shown) == set(np.argsort(-largest)[:40].tolist())
    (line,) = plot.path(ridges, Figure().add_subplot(), show="dof").get_lines()
    np.testing.assert_allclose(line.get_ydata(), ridges.dof[order])
    flat = ridge.path(X, NUMBERS, [0.1, 1.0], kernels.Linear())
    if flat.weights is not None:
        assert len(plot.path(flat, Figure().add_subplot()).get_lines()) == flat.weights.shape[1]


def test_path_of_machines():
    models = svm.path(X, TWO, [1.0, 0.01, 100.0], kernel=kernels.Linear())
    ascending = sorted(models, key=lambda model: model.C)
    expected = {
        "support": [len(m.support) for m in ascending],
        "margin": [svm.margin(m) for m in ascending],
        "gap": [m.certificate.gap for m in ascending],
        "objective": [m.certificate.primal for m in ascending],
    }
    for show, numbers in expected.items():
        line = plot.path(models, Figure().add_subplot(), show=show).get_lines()[0]
        np.testing.assert_allclose(line.get_xdata(), [0.01, 1.0, 100.0])
        np.testing.assert_allclose(line.get_ydata(), numbers)
    assert len(plot.path(models, Figure().add_subplot(), show="objective").get_lines()) == 2


def additive_path():
    """What a learner with a path of its own returns, as far as plots look at it."""
    coefficients = np.array([[[0.0, 0.0, 0.0]], [[0.0, 2.0, 0.0]], [[-1.0, 3.0, 0.0]]])
    numbers = {"lams": np.array([1.0, 0.1, 0.01]), "error": np.array([0.4, 0.2, 0.3]), "se": np.full(3, 0.05)}
    return SimpleNamespace(**numbers, chosen=1, measure="zero_one", coefficients=coefficients)


def test_results_with_a_path_of_their_own(ax):
    found = additive_path()
    plot.cv_curve(found, ax)
    ends, data = bars_of(ax)
    np.testing.assert_allclose(data, [[0.01, 0.3], [0.1, 0.2], [1.0, 0.4]])
    np.testing.assert_allclose(np.diff(ends, axis=1), 0.1)
    assert ax.get_ylabel() == "error (zero_one)"
    lines = plot.path(found, Figure().add_subplot()).get_lines()
    np.testing.assert_allclose([line.get_ydata() for line in lines], found.coefficients[::-1, 0].T)
    (line,) = plot.path(found, Figure().add_subplot(), show="n_terms").get_lines()
    assert line.get_ydata().tolist() == [2, 1, 0]
    found.error = None
    with pytest.raises(ValueError, match="fitted without cross-validation"):
        plot.cv_curve(found)


# ---- shapes and bars --------------------------------------------------------------------------------------------


def test_criteria(ax):
    plot.criteria(ax)
    gini, entropy, wrong = (line.get_xydata().T for line in ax.get_lines())
    p = gini[0]
    np.testing.assert_allclose(gini[1], 4 * p * (1 - p), atol=1e-12)
    np.testing.assert_allclose(wrong[1], 2 * np.minimum(p, 1 - p), atol=1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.nan_to_num(-p * np.log2(p) - (1 - p) * np.log2(1 - p))
    np.testing.assert_allclose(entropy[1], bits, atol=1e-12)


def test_losses(ax):
    plot.losses(ax)
    lines = {line.get_label(): line for line in ax.get_lines()}
    u, values = lines["hinge"].get_xydata().T
    np.testing.assert_allclose(values, np.maximum(0, 1 - u))
    u, values = lines["logistic / log 2"].get_xydata().T
    np.testing.assert_allclose(values, np.log2(1 + np.exp(-u)))
    pulls = {line.get_label(): line for line in plot.losses(Figure().add_subplot(), derivative=True).get_lines()}
    np.testing.assert_allclose(pulls["squared"].get_ydata(), -loss_functions.squared.derivative(u))
    assert "0/1" not in pulls


def test_ridge_forms(ax):
    x, y = np.linspace(-1, 1, 20), np.sin(3 * np.linspace(-1, 1, 20))
    plot.ridge_forms(x, y, 0.01, ax=ax)
    assert [line.get_label() for line in ax.get_lines()] == [
        f'form="{f}"' for f in ("features", "kernel", "dual", "rkhs")
    ]
    grid, values = ax.get_lines()[0].get_xydata().T
    fitted = ridge.fit(x[:, None], y, 0.01, kernels.Polynomial(degree=8))
    np.testing.assert_allclose(values, ridge.predict(fitted, grid[:, None]), atol=1e-6)
    assert len(plot.ridge_forms(x, y, 0.01, kernels.RBF(1.0), Figure().add_subplot()).get_lines()) == 3


def test_importances(pruned, ax):
    plot.importances(pruned, ax, feature_names=NAMES, top=5)
    shares = tree.importance(pruned.tree)
    order = np.argsort(-shares)[:5]
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, shares[order][: len(widths)])
    assert [label.get_text() for label in ax.get_yticklabels()] == [NAMES[j] for j in order if shares[j] > 0]
    empty = plot.importances(tree.grow(X, np.zeros(50)), Figure().add_subplot())
    assert len(empty.patches) == 0
    assert empty.texts[0].get_text() == "no splits"


def test_rules(ax):
    found = rules.extract(tree.grow(SPAM, LABELS, max_leaves=6), feature_names=NAMES)
    plot.rules(found, ax)
    right, wrong = (np.array([bar.get_width() for bar in group]) for group in ax.containers)
    np.testing.assert_allclose(right + wrong, [rule.support for rule in found])
    np.testing.assert_allclose(right / (right + wrong), [rule.confidence for rule in found])
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert len(labels) == 6
    assert all(label.endswith(("→ spam", "→ nonspam")) for label in labels)
    few = plot.rules(found, Figure().add_subplot(), top=2, class_names=["ham", "junk"])
    assert len(few.get_yticklabels()) == 2
    assert "4 more rules" in few.get_title(loc="right")
    numbers = rules.extract(tree.grow(X, NUMBERS, criterion="squared_error", max_leaves=4))
    assert len(plot.rules(numbers, Figure().add_subplot()).containers) == 1
    none = dataclasses.replace(found, rules=(), complete=False)
    plot.rules(none, Figure().add_subplot()).figure.canvas.draw()


# ---- input, and what is left alone ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plot.cv_curve(3), TypeError, "cv must be one of PruneCV, TuneResult, RidgePath.*got int"),
        (lambda: plot.path([]), TypeError, "path must be a PrunePath, a RidgePath or a sequence of SVMModel, got list"),
        (lambda: plot.path([1]), TypeError, "path must be"),
        (lambda: plot.path([svm.one_class(X)]), ValueError, "machines without C"),
        (
            lambda: plot.path(svm.path(X, TWO, [1.0]), show="size"),
            ValueError,
            "show must be one of 'support', 'margin', 'objective', 'gap' for such a path, got 'size'",
        ),
        (lambda: plot.criteria(names=["Gini"]), ValueError, "names must be some of gini, entropy, misclassification"),
        (lambda: plot.criteria(names="gini"), TypeError, "names must be a sequence of names"),
        (lambda: plot.losses(names=[]), TypeError, "names must be a sequence of names"),
        (lambda: plot.losses(ax=3), TypeError, "ax must be an Axes of matplotlib or None, got int"),
        (lambda: plot.ridge_forms(X, NUMBERS, 0.1), ValueError, "X must have one column, got 2"),
        (lambda: plot.ridge_forms([1.0, 2.0], [1.0], 0.1), ValueError, "y"),
        (lambda: plot.ridge_forms([1.0, np.nan], [1.0, 2.0], 0.1), ValueError, "X holds nan at row 1"),
        (lambda: plot.ridge_forms([1.0, 2.0], [1.0, 2.0], 0.1, forms=["primal"]), ValueError, "forms must be some of"),
        (lambda: plot.importances(3), TypeError, "tree"),
        (lambda: plot.importances(tree.grow(X, TWO), top=0), ValueError, "top"),
        (lambda: plot.rules(3), TypeError, "rs must be a RuleList, got int"),
    ],
    ids=range(16),
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("projection", ["polar", "3d", "mollweide"])
def test_axes_that_are_not_straight_are_refused(pruned, projection):
    grown = tree.grow(X, TWO, max_leaves=4)
    drawings = [plot.losses, *(partial(draw, pruned) for draw in (plot.cv_curve, plot.tree))]
    for draw in (*drawings, partial(plot.regions, grown, X, TWO)):
        axes = Figure().add_subplot(projection=projection)
        with pytest.raises(ValueError, match=f'two straight axes, got axes of the projection "{projection}"'):
            draw(ax=axes)


def test_a_figure_is_made_where_none_is_given(pruned):
    import matplotlib.pyplot as plt

    before = dict(plt.rcParams)
    made = [plot.cv_curve(pruned), plot.criteria(), plot.tree(pruned), plot.importances(pruned)]
    assert [axes.figure.number for axes in made] == plt.get_fignums()
    assert plt.gca() is made[-1]
    assert dict(plt.rcParams) == before


def test_pyplot_is_not_needed_with_axes():
    """Nothing global is touched, and without matplotlib the error says what to install."""
    code = """
import sys
import kernelrules
from kernelrules import plot, tree
assert "matplotlib" not in sys.modules
from matplotlib.figure import Figure
grown = tree.grow([[0.0], [1.0], [2.0]], [0, 1, 0])
plot.tree(grown, Figure().add_subplot())
plot.criteria(Figure().add_subplot())
print("matplotlib.pyplot" in sys.modules)
for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
    del sys.modules[name]
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
for call in (lambda: plot.tree(grown), plot.losses):
    try:
        call()
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = "kernelrules.plot draws with matplotlib: pip install 'kernelrules[plot]'"
    assert done.stdout.splitlines() == ["False", said, said]


def test_the_gallery_shows_every_example():
    """The documentation runs them when it is built; here only that each is on the page and checks what it shows."""
    docs = ROOT / "docs"
    page = (docs / "gallery" / "index.rst").read_text(encoding="utf-8")
    scripts = sorted((docs / "examples" / "gallery").glob("*.py"))
    assert len(scripts) > 12
    for script in scripts:
        assert f":doc:`generated/{script.stem}`" in page
        assert "\nassert " in script.read_text(encoding="utf-8") or "    assert " in script.read_text(encoding="utf-8")


def test_errors_of_a_regression_have_their_own_name():
    found = svm.tune(X, X[:, 0], Cs=[1, 10], folds=3, rng=0, task="svr", measure="absolute_error")
    assert plot.cv_curve(found).get_ylabel() == "error (absolute_error)"
    assert "absolute error" in repr(found)
    assert "±" in found._repr_html_()
