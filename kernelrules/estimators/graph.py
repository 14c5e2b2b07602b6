"""Learning from few labels on a graph of neighbours: `GraphClassifier` over graph.knn_graph and graph.fit.

A new point is joined to its nearest training points, whose values stay what they are, and gets the mean of these,
weighted as edges are: of all values that it may have, the one of the least fᵀLf with the Laplacian that is not
normalised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from kernelrules import check, graph
from kernelrules.docstrings import shared_parameters
from kernelrules.estimators._common import KernelEstimator, called
from kernelrules.estimators._nearest import Nearest
from kernelrules.graph.neighbours import join
from kernelrules.results import Certificate

__all__ = ["GraphClassifier"]

_NAMES = {
    "k": "n_neighbors",
    "weight": "kernel",
    "lam": "alpha over the sum of the labels' weights",
    "W": "kernel makes a graph that",
}
_NAMES_OF_RBF = _NAMES | {"W": "gamma makes a graph that"}
_NOTHING = 1e-12  # an excess of so little is rounding error
_KERNELS = {"knn": "binary", "rbf": "rbf"}


@shared_parameters
class GraphClassifier(ClassifierMixin, KernelEstimator):
    """Semi-supervised classification on a graph: `graph.knn_graph` and `graph.fit` as an estimator.

    Minimises, for a column of targets a class, Σ wᵢ (fᵢ - yᵢ)² + alpha fᵀLf: the sum over the labelled points, with
    their weights, L the Laplacian of the graph that joins each point with its nearest neighbours. Points that are not
    labelled have -1 in the place of y, as in scikit-learn's `LabelSpreading`.

    Parameters
    ----------
    n_neighbors : int
        Neighbours that each point chooses; of fewer points all others.
    alpha : float
        What a difference between neighbours costs, greater than 0. `lam` of `graph.fit` is alpha over the sum
        of the labels' weights.
    kernel : {"rbf", "knn"} or callable
        Weights of edges at distance d: `exp(-gamma d²)`, 1, or what a function of the distances gives.
    gamma : float, "neighbours", "scale" or "auto"
        Of "rbf"; "neighbours" is 1 / mean of d² over the points' choices.
    normalised : bool
        Whether L is the normalised Laplacian, which lets points of high degree differ more from their neighbours.
    decide : {"largest", "excess"}
        Which class a point gets: that of its largest share, or of the share that most exceeds the class's share of the
        labels. "excess" is for classes that are well apart and labels whose numbers are an accident, see `graph.fit`.
    unlabelled : label or None
        What marks a point without a label. None: all points have one, and -1 is a class.
    unreached : {"prior", "error"}
        What becomes of points that no label reaches: they get the classes' shares of the labels, or `fit` refuses them.
    {n_threads}

    Attributes
    ----------
    model_ : GraphFit
        What `graph.fit` returned.
    graph_ : csr_array (n, n)
        The weights of the edges.
    classes_ : ndarray
        In ascending order.
    transduction_ : ndarray (n,)
        The class of every training point.
    label_distributions_ : ndarray (n, n_classes)
        Its values, as shares.
    unreached_ : ndarray
        Training points that no label reaches.
    X_ : ndarray or csr_array
        The training points.
    certificate_ : Certificate
        How near to the best the values are.
    n_features_in_, feature_names_in_ : int, ndarray
        What was fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from kernelrules.estimators import GraphClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> known = np.random.default_rng(0).random(len(y)) < 0.05
    >>> fitted = GraphClassifier().fit(X, np.where(known, y, -1))
    >>> bool((fitted.transduction_ == y)[~known].mean() > 0.95)
    True
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 7,
        alpha: float = 0.1,
        kernel: Any = "rbf",
        gamma: float | str = "neighbours",
        normalised: bool = True,
        decide: str = "largest",
        unlabelled: Any = -1,
        unreached: str = "prior",
        n_threads: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.normalised = normalised
        self.decide = decide
        self.unlabelled = unlabelled
        self.unreached = unreached
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GraphClassifier:
        """Build the graph and propagate the labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            All points.
        y : array (n,)
            Labels; -1, or what `unlabelled` is, where there is none (in an array of strings "-1").
        sample_weight : array (n,), optional
            Of the labels: a point of weight 0 counts as unlabelled, and stays in the graph.

        Returns
        -------
        GraphClassifier
            The estimator itself.
        """
        alpha = check.positive(self.alpha, "alpha")
        check.one_of(self.unreached, "unreached", "prior", "error")
        n_neighbours = check.whole(self.n_neighbors, "n_neighbors", 1)
        X, y = self._read(X, y, ensure_min_samples=2, copy=True)  # kept for predictions
        known = self._known(y)
        check_classification_targets(y[known])
        weight = check.weights(sample_weight, len(y))[known]
        if not weight.any():
            raise ValueError("sample_weight is zero for every point that has a label")
        with called(_NAMES_OF_RBF if self.kernel == "rbf" else _NAMES):
            edges, exponent, self._gamma = join(
                X, min(n_neighbours, X.shape[0] - 1), self._weight(), gamma=self.gamma, n_threads=self.n_threads
            )
            model = graph.fit(
                edges, y[known], alpha / float(weight.sum()), known, normalised=self.normalised, classify=True,
                decide=self.decide, sample_weight=weight, unreached="error" if self.unreached == "error" else "nan",
                n_threads=self.n_threads,
            )  # fmt: skip
        self.model_, self.graph_, self.X_ = model, edges, X
        self.classes_, self._edge, self._decide = model.classes, self.kernel, self.decide
        counts = np.bincount(np.searchsorted(model.classes, y[known]), weight / weight.max(), len(model.classes))
        self._prior = counts / counts.sum()
        self.label_distributions_ = _shares(model.values, self._prior)
        self.transduction_ = self.classes_[self._decided(self.label_distributions_)]
        self._nearest = Nearest(X, n_neighbours, exponent)
        return self

    def _weight(self) -> Any:
        if callable(self.kernel):
            return self.kernel
        if not isinstance(self.kernel, str) or self.kernel not in _KERNELS:
            raise ValueError(f'kernel must be "knn", "rbf" or callable, got {self.kernel!r}')
        return _KERNELS[self.kernel]

    def _known(self, y: np.ndarray) -> np.ndarray:
        """Return the points that have a label."""
        if self.unlabelled is None:
            return np.arange(len(y))
        mark = str(self.unlabelled) if y.dtype.kind in "US" else self.unlabelled
        known = np.flatnonzero(y != mark)
        if len(known) == 0:
            raise ValueError(f"y holds no label: all entries are {self.unlabelled!r}, which marks points without one")
        if len(known) < len(y) and (y[known] == y[known[0]]).all():
            raise ValueError(
                f"y holds one class, {check.shown(y[known[0]])}, and {self.unlabelled!r}, which marks points without a "
                "label: nothing is to be told apart. If it is a class, say unlabelled=None"
            )
        return known

    @property
    def unreached_(self) -> np.ndarray:
        """Training points in components without a label."""
        return self.model_.unreached

    @property
    def certificate_(self) -> Certificate:
        """Certificate of the solution."""
        return self.model_.certificate

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the means of the class distributions of the nearest training points, weighted like edges.

        A training point is its own nearest neighbour here; what was found for it is in `label_distributions_`.

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
        if sparse.issparse(X):
            check.matrix(X)  # scikit-learn would believe indices that lead out of X
        distances, nearest = self._nearest.of(X, self.n_threads)
        n, k = nearest.shape
        starts = np.arange(0, n * k + 1, k)
        edges = sparse.csr_array(
            (self._weights_at(distances).ravel(), nearest.ravel(), starts), shape=(n, self.X_.shape[0])
        )
        shares = edges @ self.label_distributions_
        return shares / shares.sum(axis=1, keepdims=True)

    def _weights_at(self, distances: np.ndarray) -> np.ndarray:
        """Return the weights of edges to new points, up to a factor per point."""
        if self._edge == "knn":
            return np.ones_like(distances)
        if self._edge == "rbf":
            nearest = distances[:, :1]
            with np.errstate(over="ignore"):
                return np.exp(-self._gamma * (distances - nearest) * (distances + nearest))
        with np.errstate(over="ignore", under="ignore"):
            distances = np.ldexp(distances, self._nearest.exponent)
        weight = check.targets(self._edge(distances.ravel()), distances.size, "kernel(d)").reshape(distances.shape)
        if (weight < 0).any():
            raise ValueError(f"kernel(d) must not be negative, got {weight.min()}")
        return np.where(weight.any(axis=1, keepdims=True), weight, 1.0)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the largest probability, or the class chosen by `decide`.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points.

        Returns
        -------
        ndarray (n,)
            Labels.
        """
        shares = self.predict_proba(X)
        return self.classes_[self._decided(shares)]

    def _decided(self, shares: np.ndarray) -> np.ndarray:
        """Return the indices of the classes; without a path to a label, that of largest probability."""
        largest = shares.argmax(axis=1)
        if self._decide == "largest":
            return largest
        excess = shares - self._prior
        return np.where(excess.max(axis=1) > _NOTHING, excess.argmax(axis=1), largest)


def _shares(values: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return values as shares; points without a path to a label get the shares of the labels' weights."""
    positive = np.clip(np.where(np.isnan(values), prior, values), 0.0, None)
    total = positive.sum(axis=1, keepdims=True)
    return np.where(total > 0, positive, prior) / np.where(total > 0, total, 1.0)
