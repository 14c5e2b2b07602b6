"""A tree of the size that cross-validation chooses: `PrunedTreeClassifier` over prune.cross_validate."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from kernelrules import prune
from kernelrules.docstrings import shared_parameters
from kernelrules.estimators._common import called
from kernelrules.estimators.tree import NAMES, ClassTree, require_classes

__all__ = ["PrunedTreeClassifier"]


@shared_parameters
class PrunedTreeClassifier(ClassTree):
    """A classification tree pruned to the size that cross-validation chooses: `prune.cross_validate` as an estimator.

    One tree is grown on all rows, and one on the rows of each fold's complement; all sizes are judged together, which
    takes as long as the growing. A search over `ccp_alpha` of `TreeClassifier` grows a tree for each of its values.

    Parameters
    ----------
    cv : int, splitter or iterable of splits
        Folds: how many, stratified and drawn by `random_state`; or as scikit-learn splits. Every row has to be held
        out exactly once, and the other rows are trained on.
    rule : {"1se", "min"}
        The smallest tree whose error is within one standard error of the smallest; or that of the smallest error.
    criterion, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_features : optional
        Of the trees before pruning, as in `TreeClassifier`.
    random_state : int, RandomState, Generator or None
        Decides the folds, and what growing draws.
    max_leaf_nodes, min_impurity_decrease, class_weight, categorical_features, missing : optional
        As in `TreeClassifier`.
    {n_threads}

    Attributes
    ----------
    model_ : PruneCV
        What `prune.cross_validate` returned: sizes, errors and their standard errors, the choice.
    tree_ : Tree
        The pruned tree; the functions of `kernelrules.tree`, `rules` and `export` take it.
    ccp_alpha_ : float
        The price of a leaf that was chosen, in units of the error rate.
    classes_, n_classes_, feature_importances_ : ndarray, int, ndarray
        As in `TreeClassifier`.
    n_features_in_, feature_names_in_ : int, ndarray
        What was fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules.estimators import PrunedTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y = (X[:, 0] > 0.3) ^ (np.random.default_rng(1).random(400) < 0.1)
    >>> fitted = PrunedTreeClassifier(random_state=0).fit(X, y)
    >>> fitted.model_.grown.n_leaves > 40, fitted.get_n_leaves()
    (True, 2)
    """

    def __init__(
        self,
        *,
        cv: Any = 10,
        rule: str = "1se",
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
        categorical_features: Any = "from_dtype",
        missing: str = "extra",
        n_threads: int | None = None,
    ) -> None:
        self.cv = cv
        self.rule = rule
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
        self.categorical_features = categorical_features
        self.missing = missing
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PrunedTreeClassifier:
        """Grow and prune the tree.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Numbers and categories; missing values as NaN, None or NA.
        y : array (n,)
            Labels.
        sample_weight : array (n,), optional
            Weights of the rows, which count as numbers of rows in standard errors.

        Returns
        -------
        PrunedTreeClassifier
            The estimator itself.
        """
        require_classes(self.criterion)
        X, y = self._read(X, y, least=2)
        with called(NAMES):
            self.model_ = prune.cross_validate(
                X, y, folds=_folds(self.cv, X, y), rule=self.rule, sample_weight=sample_weight,
                class_weight=self.class_weight, **self._growth(X.shape[0]),
            )  # fmt: skip
        self._keep(self.model_.tree)
        self.ccp_alpha_ = float(self.model_.alphas[self.model_.chosen])
        return self


def _folds(cv: Any, X: Any, y: np.ndarray) -> Any:
    """Return the number of folds, or the fold of each row."""
    if isinstance(cv, numbers.Integral):
        return cv
    number = np.full(len(y), -1)
    for fold, (train, test) in enumerate(check_cv(cv, y, classifier=True).split(X, y)):
        train, test = (np.flatnonzero(rows) if rows.dtype == bool else rows for rows in map(np.asarray, (train, test)))
        for rows in (train, test):
            if len(rows) and (rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= len(y)):
                raise ValueError(f"cv must give rows 0 to {len(y) - 1} of X, which split {fold} does not: {rows!r:.80}")
        if (number[test] >= 0).any() or len(np.union1d(train, test)) != len(y) or len(train) + len(test) != len(y):
            raise ValueError(f"cv must hold every row out once and train on all others, which split {fold} does not")
        number[test] = fold
    if (number < 0).any():
        raise ValueError(f"cv must hold every row out once, but never holds out row {int(np.argmin(number))}")
    return number
