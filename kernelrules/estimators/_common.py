"""Common parts of the estimators: validation of X and y, kernels by name, random states, names in error messages.

scikit-learn's `validate_data` sets `n_features_in_` and `feature_names_in_` and raises the errors that users expect.
`check` then reads the data without a copy.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelrules import check, kernels

__all__ = ["KernelEstimator", "TableEstimator", "called", "kernel_of", "numbers_of", "rows_or_share", "seed_of"]

_ERRORS = (TypeError, ValueError, check.DtypeError)
_FLOATS = (np.float64, np.float32)
_NAMED_KERNELS = ("linear", "poly", "polynomial", "rbf", "sigmoid", "laplacian", "precomputed")
_CELLS = (numbers.Number, str, bytes, np.generic, type(None))


# ---- parameters -------------------------------------------------------------------------------------------------


@contextmanager
def called(names: dict[str, str]) -> Iterator[None]:
    """Replace the name of an argument at the start of error messages by the name of the estimator's parameter."""
    try:
        yield
    except _ERRORS as error:
        found = re.match(r"\w+", str(error))
        if type(error) not in _ERRORS or not found or found[0] not in names:
            raise
        raise type(error)(names[found[0]] + str(error)[found.end() :]) from error


def kernel_of(kernel: Any, gamma: Any, degree: Any, coef0: Any) -> Any:
    """Return the kernel with a name of scikit-learn; kernel objects and functions are returned as they are."""
    if not isinstance(kernel, str):
        return kernel
    if kernel not in _NAMED_KERNELS:
        choices = ", ".join(f'"{name}"' for name in _NAMED_KERNELS)
        raise ValueError(
            f"kernel must be one of {choices}, a kernel of kernelrules.kernels or callable, got {kernel!r}"
        )
    if kernel == "linear":
        return kernels.Linear()
    if kernel == "precomputed":
        return kernels.Precomputed()
    if kernel == "sigmoid":
        return kernels.Sigmoid(gamma, coef0)
    if kernel in ("poly", "polynomial"):
        return kernels.Polynomial(degree, gamma, coef0)
    return kernels.RBF(gamma) if kernel == "rbf" else kernels.Laplacian(gamma)


def seed_of(random_state: Any) -> Any:
    """Return an argument for `rng`: a seed or Generator as it is, or a seed drawn from a RandomState."""
    if isinstance(random_state, (numbers.Integral, np.random.Generator)):
        return random_state
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def rows_or_share(value: Any, name: str, least: int, n: int) -> int:
    """Return a number of rows, given as an integer or as a share of n, rounded up."""
    if not isinstance(value, (float, np.floating)):
        return check.whole(value, name, least)
    share = check.positive(value, name)
    if share > 1:
        raise ValueError(f"{name} must be a whole number, or a share of the rows up to 1.0, got {value!r}")
    return max(least, int(np.ceil(share * n)))


# ---- data -------------------------------------------------------------------------------------------------------


def _validated(estimator: Any, *data: Any, **options: Any) -> Any:
    """Call `validate_data` without NumPy's warnings: it detects NaN by a sum, which may overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return validate_data(estimator, *data, **options)


class KernelEstimator(BaseEstimator):
    """Base class of estimators that read numbers, dense or sparse, in float64 or float32."""

    def _kernel(self) -> Any:
        return kernel_of(self.kernel, self.gamma, self.degree, self.coef0)

    def _read(self, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """Return X, or X and y, for a fit."""
        return _validated(self, X, y, accept_sparse="csr", dtype=_FLOATS, **options)

    def _read_again(self, X: Any) -> Any:
        """Return X for a prediction."""
        check_is_fitted(self)
        return _validated(self, X, accept_sparse="csr", dtype=_FLOATS, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        kernel = getattr(self, "kernel", None)
        tags.input_tags.pairwise = kernel == "precomputed" or isinstance(kernel, kernels.Precomputed)
        return tags


class TableEstimator(BaseEstimator):
    """Base class of estimators that read tables: numbers and categories with missing values, also in data frames.

    Data frames are passed on unchanged, so that columns keep their types and names.
    """

    def _checks(self) -> dict[str, Any]:
        """Return the arguments of scikit-learn's checks of X; the functions refuse infinite numbers themselves."""
        return {"dtype": None, "accept_sparse": "csr", "ensure_all_finite": self.missing == "error"}

    def _read(self, X: Any, y: Any, *, least: int = 1) -> tuple[Any, Any]:
        """Return X and y for a fit."""
        if _is_frame(X):
            X, y = _validated(self, X, y, skip_check_array=True)
        else:
            separately = (self._checks() | {"estimator": self}, {"dtype": None, "ensure_2d": False})
            X, y = _validated(self, _objects_if_mixed(X), y, validate_separately=separately)
            _require_cells(X)
        n = X.shape[0]
        if n < least:
            raise ValueError(f"{type(self).__name__} needs at least {least} rows, got {n} sample(s)")
        return X, self._target(y)

    def _target(self, y: Any) -> np.ndarray:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        return y

    def _read_again(self, X: Any) -> Any:
        """Return X for a prediction."""
        check_is_fitted(self)
        if _is_frame(X):
            return _validated(self, X, skip_check_array=True, reset=False)
        X = _validated(self, _objects_if_mixed(X), reset=False, **self._checks())
        _require_cells(X)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = getattr(self, "missing", None) != "error"
        return tags


def numbers_of(y: Any) -> np.ndarray:
    """Return regression targets, one or several per row."""
    y = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
    return column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y


def _is_frame(X: Any) -> bool:
    """Return whether X is a data frame, as `check.frames` decides, without importing any library of frames."""
    return hasattr(X, "to_numpy") and hasattr(X, "columns")


def _objects_if_mixed(X: Any) -> Any:
    """Return nested lists that contain strings as objects; NumPy would convert their numbers to strings."""
    if not isinstance(X, (list, tuple)):
        return X
    try:
        array = np.asarray(X)
    except ValueError:
        return X  # ragged: scikit-learn refuses it
    return np.array(X, dtype=object) if array.dtype.kind in "US" else array


def _require_cells(X: Any) -> None:
    """Refuse objects that are neither numbers nor strings, in the words of NumPy and scikit-learn."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "O":
        return
    for kind in set(map(type, X.flat)):
        if not issubclass(kind, _CELLS) and kind.__name__ not in ("NAType", "NaTType"):
            raise TypeError(f"X holds a {kind.__name__}: an argument must be a string or a real number")
