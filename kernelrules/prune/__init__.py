"""Pruning: smaller trees of a grown one. Every function keeps the tree it is given and returns another.

cost_complexity.py   cost_complexity_path, cost_complexity     cross_validation.py  cross_validate
fixed_size.py        to_size, snip                             pessimistic.py       pessimistic
reduced_error.py     reduced_error                             raising.py           its subtree raising
mdl.py               mdl                                       chi2.py              chi2
_common.py           what nodes lose, and how a tree is cut    measures.py          what held-out rows lose
own_loss.py          losses that are functions of the user's
"""

from kernelrules.check import WeightWarning
from kernelrules.prune.chi2 import chi2
from kernelrules.prune.cost_complexity import cost_complexity, cost_complexity_path
from kernelrules.prune.cross_validation import cross_validate
from kernelrules.prune.fixed_size import snip, to_size
from kernelrules.prune.mdl import mdl
from kernelrules.prune.pessimistic import pessimistic
from kernelrules.prune.reduced_error import reduced_error
from kernelrules.results import PruneCV, PrunePath

__all__ = [
    "PruneCV",
    "PrunePath",
    "WeightWarning",
    "chi2",
    "cost_complexity",
    "cost_complexity_path",
    "cross_validate",
    "mdl",
    "pessimistic",
    "reduced_error",
    "snip",
    "to_size",
]
