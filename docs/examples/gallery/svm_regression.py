"""Support vector regression and its tube

Disease progression of diabetes patients against the body mass index. Errors within ε cost nothing: only patients
outside the tube, or on its edge, are support vectors. A wider tube needs fewer of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from kernelrules import kernels, svm

data = load_diabetes(scaled=False)
x, y = data.data[:, 2], data.target
scaled = ((x - x.mean()) / x.std())[:, None]
grid = np.linspace(x.min(), x.max(), 300)
curves = {}

figure, panels = plt.subplots(1, 2, figsize=(9.6, 3.8), sharey=True, layout="constrained")
for ax, epsilon in zip(panels, (20.0, 80.0), strict=True):
    model = svm.svr(scaled, y, C=100.0, epsilon=epsilon, kernel=kernels.RBF(0.3))
    curves[epsilon] = curve = svm.predict(model, ((grid - x.mean()) / x.std())[:, None])
    ax.fill_between(grid, curve - epsilon, curve + epsilon, alpha=0.2)
    ax.plot(grid, curve)
    ax.scatter(x, y, s=8, color="#bbbbbb")
    ax.scatter(x[model.support], y[model.support], s=8, color="#333333")
    ax.set(xlabel="body mass index", title=f"ε = {epsilon:.0f}: {len(model.support)} support vectors of {len(y)}")
    print(epsilon, model)
    assert model.certificate.converged
    outside = np.abs(y - svm.predict(model, scaled)) > epsilon * 1.001
    assert np.isin(np.flatnonzero(outside), model.support).all()
panels[0].set_ylabel("disease progression within a year")
