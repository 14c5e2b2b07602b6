"""Decision trees: `TreeClassifier` and `TreeRegressor` over tree.grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from kernelrules import check, prune, tree
from kernelrules.core.tree.criteria import CRITERIA, NUMBER_CRITERIA
from kernelrules.docstrings import shared_parameters
from kernelrules.estimators._common import TableEstimator, called, numbers_of, rows_or_share, seed_of
from kernelrules.results import Tree

__all__ = ["NAMES", "ClassTree", "TreeClassifier", "TreeEstimator", "TreeRegressor", "require_classes"]

NAMES = {  # of what errors call by the functions' names
    "max_leaves": "max_leaf_nodes",
    "min_gain": "min_impurity_decrease",
    "categorical": "categorical_features",
    "monotone": "monotonic_cst",
    "alpha": "ccp_alpha",
    "rng": "random_state",
    "folds": "cv",
}


class TreeEstimator(TableEstimator):
    """Methods of all tree estimators. Each subclass sets `tree_`."""

    def _growth(self, n: int) -> dict[str, Any]:
        """Return the common arguments of `tree.grow` for n rows."""
        return {
            "criterion": "entropy" if self.criterion == "log_loss" else self.criterion,
            "max_depth": self.max_depth,
            "max_leaves": self.max_leaf_nodes,
            "min_split": rows_or_share(self.min_samples_split, "min_samples_split", 2, n),
            "min_leaf": rows_or_share(self.min_samples_leaf, "min_samples_leaf", 1, n),
            "min_share": self.min_weight_fraction_leaf,
            "min_gain": self.min_impurity_decrease,
            "max_features": self.max_features,
            "categorical": self.categorical_features,
            "missing": self.missing,
            "rng": seed_of(self.random_state),
            "n_threads": self.n_threads,
        }

    @property
    def feature_importances_(self) -> np.ndarray:
        """Decrease of the loss by the splits on each column, as a share of the total decrease."""
        check_is_fitted(self)
        return tree.importance(self.tree_)

    def get_depth(self) -> int:
        """Return the number of splits on the longest path to a leaf.

        Returns
        -------
        int
            0 for a tree of one leaf.
        """
        check_is_fitted(self)
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves.

        Returns
        -------
        int
            At least 1.
        """
        check_is_fitted(self)
        return self.tree_.n_leaves

    def predict(self, X: Any) -> np.ndarray:
        """Return predicted classes or values.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points; categories that the training data did not have go to the larger child.

        Returns
        -------
        ndarray (n,), or (n, n_outputs)
            One answer for each row.
        """
        X = self._read_again(X)
        return tree.predict(self.tree_, X, n_threads=self.n_threads)

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points.

        Returns
        -------
        ndarray (n,) of int64
            Numbers of nodes.
        """
        X = self._read_again(X)
        return tree.apply(self.tree_, X, n_threads=self.n_threads)

    def decision_path(self, X: Any) -> sparse.csr_array:
        """Return the nodes on the path of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points.

        Returns
        -------
        csr_array (n, n_nodes) of int8
            1 where a row passes a node.
        """
        X = self._read_again(X)
        return tree.decision_path(self.tree_, X, n_threads=self.n_threads)


class ClassTree(ClassifierMixin, TreeEstimator):
    """Methods of classification trees."""

    def _keep(self, grown: Tree) -> None:
        self.tree_ = grown
        self.classes_ = grown.classes
        self.n_classes_ = len(grown.classes)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class shares in the leaf of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points.

        Returns
        -------
        ndarray (n, n_classes)
            Rows that sum to 1.
        """
        X = self._read_again(X)
        return tree.predict_proba(self.tree_, X, n_threads=self.n_threads)


class _GrownTree(TreeEstimator):
    """Methods of trees that are pruned if `ccp_alpha` is above 0."""

    def _grow(self, X: Any, y: Any, sample_weight: Any, **more: Any) -> Tree:
        """Return the tree before pruning."""
        monotone = self.monotonic_cst
        if isinstance(monotone, dict):
            monotone = _signs_by_name(monotone, getattr(self, "feature_names_in_", None))
        with called(NAMES):
            return tree.grow(X, y, sample_weight=sample_weight, monotone=monotone, **self._growth(X.shape[0]), **more)

    def _pruned(self, grown: Tree) -> Tree:
        price = check.real(self.ccp_alpha, "ccp_alpha")
        if price == 0:
            return grown
        with called(NAMES):
            return prune.cost_complexity(grown, price, loss=_loss(grown))

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Return the values of `ccp_alpha` at which the pruned tree changes, and its impurity there.

        Parameters
        ----------
        X, y, sample_weight : arrays
            As in `fit`.

        Returns
        -------
        Bunch
            `ccp_alphas`, ascending, and `impurities`, the mean impurity of the leaves; both arrays.
        """
        other = clone(self)  # what this estimator was fitted to stays
        X, y = other._read(X, y)
        grown = other._grow(X, y, sample_weight, **other._of_kind())
        path = prune.cost_complexity_path(grown, loss=_loss(grown))
        return Bunch(ccp_alphas=path.alphas, impurities=path.risk)


def _loss(grown: Tree) -> str | None:
    """Return the loss of scikit-learn's pruning: the impurity by which the tree was grown."""
    by_ratio = grown.criterion in CRITERIA and CRITERIA[grown.criterion].by_ratio
    return "entropy" if by_ratio else grown.criterion


def _signs_by_name(given: dict[str, int], names: Any) -> list[int]:
    """Return constraints by column from constraints by name."""
    known = [] if names is None else list(names)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(f"monotonic_cst names the column {unknown[0]!r}, which X does not have")
    return [given.get(name, 0) for name in known]


def require_classes(criterion: Any) -> None:
    """Refuse criteria of regression."""
    if isinstance(criterion, str) and criterion in NUMBER_CRITERIA:
        raise ValueError(f'criterion "{criterion}" is for regression: use TreeRegressor')


@shared_parameters
class TreeClassifier(_GrownTree, ClassTree):
    """A classification tree: `tree.grow` as an estimator.

    Where no gains tie, and values do not differ by less than float32 can tell, the tree is that of scikit-learn's
    `DecisionTreeClassifier`. It takes data frames with categories and missing values as they are.

    Parameters
    ----------
    criterion : str or callable
        One of
        {class_criteria}
        or a function from class shares to impurities. "log_loss" is "entropy".
    max_depth : int, optional
        Most splits on the way to a leaf.
    min_samples_split, min_samples_leaf : int or float
        Fewest rows of a node that is split, and of a leaf; a float is a share of all rows.
    min_weight_fraction_leaf : float
        Least share of the weight of all rows that a leaf has.
    max_features : int, float, "sqrt", "log2", optional
        Columns to look at in a node, drawn anew each time.
    random_state : int, RandomState, Generator or None
        For `max_features` and missing="impute"; nothing else is random.
    max_leaf_nodes : int, optional
        Most leaves; the split that gains most comes first.
    min_impurity_decrease : float
        Least gain of a split.
    class_weight : dict, "balanced" or None
        Factors of the weights by class.
    ccp_alpha : float
        The price of a leaf, in units of the criterion, that the tree is pruned with.
    monotonic_cst : sequence of -1, 0, 1, or dict by name, optional
        For each column whether the share of the second class must fall or rise with it.
    categorical_features : "from_dtype", None, or sequence of column numbers or names
        Columns of categories: those that do not hold numbers by their type, none, or these.
    missing : str
        "extra", "surrogate", "fractional", "impute", "zero" or "error": as in `tree.grow`.
    {n_threads}

    Attributes
    ----------
    tree_ : Tree
        The functions of `kernelrules.tree`, `prune`, `rules` and `export` take it.
    classes_ : ndarray
        In ascending order.
    n_classes_ : int
        Their number.
    feature_importances_ : ndarray (n_features,)
        What the splits on each column gained, as shares.
    n_features_in_, feature_names_in_ : int, ndarray
        What was fitted to.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelrules import rules
    >>> from kernelrules.estimators import TreeClassifier
    >>> data = load_iris()
    >>> fitted = TreeClassifier(max_leaf_nodes=3).fit(data.data, data.target_names[data.target])
    >>> print(rules.extract(fitted.tree_, feature_names=["sl", "sw", "pl", "pw"]))
    pl ≤ 2.45 → setosa
    pl > 2.45 & pw ≤ 1.75 → versicolor
    pl > 2.45 & pw > 1.75 → virginica
    """

    def __init__(
        self,
        *,
        criterion: Any = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        missing: str = "extra",
        n_threads: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.missing = missing
        self.n_threads = n_threads

    def _of_kind(self) -> dict[str, Any]:
        require_classes(self.criterion)
        return {"class_weight": self.class_weight}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TreeClassifier:
        """Grow the tree.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Numbers and categories; missing values as NaN, None or NA.
        y : array (n,)
            Labels.
        sample_weight : array (n,), optional
            Weights of the rows. Weight 0 leaves a row out.

        Returns
        -------
        TreeClassifier
            The estimator itself.
        """
        X, y = self._read(X, y)
        self._keep(self._pruned(self._grow(X, y, sample_weight, **self._of_kind())))
        return self


@shared_parameters
class TreeRegressor(RegressorMixin, _GrownTree):
    """A regression tree: `tree.grow` as an estimator, scikit-learn's `DecisionTreeRegressor`.

    Parameters
    ----------
    criterion : str
        The loss to minimise, one of
        {number_criteria}
    leaf : {"constant", "median", "linear"}
        What leaves predict: the mean (the median for absolute_error), the median, or a ridge model of their rows.
    max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_features : optional
        As in `TreeClassifier`.
    random_state, max_leaf_nodes : optional
        As in `TreeClassifier`.
    min_impurity_decrease : float
        Least gain of a split. The impurity of several targets is the sum of theirs, where scikit-learn takes the mean.
    ccp_alpha : float
        The price of a leaf, in units of the criterion, that the tree is pruned with; not with linear leaves.
    monotonic_cst : sequence of -1, 0, 1, or dict by name, optional
        For each column whether predictions must fall or rise with it.
    categorical_features, missing : optional
        As in `TreeClassifier`.
    {n_threads}

    Attributes
    ----------
    tree_ : Tree
        The functions of `kernelrules.tree`, `prune`, `rules` and `export` take it.
    n_outputs_ : int
        Numbers that are predicted for a row.
    feature_importances_ : ndarray (n_features,)
        What the splits on each column gained, as shares.
    n_features_in_, feature_names_in_ : int, ndarray
        What was fitted to.

    Examples
    --------
    >>> from kernelrules.estimators import TreeRegressor
    >>> TreeRegressor().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 1.0, 5.0, 5.0]).predict([[0.7], [2.2]])
    array([1., 5.])
    """

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        leaf: str = "constant",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = None,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        missing: str = "extra",
        n_threads: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.leaf = leaf
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.missing = missing
        self.n_threads = n_threads

    def _target(self, y: Any) -> np.ndarray:
        return numbers_of(y)

    def _of_kind(self) -> dict[str, Any]:
        check.one_of(self.criterion, "criterion", *NUMBER_CRITERIA)
        return {"leaf": self.leaf}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TreeRegressor:
        """Grow the tree.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Numbers and categories; missing values as NaN, None or NA.
        y : array (n,), or (n, d) for squared_error and poisson
            Numbers.
        sample_weight : array (n,), optional
            Weights of the rows. Weight 0 leaves a row out.

        Returns
        -------
        TreeRegressor
            The estimator itself.
        """
        X, y = self._read(X, y)
        self.tree_ = self._pruned(self._grow(X, y, sample_weight, **self._of_kind()))
        self.n_outputs_ = self.tree_.n_outputs
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
