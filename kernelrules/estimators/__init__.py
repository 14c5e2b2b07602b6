"""Estimators in scikit-learn's manner over the functions of this package: for pipelines, searches and calibration.

An estimator holds parameters; `fit` checks X and y as scikit-learn does, calls one function and keeps its result, as
`model_`, `tree_` or `rules_`, which all other functions of the package take. This is the one module that needs
scikit-learn, and nothing else imports it.

svm.py     KernelSVC, KernelSVR, OneClassKernel    tree.py     TreeClassifier, TreeRegressor
ridge.py   KernelRidge                             pruned.py   PrunedTreeClassifier
graph.py   GraphClassifier                         rules.py    RuleListClassifier
_nearest.py the neighbours of new points, exactly  _common.py what they share
"""

try:
    from sklearn.utils.validation import validate_data as _validate_data  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "kernelrules.estimators needs scikit-learn, 1.6 or newer: pip install 'kernelrules[sklearn]'"
    ) from _error

from kernelrules.estimators.graph import GraphClassifier
from kernelrules.estimators.pruned import PrunedTreeClassifier
from kernelrules.estimators.ridge import KernelRidge
from kernelrules.estimators.rules import RuleListClassifier
from kernelrules.estimators.svm import KernelSVC, KernelSVR, OneClassKernel
from kernelrules.estimators.tree import TreeClassifier, TreeRegressor

__all__ = [
    "GraphClassifier",
    "KernelRidge",
    "KernelSVC",
    "KernelSVR",
    "OneClassKernel",
    "PrunedTreeClassifier",
    "RuleListClassifier",
    "TreeClassifier",
    "TreeRegressor",
]
