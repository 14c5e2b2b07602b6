"""Labels from float32 kernel values: those of float64 decision values, wherever points lie."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelrules import kernels, svm
from kernelrules.svm import float32_labels, prediction


def model_of(kind, seed=0, n=160, C=50.0):
    """A machine, and points of which some lie between its classes."""
    rng = np.random.default_rng(seed)
    n_classes = 2 if kind == "binary" else 4
    y = np.arange(n) % n_classes
    X = 1.5 * rng.normal(size=(n_classes, 6))[y] + rng.normal(size=(n, 6)) + 100.0
    how = {"kernel": kernels.RBF(0.1), "C": C}
    if kind == "one_class":
        model = svm.one_class(X, nu=0.3, kernel=kernels.RBF(0.1))
    else:
        model = svm.svc(X, y, multiclass="ovr" if kind == "ovr" else "ovo", **how)
    points = X[rng.integers(n, size=600)] + 0.7 * rng.normal(size=(600, 6))
    return model, points


def halfway(model, a, b, column):
    """A point between a and b at which that decision value is nearly 0."""
    ends = prediction.all_decisions(model, np.stack([a, b]), 1)[:, column]
    if ends[0] * ends[1] > 0:
        return None
    for _ in range(60):
        middle = (a + b) / 2
        value = prediction.all_decisions(model, middle[None], 1)[0, column]
        a, b = (middle, b) if value * ends[0] > 0 else (a, middle)
    return (a + b) / 2


def is_used(monkeypatch):
    """float32 for small problems too, and a list of the types in which products were made."""
    types, product = [], float32_labels.product
    monkeypatch.setattr(float32_labels, "_MIN_PRODUCTS", 0.0)
    monkeypatch.setattr(float32_labels, "product", lambda x, *rest: types.append(x.dtype) or product(x, *rest))
    return types


@pytest.mark.parametrize("kind", ["binary", "ovo", "ovr", "one_class"])
def test_labels_are_those_of_float64(monkeypatch, kind):
    types = is_used(monkeypatch)
    model, points = model_of(kind)
    hard = [
        halfway(model, points[i], points[i + 1], column)
        for column in range(len(model.intercept))
        for i in range(0, 40, 2)
    ]
    points = np.concatenate([points, [p for p in hard if p is not None]])
    expected = prediction.labels_of(model, prediction.all_decisions(model, points, 1))
    assert not types
    np.testing.assert_array_equal(svm.predict(model, points), expected)
    assert np.dtype(np.float32) in types
    assert kind == "ovr" or np.dtype(np.float64) in types  # a boundary of one-vs-rest is not where a value is 0


@pytest.mark.parametrize("kind", ["binary", "ovo", "ovr"])
@given(seed=st.integers(0, 2**20))
@settings(max_examples=15)
def test_what_is_certain_does_not_change_with_the_errors(kind, seed):
    model = CERTAIN.setdefault(kind, model_of(kind)[0])
    rng = np.random.default_rng(seed)
    n_machines = len(model.intercept)
    values, error = rng.normal(size=(200, n_machines)), rng.random(n_machines)
    sure = float32_labels.certain(model, values, error)
    labels = prediction.labels_of(model, values)
    for _ in range(5):
        moved = values + error * rng.choice([-1.0, 1.0, 0.5], size=values.shape)
        np.testing.assert_array_equal(prediction.labels_of(model, moved)[sure], labels[sure])


CERTAIN = {}


@pytest.mark.parametrize("gamma", [1e-3, 0.1, 5.0])
def test_errors_stay_below_the_bound(gamma):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 40)) * rng.choice([0.1, 1.0, 10.0], size=40) + 30
    narrow_x, size = float32_labels._centred(X, X.mean(axis=0))
    error = np.abs(kernels.gram(narrow_x, kernel=kernels.RBF(gamma)) - kernels.gram(X, kernel=kernels.RBF(gamma)))
    assert error.max() <= float32_labels.entry_error(kernels.RBF(gamma), size, 40)


def test_points_beyond_float32_and_machines_that_leave_all_in_doubt(monkeypatch):
    types = is_used(monkeypatch)
    model, points = model_of("binary")
    far = np.concatenate([points[:5], [np.full(6, 1e200)]])
    expected = prediction.labels_of(model, prediction.all_decisions(model, far, 1))
    np.testing.assert_array_equal(svm.predict(model, far), expected)
    assert set(types) == {np.dtype(np.float64)}
    types.clear()
    monkeypatch.setattr(float32_labels, "entry_error", lambda *args: 1e3)
    monkeypatch.setattr(float32_labels, "_TRIAL_ROWS", 100)
    expected = prediction.labels_of(model, prediction.all_decisions(model, points, 1))
    np.testing.assert_array_equal(svm.predict(model, points), expected)
    assert types == [np.float32, np.float64]  # a trial, and all in float64


def test_few_points_and_other_kernels_are_left_alone(monkeypatch):
    model, points = model_of("binary")
    z = model.support_vectors
    laplacian = svm.svc(points, np.arange(600) % 2, kernel=kernels.Laplacian(0.1))
    assert not float32_labels.pays(model, points, z)
    monkeypatch.setattr(float32_labels, "_MIN_PRODUCTS", float(len(points) * z.size))
    assert float32_labels.pays(model, points, z)
    assert not float32_labels.pays(model, points[1:], z)
    assert not float32_labels.pays(model, points.astype(np.float32), z)
    assert not float32_labels.pays(laplacian, points, z)
