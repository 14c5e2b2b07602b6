"""scikit-learn's own checks of its contract, on all nine estimators."""

import pytest

pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelrules.estimators import (
    GraphClassifier,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    OneClassKernel,
    PrunedTreeClassifier,
    RuleListClassifier,
    TreeClassifier,
    TreeRegressor,
)
DEFAULTS = [
    KernelSVC(),
    KernelSVR(),
    OneClassKernel(),
    KernelRidge(),
    GraphClassifier(),
    TreeClassifier(),
    TreeRegressor(),
    PrunedTreeClassifier(),
    RuleListClassifier(),
]

@parametrize_with_checks(DEFAULTS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
