"""plot.regions: what a model answers over the plane of two columns, with the data; margins and support vectors.

Columns that are not drawn stand at their medians: of more than two columns the picture is a slice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelrules import check, svm
from kernelrules.plot import canvas
from kernelrules.plot.surface import Answers, answers, model_of
from kernelrules.results import CalibratedSVM, SVMModel

__all__ = ["regions"]

_ON_MARGIN = 1e-3  # slacks below it come from the solver's tolerance
_PALE = 0.2


def regions(
    model: Any,
    X: Any,
    y: Any = None,
    ax: Any = None,
    *,
    columns: tuple[int, int] | None = None,
    feature_names: Any = None,
    class_names: Any = None,
    n_grid: int = 200,
) -> Any:
    """Draw the predictions of a model over the plane of two columns, and the data.

    Of a support vector machine of two classes: the boundary f = 0, the margin f = ±1 (dashed), and rings around the
    support vectors; points inside the margin are open, wrong ones are crossed. A regression has level lines, with the
    data in the same colours.

    Parameters
    ----------
    model : SVMModel, CalibratedSVM, ErmFit, RidgeFit, Tree, RuleList, PruneCV or TuneResult
        What to ask.
    X : array (n, p)
        Points, of numbers; those without a finite number in one of the two columns are not drawn.
    y : array (n,), optional
        Their labels or numbers; None draws all points alike.
    ax : matplotlib.axes.Axes, optional
        Where; None makes a figure.
    columns : (int, int), optional
        Which columns to draw, across and up; the others are held at their medians. Default: (0, 1) where there are
        two, else they must be given.
    feature_names, class_names : sequence of str, optional
        What to call the columns, and the classes in their order.
    n_grid : int
        Points of the grid each way.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels, plot, svm
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
    >>> ax = plot.regions(svm.svc(X, y, C=10.0, kernel=kernels.Linear()), X, y, n_grid=50)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['down', 'up', 'support vectors']
    """
    model, classes = model_of(model)
    inner = model.model if isinstance(model, CalibratedSVM) else model
    p = inner.n_features
    i, j = _two_columns(columns, p)
    points = _numbers(X, p)
    names = check.column_names(feature_names, getattr(inner, "feature_names", None), p)
    labels = check.class_names(class_names, classes)
    low, high = _limits(points[:, [i, j]])
    n_grid = check.whole(n_grid, "n_grid", 2)
    across, up = (np.linspace(low[k], high[k], n_grid) for k in (0, 1))
    grid = np.tile(_middle(points, (i, j)), (n_grid * n_grid, 1))
    grid[:, i], grid[:, j] = np.tile(across, n_grid), np.repeat(up, n_grid)
    found = answers(model, grid)
    codes, numbers = _given(y, classes, len(points))
    ax = canvas.axes_for(ax, (5.2, 4.4))
    if classes is None:
        _draw_levels(ax, across, up, found, points[:, [i, j]], numbers)
    else:
        _draw_regions(ax, across, up, found, len(classes))
        crossed = _cases(model, X, y)
        _draw_points(ax, points[:, [i, j]], codes, labels, crossed)
    if isinstance(inner, SVMModel) and len(inner.support) and classes is not None:
        _draw_rings(ax, inner.support_vectors, (i, j))
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.set_xlabel(canvas.one_line(names[i], 60), parse_math=False)
    ax.set_ylabel(canvas.one_line(names[j], 60), parse_math=False)
    if ax.get_legend_handles_labels()[0]:
        for text in ax.legend(fontsize=8, framealpha=0.8).get_texts():
            text.set_parse_math(False)
    return ax


# ---- what is given ----------------------------------------------------------------------------------------------


def _two_columns(columns: Any, p: int) -> tuple[int, int]:
    if columns is None:
        if p != 2:
            raise ValueError(f"the model has {p} columns: say which two to draw, as in columns=(0, 1)")
        return 0, 1
    try:
        i, j = (check.whole(column, "columns", 0) for column in columns)
    except (TypeError, ValueError) as error:
        raise type(error)(f"columns must be two numbers of columns, got {columns!r}") from None
    if i == j or max(i, j) >= p:
        raise ValueError(f"columns must be two different ones below {p}, got {columns!r}")
    return i, j


def _numbers(X: Any, p: int) -> np.ndarray:
    """Return the points as float64; values that are not finite are allowed."""
    raw = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    if raw.dtype.kind not in "biuf":
        raise check.DtypeError(f"X must hold real numbers, got dtype {raw.dtype}: regions are drawn over numbers")
    if raw.ndim != 2 or raw.shape[1] != p:
        raise ValueError(f"X must have two dimensions and the {p} columns of the model, got shape {raw.shape}")
    return raw.astype(np.float64)


def _limits(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the range of the finite values of both columns with a margin."""
    known = np.where(np.isfinite(points), points, np.nan)
    if len(points) == 0 or np.isnan(known).all(axis=0).any():
        raise ValueError("X holds no finite number in one of the columns to draw")
    low, high = np.nanmin(known, axis=0), np.nanmax(known, axis=0)
    beyond = np.where(high > low, 0.06 * (high - low), np.maximum(0.5, 0.06 * np.abs(high)))
    return low - beyond, high + beyond


def _middle(points: np.ndarray, drawn: tuple[int, int]) -> np.ndarray:
    """Return the medians of the finite values of the fixed columns, 0 without any."""
    held = np.zeros(points.shape[1])
    for column in set(range(points.shape[1])) - set(drawn):
        known = points[np.isfinite(points[:, column]), column]
        held[column] = np.median(known) if len(known) else 0.0
    return held


def _given(y: Any, classes: np.ndarray | None, n: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the codes of the labels, or the numbers."""
    if y is None:
        return None, None
    if classes is None:
        return None, check.targets(y, n)
    return check.known_codes(y, n, classes), None


def _cases(model: Any, X: Any, y: Any) -> np.ndarray | None:
    """Return for each point of a two-class machine: 0 no slack, 1 inside the margin, 2 misclassified."""
    if not isinstance(model, SVMModel) or model.classes is None or len(model.classes) != 2 or y is None:
        return None
    slacks = svm.slacks(model, X, y)
    return np.where(slacks.values < _ON_MARGIN, 0, slacks.case)


# ---- the drawing ------------------------------------------------------------------------------------------------


def _draw_regions(ax: Any, across: np.ndarray, up: np.ndarray, found: Answers, n_classes: int) -> None:
    pale = 1 - _PALE * (1 - canvas.class_colours(n_classes))
    shape = (len(up), len(across))
    half_x, half_y = (across[1] - across[0]) / 2, (up[1] - up[0]) / 2
    frame = (across[0] - half_x, across[-1] + half_x, up[0] - half_y, up[-1] + half_y)
    ax.imshow(
        pale[found.codes].reshape(*shape, 3), origin="lower", extent=frame, aspect="auto", interpolation="nearest",
        zorder=0,
    )  # fmt: skip
    if found.values is None:
        return
    values, middle = found.values.reshape(shape), len(found.levels) // 2
    for k, level in enumerate(found.levels):
        if values.min() < level < values.max():
            style = "solid" if k == middle else "dashed"
            ax.contour(across, up, values, levels=[level], colors=canvas.DARK, linestyles=style, linewidths=1.2)


def _draw_points(
    ax: Any, points: np.ndarray, codes: np.ndarray | None, labels: tuple[str, ...], cases: np.ndarray | None
) -> None:
    if codes is None:
        ax.scatter(*points.T, s=18, color=canvas.DARK, zorder=3)
        return
    for code, (name, colour) in enumerate(zip(labels, canvas.class_colours(len(labels)), strict=True)):
        mine = codes == code
        marker = canvas.MARKERS[code % len(canvas.MARKERS)]
        face = np.tile(colour, (int(mine.sum()), 1))
        if cases is not None:
            face[cases[mine] > 0] = 1.0
        ax.scatter(*points[mine].T, s=20, marker=marker, facecolor=face, edgecolor=[colour], linewidth=1.0, zorder=3)
        label = canvas.one_line(name)
        in_legend = f" {label}" if label.startswith("_") or not label else label  # which would hide it
        ax.scatter([], [], s=20, marker=marker, color=[colour], label=in_legend)
        if cases is not None and (cases[mine] == 2).any():
            ax.scatter(*points[mine][cases[mine] == 2].T, s=20, marker="x", color=[colour], linewidth=0.9, zorder=4)


def _draw_rings(ax: Any, vectors: Any, columns: tuple[int, int]) -> None:
    two = vectors[:, list(columns)]
    two = two.toarray() if hasattr(two, "toarray") else two
    ax.scatter(
        *two.T, s=80, facecolor="none", edgecolor=canvas.GREY, linewidth=0.8, zorder=2, label="support vectors"
    )  # fmt: skip


def _draw_levels(
    ax: Any, across: np.ndarray, up: np.ndarray, found: Answers, points: np.ndarray, numbers: np.ndarray | None
) -> None:
    values = found.values.reshape(len(up), len(across))
    seen = values if numbers is None else np.concatenate([values.ravel(), numbers.ravel()])
    low, high = float(seen.min()), float(seen.max())
    norm = canvas.matplotlib("colors").Normalize(low, high if high > low else low + 1.0)
    levels = canvas.matplotlib("ticker").MaxNLocator(10).tick_values(norm.vmin, norm.vmax)
    ax.contourf(across, up, values, levels=levels, norm=norm, cmap="viridis", alpha=0.55, zorder=0)
    if values.max() > values.min():
        lines = ax.contour(across, up, values, levels=levels, colors=canvas.DARK, linewidths=0.6)
        ax.clabel(lines, fontsize=7)
    shades = (
        canvas.DARK if numbers is None else canvas.matplotlib("cm").ScalarMappable(norm, "viridis").to_rgba(numbers)
    )
    ax.scatter(*points.T, s=18, c=shades, edgecolor="white", linewidth=0.5, zorder=3)
