"""Decision trees.

growing.py   grow                                         general.py      the grower for the rarer options
use.py       predict, predict_proba, apply,               column_scan.py  its splits of columns
             decision_path, importance                    impurities.py   its criteria
columns.py   what users pass in, as numbers               directions.py   of oblique splits
leaves.py    medians and linear models of leaves          medians.py      of many stretches of rows
paths.py     the ways to leaves as conditions             problem.py      data and settings of a grower
"""

from kernelrules.results import Surrogates, Tree
from kernelrules.tree.growing import grow
from kernelrules.tree.use import apply, decision_path, importance, predict, predict_proba

__all__ = ["Surrogates", "Tree", "apply", "decision_path", "grow", "importance", "predict", "predict_proba"]
