"""What fits return: frozen dataclasses of arrays. Everything after a fit is a function of one of these."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["CalibratedSVM", "Certificate", "SVMModel", "Slacks", "Surrogates", "Tree", "TuneResult"]


@dataclass(frozen=True)
class Certificate:
    """How good a solution is, from the solution alone.

    Attributes
    ----------
    primal : float
        The objective that was to be minimised, at the solution's w and the constant that is best for it.
    dual : float
        A lower bound of it: where the kernel is positive semi-definite, no solution whatever is better than this.
    gap : float
        primal - dual, at least 0 but for rounding. The solution is at most this far from the best, under the same
        condition.
    kkt : float
        The largest violation of the optimality conditions, what `tol` limits.
    iterations : int
        Steps of the solver.
    converged : bool
        Whether kkt is at most the tolerance that was asked for.
    """

    primal: float
    dual: float
    gap: float
    kkt: float
    iterations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class SVMModel:
    """A support vector machine, or several of them where there are more than two classes.

    The decision values are k(X, support_vectors) · dual_coefᵀ + intercept.

    Attributes
    ----------
    kind : str
        "svc", "nu_svc", "svr", "nu_svr" or "one_class".
    kernel : Kernel or callable
        With gamma as a number.
    classes : ndarray or None
        In ascending order; None for regression and one-class.
    multiclass : str
        "ovo" or "ovr": what the machines of more than two classes tell apart.
    support : ndarray (n_sv,)
        Rows of the training data that have a coefficient in some machine, grouped by class, ascending in each.
    support_vectors : ndarray or csr_array (n_sv, p), or None
        Those rows; None for a precomputed kernel.
    dual_coef : ndarray (n_machines, n_sv)
        Their coefficients.
    intercept : ndarray (n_machines,)
        The constant terms.
    certificate : Certificate
        The worst: of the machine with the largest gap relative to its objective, of one that did not converge first.
    certificates : tuple of Certificate
        One a machine.
    n_features : int
        Columns that data must have; for a precomputed kernel the number of training points.
    n_train : int
        Rows of the training data.
    C : float or None
        The cost of a slack; for nu_svc of two classes the one that gives the same machine.
    epsilon : float or None
        Of a regression, half the width of the tube: the one that was given, or that nu led to.
    rows_computed : int
        Kernel rows that the fit computed; for the linear kernel, rows of small blocks.
    """

    kind: str
    kernel: Any
    classes: np.ndarray | None
    multiclass: str
    support: np.ndarray
    support_vectors: Any
    dual_coef: np.ndarray
    intercept: np.ndarray
    certificate: Certificate
    certificates: tuple[Certificate, ...]
    n_features: int
    n_train: int
    C: float | None = None
    epsilon: float | None = None
    rows_computed: int = field(default=0, repr=False)


@dataclass(frozen=True, eq=False)
class Slacks:
    """How far points fall short of the margin.

    Attributes
    ----------
    values : ndarray (n,)
        max(0, 1 - y f(x)).
    case : ndarray (n,) of int
        0 outside the margin or, as far as the fit is exact, on it; 1 inside it but on the right side; 2 wrong (or on
        the boundary).
    """

    values: np.ndarray
    case: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The values, where an array is wanted."""
        return np.array(self.values, dtype=dtype, copy=copy)


@dataclass(frozen=True, eq=False)
class CalibratedSVM:
    """A model with maps from decision values to probabilities.

    Attributes
    ----------
    model : SVMModel
        Whose decision values are mapped.
    method : str
        "platt" or "isotonic".
    maps : tuple
        One a machine: (slope, offset) of 1 / (1 + exp(slope f + offset)), or (values, probabilities) to interpolate.
    """

    model: SVMModel
    method: str
    maps: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True, eq=False)
class TuneResult:
    """A grid of parameters judged by cross-validation.

    Attributes
    ----------
    Cs, gammas : ndarray
        The grid; gammas has one entry, nan, for kernels without gamma.
    mean, se : ndarray (n_gammas, n_Cs)
        Mean over the folds of the error rate, and its standard error.
    fold_errors : ndarray (n_gammas, n_Cs, n_folds)
        The error rates themselves.
    best : dict
        The chosen C and, where there is one, gamma.
    model : SVMModel
        Fitted to all data with these.
    """

    Cs: np.ndarray
    gammas: np.ndarray
    mean: np.ndarray
    se: np.ndarray
    fold_errors: np.ndarray
    best: dict[str, float]
    model: SVMModel


@dataclass(frozen=True, eq=False)
class Surrogates:
    """Splits that stand in for those of a tree where their column is missing, the best of a node first.

    Attributes
    ----------
    start : ndarray (n_nodes + 1,)
        Node i has the surrogates start[i] to start[i + 1] - 1.
    feature, threshold : ndarray (n_surrogates,)
        As in `Tree`.
    below_left : ndarray (n_surrogates,) of bool
        Whether x <= threshold goes left; otherwise x > threshold does.
    subset_start : ndarray (n_surrogates,)
        As in `Tree`, into the same flags.
    agreement : ndarray (n_surrogates,)
        Share of the rows that it sends where the split does, of those that going with the majority gets wrong.
    """

    start: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    below_left: np.ndarray
    subset_start: np.ndarray
    agreement: np.ndarray


@dataclass(frozen=True, eq=False)
class Tree:
    """A decision tree. Nodes are in depth-first order: 0 is the root, and the left child of node i is i + 1.

    Attributes
    ----------
    feature : ndarray (n_nodes,)
        Column that a node splits on; -1 in leaves; from n_features on, row feature - n_features of `directions`.
    threshold : ndarray (n_nodes,)
        x <= threshold goes left; NaN in leaves and for subsets of categories.
    left, right : ndarray (n_nodes,)
        Children; -1 in leaves.
    value : ndarray (n_nodes, n_classes), (n_nodes,) or (n_nodes, n_outputs)
        Weighted shares of the classes; the mean or median of one target, or means of several.
    n_samples : ndarray (n_nodes,)
        Training rows in the node; fractions of rows count as such.
    weight : ndarray (n_nodes,)
        Their weight W.
    impurity : ndarray (n_nodes,)
        Q of the node, by the criterion; entropy in bits.
    gain : ndarray (n_nodes,)
        What the split takes off the loss W·Q, over the weight of all rows; 0 in leaves.
    missing_left : ndarray (n_nodes,) of bool
        Side of a missing value: learned where some were missing in training, else the larger child's. With surrogates,
        of rows that none of them helps: that of most rows whose value is known.
    subset_start : ndarray (n_nodes,)
        For a split on categories, where its flags begin in `subset_left`, one for each level; else -1.
    subset_left : ndarray of uint8
        1 the level goes left, 0 right, 2 it did not occur in the node: then to the larger child.
    criterion : str
        What the tree was grown by.
    missing : str
        How missing values are treated.
    classes : ndarray or None
        In ascending order; None for regression.
    categories : tuple
        For each column None if it is numerical, else its levels in the order of their codes.
    n_features, n_outputs, n_train : int
        Columns, targets and rows of the training data.
    feature_names : tuple or None
        Names of the columns, where the data had any.
    surrogates : Surrogates or None
        With missing="surrogate".
    fill : ndarray (n_features,) or None
        What missing values are replaced by, with missing="impute" or "zero".
    directions : ndarray (n_oblique, n_features) or None
        Of oblique splits: X·direction is compared with the threshold.
    linear : ndarray (n_nodes, n_features + 1) or None
        Coefficients and constant of the leaves' linear models.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    n_samples: np.ndarray
    weight: np.ndarray
    impurity: np.ndarray
    gain: np.ndarray
    missing_left: np.ndarray
    subset_start: np.ndarray
    subset_left: np.ndarray
    criterion: str
    missing: str
    classes: np.ndarray | None
    categories: tuple[Any, ...]
    n_features: int
    n_outputs: int
    n_train: int
    feature_names: tuple[str, ...] | None = None
    surrogates: Surrogates | None = None
    fill: np.ndarray | None = None
    directions: np.ndarray | None = None
    linear: np.ndarray | None = None

    @property
    def n_nodes(self) -> int:
        """Nodes, leaves included."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Leaves."""
        return int((self.left < 0).sum())

    @property
    def depth(self) -> int:
        """Splits on the longest way from the root to a leaf."""
        depth = np.zeros(self.n_nodes, dtype=np.int64)
        for node in np.flatnonzero(self.left >= 0):  # parents come before their children
            depth[[self.left[node], self.right[node]]] = depth[node] + 1
        return int(depth.max(initial=0))

    def left_levels(self, node: int) -> np.ndarray:
        """Levels of a split on categories that go left.

        Parameters
        ----------
        node : int
            A node that splits on categories.

        Returns
        -------
        ndarray
            Of those that occurred in the node.
        """
        levels, start = self.categories[self.feature[node]], self.subset_start[node]
        return levels[self.subset_left[start : start + len(levels)] == 1]

    def __repr__(self) -> str:
        """One line: the arrays are for looking at one by one."""
        return f"Tree({self.criterion}, {self.n_leaves} leaves, depth {self.depth}, {self.n_features} features)"
