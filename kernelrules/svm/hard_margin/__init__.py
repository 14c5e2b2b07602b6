"""The hard margin, C = infinity: the widest margin between classes that a hyperplane separates, or a proof.

solve           `hard_margin`: by which method; from kernel values the nearest points of the classes' convex hulls
separability    for linear machines: does a hyperplane separate the rows? with a proof of either answer
widest_margin   the widest margin between separable rows
inequality_qp   interior points for the programs of these two
double_double   sums of products in twice the precision of float64, for the proofs
errors          NotSeparable and Undecided, and their translation to the user's rows
"""

from kernelrules.svm.hard_margin.errors import NotSeparable, Undecided, numbered
from kernelrules.svm.hard_margin.solve import hard_margin

__all__ = ["NotSeparable", "Undecided", "hard_margin", "numbered"]
