"""Rule lists learned by RIPPER: `RuleListClassifier` over rules.induce."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from kernelrules import check, rules
from kernelrules.docstrings import shared_parameters
from kernelrules.estimators._common import TableEstimator, called, seed_of

__all__ = ["RuleListClassifier"]

_NAMES = {"categorical": "categorical_features", "rng": "random_state"}


@shared_parameters
class RuleListClassifier(ClassifierMixin, TableEstimator):
    """An ordered list of rules: `rules.induce` (RIPPER) as an estimator.

    The first rule that holds for a row answers, and the default where none does. It takes data frames with categories
    and missing values as they are, and sparse data without making them dense.

    Parameters
    ----------
    prune : bool
        False grows rules on all rows, without pruning, and neither optimises nor draws anything at random.
    grow_share : float
        Share of the rows to grow on; the others are to prune on.
    optimise : int
        Rounds of optimisation.
    tries : int, optional
        Lists of rules of a class that are learned, of which the shortest is taken; default 3, 1 for more than 10 000
        rows.
    min_margin : float
        By how many standard deviations of a fair coin a rule's right answers must outnumber the wrong ones.
    min_weight : float
        Least weight of rows of the class that a condition must keep.
    max_rules, max_conditions : int, optional
        Most rules in all, and most conditions of a rule while it grows.
    class_order : sequence of labels, optional
        Every class once, in the order in which rules of them are learned; default: from the lightest to the heaviest,
        of equal ones that with the lower label first.
    class_weight : dict, "balanced" or None
        Factors of the weights by class. Weights count as numbers of rows.
    categorical_features : "from_dtype", None, or sequence of column numbers or names
        Columns of categories: those that do not hold numbers by their type, none, or these.
    missing : {"fail", "extra", "error"}
        A missing value fails every condition; satisfies an extra one, "x is missing"; or is refused.
    random_state : int, RandomState, Generator or None
        For dealing rows to grow and to prune on.
    {n_threads}

    Attributes
    ----------
    rules_ : RuleList
        `print` shows it as a person writes; the functions of `kernelrules.rules` and `export` take it.
    classes_ : ndarray
        In ascending order.
    n_features_in_, feature_names_in_ : int, ndarray
        What was fitted to.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelrules.estimators import RuleListClassifier
    >>> data = load_iris(as_frame=True)
    >>> fitted = RuleListClassifier(random_state=0).fit(data.data, data.target_names[data.target])
    >>> print(fitted.rules_)
    petal length (cm) ≤ 2.35 → setosa
    petal width (cm) ≤ 1.65 & petal length (cm) ≤ 4.95 → versicolor
    OTHERWISE → virginica
    """

    def __init__(
        self,
        *,
        prune: bool = True,
        grow_share: float = 2 / 3,
        optimise: int = 2,
        tries: int | None = None,
        min_margin: float = 1.0,
        min_weight: float = 2.0,
        max_rules: int | None = None,
        max_conditions: int | None = None,
        class_order: Any = None,
        class_weight: Any = None,
        categorical_features: Any = "from_dtype",
        missing: str = "fail",
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.prune = prune
        self.grow_share = grow_share
        self.optimise = optimise
        self.tries = tries
        self.min_margin = min_margin
        self.min_weight = min_weight
        self.max_rules = max_rules
        self.max_conditions = max_conditions
        self.class_order = class_order
        self.class_weight = class_weight
        self.categorical_features = categorical_features
        self.missing = missing
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RuleListClassifier:
        """Learn the rules.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Numbers and categories; missing values as NaN, None or NA.
        y : array (n,)
            Labels.
        sample_weight : array (n,), optional
            Weights of the rows, which count as numbers of rows. Weight 0 leaves a row out.

        Returns
        -------
        RuleListClassifier
            The estimator itself.
        """
        X, y = self._read(X, y)
        with called(_NAMES):
            self.rules_ = rules.induce(
                X, y, prune=self.prune, grow_share=self.grow_share, optimise=self.optimise, tries=self.tries,
                min_margin=self.min_margin, min_weight=self.min_weight, max_rules=self.max_rules,
                max_conditions=self.max_conditions, class_order=self.class_order, categorical=self.categorical_features,
                missing=self.missing, sample_weight=_weights(self.class_weight, y, sample_weight),
                rng=seed_of(self.random_state), n_threads=self.n_threads,
            )  # fmt: skip
        self.classes_ = self.rules_.classes
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction of the first rule that matches each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points.

        Returns
        -------
        ndarray (n,)
            Labels.
        """
        X = self._read_again(X)
        return rules.predict(self.rules_, X, n_threads=self.n_threads)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class shares among the training rows of the first rule that matches.

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
        return rules.predict_proba(self.rules_, X, n_threads=self.n_threads)


def _weights(class_weight: Any, y: np.ndarray, sample_weight: Any) -> np.ndarray | None:
    """Return sample weights times class weights."""
    if class_weight is None:
        return sample_weight
    return check.class_weights(class_weight, sample_weight, *check.labels(y, len(y)))
