"""Results of fits: frozen dataclasses of arrays. Everything after a fit is a function of one of these.

One file per family: additive.py, certificate.py, bounds.py, erm.py, graph.py, linear.py, prune.py, ridge.py, rules.py,
svm.py, table_model.py, tree.py. show.py has their display: a short `repr`, a table in notebooks; rule_text.py and
tree_text.py rules and nodes as text, tree_html.py a tree for notebooks. splits.py has the conditions of a tree's
splits, verify.py the checks of a tree or rule list from a file. frozen.py makes arrays read-only.
"""

from kernelrules.results.additive import AdditiveRules, LinearTerm
from kernelrules.results.bounds import Bound, Estimate
from kernelrules.results.certificate import Certificate, ConvergenceWarning
from kernelrules.results.erm import ErmFit
from kernelrules.results.graph import GraphFit
from kernelrules.results.linear import LinearFunction
from kernelrules.results.prune import PruneCV, PrunePath
from kernelrules.results.ridge import FeatureRidge, Posterior, RidgeFit, RidgePath
from kernelrules.results.rules import Condition, Coverage, Rule, RuleList
from kernelrules.results.svm import CalibratedSVM, Slacks, SVMModel, TuneResult
from kernelrules.results.table_model import TableModel
from kernelrules.results.tree import Surrogates, Tree

__all__ = [
    "AdditiveRules",
    "Bound",
    "CalibratedSVM",
    "Certificate",
    "Condition",
    "ConvergenceWarning",
    "Coverage",
    "ErmFit",
    "Estimate",
    "FeatureRidge",
    "GraphFit",
    "LinearFunction",
    "LinearTerm",
    "Posterior",
    "PruneCV",
    "PrunePath",
    "RidgeFit",
    "RidgePath",
    "Rule",
    "RuleList",
    "SVMModel",
    "Slacks",
    "Surrogates",
    "TableModel",
    "Tree",
    "TuneResult",
]
