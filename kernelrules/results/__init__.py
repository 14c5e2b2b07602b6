"""What fits return: frozen dataclasses of arrays. Everything after a fit is a function of one of these.

One file a family: certificate.py, svm.py, tree.py, rules.py (rule_text.py prints them).
"""

from kernelrules.results.certificate import Certificate
from kernelrules.results.rules import Condition, Coverage, Rule, RuleList
from kernelrules.results.svm import CalibratedSVM, Slacks, SVMModel, TuneResult
from kernelrules.results.tree import Surrogates, Tree

__all__ = [
    "CalibratedSVM",
    "Certificate",
    "Condition",
    "Coverage",
    "Rule",
    "RuleList",
    "SVMModel",
    "Slacks",
    "Surrogates",
    "Tree",
    "TuneResult",
]
