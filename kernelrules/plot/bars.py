"""plot.importances: how much each column took off the loss. plot.rules: how much each rule covers, and how well."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelrules import check
from kernelrules import tree as _tree
from kernelrules.export.branches import named_list
from kernelrules.plot import canvas
from kernelrules.results import PruneCV, RuleList, Tree
from kernelrules.results.rule_text import prediction_text, rule_text

__all__ = ["importances", "rules"]

_MOST_LETTERS = 70


def importances(t: Tree | PruneCV, ax: Any = None, *, feature_names: Any = None, top: int | None = 20) -> Any:
    """Draw `tree.importance` as bars, the largest first.

    Parameters
    ----------
    t : Tree or PruneCV
        Whose splits to count.
    ax : matplotlib.axes.Axes, optional
        Where; None makes a figure.
    feature_names : sequence of str, optional
        What to call the columns; default: the names that the data had.
    top : int, optional
        How many columns to show at most; None is all that have a split.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.

    Examples
    --------
    >>> from kernelrules import datasets, plot, tree
    >>> X, y, names, _ = datasets.spambase()
    >>> ax = plot.importances(tree.grow(X[::10], y[::10], max_leaves=9), feature_names=names)
    >>> ax.get_yticklabels()[0].get_text()
    'charExclamation'
    """
    t = t.tree if isinstance(t, PruneCV) else t
    shares = _tree.importance(t)
    names = check.column_names(feature_names, t.feature_names, t.n_features)
    most = len(shares) if top is None else check.whole(top, "top", 1)
    order = [j for j in np.argsort(-shares, kind="stable")[:most].tolist() if shares[j] > 0]
    ax = canvas.axes_for(ax, (5.2, 0.8 + 0.24 * max(len(order), 2)))
    ax.barh(np.arange(len(order)), shares[order], color=canvas.BLUE, height=0.7)
    _name_bars(ax, [names[j] for j in order])
    ax.set(xlabel="share of what the splits took off the loss", xlim=(0, None))
    if not order:
        ax.text(0.5, 0.5, "no splits", transform=ax.transAxes, ha="center", color=canvas.GREY)
    return ax


def rules(
    rs: RuleList, ax: Any = None, *, feature_names: Any = None, class_names: Any = None, top: int | None = 20
) -> Any:
    """Draw the rules of a list as bars: the share of training rows that each covers, with errors in a paler colour.

    Parameters
    ----------
    rs : RuleList
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Where; None makes a figure.
    feature_names, class_names : sequence of str, optional
        What to call the columns, and the classes in the order of rs.classes.
    top : int, optional
        How many rules to show, in their order; None is all.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on. Colours are those of the predicted classes.

    Examples
    --------
    >>> from kernelrules import datasets, plot, rules
    >>> X, y, names, _ = datasets.spambase()
    >>> ax = plot.rules(rules.induce(X[::10], y[::10], rng=0), feature_names=names)
    >>> ax.get_xlabel()
    'share of the training rows; paler: with another class'
    """
    if not isinstance(rs, RuleList):
        raise TypeError(f"rs must be a RuleList, got {type(rs).__name__}")
    rs = named_list(rs, feature_names, class_names)
    shown = rs.rules[: None if top is None else check.whole(top, "top", 1)]
    ax = canvas.axes_for(ax, (8.0, 0.8 + 0.26 * max(len(shown), 2)))
    is_class = rs.classes is not None
    colours = canvas.class_colours(len(rs.classes) if is_class else 1)
    support = np.array([rule.support for rule in shown], dtype=float)
    right = support * [rule.confidence for rule in shown] if is_class else support
    of_rule = [colours[_place(rule.prediction, rs) if is_class else 0] for rule in shown]
    places = np.arange(len(shown))
    ax.barh(places, right, color=of_rule, height=0.7)
    if is_class:
        ax.barh(places, support - right, left=right, color=of_rule, height=0.7, alpha=0.3)
    for place, rule in zip(places, shown, strict=True):
        sure = f"  {rule.confidence:.0%} of {rule.n:.5g}" if is_class else f"  n = {rule.n:.5g}"
        ax.text(support[place], place, sure, va="center", fontsize=8, color=canvas.DARK)
    _name_bars(ax, [rule_text(rule, rs) for rule in shown])
    left_out = len(rs.rules) - len(shown)
    default = canvas.one_line(prediction_text(rs.default, rs))
    ends = [f"{left_out} more rules"] * (left_out > 0) + [f"OTHERWISE → {default}"] * (not rs.complete)
    if ends:
        ax.set_title("; ".join(ends), size=8, loc="right", color=canvas.GREY, parse_math=False)
    what = "share of the training rows" + ("; paler: with another class" if is_class else "")
    ax.set(xlabel=what, xlim=(0, max(1.25 * support.max(initial=0.0), 1e-9)))
    return ax


def _place(prediction: Any, rs: RuleList) -> int:
    """Return the index of a class."""
    return int(np.flatnonzero(rs.classes == prediction)[0])


def _name_bars(ax: Any, names: list[str]) -> None:
    """Label the bars, the first on top; long names are shortened in the middle."""
    short = [canvas.one_line(name, _MOST_LETTERS) for name in names]
    ax.set_yticks(np.arange(len(names)), short, fontsize=8, parse_math=False)
    ax.set_ylim(max(len(names), 1) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    canvas.frameless(ax)
