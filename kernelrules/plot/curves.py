"""plot.cv_curve: error ± one standard error against size or strength. plot.path: what a path of fits goes through.

Each kind of result has one function that says what its axes are; the drawing is the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules import svm
from kernelrules.plot import canvas
from kernelrules.results import PruneCV, PrunePath, RidgePath, SVMModel, TuneResult

__all__ = ["cv_curve", "path"]

_MOST_LINES = 40  # of a path of coefficients: the largest ones
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


@dataclass(frozen=True)
class _Judged:
    """Errors of candidates: one or several named lines over the same values."""

    across: np.ndarray
    error: np.ndarray  # (n_lines, n)
    se: np.ndarray
    chosen: tuple[int, int]  # line and place
    xlabel: str
    ylabel: str
    chosen_label: str
    names: tuple[str, ...] = ("held-out rows",)
    training: np.ndarray | None = None


def cv_curve(cv: Any, ax: Any = None) -> Any:
    """Draw cross-validated errors with their standard errors, the line of the 1-SE rule, and the selected value.

    The dotted line is one standard error above the smallest error: the 1-SE rule takes the simplest candidate that is
    below it.

    Parameters
    ----------
    cv : PruneCV, TuneResult, RidgePath, or another result with `lams`, `error`, `se` and `chosen`
        Errors against leaves; against C, a line for each gamma; leave-one-out errors against λ, with the standard error
        over rows; errors against λ.
    ax : matplotlib.axes.Axes, optional
        Where; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.

    Examples
    --------
    >>> from kernelrules import datasets, plot, prune
    >>> X, y, *_ = datasets.spambase()
    >>> ax = plot.cv_curve(prune.cross_validate(X[::20], y[::20], folds=3, rng=0))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('leaves', 'error (zero_one)')
    """
    for kind, describe in _JUDGES.items():
        if isinstance(cv, kind):
            return _draw_judged(describe(cv), canvas.axes_for(ax))
    if all(hasattr(cv, name) for name in ("lams", "error", "se", "chosen")):
        return _draw_judged(_of_strengths(cv), canvas.axes_for(ax))
    raise TypeError(f"cv must be one of {_names(_JUDGES)}, got {type(cv).__name__}")


def _of_pruning(cv: PruneCV) -> _Judged:
    leaves = int(cv.n_leaves[cv.chosen])
    return _Judged(
        cv.n_leaves, cv.error[None], cv.se[None], (0, int(cv.chosen)), "leaves", f"error ({cv.measure})",
        f"chosen: {leaves} {'leaf' if leaves == 1 else 'leaves'}", (f"{len(cv.fold_error)} folds, ± 1 SE",),
        cv.risk if cv.loss == cv.measure else None,
    )  # fmt: skip


def _of_tuning(cv: TuneResult) -> _Judged:
    has_gamma = "gamma" in cv.best
    order = np.argsort(cv.Cs, kind="stable")
    line = int(np.flatnonzero(cv.gammas == cv.best["gamma"])[0]) if has_gamma else 0
    place = int(np.flatnonzero(cv.Cs[order] == cv.best["C"])[0])
    folds = cv.fold_errors.shape[-1]
    return _Judged(
        cv.Cs[order], cv.mean[:, order], cv.se[:, order], (line, place), "C",
        "error rate" if cv.measure == "zero_one" else f"error ({cv.measure})",
        "chosen: " + ", ".join(f"{'γ' if name == 'gamma' else name} = {value:.3g}" for name, value in cv.best.items()),
        tuple(f"γ = {gamma:.3g}" for gamma in cv.gammas) if has_gamma else (f"{folds} folds, ± 1 SE",),
    )  # fmt: skip


def _of_ridge(found: RidgePath) -> _Judged:
    order = np.argsort(found.lams, kind="stable")
    counts = found.sample_weight > 0  # rows of weight 0 have no residual
    residuals = found.loo_residuals[order][:, counts].reshape(len(order), int(counts.sum()), -1)
    squares = (residuals**2).sum(axis=2)
    w = found.sample_weight[counts] / found.sample_weight.sum()
    unbiased = len(w) / max(len(w) - 1, 1)
    se = np.sqrt(unbiased * ((squares - found.loo_errors[order, None]) ** 2 @ w**2))
    place = int(np.flatnonzero(order == found.best)[0])
    return _Judged(
        found.lams[order], found.loo_errors[None, order], se[None], (0, place), "λ", "mean squared error",
        f"best: λ = {found.lams[found.best]:.2g}", ("leave-one-out, ± 1 SE",),
    )  # fmt: skip


def _of_strengths(cv: Any) -> _Judged:
    """Return the curve of a cross-validation over λ."""
    if cv.error is None:
        raise ValueError("cv has no errors: it was fitted without cross-validation")
    order = np.argsort(cv.lams, kind="stable")
    measure = getattr(cv, "measure", None)
    return _Judged(
        cv.lams[order], cv.error[None, order], cv.se[None, order], (0, int(np.flatnonzero(order == cv.chosen)[0])), "λ",
        f"error ({measure})" if measure else "error", f"chosen: λ = {cv.lams[cv.chosen]:.2g}", ("held out, ± 1 SE",),
    )  # fmt: skip


_JUDGES = {PruneCV: _of_pruning, TuneResult: _of_tuning, RidgePath: _of_ridge}


def _draw_judged(judged: _Judged, ax: Any) -> Any:
    colours = canvas.class_colours(len(judged.error))
    for k, (error, se) in enumerate(zip(judged.error, judged.se, strict=True)):
        ax.errorbar(
            judged.across, error, se, color=colours[k], marker=canvas.MARKERS[k % len(canvas.MARKERS)], markersize=3.5,
            linewidth=1.4, elinewidth=0.8, capsize=2, label=judged.names[k],
        )  # fmt: skip
    if judged.training is not None:
        ax.plot(judged.across, judged.training, color=canvas.GREY, linestyle="--", linewidth=1.0, label="training rows")
    best = np.unravel_index(np.nanargmin(judged.error), judged.error.shape)
    ax.axhline(
        judged.error[best] + judged.se[best], color=canvas.GREY, linestyle=":", linewidth=1.0, label="smallest + 1 SE"
    )
    x, y = judged.across[judged.chosen[1]], judged.error[judged.chosen]
    ax.axvline(x, color=canvas.GREEN, linestyle="-.", linewidth=1.2, label=judged.chosen_label)
    ax.plot([x], [y], "o", markersize=9, markerfacecolor="none", markeredgecolor=canvas.GREEN, label="_chosen")
    low, high = float(judged.across.min()), float(judged.across.max())
    ax.set(xlabel=judged.xlabel, ylabel=judged.ylabel, xscale="log" if low > 0 and high > 10 * low else "linear")
    if judged.across.dtype.kind == "i" and ax.get_xscale() == "log":  # 10, 20 and 50, not powers of 10
        ticker = canvas.matplotlib("ticker")
        ax.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 2000 else (1,)))
        ax.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:.0f}"))
        ax.minorticks_off()
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, fontsize=8)
    canvas.frameless(ax)
    return ax


# ---- paths ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Passed:
    """One quantity (n,) or several (n, k) along a path."""

    across: np.ndarray
    up: np.ndarray
    xlabel: str
    ylabel: str
    steps: bool = False
    log_up: bool = False


def path(path: Any, ax: Any = None, *, show: str | None = None) -> Any:
    """Draw quantities along a path of fits.

    Parameters
    ----------
    path : PrunePath, RidgePath, sequence of SVMModel, or another result with `lams` and `coefficients`
        From `prune.cost_complexity_path`, `ridge.path`, `svm.path` or a learner that has a path of its own.
    ax : matplotlib.axes.Axes, optional
        Where; None makes a figure.
    show : str, optional
        PrunePath: "n_leaves" (default) or "risk", against α. RidgePath: "coefficients" (default; of the features where
        there are weights, else of the points; the 40 largest) or "dof", against λ. Machines: "support" (default; how
        many support vectors), "margin", "objective" or "gap", against C. Others: "coefficients" (default; the 40
        largest) or "n_terms" (how many are not 0), against λ.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.

    Examples
    --------
    >>> from kernelrules import datasets, plot, prune, tree
    >>> X, y, *_ = datasets.spambase()
    >>> ax = plot.path(prune.cost_complexity_path(tree.grow(X[::20], y[::20])))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('α', 'leaves')
    """
    if isinstance(path, PrunePath):
        found = _of_pruned(path, show)
    elif isinstance(path, RidgePath):
        found = _of_ridges(path, show)
    elif isinstance(path, Sequence) and len(path) and all(isinstance(model, SVMModel) for model in path):
        found = _of_machines(path, show)
    elif hasattr(path, "lams") and hasattr(path, "coefficients"):
        found = _of_coefficients(path, show)
    else:
        raise TypeError(f"path must be a PrunePath, a RidgePath or a sequence of SVMModel, got {type(path).__name__}")
    return _draw_passed(found, canvas.axes_for(ax))


def _choice(show: str | None, known: tuple[str, ...]) -> str:
    """Return the quantities of a path by name; the first is the default."""
    if show is None:
        return known[0]
    if show not in known:
        raise ValueError(f"show must be one of {', '.join(map(repr, known))} for such a path, got {show!r}")
    return show


def _of_pruned(found: PrunePath, show: str | None) -> _Passed:
    if _choice(show, ("n_leaves", "risk")) == "risk":
        return _Passed(found.alphas, found.risk, "α", f"risk ({found.loss})", steps=True)
    return _Passed(found.alphas, found.n_leaves, "α", "leaves", steps=True, log_up=found.n_leaves[0] > 20)


def _of_ridges(found: RidgePath, show: str | None) -> _Passed:
    order = np.argsort(found.lams, kind="stable")
    if _choice(show, ("coefficients", "dof")) == "dof":
        return _Passed(found.lams[order], found.dof[order], "λ", "degrees of freedom")
    numbers = found.alphas if found.weights is None else found.weights
    what = "coefficients of points" if found.weights is None else "weights of features"
    return _Passed(found.lams[order], _largest(numbers[order]), "λ", what)


def _of_coefficients(found: Any, show: str | None) -> _Passed:
    order = np.argsort(found.lams, kind="stable")
    numbers = np.asarray(found.coefficients)[order]
    if _choice(show, ("coefficients", "n_terms")) == "n_terms":
        counts = (numbers.reshape(len(order), -1, numbers.shape[-1]) != 0).any(axis=1).sum(axis=1)
        return _Passed(found.lams[order], counts, "λ", "terms")
    return _Passed(found.lams[order], _largest(numbers), "λ", "coefficients")


def _largest(numbers: np.ndarray) -> np.ndarray:
    """Return the columns with the largest entries, in their order."""
    columns = numbers.reshape(len(numbers), -1)
    return columns[:, np.sort(np.argsort(-np.abs(columns).max(axis=0), kind="stable")[:_MOST_LINES])]


def _of_machines(models: Sequence[SVMModel], show: str | None) -> _Passed:
    if any(model.C is None for model in models):
        raise ValueError("path holds machines without C: svm.path makes such as have it")
    models = sorted(models, key=lambda model: model.C)
    costs = np.array([model.C for model in models])
    match _choice(show, ("support", "margin", "objective", "gap")):
        case "support":
            return _Passed(costs, np.array([len(model.support) for model in models]), "C", "support vectors")
        case "margin":
            return _Passed(costs, np.array([svm.margin(model) for model in models]), "C", "margin", log_up=True)
        case "objective":
            objectives = [[model.certificate.primal, model.certificate.dual] for model in models]
            return _Passed(costs, np.array(objectives), "C", "objective, and its lower bound", log_up=True)
        case _:
            return _Passed(costs, np.array([model.certificate.gap for model in models]), "C", "duality gap")


def _draw_passed(found: _Passed, ax: Any) -> Any:
    columns = found.up.reshape(len(found.up), -1).T
    few = len(columns) <= 5
    colours = (
        canvas.class_colours(len(columns))
        if few
        else canvas.matplotlib("cm").ScalarMappable(cmap="viridis").to_rgba(np.linspace(0, 1, len(columns)))
    )
    marker = "." if len(found.across) <= _MOST_LINES and few else None
    for k, numbers in enumerate(columns):
        ax.plot(
            found.across, numbers, color=colours[k], linewidth=1.4 if few else 0.9, marker=marker,
            linestyle=_DASHES[k % len(_DASHES)] if few else "-",
            drawstyle="steps-post" if found.steps else "default",
        )  # fmt: skip
    positive = found.across[found.across > 0]
    if len(positive) and len(positive) < len(found.across):
        ax.set_xscale("symlog", linthresh=float(positive.min()))
        ax.set_xlim(left=0)
    elif len(positive):
        ax.set_xscale("log")
    if found.log_up and (found.up > 0).all():
        ax.set_yscale("log")
    elif found.up.ndim == 1:
        ax.set_ylim(bottom=min(0.0, float(np.nanmin(found.up))))
    ax.set(xlabel=found.xlabel, ylabel=found.ylabel)
    canvas.frameless(ax)
    return ax


def _names(kinds: Any) -> str:
    return ", ".join(kind.__name__ for kind in kinds)
