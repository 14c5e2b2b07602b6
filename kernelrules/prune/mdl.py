"""Pruning by minimum description length: `mdl`.

Somebody who has the columns is sent the labels: first a tree, then the labels of each leaf, in bits. A split stays if
what it saves in labels is more than what it takes to send. The code of a node:

    1 bit                    leaf or split
    log2 p                   the column of a split
    log2(n - 1)              its threshold: one of the gaps between n values
    log2(2^(q-1) - 1)        its subset of the q categories that occur in the node (nothing where there is one choice)
    p + m/2 log2 n           instead of one column, the m columns of an oblique split and their coefficients
    log2 (n+K-1 over K-1)    in a leaf, how many rows are of each of the K classes
    log2 n! / (n1! ... nK!)  and which

Numbers are sent rounded to a `precision` δ, in each leaf by the normal distribution of its mean and its variance v,
which is no smaller than that of rounding, δ²/12 (V that of the root):

    n/2 log2(2πe v/δ²)       the numbers, given both
    1/2 log2(2πe nV/v)       the mean, by the distribution of the root, to within its standard error sqrt(v/n)
    1/2 log2 n + log2(1 + log2(V/v)/2)  the standard deviation: to within its standard error, and how many times halved

With d targets one variance is for all, and the first two count d times. Parameters to within their standard errors are
Rissanen's half log n; what the constants are is a choice of ours.

n is the weight of the node: weights count as so many rows, in leaves and in splits. Costs add up over nodes, so going
up from the leaves finds the cheapest of all pruned trees.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from kernelrules import check
from kernelrules.core.tree import prune as core
from kernelrules.prune._common import class_counts, cut, require_tree
from kernelrules.results import Tree

__all__ = ["leaf_bits", "mdl", "number_bits", "split_bits"]


def mdl(tree: Tree, precision: float | None = None) -> Tree:
    """The pruned tree that takes the fewest bits, with the labels that it leaves open.

    Parameters
    ----------
    tree : Tree
        What `tree.grow` returned, by classes or by squared errors. Weights count as numbers of rows.
    precision : float, optional
        For numbers: the unit that the targets are rounded to, such as 0.01. Default: a hundredth of their standard
        deviation.

    Returns
    -------
    Tree
        Of all pruned trees the cheapest; of equally cheap ones the smallest.

    References
    ----------
    J. Rissanen: Modeling by shortest data description, 1978. J. R. Quinlan, R. L. Rivest: Inferring decision trees
    using the minimum description length principle, 1989. For numbers: M. Robnik-Šikonja, I. Kononenko: Pruning
    regression trees with MDL, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import prune, tree
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> noise = np.random.default_rng(1).random(200) < 0.1
    >>> grown = tree.grow(X, (X[:, 0] > 0.3) ^ noise)
    >>> grown.n_leaves > 10, prune.mdl(grown)
    (True, Tree(gini, 2 leaves, depth 1, 3 features))
    """
    if require_tree(tree).classes is None and tree.criterion != "squared_error":
        raise ValueError(f"numbers are described by means and variances, and the tree was grown by {tree.criterion}")
    if tree.classes is not None and precision is not None:
        raise ValueError("precision is for regression, and the tree has classes")
    bits = leaf_bits(tree) if tree.classes is not None else number_bits(tree, precision)
    check.counted_weights(float(tree.weight[0]), float(tree.n_samples[0]))
    cost, gone = np.empty(tree.n_nodes), np.empty(tree.n_nodes, dtype=np.uint8)
    core.cheapest(tree.left, tree.right, bits, split_bits(tree), 0.0, cost, gone)
    return cut(tree, gone.view(bool))


def leaf_bits(tree: Tree) -> np.ndarray:
    """Bits of every node as a leaf, (n_nodes,)."""
    counts = class_counts(tree)
    n, k = counts.sum(axis=1), counts.shape[1]
    how_many = gammaln(n + k) - gammaln(n + 1) - gammaln(k)
    which = gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)
    return 1 + (how_many + np.maximum(which, 0.0)) / np.log(2.0)


def number_bits(tree: Tree, precision: float | None) -> np.ndarray:
    """The same of numbers; negative where the precision is coarser than what is described."""
    whole = float(tree.impurity[0]) / tree.n_outputs
    unit = np.sqrt(whole) / 100 if precision is None else check.positive(precision, "precision")
    if whole == 0:
        return np.ones(tree.n_nodes)  # all targets are the same
    # Variances in units of δ²: δ² itself underflows for δ below 1e-162.
    variance = tree.impurity / tree.n_outputs / unit / unit
    n, v, v_all = tree.weight, np.maximum(variance, 1 / 12), max(float(variance[0]), 1 / 12)
    numbers = n / 2 * np.log2(2 * np.pi * np.e * v)
    mean = np.log2(np.maximum(2 * np.pi * np.e * n * v_all / v, 1)) / 2
    spread = np.log2(np.maximum(n, 1)) / 2 + np.log2(1 + np.log2(np.maximum(v_all / v, 1)) / 2)
    return 1 + tree.n_outputs * (numbers + mean) + spread


def split_bits(tree: Tree) -> np.ndarray:
    """Bits of every split without what is below it, (n_nodes,); 0 in leaves."""
    bits = np.zeros(tree.n_nodes)
    inner = np.flatnonzero(tree.left >= 0)
    column = tree.feature[inner]
    gaps = np.log2(np.maximum(tree.weight[inner] - 1, 1))
    bits[inner] = 1 + np.log2(tree.n_features) + gaps
    oblique = column >= tree.n_features  # a cut of the projection, and half the bits of a count for each coefficient
    if oblique.any():
        used = np.count_nonzero(tree.directions[column[oblique] - tree.n_features], axis=1)
        bits[inner[oblique]] = (
            1 + tree.n_features + gaps[oblique] + used * np.log2(np.maximum(tree.weight[inner[oblique]], 1)) / 2
        )
    by_levels = np.flatnonzero(tree.subset_start >= 0)
    if len(by_levels):
        here = _levels_here(tree, by_levels)
        ways = np.where(here > 50, here - 1.0, np.log2(np.maximum(np.exp2(np.minimum(here, 50) - 1.0) - 1, 1)))
        bits[by_levels] = 1 + np.log2(tree.n_features) + ways
    return bits


def _levels_here(tree: Tree, nodes: np.ndarray) -> np.ndarray:
    """How many categories occur in nodes that split on them."""
    n_levels = np.array([0 if levels is None else len(levels) for levels in tree.categories], dtype=np.int64)
    occurs = np.append(0, np.cumsum(tree.subset_left != 2))
    start = tree.subset_start[nodes]
    return occurs[start + n_levels[tree.feature[nodes]]] - occurs[start]
