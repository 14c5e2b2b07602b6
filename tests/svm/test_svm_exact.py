"""Exact products for the certificate: one triangle between the points that count, as the rectangle gives them."""

import numpy as np
import pytest
from scipy import sparse

from kernelrules import check, kernels
from kernelrules.core.gram import symmetric
from kernelrules.core.gram.apply import HEIGHT
from kernelrules.svm import kernel_values as module
from kernelrules.svm.kernel_values import KernelValues


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_coefficients_are_left_out_where_nobody_wants_them(dtype, n_threads):
    rng = np.random.default_rng(0)
    n, tile = 700, HEIGHT
    X = rng.normal(size=(n, 4)).astype(dtype)
    strips = np.arange(n) // tile
    wanted = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 0]], dtype=np.uint8)
    coefficients = rng.normal(size=(3, n)) * wanted[strips].T
    out = np.zeros((3, n))
    kernel = kernels.RBF(0.3)
    symmetric.apply_symmetric(X, kernel.core(), coefficients, out, n_threads, None, wanted)
    expected = coefficients @ kernels.gram(X.astype(np.float64), kernel=kernel)
    here = wanted[strips].T == 1
    np.testing.assert_allclose(out[here], expected[here], atol=1e-3 if dtype == np.float32 else 1e-11)
    assert (out[2] == 0).all()


@pytest.mark.parametrize("kernel", [kernels.RBF(0.2), kernels.Laplacian(0.2), kernels.Polynomial(2, 0.5, 1.0)])
@pytest.mark.parametrize("some", [False, True])
def test_a_triangle_gives_what_the_rectangle_gives(monkeypatch, kernel, some):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(330, 3))
    betas = rng.normal(size=(2, 330)) * (rng.random((2, 330)) < 0.8)
    betas[:, ::7] = 0
    points = np.flatnonzero(betas.any(axis=0) | (np.arange(330) % 2 == 0)) if some else None
    values = KernelValues.only_products(X, kernel, 2)
    used = np.flatnonzero(betas.any(axis=0))
    assert values._mostly_used(points, used)
    found = values.exact_product(betas, points)
    monkeypatch.setattr(module, "_MAX_POINTS_PER_USED", 0.0)
    assert not values._mostly_used(points, used)
    expected = values.exact_product(betas, points)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


def test_the_rectangle_is_used_where_it_costs_less():
    X = np.random.default_rng(2).normal(size=(40, 3))
    values = KernelValues.only_products(X, kernels.RBF(1.0), 1)
    all_points = np.arange(40)
    assert not values._mostly_used(None, all_points[:20])
    assert not values._mostly_used(all_points[:30], all_points[5:35])  # some are used that are not among the points
    assert values._mostly_used(all_points[:30], all_points[:25])
    rows = KernelValues.only_products(check.matrix(sparse.csr_array(X)), kernels.RBF(1.0), 1)
    assert not rows._mostly_used(None, all_points)
