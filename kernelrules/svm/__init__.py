"""Support vector machines: one dual solver, many reductions to it.

fit.py         svc, svr, one_class                  classified.py   labelled data ordered by class
use.py         decision, predict, margin, slacks    machines.py     from splits of points to models
paths.py       path, budget                         dual.py         the five kinds as one problem; certificates
tuning.py      tune                                 hard.py         C = infinity
calibration.py calibrate, predict_proba             values.py       kernel values for the solver
workers.py     machines solved by an executor       settings.py     options and warnings
narrow.py      labels from float32 kernel values    newton.py       Newton steps between those of the solver
centre.py      linear machines far from the origin  interior.py     interior points, where steps are too many
"""

from kernelrules.results import CalibratedSVM, Certificate, Slacks, SVMModel, TuneResult
from kernelrules.svm.calibration import calibrate, predict_proba
from kernelrules.svm.fit import one_class, svc, svr
from kernelrules.svm.paths import budget, path
from kernelrules.svm.settings import ConvergenceWarning, NotSeparable
from kernelrules.svm.tuning import tune
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
