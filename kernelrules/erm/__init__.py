"""Empirical risk minimisation: kernel machines for the smooth losses, each with a duality gap.

fit.py    fit                                newton.py    Newton's method and the certificate
use.py    decision, predict, predict_proba   systems.py   its linear systems: Gram matrix, or features
"""

from kernelrules.erm.fit import ConvergenceWarning, fit
from kernelrules.erm.use import decision, predict, predict_proba
from kernelrules.results import Certificate, ErmFit

__all__ = ["Certificate", "ConvergenceWarning", "ErmFit", "decision", "fit", "predict", "predict_proba"]
