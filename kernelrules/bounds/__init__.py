"""Bounds of the risk of what was learned, from the sample it was learned from: machines.py, trees.py; arguments.py has
what they share.

    rademacher              (a/n) √tr K                          of the functions with ‖f‖ ≤ a in the space of a kernel
    rademacher_monte_carlo  E (a/n) √(σᵀKσ)                      the same exactly, but for chance
    margin_bound            mean φ + (2a/γn) √tr K + 3 √(ln(2/η)/2n)     φ the ramp of width γ; `of_model` reads a model
    covering                36 (ab/ε)² ln(2⌈4ab/ε + 2⌉n + 1)     logarithm of covering numbers
    tree                    mean 0/1 + √(2 ln N/n) + √(ln(1/η)/2n)       N labelings; `of_tree` reads a tree

All hold for an independent sample, with probability 1 - η over it, for every function of a class that was fixed before
the data were seen. Where it was not (the norm or the leaves that a fit came out with) a union over a grid of classes
pays for the choice: class k of the grid fails with probability at most 6η/(π²k²), and these add up to η.
"""

from kernelrules.bounds.machines import covering, margin_bound, of_model, rademacher, rademacher_monte_carlo
from kernelrules.bounds.trees import of_tree, tree, tree_labelings
from kernelrules.results import Bound, Estimate

__all__ = [
    "Bound",
    "Estimate",
    "covering",
    "margin_bound",
    "of_model",
    "of_tree",
    "rademacher",
    "rademacher_monte_carlo",
    "tree",
    "tree_labelings",
]
