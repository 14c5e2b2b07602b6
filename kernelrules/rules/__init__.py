"""Rules: of trees, simplified and ordered, or learned directly; sums of rules; and what they answer.

extract.py         extract: a rule for each leaf of a tree
simplify.py        simplify: conditions dropped, by a validation set or a pessimistic estimate
decision_list.py   decision_list: the same answers from an ordered list with fewer conditions
use.py             predict, predict_proba, coverage
matching.py        a rule list as the core reads it; sparse.py: the columns that it asks for
induce.py          induce: a list learned from data, by RIPPER; ripper.py: the rules of one class
additive.py        additive: a sparse sum of rules; additive_path.py: its L1 path; additive_use.py: its scores;
                   additive_crew.py: paths side by side
"""

from kernelrules.check import WeightWarning
from kernelrules.results import AdditiveRules, Condition, Coverage, LinearTerm, Rule, RuleList
from kernelrules.rules.additive import additive
from kernelrules.rules.additive_use import decision
from kernelrules.rules.decision_list import decision_list
from kernelrules.rules.extract import extract
from kernelrules.rules.induce import induce
from kernelrules.rules.simplify import simplify
from kernelrules.rules.use import coverage, predict, predict_proba

__all__ = [
    "AdditiveRules",
    "Condition",
    "Coverage",
    "LinearTerm",
    "Rule",
    "RuleList",
    "WeightWarning",
    "additive",
    "coverage",
    "decision",
    "decision_list",
    "extract",
    "induce",
    "predict",
    "predict_proba",
    "simplify",
]
