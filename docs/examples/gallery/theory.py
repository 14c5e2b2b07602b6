"""Losses and criteria

The losses that kernel machines minimise, as functions of the margin, and the impurities that trees minimise, as
functions of the share of a class.
"""

import matplotlib.pyplot as plt

from kernelrules import plot

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
plot.losses(left)
plot.criteria(right)
assert len(right.get_lines()) == 3
