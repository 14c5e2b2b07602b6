"""rules.extract: each leaf of a tree is a rule, the conjunction of the tests on the way to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.results import Rule, RuleList, Tree
from kernelrules.tree.paths import leaf_conditions

__all__ = ["extract"]


def extract(t: Tree, feature_names: Any = None, class_names: Any = None, *, approximate: bool = False) -> RuleList:
    """The rules of a tree, one a leaf, from left to right.

    Tests of the same column are merged: A ≤ 2 & A ≤ 5 is A ≤ 2. No two rules hold at once, some rule always does, and
    `predict` answers as the tree does, for missing values and unseen levels too.

    Parameters
    ----------
    t : Tree
        What `tree.grow` or a function of `prune` returned. Oblique splits and linear leaves are refused.
    feature_names : sequence of str, optional
        What to call the columns. Default: the names that the training data had, or x0, x1, ...
    class_names : sequence of str, optional
        What to call the classes, in the order of t.classes. Default: the labels themselves.
    approximate : bool
        Surrogate splits and fractional rows are no conjunctions of tests, and are refused; with True, missing values
        go with the larger child instead. Rows without missing values are predicted as by the tree.

    Returns
    -------
    RuleList
        Rules with their support, confidence, rows, weight and shares, as in the leaves.

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
    )


def _answers(t: Tree) -> tuple[Any, np.ndarray]:
    """What each node predicts, and the share of it."""
    if t.classes is not None:
        best = t.value.argmax(axis=1)
        return t.classes[best], t.value[np.arange(t.n_nodes), best]
    predictions = t.value.tolist() if t.value.ndim == 1 else t.value
    return predictions, np.full(t.n_nodes, np.nan)
