"""Support vector machines: `KernelSVC`, `KernelSVR` and `OneClassKernel` over svm.svc, svm.svr and svm.one_class."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from kernelrules import check, kernels, svm
from kernelrules.docstrings import shared_parameters
from kernelrules.estimators._common import KernelEstimator, called
from kernelrules.kernels.values import linear_weights
from kernelrules.results import Certificate, SVMModel
from kernelrules.svm.prediction import vote

__all__ = ["KernelSVC", "KernelSVR", "OneClassKernel"]

_NAMES = {"cache_mb": "cache_size"}


class _Machine(KernelEstimator):
    """Attributes of all support vector machines. Each subclass sets `model_`."""

    def _solver(self) -> dict[str, Any]:
        """Return the arguments that all three functions have."""
        return {
            "kernel": self._kernel(),
            "tol": self.tol,
            "max_iter": None if self.max_iter == -1 else self.max_iter,
            "cache_mb": self.cache_size,
            "n_threads": self.n_threads,
        }

    def _keep(self, model: SVMModel) -> None:
        self.model_ = model
        self.n_iter_ = np.array([certificate.iterations for certificate in model.certificates])

    @property
    def support_(self) -> np.ndarray:
        """Indices of the support vectors among the training rows."""
        return self.model_.support

    @property
    def support_vectors_(self) -> Any:
        """Support vectors; None for a precomputed kernel."""
        return self.model_.support_vectors

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients, (n_machines, n_sv)."""
        return self.model_.dual_coef

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, (n_machines,)."""
        return self.model_.intercept

    @property
    def certificate_(self) -> Certificate:
        """Certificate of the machine, or of the worst of several."""
        return self.model_.certificate

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the columns, (n_machines, n_features), for the linear kernel."""
        if not isinstance(self.model_.kernel, kernels.Linear):
            raise AttributeError(f"coef_ exists for the linear kernel only, and this is {self.model_.kernel!r}")
        if self.model_.weights is not None:
            return self.model_.weights
        return np.asarray(linear_weights(check.matrix(self.model_.support_vectors), self.model_.dual_coef).T)


@shared_parameters
class KernelSVC(ClassifierMixin, _Machine):
    """Support vector classification: `svm.svc` as an estimator.

    With equal parameters the machine is that of scikit-learn's `SVC` (with nu, `NuSVC`), up to the tolerance. There is
    no `predict_proba`: probabilities of their own could contradict `predict`; `CalibratedClassifierCV` makes a
    classifier that decides by them.

    Parameters
    ----------
    C : float
        The cost of a slack. Infinity asks for the hard margin.
    nu : float in (0, 1], optional
        Instead of C, as in `NuSVC`.
    kernel : str, Kernel or callable
        "rbf", "linear", "poly", "sigmoid", "laplacian" or "precomputed"; one of `kernelrules.kernels`, which has its
        own parameters; or a function of two data sets that gives their kernel matrix.
    degree : int
        Of "poly".
    gamma : float, "scale" or "auto"
        Of "rbf", "poly", "sigmoid" and "laplacian".
    coef0 : float
        Of "poly" and "sigmoid".
    multiclass : {"ovo", "ovr"}
        With more than two classes: a machine for each pair, or for each class against the rest.
    decision_function_shape : {"ovr", "ovo"}
        With more than two classes and machines for pairs: whether `decision_function` has a column for each class,
        its votes plus less than half a vote of summed confidence, or one for each pair.
    class_weight : dict, "balanced" or None
        Factors of C by class.
    tol : float
        The largest violation of the optimality conditions that passes.
    max_iter : int
        Most steps a machine may take; -1 or None: ten million, or a hundred a point if that is more.
    cache_size : float, optional
        Megabytes for kernel values; default a quarter of the memory that is free.
    {n_threads}

    Attributes
    ----------
    model_ : SVMModel
        What `svm.svc` returned; the functions of `kernelrules.svm` take it.
    classes_ : ndarray
        In ascending order.
    support_, support_vectors_, dual_coef_, intercept_, coef_ : ndarray
        Of the model, with a row of coefficients for each machine; `coef_` for the linear kernel only.
    n_support_ : ndarray (n_classes,)
        Support vectors of each class.
    certificate_ : Certificate
        How near to the best the machine is; of several, the worst.
    n_iter_ : ndarray (n_machines,)
        Steps of the solver.
    n_features_in_, feature_names_in_ : int, ndarray
        What was fitted to.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelrules.estimators import KernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = KernelSVC(C=10.0).fit(X, y)
    >>> machine.score(X, y) > 0.97, machine.certificate_.converged
    (True, True)
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        nu: float | None = None,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        multiclass: str = "ovo",
        decision_function_shape: str = "ovr",
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int | None = -1,
        cache_size: float | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.C = C
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.multiclass = multiclass
        self.decision_function_shape = decision_function_shape
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelSVC:
        """Fit the machines.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            The data; the square kernel matrix for a precomputed kernel.
        y : array (n,)
            Labels.
        sample_weight : array (n,), optional
            Factors of C by row; a row of weight 0 is as if it were absent.

        Returns
        -------
        KernelSVC
            The estimator itself.
        """
        check.one_of(self.decision_function_shape, "decision_function_shape", "ovr", "ovo")
        X, y = self._read(X, y)
        check_classification_targets(y)
        with called(_NAMES):
            model = svm.svc(
                X, y, C=self.C, nu=self.nu, multiclass=self.multiclass, class_weight=self.class_weight,
                sample_weight=sample_weight, **self._solver(),
            )  # fmt: skip
        self._keep(model)
        self.classes_ = model.classes
        self.n_support_ = np.bincount(np.searchsorted(model.classes, y[model.support]), minlength=len(model.classes))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values: for two classes positive for `classes_[1]`; else the largest column is the class.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points; for a precomputed kernel their kernel values against all training points.

        Returns
        -------
        ndarray (n,), (n, n_classes) or (n, n_pairs)
            As `decision_function_shape` asks for.
        """
        X = self._read_again(X)
        values = svm.decision(self.model_, X, n_threads=self.n_threads)
        votes = values.ndim == 2 and self.model_.multiclass == "ovo" and self.decision_function_shape == "ovr"
        return vote(values, len(self.classes_)) if votes else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points, as in `decision_function`.

        Returns
        -------
        ndarray (n,)
            Labels.
        """
        X = self._read_again(X)
        return svm.predict(self.model_, X, n_threads=self.n_threads)


@shared_parameters
class KernelSVR(RegressorMixin, _Machine):
    """Support vector regression: `svm.svr` as an estimator, scikit-learn's `SVR` and, with nu, `NuSVR`.

    Parameters
    ----------
    C : float
        The cost of a unit outside the tube.
    epsilon : float
        Half the width of the tube, at least 0. Not used with nu.
    nu : float in (0, 1], optional
        An upper bound of the share of points outside the tube, whose width is then found.
    kernel, degree, gamma, coef0, tol, max_iter, cache_size : optional
        As in `KernelSVC`.
    {n_threads}

    Attributes
    ----------
    model_ : SVMModel
        What `svm.svr` returned; the functions of `kernelrules.svm` take it.
    support_, support_vectors_, dual_coef_, intercept_, coef_, certificate_, n_iter_ : ndarray, Certificate
        As in `KernelSVC`.
    n_features_in_, feature_names_in_ : int, ndarray
        What was fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules.estimators import KernelSVR
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> KernelSVR(kernel="linear", C=100.0, epsilon=0.01).fit(X, 3 * X[:, 0] - 1).predict([[0.5]]).round(1)
    array([0.5])
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        nu: float | None = None,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_iter: int | None = -1,
        cache_size: float | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelSVR:
        """Fit the machine.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            The data; the square kernel matrix for a precomputed kernel.
        y : array (n,)
            Numbers.
        sample_weight : array (n,), optional
            Factors of C by row; a row of weight 0 is as if it were absent.

        Returns
        -------
        KernelSVR
            The estimator itself.
        """
        X, y = self._read(X, y, y_numeric=True)
        with called(_NAMES):
            model = svm.svr(
                X, y, C=self.C, epsilon=self.epsilon, nu=self.nu, sample_weight=sample_weight, **self._solver()
            )
        self._keep(model)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return predicted values.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points; for a precomputed kernel their kernel values against all training points.

        Returns
        -------
        ndarray (n,)
            One value for each row.
        """
        X = self._read_again(X)
        return svm.predict(self.model_, X, n_threads=self.n_threads)


@shared_parameters
class OneClassKernel(OutlierMixin, _Machine):
    """One-class support vector machine: `svm.one_class` as an estimator, scikit-learn's `OneClassSVM`.

    Parameters
    ----------
    nu : float in (0, 1]
        An upper bound of the share of training points outside, and a lower bound of that of support vectors.
    kernel, degree, gamma, coef0, tol, max_iter, cache_size : optional
        As in `KernelSVC`.
    {n_threads}

    Attributes
    ----------
    model_ : SVMModel
        What `svm.one_class` returned; the functions of `kernelrules.svm` take it.
    offset_ : float
        `score_samples` less this is `decision_function`.
    support_, support_vectors_, dual_coef_, intercept_, coef_, certificate_, n_iter_ : ndarray, Certificate
        As in `KernelSVC`.
    n_features_in_, feature_names_in_ : int, ndarray
        What was fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules.estimators import OneClassKernel
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> OneClassKernel(nu=0.1, gamma=0.1).fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_iter: int | None = -1,
        cache_size: float | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassKernel:
        """Fit the machine.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            The data; the square kernel matrix for a precomputed kernel.
        y : ignored
            There for pipelines.
        sample_weight : array (n,), optional
            Weights of the rows; a row of weight 0 is as if it were absent.

        Returns
        -------
        OneClassKernel
            The estimator itself.
        """
        X = self._read(X)
        with called(_NAMES):
            self._keep(svm.one_class(X, nu=self.nu, sample_weight=sample_weight, **self._solver()))
        return self

    @property
    def offset_(self) -> float:
        """Difference of `score_samples` and `decision_function`."""
        return float(-self.model_.intercept[0])

    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values, positive inside the region.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points; for a precomputed kernel their kernel values against all training points.

        Returns
        -------
        ndarray (n,)
            One value for each row.
        """
        X = self._read_again(X)
        return svm.decision(self.model_, X, n_threads=self.n_threads)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return decision values without the intercept: larger for rows more like the training data.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points, as in `decision_function`.

        Returns
        -------
        ndarray (n,)
            One value for each row.
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """+1 inside the region, -1 outside and, as in scikit-learn's `OneClassSVM`, exactly on the boundary.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points, as in `decision_function`.

        Returns
        -------
        ndarray (n,) of int
            One answer for each row.
        """
        X = self._read_again(X)
        return svm.predict(self.model_, X, n_threads=self.n_threads)
