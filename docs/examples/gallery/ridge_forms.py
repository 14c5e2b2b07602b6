"""One ridge regression, four representations

The progress of diabetes over the body mass index. Features, kernel matrix, dual and function values are four ways to
write the same problem; the curves are drawn in decreasing width, or only the last could be seen.
"""

from sklearn.datasets import load_diabetes

from kernelrules import kernels, plot

data = load_diabetes(scaled=False)
bmi = data.data[:, data.feature_names.index("bmi")]
x = (bmi - bmi.mean()) / bmi.std()

ax = plot.ridge_forms(x, data.target, 1e-3, kernels.Polynomial(degree=3))
ax.set(xlabel="body mass index, standardised", ylabel="progress of the disease")
values = [line.get_ydata() for line in ax.get_lines()]
assert max(abs(curve - values[0]).max() for curve in values) < 1e-6
