"""Approximate kernel ridge regression on a dask array that is never in memory as a whole.

Dask creates blocks of rows, a Nyström map transforms them, and their moments are added up. With the executor of a dask
cluster, `Client.get_executor()`, a worker creates and transforms each block, and the block never leaves it.
"""

import dask.array as da
import numpy as np

from kernelrules import kernels, ridge

X = da.random.default_rng(0).normal(size=(40_000, 3), chunks=(5_000, 3))
y = da.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * da.random.default_rng(1).normal(size=40_000, chunks=5_000)

kernel = kernels.RBF(0.3)
landmarks = X[:2_000].compute()
phi = kernels.nystroem(landmarks, kernel, 200, rng=0)
blocks = list(zip(X.to_delayed().ravel(), y.to_delayed().ravel(), strict=True))
found = ridge.fit_blocks(blocks, 1e-6, phi, intercept=True)  # executor=client.get_executor()
print(f"{found.n_rows} rows, relative gap {found.certificate.gap / found.certificate.primal:.1e}")

test = np.random.default_rng(2).normal(size=(1_000, 3))
error = ridge.predict(found, test) - np.sin(2 * test[:, 0]) * test[:, 1]
print(f"root mean square error {np.sqrt((error**2).mean()):.3f}")
assert found.certificate.converged
assert np.sqrt((error**2).mean()) < 0.1
