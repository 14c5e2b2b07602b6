"""Kernel ridge regression: one minimiser in four representations, with a certificate.

fit.py       fit, certificate                 problem.py    the checked problem, and products with its kernel
use.py       predict, posterior               features.py   the form over explicit features
paths.py     path, at                         forms.py      the forms kernel, dual and rkhs
certify.py   primal, dual and gap at any α    conjugate.py  conjugate gradients if n² does not fit
definite.py  checks of definiteness           factor.py     Cholesky, LDLᵀ, LU and eigenvectors
blocks.py    fit_blocks: rows in blocks       band.py       leave-one-out errors without eigenvectors
"""

from kernelrules.results import Certificate, ConvergenceWarning, FeatureRidge, Posterior, RidgeFit, RidgePath
from kernelrules.ridge.blocks import fit_blocks
from kernelrules.ridge.fit import certificate, fit
from kernelrules.ridge.paths import at, path
from kernelrules.ridge.use import log_marginal_likelihood, posterior, predict

__all__ = [
    "Certificate",
    "ConvergenceWarning",
    "FeatureRidge",
    "Posterior",
    "RidgeFit",
    "RidgePath",
    "at",
    "certificate",
    "fit",
    "fit_blocks",
    "log_marginal_likelihood",
    "path",
    "posterior",
    "predict",
]
