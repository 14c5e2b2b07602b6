"""rules.extract: each leaf of a tree becomes a rule, the conjunction of the conditions on the path to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.results import Rule, RuleList, Tree
from kernelrules.results.linear import leaf_prediction
from kernelrules.tree.paths import leaf_conditions

__all__ = ["extract"]


def extract(t: Tree, feature_names: Any = None, class_names: Any = None, *, approximate: bool = False) -> RuleList:
    """Extract the rules of a tree, one per leaf, from left to right.

    Conditions on the same column are merged: A ≤ 2 & A ≤ 5 is A ≤ 2. Exactly one rule holds for every row, and
    `predict` returns the predictions of the tree, for missing values and unseen levels as well. Rules of this form are
    the starting point of C4.5's rules [1]_.

    Parameters
    ----------
    t : Tree
        The result of `tree.grow` or of a function of `prune`. Oblique splits become conditions on sums of columns, and
        linear leaves predict a `LinearFunction`.
    feature_names : sequence of str, optional
        Names of the columns. Default: those of the training data, or x0, x1, ...
    class_names : sequence of str, optional
        Names of the classes, in the order of t.classes. Default: the labels themselves.
    approximate : bool
        Surrogate splits and fractional rows are not conjunctions of conditions, and are refused; with True, missing
        values go to the larger child instead. Predictions of rows without missing values do not change.

    Returns
    -------
    RuleList
        Rules with the support, confidence, n, weight and shares of the leaves.

    References
    ----------
    .. [1] J. R. Quinlan, "C4.5: Programs for Machine Learning", chapter 5, Morgan Kaufmann, 1993.

    Examples
    --------
    >>> from kernelrules import rules, tree
    >>> X = [["yes", 20], ["no", 30], ["no", 50], ["yes", 60]]
    >>> t = tree.grow(X, ["high", "low", "medium", "high"])
    >>> print(rules.extract(t, ["contact", "age"]))
    contact = no & age ≤ 40 → low
    contact = no & age > 40 → medium
    contact = yes → high
    """
    if not isinstance(t, Tree):
        raise TypeError(f"t must be a tree that tree.grow returned, got {type(t).__name__}")
    names = check.column_names(feature_names, t.feature_names, t.n_features)
    called = check.class_names(class_names, t.classes, f"the tree was grown by {t.criterion}")
    leaves, conditions = leaf_conditions(t, approximate=approximate)
    predictions, confidence = _answers(t)
    support = t.weight / t.weight[0]
    oblique = bool((t.feature >= t.n_features).any())
    whole = t.n_samples.dtype.kind in "iu"
    found = tuple(
        Rule(
            conditions=conditions_of_leaf,
            prediction=predictions[leaf],
            support=float(support[leaf]),
            confidence=float(confidence[leaf]),
            n=int(t.n_samples[leaf]) if whole else float(t.n_samples[leaf]),
            weight=float(t.weight[leaf]),
            shares=None if t.classes is None else t.value[leaf],
        )
        for leaf, conditions_of_leaf in zip(leaves.tolist(), conditions, strict=True)
    )
    return RuleList(
        rules=found,
        default=predictions[0],
        default_shares=None if t.classes is None else t.value[0],
        classes=t.classes,
        feature_names=names,
        class_names=called,
        levels=t.categories,
        n_features=t.n_features,
        ordered=False,
        complete=True,
        missing=t.missing,
        missing_seen=t.missing_seen,
        columns=t.feature_names,
        n_train=t.n_train,
        n_outputs=t.n_outputs,
        indicators=t.indicators,
        directions=t.directions if oblique else None,
        fill=t.fill if oblique or t.linear is not None else None,
    )


def _answers(t: Tree) -> tuple[Any, np.ndarray]:
    """Return the prediction of each node, and the share of the predicted class."""
    if t.classes is not None:
        best = t.value.argmax(axis=1)
        return t.classes[best], t.value[np.arange(t.n_nodes), best]
    predictions = t.value.tolist() if t.value.ndim == 1 else t.value
    if t.linear is not None:
        for leaf in np.flatnonzero(t.left < 0).tolist():
            predictions[leaf] = leaf_prediction(t, leaf)
    return predictions, np.full(t.n_nodes, np.nan)
