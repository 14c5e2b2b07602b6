"""What a grown tree answers: `predict`, `predict_proba`, `apply`, `decision_path`, `importance`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from kernelrules import check, parallel
from kernelrules.check.frames import lies_plainly, read_with_missing, require_unseen
from kernelrules.core.tree import fractional
from kernelrules.core.tree import predict as core_predict
from kernelrules.core.tree.leaf_values import fill_paths, linear_values
from kernelrules.results import Tree
from kernelrules.tree.imputation import filled

__all__ = ["apply", "decision_path", "importance", "predict", "predict_proba"]

_NANOSECONDS_A_STEP = 1.0  # of one row, down one level


def require_tree(tree: Any) -> Tree:
    """The tree, if it is one."""
    if not isinstance(tree, Tree):
        raise TypeError(f"tree must be a tree that tree.grow returned, got {type(tree).__name__}")
    return tree


class _Walk:
    """Rows that descend a tree.

    Plain arrays are checked while their rows descend, if training had no missing values. All other data are checked
    first, as are plain arrays in which a missing or refused value is found.
    """

    def __init__(
        self, tree: Any, X: Any, unseen: str, n_threads: int | None, callback: Any, what: str, name: str = "X"
    ) -> None:
        self.tree = require_tree(tree)
        self._threads, self.tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, what)
        require_unseen(unseen)
        self._given = X, unseen, name
        complete = tree.missing_seen is None or not tree.missing_seen.any()
        numbers = all(levels is None for levels in tree.categories)
        self._is_unread = complete and numbers and lies_plainly(X, tree.n_features)
        self.nodes = core_predict.Nodes(self.tree)

    @cached_property
    def _read(self) -> tuple[np.ndarray, bool]:
        """The rows as numbers, and whether there are missing ones."""
        self._is_unread = False
        x, missing = read_with_missing(self.tree, *self._given)
        if missing.any() and self.tree.missing in ("zero", "impute"):
            return filled(x, self.tree.fill), False
        return x, bool(missing.any())

    @property
    def x(self) -> np.ndarray:
        """The rows as numbers."""
        return self._read[0]

    @property
    def splits_rows(self) -> bool:
        """Whether rows go down in fractions."""
        return self.tree.missing == "fractional" and self._read[1]

    def _threads_for(self, x: np.ndarray) -> int:
        return parallel.enough_threads(self._threads, len(x) * (self.nodes.depth + 1) * _NANOSECONDS_A_STEP)

    def answers(self, by_node: np.ndarray) -> np.ndarray:
        """by_node[leaf] for each row; entries of eight bytes need no array of leaves in between."""
        direct = by_node.ndim == 1 and by_node.dtype.itemsize == 8 and by_node.dtype.kind in "fiumM"
        table = np.ascontiguousarray(by_node) if direct else np.arange(self.tree.n_nodes)
        out = self._unread_answers(table) if self._is_unread else None
        if out is None:
            x, any_missing = self._read
            out = np.empty(len(x), dtype=table.dtype)
            leaves = table.view(np.int64), out.view(np.int64)
            core_predict.apply_tree(self.nodes, x, *leaves, any_missing, self._threads_for(x), self.tick)
        return out if direct else by_node.take(out, axis=0)

    def _unread_answers(self, table: np.ndarray) -> np.ndarray | None:
        x = self._given[0]
        out = np.empty(len(x), dtype=table.dtype)
        leaves = table.view(np.int64), out.view(np.int64)
        return out if core_predict.apply_if_finite(self.nodes, x, *leaves, self._threads_for(x), self.tick) else None

    def leaves(self) -> np.ndarray:
        """Numbers of the leaves."""
        return self.answers(np.arange(self.tree.n_nodes))

    def mixtures(self, by_node: np.ndarray) -> np.ndarray:
        """Means of by_node over the leaves that fractions of each row come to."""
        table = np.ascontiguousarray(by_node.reshape(self.tree.n_nodes, -1), dtype=np.float64)
        out = np.empty((len(self.x), table.shape[1]))
        fractional.fractional_values(self.nodes, self.x, table, out, self._threads_for(self.x), self.tick)
        return out.reshape(len(self.x), *by_node.shape[1:])

    def values(self, by_node: np.ndarray) -> np.ndarray:
        """A row of by_node for each row of the data, mixed where fractions of it come to several leaves."""
        return self.mixtures(by_node) if self.splits_rows else self.answers(by_node)


@parallel.reports("predict")
def predict(
    tree: Tree,
    X: Any,
    *,
    unseen: str = "larger",
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> np.ndarray:
    """Classes, or values of a regression.

    The class with the largest share in the leaf, the lower one of a tie; the value of the leaf, or of its linear
    model. A linear model needs values of its columns: where one is missing, and the tree has nothing to fill in, the
    answer is the leaf's constant. Where missing="fractional", shares and values are those of a mixture of leaves.

    Parameters
    ----------
    tree : Tree
        What `grow` returned.
    X : array, sparse matrix or data frame, (n, p)
        Points, with the columns that the tree was grown on.
    {unseen}
        In a tree an unseen category goes to the larger child.
    {n_threads, callback, progress}

    Returns
    -------
    ndarray (n,), or (n, n_outputs)
        One answer for each row.

    Examples
    --------
    >>> from kernelrules import tree
    >>> grown = tree.grow([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> tree.predict(grown, [[0.7], [2.2]])
    array(['a', 'b'], dtype='<U1')
    """
    way = _Walk(tree, X, unseen, n_threads, callback, "predict")
    if tree.classes is not None:
        if way.splits_rows:
            return tree.classes[way.mixtures(tree.value).argmax(axis=1)]
        return way.answers(tree.classes[tree.value.argmax(axis=1)])
    if tree.linear is None:
        return way.values(tree.value)
    out = np.empty(len(way.x))
    linear_values(way.x, tree.linear, tree.fill, way.leaves(), out)
    unknown = np.isnan(out)
    if unknown.any():
        out[unknown] = way.values(tree.value)[unknown]
    return out


@parallel.reports("predict_proba")
def predict_proba(
    tree: Tree,
    X: Any,
    *,
    laplace: float = 0.0,
    unseen: str = "larger",
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> np.ndarray:
    """Shares of the classes in the leaves.

    Parameters
    ----------
    tree : Tree
        A classification tree.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `predict`.
    laplace : float
        Added to the weight of every class in a leaf before shares are taken: 1 is Laplace's correction, which keeps
        small leaves from certainty.
    {unseen}
    {n_threads, callback, progress}

    Returns
    -------
    ndarray (n, n_classes)
        Rows that sum to 1, in the order of tree.classes.

    Examples
    --------
    >>> from kernelrules import tree
    >>> grown = tree.grow([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> tree.predict_proba(grown, [[0.7]])
    array([[1., 0.]])
    >>> tree.predict_proba(grown, [[0.7]], laplace=1.0)
    array([[0.75, 0.25]])
    """
    if require_tree(tree).classes is None:
        raise ValueError(f"shares are those of classes, and the tree was grown by {tree.criterion}")
    extra = check.not_negative(laplace, "laplace")
    shares = tree.value
    if extra > 0:
        weight = tree.weight[:, None]
        shares = (weight * shares + extra) / (weight + extra * shares.shape[1])
    return _Walk(tree, X, unseen, n_threads, callback, "predict_proba").values(shares)


@parallel.reports("apply")
def apply(
    tree: Tree,
    X: Any,
    *,
    unseen: str = "larger",
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> np.ndarray:
    """The leaf that each row comes to.

    A row with a missing value has one leaf here even where missing="fractional": that of the larger children.

    Parameters
    ----------
    tree : Tree
        What `grow` returned.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `predict`.
    {unseen}
    {n_threads, callback, progress}

    Returns
    -------
    ndarray (n,) of int64
        Numbers of nodes.

    Examples
    --------
    >>> from kernelrules import tree
    >>> grown = tree.grow([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> tree.apply(grown, [[0.7], [2.2]])
    array([1, 2])
    """
    return _Walk(tree, X, unseen, n_threads, callback, "apply").leaves()


def leaves_of(tree: Tree, X: Any, name: str, n_threads: int | None, callback: Any) -> np.ndarray:
    """What `apply` returns; errors call the data by `name`."""
    return _Walk(tree, X, "larger", n_threads, callback, "apply", name).leaves()


@parallel.reports("decision_path")
def decision_path(
    tree: Tree,
    X: Any,
    *,
    unseen: str = "larger",
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> sparse.csr_array:
    """The nodes that each row passes, from the root to its leaf.

    Parameters
    ----------
    tree : Tree
        What `grow` returned.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `predict`.
    {unseen}
    {n_threads, callback, progress}

    Returns
    -------
    csr_array (n, n_nodes) of int8
        1 where a row passes a node. `indices` holds the nodes in the order of the way.

    Examples
    --------
    >>> from kernelrules import tree
    >>> grown = tree.grow([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> tree.decision_path(grown, [[0.7], [2.2]]).toarray()
    array([[1, 1, 0],
           [1, 0, 1]], dtype=int8)
    """
    leaves = _Walk(tree, X, unseen, n_threads, callback, "decision_path").leaves()
    parent, length = np.full(tree.n_nodes, -1), np.ones(tree.n_nodes, dtype=np.int64)
    inner = np.flatnonzero(tree.left >= 0)
    parent[tree.left[inner]] = parent[tree.right[inner]] = inner
    for node, above in enumerate(parent.tolist()):  # parents come before their children
        if above >= 0:
            length[node] = length[above] + 1
    indptr = np.append(0, np.cumsum(length[leaves]))
    check.fits_memory((int(indptr[-1]),), np.int64, "the nodes on all paths")
    indices = np.empty(indptr[-1], dtype=np.int64)
    fill_paths(parent, leaves, indptr, indices)
    return sparse.csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=(len(leaves), tree.n_nodes))


def importance(tree: Tree) -> np.ndarray:
    """How much of the loss the splits on each column took off, as shares.

    The gain of an oblique split is shared out by the absolute coefficients of its direction.

    Parameters
    ----------
    tree : Tree
        What `grow` returned.

    Returns
    -------
    ndarray (n_features,)
        Sums to 1; zeros where no split gains anything.

    Examples
    --------
    >>> from kernelrules import tree
    >>> grown = tree.grow([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, 5.0]], ["a", "a", "b", "b"])
    >>> tree.importance(grown)
    array([1., 0.])
    """
    p = require_tree(tree).n_features
    inner = tree.left >= 0
    oblique = inner & (tree.feature >= p)
    axis = inner & ~oblique
    sums = np.bincount(tree.feature[axis], weights=tree.gain[axis], minlength=p).astype(np.float64, copy=False)
    if oblique.any():
        sizes = np.abs(tree.directions[tree.feature[oblique] - p])
        sums += tree.gain[oblique] @ (sizes / sizes.sum(axis=1, keepdims=True))
    total = sums.sum()
    return sums / total if total > 0 else np.zeros(p)
