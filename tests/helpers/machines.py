"""What the tests of support vector machines share: a call of any kind, clouds of points, the solver of a dual."""

import numpy as np
import pytest
import svm_oracle as oracle

from kernelrules import svm
from kernelrules.core.svm import smo


def each_kind():
    return pytest.mark.parametrize("kind", oracle.KINDS)


def fit(kind, X, y, *, C=1.0, nu=0.5, epsilon=0.1, weight=None, **options):
    """One machine of any kind, called as a user would."""
    match kind:
        case "svc":
            return svm.svc(X, y, C=C, sample_weight=weight, **options)
        case "nu_svc":
            return svm.svc(X, y, nu=nu, sample_weight=weight, **options)
        case "svr":
            return svm.svr(X, y, C=C, epsilon=epsilon, sample_weight=weight, **options)
        case "nu_svr":
            return svm.svr(X, y, C=C, nu=nu, sample_weight=weight, **options)
        case "one_class":
            return svm.one_class(X, nu=nu, sample_weight=weight, **options)
    raise AssertionError(kind)


def blobs(n=60, k=3, seed=0, spread=0.9):
    """Classes around a circle, the rows of all of them in turn."""
    labels, angle = np.arange(n) % k, 2 * np.pi * np.arange(k) / k
    centres = 2 * np.c_[np.cos(angle), np.sin(angle)]
    return centres[labels] + spread * np.random.default_rng(seed).normal(size=(n, 2)), labels


def make_machine(dual):
    """The compiled solver from the start of the dual, with the gradient there."""
    a = dual.start.copy()
    return smo.Machine(dual.segments, dual.lower, dual.upper, a, dual.gradient(a), dual.kink)
