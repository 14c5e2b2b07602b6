"""What fits return: frozen dataclasses of arrays. Everything after a fit is a function of one of these.

One file a family: certificate.py, svm.py, tree.py, prune.py.
"""

from kernelrules.results.certificate import Certificate
from kernelrules.results.prune import PruneCV, PrunePath
from kernelrules.results.svm import CalibratedSVM, Slacks, SVMModel, TuneResult
from kernelrules.results.tree import Surrogates, Tree

__all__ = [
    "CalibratedSVM",
    "Certificate",
    "PruneCV",
    "PrunePath",
    "SVMModel",
    "Slacks",
    "Surrogates",
    "Tree",
    "TuneResult",
]
