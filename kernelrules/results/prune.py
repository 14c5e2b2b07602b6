"""Results of cost-complexity pruning: the nested trees that minimise risk + alpha · leaves, and the chosen one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelrules.results.show import Result, counted, evenly_spaced, table
from kernelrules.results.tree import Tree

__all__ = ["PruneCV", "PrunePath"]


@dataclass(frozen=True, eq=False, repr=False)
class PrunePath(Result):
    """The nested subtrees that minimise risk + alpha · leaves for some alpha, the largest first, the root last.

    Tree k is optimal for alphas[k] <= alpha < alphas[k + 1]: of all pruned trees it has the least risk + alpha ·
    leaves, and of ties the fewest leaves. The first tree is smaller than the whole tree if some splits do not lower the
    risk.

    Attributes
    ----------
    alphas : ndarray (n_trees,)
        Values of alpha in units of the risk, ascending; the first is 0.
    n_leaves : ndarray (n_trees,) of int64
        Number of leaves of each tree, down to 1.
    risk : ndarray (n_trees,)
        Weighted mean loss of the training rows.
    cut : ndarray (n_nodes,)
        The smallest alpha at which a node's split is pruned; 0 in leaves. Tree k consists of the nodes whose
        ancestors all have a cut above alphas[k].
    loss : str
        The loss of the risk.
    """

    alphas: np.ndarray
    n_leaves: np.ndarray
    risk: np.ndarray
    cut: np.ndarray
    loss: str

    def _summary(self) -> list[str]:
        return [self.loss, counted(len(self.alphas), "tree"), f"{self.n_leaves[0]} to 1 leaves"]

    def _html_body(self) -> str:
        rows = [(self.n_leaves[k], self.alphas[k], self.risk[k]) for k in evenly_spaced(len(self.alphas))]
        return table(("leaves", "alpha", f"risk ({self.loss})"), rows)


@dataclass(frozen=True, eq=False, repr=False)
class PruneCV(Result):
    """A tree pruned to the size that cross-validation chose, and the sequence that it chose from.

    Attributes
    ----------
    alphas, n_leaves, risk : ndarray (n_trees,)
        As in `PrunePath`, of the tree grown on all rows.
    error : ndarray (n_trees,)
        Mean loss of held-out rows under the trees of the other rows, pruned with the geometric mean of
        alphas[k] and alphas[k + 1].
    se : ndarray (n_trees,)
        Standard error of the error, over rows.
    fold_error : ndarray (n_folds, n_trees)
        The error in each fold; NaN if all its rows have weight 0.
    chosen : int
        Number of the chosen tree.
    tree : Tree
        The chosen tree.
    grown : Tree
        The tree before pruning.
    loss, measure : str
        The losses of the risk and of the error.
    """

    alphas: np.ndarray
    n_leaves: np.ndarray
    risk: np.ndarray
    error: np.ndarray
    se: np.ndarray
    fold_error: np.ndarray
    chosen: int
    tree: Tree
    grown: Tree
    loss: str
    measure: str

    @property
    def cp(self) -> np.ndarray:
        """Alphas divided by the risk of the root: rpart's CP."""
        return self._relative(self.alphas)

    @property
    def rel_error(self) -> np.ndarray:
        """Risk divided by that of the root, as in rpart's table."""
        return self._relative(self.risk)

    @property
    def xerror(self) -> np.ndarray:
        """Cross-validated error divided by the risk of the root, as in rpart's table."""
        return self._relative(self.error)

    @property
    def xstd(self) -> np.ndarray:
        """Standard error of `xerror`, as in rpart's table."""
        return self._relative(self.se)

    def _relative(self, numbers: np.ndarray) -> np.ndarray:
        root = self.risk[-1]
        return numbers / root if root > 0 else np.zeros_like(numbers)

    def _summary(self) -> list[str]:
        error, se = self.error[self.chosen], self.se[self.chosen]
        return [f"{self.n_leaves[self.chosen]} of {self.grown.n_leaves} leaves", f"error {error:.3g} ± {se:.2g}"]

    def _html_body(self) -> str:
        places = evenly_spaced(len(self.alphas), self.chosen)
        rows = [(self.n_leaves[k], self.alphas[k], self.risk[k], self.error[k], self.se[k]) for k in places]
        heads = ("leaves", "alpha", f"risk ({self.loss})", f"error ({self.measure})", "standard error")
        return table(heads, rows, bold=places.index(self.chosen)) + self.tree._repr_html_()
