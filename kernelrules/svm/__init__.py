"""Support vector machines: one dual solver, many reductions to it.

fit.py         svc, svr, one_class
use.py         decision, predict, margin, slacks
select.py      path, budget, tune
calibrate.py   calibrate, predict_proba
dual.py        the five kinds as one problem; certificates      hard.py   C = infinity
values.py      kernel values for the solver                     settings.py   options and warnings
"""

from kernelrules.results import CalibratedSVM, Certificate, Slacks, SVMModel, TuneResult
from kernelrules.svm.calibrate import calibrate, predict_proba
from kernelrules.svm.fit import one_class, svc, svr
from kernelrules.svm.select import budget, path, tune
from kernelrules.svm.settings import ConvergenceWarning, NotSeparable
from kernelrules.svm.use import decision, margin, predict, slacks

__all__ = [
    "CalibratedSVM",
    "Certificate",
    "ConvergenceWarning",
    "NotSeparable",
    "SVMModel",
    "Slacks",
    "TuneResult",
    "budget",
    "calibrate",
    "decision",
    "margin",
    "one_class",
    "path",
    "predict",
    "predict_proba",
    "slacks",
    "svc",
    "svr",
    "tune",
]
