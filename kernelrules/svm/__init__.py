"""Support vector machines: one dual solver, many reductions to it.

The way of `svc` through the files, from the call to the innermost loop and back:

    fit                svc, svr, one_class
    training_data      checked rows; labelled rows ordered by class
    machines           one binary machine per split of the classes; which of them share kernel values
    problems           the five kinds of machines as one dual problem
    strategy           which of SMO, Newton steps and interior points works when
      core/svm/        smo, working_set, steps: SMO, compiled; its passes are core/simd/solver.h
    certificate        duality gap and offsets of a solution

What these use:

    kernel_values      kernel rows for the solver, and exact products that confirm its solutions
    newton             Newton steps on the free variables, between steps of SMO
    interior_points    a dual problem with few columns as a quadratic program
    low_rank_qp        that program, by interior points
    column_scaling     columns scaled by powers of two
    centring           linear machines on data far from the origin
    hard_margin        C = infinity: separability, widest margin, proofs (a folder)
    executor_runs      runs of the solver as tasks of an executor
    settings           options, checked; warnings

Functions of several fits, and of models:

    paths              path, budget
    tuning             tune: cross-validation over C and gamma
    prediction         decision, predict, margin, slacks
    float32_labels     labels from float32 kernel values, if these decide
    calibration        calibrate, predict_proba
"""

from kernelrules.results import CalibratedSVM, Certificate, ConvergenceWarning, Slacks, SVMModel, TuneResult
from kernelrules.svm.calibration import calibrate, predict_proba
from kernelrules.svm.fit import one_class, svc, svr
from kernelrules.svm.hard_margin import NotSeparable, Undecided
from kernelrules.svm.paths import budget, path
from kernelrules.svm.prediction import decision, margin, predict, slacks
from kernelrules.svm.tuning import tune

__all__ = [
    "CalibratedSVM",
    "Certificate",
    "ConvergenceWarning",
    "NotSeparable",
    "SVMModel",
    "Slacks",
    "TuneResult",
    "Undecided",
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
