"""What pruning by risk + alpha · leaves returns: the nested trees that are best for some alpha, and the one chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelrules.results.show import Result, counted, some_of, table
from kernelrules.results.tree import Tree

__all__ = ["PruneCV", "PrunePath"]


@dataclass(frozen=True, eq=False, repr=False)
class PrunePath(Result):
    """The nested trees that are best for some price alpha of a leaf, the largest first, the root last.

    Tree k is best for alphas[k] <= alpha < alphas[k + 1]: of all pruned trees it has the least risk + alpha · leaves,
    and of those that have it the fewest leaves. The first is not quite the whole tree where splits do not lower the
    risk: those are not even worth a price of 0.

    Attributes
    ----------
    alphas : ndarray (n_trees,)
        Ascending, the first is 0. In units of the risk.
    n_leaves : ndarray (n_trees,) of int64
        Leaves of the trees; falls to 1.
    risk : ndarray (n_trees,)
        Mean loss of the training rows, weighted: the sum over the leaves, over the weight of all rows.
    cut : ndarray (n_nodes,)
        The alpha from which on a node's split is not worth its leaves; 0 in leaves. Tree k consists of the nodes whose
        ancestors all have a cut above alphas[k].
    loss : str
        What the risk is made of.
    """

    alphas: np.ndarray
    n_leaves: np.ndarray
    risk: np.ndarray
    cut: np.ndarray
    loss: str

    def _says(self) -> list[str]:
        return [self.loss, counted(len(self.alphas), "tree"), f"{self.n_leaves[0]} to 1 leaves"]

    def _body(self) -> str:
        rows = [(self.n_leaves[k], self.alphas[k], self.risk[k]) for k in some_of(len(self.alphas))]
        return table(("leaves", "alpha", f"risk ({self.loss})"), rows)


@dataclass(frozen=True, eq=False, repr=False)
class PruneCV(Result):
    """A tree pruned to the size that cross-validation chose, and what it chose from.

    Attributes
    ----------
    alphas, n_leaves, risk : ndarray (n_trees,)
        As in `PrunePath`, of the tree grown on all rows.
    error : ndarray (n_trees,)
        Mean loss of rows that were held out, under the trees of the other rows, pruned with the geometric mean of
        alphas[k] and alphas[k + 1].
    se : ndarray (n_trees,)
        Standard error of it, over rows.
    fold_error : ndarray (n_folds, n_trees)
        The same mean in each fold; NaN for one of rows of weight 0.
    chosen : int
        Number of the chosen tree.
    tree : Tree
        The chosen tree.
    grown : Tree
        The tree before pruning.
    loss, measure : str
        What risk and error are made of.
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
        """Alphas over the risk of the root: rpart's CP."""
        return self._relative(self.alphas)

    @property
    def rel_error(self) -> np.ndarray:
        """Risk over that of the root, as in rpart's table."""
        return self._relative(self.risk)

    @property
    def xerror(self) -> np.ndarray:
        """Cross-validated error over the risk of the root, as in rpart's table."""
        return self._relative(self.error)

    @property
    def xstd(self) -> np.ndarray:
        """Its standard error, as in rpart's table."""
        return self._relative(self.se)

    def _relative(self, numbers: np.ndarray) -> np.ndarray:
        root = self.risk[-1]
        return numbers / root if root > 0 else np.zeros_like(numbers)

    def _says(self) -> list[str]:
        error, se = self.error[self.chosen], self.se[self.chosen]
        return [f"{self.n_leaves[self.chosen]} of {self.grown.n_leaves} leaves", f"error {error:.3g} ± {se:.2g}"]

    def _body(self) -> str:
        places = some_of(len(self.alphas), self.chosen)
        rows = [(self.n_leaves[k], self.alphas[k], self.risk[k], self.error[k], self.se[k]) for k in places]
        heads = ("leaves", "alpha", f"risk ({self.loss})", f"error ({self.measure})", "standard error")
        return table(heads, rows, bold=places.index(self.chosen)) + self.tree._repr_html_()
