"""Decision trees.

training.py    grow: arguments, data, result              numpy_builder.py   node-by-node builder, for rarer options
prediction.py  predict, predict_proba, apply,             column_scan.py     its splits of columns
               decision_path, importance                  impurities.py      its losses, by the table of criteria
problem.py     data and settings of a tree                directions.py      its oblique splits
imputation.py  replacement of missing values              medians.py         its medians of many stretches of rows
leaves.py      medians and linear models of leaves        paths.py           paths to leaves as conditions
"""

from kernelrules.results import Surrogates, Tree
from kernelrules.tree.prediction import apply, decision_path, importance, predict, predict_proba
from kernelrules.tree.training import grow

__all__ = ["Surrogates", "Tree", "apply", "decision_path", "grow", "importance", "predict", "predict_proba"]
