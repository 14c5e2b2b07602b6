"""Bounds for trees: the number of labelings of n points, and the risk bound that follows by Massart's lemma.

E 0/1 ≤ mean 0/1 + √(2 ln N/n) + √(ln(1/η)/2n),   N ≤ p^(l-1) (n-1)...(n-l+1) c^l   for l leaves, p attributes, c
classes
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules import tree as trees
from kernelrules.bounds.arguments import log_share_of_class, probability
from kernelrules.results import Bound, Tree

__all__ = ["of_tree", "tree", "tree_labelings", "tree_rademacher"]


def tree_rademacher(depth: int, n_tests: int, n: int, *, weight: float = 1.0) -> float:
    """Return a bound of the Rademacher complexity of trees by their depth T: weight · T √(2 ln(4q + 2) / n).

    This is R ∝ T/√n with constants. Assumptions: a tree is f(x) = Σ cⱼ 1{x ∈ Rⱼ} over its leaves with Σ abs(cⱼ) ≤
    weight, and its tests, with either outcome, are from q that were fixed beforehand. A leaf is then one of N = (2q +
    1)^T conjunctions of at most T tests; f is in the convex hull of ± weight times their indicators, and has the
    complexity of these, at most weight · √(2 ln(2N) / n) by Massart's lemma (2000).

    Parameters
    ----------
    depth : int
        Most tests T on a path; 0 and 1 have the same bound.
    n_tests : int
        Tests q to choose from; thresholds between n points of p attributes are p (n - 1).
    n : int
        Number of points.
    weight : float
        The largest sum of the absolute values of the leaves.

    Returns
    -------
    float
        An upper bound of E sup (1/n) Σ σᵢ f(xᵢ) over random signs σ.

    Examples
    --------
    >>> from kernelrules import bounds
    >>> bounds.tree_rademacher(3, 57, 10_000).__round__(4)
    0.0989
    >>> bounds.tree_rademacher(6, 57, 40_000).__round__(4)
    0.0989
    """
    depth, n = check.whole(depth, "depth", 0), check.whole(n, "n", 1)
    n_tests, weight = check.whole(n_tests, "n_tests", 1), check.not_negative(weight, "weight")
    return weight * max(depth, 1) * math.sqrt(2 * math.log(4 * n_tests + 2) / n)


def tree_labelings(
    n_leaves: int, n_features: int, n: int, *, n_classes: int = 2, categories: Iterable[int] = ()
) -> float:
    """Return ln of a bound of the number of labelings of n points by trees with `n_leaves` leaves.

    Trees grow by splitting leaves. With i leaves that hold m₁, ..., mᵢ points there are at most Σ p(mⱼ - 1) = p(n - i)
    thresholds that part points of a leaf, so p^(l-1) (n-1)(n-2)...(n-l+1) partitions into l leaves, and c^l labelings
    of each. A categorical attribute of q values adds at most 2^(q-1) - 1 subsets to every leaf. There are never more
    than c^n labelings.

    Parameters
    ----------
    n_leaves : int
        Most leaves l, at least 1.
    n_features : int
        Numerical attributes p, which split by x ≤ θ.
    n : int
        Points.
    n_classes : int
        Classes c.
    categories : iterable of int
        Numbers of values of the categorical attributes, which split by subsets.

    Returns
    -------
    float
        The natural logarithm.

    Examples
    --------
    >>> import math
    >>> from kernelrules import bounds
    >>> math.exp(bounds.tree_labelings(2, 1, 10)).__round__()
    36
    """
    n_leaves, n = check.whole(n_leaves, "n_leaves", 1), check.whole(n, "n", 1)
    n_features, n_classes = check.whole(n_features, "n_features", 0), check.whole(n_classes, "n_classes", 1)
    if not isinstance(categories, Iterable):
        raise TypeError(f"categories must be a list of whole numbers, got {check.shown(categories)}")
    sizes = [check.whole(size, "categories", 1) for size in categories]
    if n_features == 0 and not sizes:
        raise ValueError("n_features is 0 and there are no categories: there is nothing to split by")
    subsets = sum(2 ** (min(size, n) - 1) - 1 for size in sizes)
    # With categories, points may be inseparable: a split may then be left out, which is one more choice.
    idle = 1 if sizes else 0
    grown = min(n_leaves, n)
    choices = (n_features * (n - i) + i * subsets + idle for i in range(1, grown))
    logarithm = sum(math.log(choice) for choice in choices) + grown * math.log(n_classes)
    return min(logarithm, n * math.log(n_classes))


def tree(
    n_leaves: int,
    n_features: int,
    n: int,
    *,
    empirical: float = 0.0,
    n_classes: int = 2,
    categories: Iterable[int] = (),
    eta: float = 0.05,
    leaves_fixed: bool = False,
) -> Bound:
    """Return a bound of the error rate of a classification tree, by Massart's lemma [1]_.

    Among N labelings the 0/1 losses of n points are N vectors of 0 and 1, whose Rademacher complexity is at most √(ln
    N/(2n)): about √(l ln(np)/n) for l leaves. As this does not depend on the sample, the bound is empirical + √(2 ln
    N/n) + √(ln(1/η)/(2n)). If the number of leaves was not fixed beforehand, a union bound over trees of 1, 2,
    ... leaves replaces η by 6η/(π²l²).

    Parameters
    ----------
    n_leaves : int
        Leaves of the tree, or the limit that was fixed before.
    n_features, n : int
        Numerical attributes and points of the sample.
    empirical : float
        The error rate on the sample, between 0 and 1.
    n_classes : int
        Classes.
    categories : iterable of int
        Numbers of values of the categorical attributes, as in `tree_labelings`.
    eta : float
        The probability with which the bound may fail, between 0 and 1.
    leaves_fixed : bool
        Whether `n_leaves` was fixed before the sample was seen.

    Returns
    -------
    Bound
        Its three parts; `total` is the bound, and `print` shows it in words.

    References
    ----------
    .. [1] P. Massart (2000). Some applications of concentration inequalities to statistics. Annales de la Faculté des
       Sciences de Toulouse 9, 245-303.

    Examples
    --------
    >>> from kernelrules import bounds
    >>> print(bounds.tree(4, 10, 10_000, empirical=0.1))
    error rate of trees with <= 4 leaves <= 0.2041 (with probability 0.95)
      = 0.1000 on the 10000 points + 0.0864 for the class of functions + 0.0177 for chance
    """
    eta, fixed = probability(eta), check.flag(leaves_fixed, "leaves_fixed")
    empirical = check.not_negative(empirical, "empirical")
    if empirical > 1:
        raise ValueError(f"empirical must be an error rate, at most 1, got {empirical!r}")
    logarithm = tree_labelings(n_leaves, n_features, n, n_classes=n_classes, categories=categories)
    n, n_leaves = int(n), int(n_leaves)
    log_share = math.log(eta) if fixed else log_share_of_class(eta, n_leaves)
    deviation = math.sqrt(-log_share / (2 * n))
    about = f"error rate of trees with <= {n_leaves} leaves"
    return Bound(empirical, math.sqrt(2 * logarithm / n), deviation, eta, n, about)


def of_tree(t: Tree, X: Any, y: Any, *, eta: float = 0.05) -> Bound:
    """Return the bound of a tree from `tree.grow`, for its number of leaves.

    Parameters
    ----------
    t : Tree
        For classification, with splits on one attribute each.
    X : array, sparse matrix or data frame, (n, p)
        The sample it was grown from, without missing values.
    y : array (n,)
        Its labels.
    eta : float
        The probability with which the bound may fail.

    Returns
    -------
    Bound
        As returned by `tree`.

    Examples
    --------
    >>> from kernelrules import bounds, datasets, tree
    >>> X, y, _, _ = datasets.spambase()
    >>> bounds.of_tree(tree.grow(X, y, growth="best", max_leaves=8), X, y).total.__round__(2)
    0.33
    """
    if not isinstance(t, Tree):
        raise TypeError(f"t must be a tree that tree.grow returned, got {type(t).__name__}")
    if t.classes is None:
        raise ValueError("the bound is one of error rates, and the tree is a regression")
    if t.directions is not None:
        raise ValueError("the bound counts splits on one attribute, and the tree has oblique ones")
    predicted = trees.predict(t, X)
    if len(predicted) == 0:
        raise ValueError("X has no rows")
    codes = check.known_codes(y, len(predicted), t.classes, "tree")
    if _has_missing(X):
        raise ValueError("X holds missing values, for which the bound does not count the branches")
    sizes = [len(levels) for levels in t.categories if levels is not None]
    return tree(
        t.n_leaves,
        t.n_features - len(sizes),
        len(predicted),
        empirical=float(np.mean(predicted != t.classes[codes])),
        n_classes=len(t.classes),
        categories=sizes,
        eta=eta,
    )


def _has_missing(X: Any) -> bool:
    if np.ma.is_masked(X):
        return True
    if hasattr(X, "isna"):
        return bool(np.asarray(X.isna()).any())
    values = np.asarray(X.data if hasattr(X, "tocsr") else X)
    if values.dtype.kind == "O":
        return any(value is None or value != value for value in values.ravel())
    return bool(values.dtype.kind == "f" and np.isnan(values).any())
