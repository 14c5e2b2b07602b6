"""Rules: extracted from trees, simplified and ordered, or learned from data; sums of rules; and their predictions.

Making rules
    extract.py            extract: a rule for each leaf of a tree
    simplify.py           simplify: conditions dropped, by a validation set or a pessimistic estimate
    decision_list.py      decision_list: the same predictions from an ordered list with fewer conditions
Learning rules
    training_columns.py   the columns of X and their ranks
    induce.py             induce: a rule list learned from data, class after class
    ripper.py             the rules of one class, by RIPPER
    additive.py           additive: a sparse sum of rules
    additive_data.py      its training data
    additive_parallel.py  its paths and those of the folds, in threads
    l1_path.py            the path of one score over λ
    rule_search.py        the rules that enter the path: stumps, or nodes of small trees
Prediction
    prediction.py         predict, predict_proba, coverage
    additive_scores.py    decision: the scores of a sum of rules
    matcher.py            a compiled rule list
    conditions.py         compiled conditions
    linear_sums.py        sums of columns in conditions and predictions
    used_columns.py       the columns of sparse data that rules use
"""

from kernelrules.check import WeightWarning
from kernelrules.results import AdditiveRules, Condition, Coverage, LinearFunction, LinearTerm, Rule, RuleList
from kernelrules.rules.additive import additive
from kernelrules.rules.additive_scores import decision
from kernelrules.rules.decision_list import decision_list
from kernelrules.rules.extract import extract
from kernelrules.rules.induce import induce
from kernelrules.rules.prediction import coverage, predict, predict_proba
from kernelrules.rules.simplify import simplify

__all__ = [
    "AdditiveRules",
    "Condition",
    "Coverage",
    "LinearFunction",
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
