"""What fits return: frozen dataclasses of arrays. Everything after a fit is a function of one of these.

One file a family: certificate.py, ridge.py, svm.py, tree.py.
"""

from kernelrules.results.certificate import Certificate
from kernelrules.results.ridge import Posterior, RidgeFit, RidgePath
from kernelrules.results.svm import CalibratedSVM, Slacks, SVMModel, TuneResult
from kernelrules.results.tree import Surrogates, Tree

__all__ = [
    "CalibratedSVM",
    "Certificate",
    "Posterior",
    "RidgeFit",
    "RidgePath",
    "SVMModel",
    "Slacks",
    "Surrogates",
    "Tree",
    "TuneResult",
]
