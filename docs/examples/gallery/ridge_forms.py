"""Ridge regression in four representations

Disease progression of diabetes patients against the body mass index. Features, kernel matrix, dual and function
values are four representations of the same problem. The curves coincide and are drawn with decreasing width.
"""

from sklearn.datasets import load_diabetes

from kernelrules import kernels, plot

data = load_diabetes(scaled=False)
bmi = data.data[:, data.feature_names.index("bmi")]
x = (bmi - bmi.mean()) / bmi.std()

ax = plot.ridge_forms(x, data.target, 1e-3, kernels.Polynomial(degree=3))
ax.set(xlabel="body mass index, standardised", ylabel="disease progression")
values = [line.get_ydata() for line in ax.get_lines()]
assert max(abs(curve - values[0]).max() for curve in values) < 1e-6
