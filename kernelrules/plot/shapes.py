"""plot.criteria, plot.losses, plot.ridge_forms: functions of the theory as the package computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelrules import check, kernels, ridge
from kernelrules import losses as _losses
from kernelrules import tree as _tree
from kernelrules.plot import canvas

__all__ = ["criteria", "losses", "ridge_forms"]

_CRITERIA = {
    "gini": (canvas.BLUE, "-"),
    "entropy": (canvas.GREEN, "--"),
    "misclassification": (canvas.RED, "-."),
}
_LOSSES = {
    "squared": (canvas.BLUE, "-"),
    "logistic": (canvas.RED, "-"),
    "hinge": (canvas.GREEN, "-"),
    "squared_hinge": ("#e08e2b", "--"),
    "exponential": ("#8a5fa8", "-"),
    "zero_one": (canvas.DARK, "-"),
    "ramp": (canvas.DARK, ":"),
}
_FORMS = {
    "features": (canvas.BLUE, "-", 7.0),
    "kernel": ("#f2b134", "-", 4.5),
    "dual": (canvas.RED, "--", 2.2),
    "rkhs": ("#222222", ":", 1.8),
}
_POLYNOMIAL = kernels.Polynomial(degree=8)


def criteria(ax: Any = None, *, names: Sequence[str] = tuple(_CRITERIA), scaled: bool = True) -> Any:
    """Draw the impurities of a node of two classes against the share of one of them.

    Parameters
    ----------
    ax : matplotlib.axes.Axes, optional
        Where; None makes a figure.
    names : sequence of str
        Some of "gini", "entropy" and "misclassification".
    scaled : bool
        Whether to scale all to 1 in the middle, where they are largest.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.

    Examples
    --------
    >>> from kernelrules import plot
    >>> ax = plot.criteria(names=["gini"], scaled=False)
    >>> float(ax.get_lines()[0].get_ydata().max())
    0.5
    """
    _require_known(names, _CRITERIA, "names")
    ax = canvas.axes_for(ax)
    shares = np.linspace(0, 1, 201)
    for name in names:
        colour, dashes = _CRITERIA[name]
        values = np.array([_impurity(name, p) for p in shares])
        ax.plot(shares, values / (values.max() if scaled else 1.0), color=colour, linestyle=dashes, label=name)
    ax.set(xlabel="share p of class 1", ylabel="Q(p) / Q(½)" if scaled else "Q(p)", xlim=(0, 1), ylim=(0, None))
    _legend(ax)
    return ax


def _impurity(name: str, share: float) -> float:
    """Return the impurity of the root of a tree on two rows with the weights 1 - p and p."""
    if share in (0.0, 1.0):
        return 0.0
    return float(_tree.grow([[0.0], [0.0]], [0, 1], criterion=name, sample_weight=[1 - share, share]).impurity[0])


def losses(ax: Any = None, *, names: Sequence[str] = tuple(_LOSSES), derivative: bool = False) -> Any:
    """Draw losses of the margin u = y f(x).

    The logistic loss is divided by log 2, so that it is 1 at u = 0 as the others are, and above the 0/1 loss.

    Parameters
    ----------
    ax : matplotlib.axes.Axes, optional
        Where; None makes a figure.
    names : sequence of str
        Some of those in `kernelrules.losses`.
    derivative : bool
        Whether to draw minus the derivative, how hard a point pulls, instead of the loss; zero_one has none.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.

    Examples
    --------
    >>> from kernelrules import plot
    >>> ax = plot.losses(names=["hinge", "zero_one"])
    >>> [line.get_label() for line in ax.get_lines()[:2]]
    ['hinge', '0/1']
    """
    _require_known(names, _LOSSES, "names")
    ax = canvas.axes_for(ax)
    u = np.linspace(-2.2, 3.0, 1041)
    for name in names:
        if derivative and name == "zero_one":
            continue
        loss, (colour, dashes) = getattr(_losses, name), _LOSSES[name]
        values = (-loss.derivative(u) if derivative else loss(u)) / (np.log(2) if name == "logistic" else 1.0)
        label = {"zero_one": "0/1", "logistic": "logistic / log 2"}.get(name, name.replace("_", " "))
        ax.plot(u, values, color=colour, linestyle=dashes, linewidth=1.6, label=label)
    ax.axvline(0.0, color="#bbbbbb", linewidth=0.8, zorder=0)
    ax.set(xlabel="margin u = y f(x)", ylabel="minus the derivative" if derivative else "loss", xlim=(u[0], u[-1]))
    ax.set_ylim((-2.2, 4.2) if derivative else (-0.1, 4.2))
    _legend(ax)
    return ax


def ridge_forms(
    X: Any,
    y: Any,
    lam: float,
    kernel: Any = _POLYNOMIAL,
    ax: Any = None,
    *,
    forms: Sequence[str] | None = None,
    n_grid: int = 201,
) -> Any:
    """Draw one ridge regression of one column in its equivalent representations, whose curves coincide.

    Parameters
    ----------
    X : array (n, 1) or (n,)
        The points.
    y : array (n,)
        Their targets.
    lam : float
        The λ of `ridge.fit`.
    kernel : Kernel
        What functions are made of.
    ax : matplotlib.axes.Axes, optional
        Where; None makes a figure.
    forms : sequence of str, optional
        Some of "features", "kernel", "dual" and "rkhs"; default: all that the kernel has.
    n_grid : int
        Points, unlabelled, at which the curves are computed.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on; the title has the largest difference between two forms.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import plot
    >>> x = np.linspace(-1, 1, 12)
    >>> ax = plot.ridge_forms(x, np.sin(3 * x), 0.01)
    >>> len(ax.get_lines())
    4
    """
    column = np.asarray(X)
    column = check.matrix(column[:, None] if column.ndim == 1 else X, "X", dtype=np.float64)
    if column.shape[1] != 1 or not isinstance(column, np.ndarray):
        raise ValueError(f"X must have one column, got {column.shape[1]}: the curves are drawn over it")
    targets = check.targets(y, len(column))
    if forms is None:
        forms = tuple(_FORMS) if isinstance(kernel, (kernels.Linear, kernels.Polynomial)) else tuple(_FORMS)[1:]
    _require_known(forms, _FORMS, "forms")
    low, high = column.min(), column.max()
    beyond = 0.03 * (high - low)
    grid = np.linspace(low - beyond, high + beyond, check.whole(n_grid, "n_grid", 2))
    values = {
        form: ridge.fit(column, targets, lam, kernel, unlabelled=grid[:, None], form=form).fitted[len(column) :]
        for form in forms
    }
    ax = canvas.axes_for(ax)
    ax.scatter(column[:, 0], targets, s=16, color=canvas.GREY, zorder=1)
    for form in forms:
        colour, dashes, width = _FORMS[form]
        ax.plot(grid, values[form], color=colour, linestyle=dashes, linewidth=width, label=f'form="{form}"', zorder=2)
    spread = np.array(list(values.values()))
    apart = float((spread.max(axis=0) - spread.min(axis=0)).max())
    ax.set(xlabel="x", ylabel="f(x)")
    ax.set_title(f"λ = {lam:g}: largest difference {apart:.0e}", size=9)
    _legend(ax)
    return ax


def _require_known(given: Any, known: dict[str, Any], name: str) -> None:
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise TypeError(f"{name} must be a sequence of names, got {given!r}")
    wrong = [each for each in given if each not in known]
    if wrong:
        raise ValueError(f"{name} must be some of {', '.join(known)}, got {wrong[0]!r}")


def _legend(ax: Any) -> None:
    ax.legend(frameon=False, fontsize=8)
    canvas.frameless(ax)
