"""Empirical risk minimisation: kernel machines for convex losses, each with a duality gap.

fit         fit: checks, one machine for two classes or one per class, and the model
newton      Newton's method for smooth losses, and the certificate
systems     its linear systems: by the Gram matrix, or by explicit features
hinge       the hinge loss, by the dual solver of support vector machines
prediction  decision, predict, predict_proba
"""

from kernelrules.erm.fit import fit
from kernelrules.erm.prediction import decision, predict, predict_proba
from kernelrules.results import Certificate, ConvergenceWarning, ErmFit

__all__ = ["Certificate", "ConvergenceWarning", "ErmFit", "decision", "fit", "predict", "predict_proba"]
