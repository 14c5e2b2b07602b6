"""Bounds of the risk of a fit, from the sample it was fitted to.

    machines    kernel machines: functions in a ball of the kernel's space
    trees       classification trees, by their number of labelings
    arguments   checks and the union bound that both use

    rademacher              (a/n) √tr K                          functions with ‖f‖ ≤ a in the space of a kernel
    rademacher_monte_carlo  E (a/n) √(σᵀKσ)                      the same by Monte Carlo
    margin_bound            mean φ + (2aℓ/γn) √tr K + 3 √(ln(2/η)/2n)    φ(u) = L(u/γ), the ramp or another Lipschitz
                                                                         loss; `of_model` reads a model
    covering                36 (ab/ε)² ln(2⌈4ab/ε + 2⌉n + 1)     logarithm of covering numbers
    tree_rademacher         T √(2 ln(4q + 2)/n)                  trees by their depth T, for q tests
    tree                    mean 0/1 + √(2 ln N/n) + √(ln(1/η)/2n)       N labelings; `of_tree` reads a tree

All hold for an independent sample, with probability 1 - η over it, for every function of a class fixed before the data
were seen. If the class depends on the fit (its norm, its leaves), a union bound over a grid of classes accounts for the
choice: class k of the grid fails with probability at most 6η/(π²k²), and these add up to η.

References
----------
- P. L. Bartlett and S. Mendelson (2002). Rademacher and Gaussian complexities: risk bounds and structural results.
  Journal of Machine Learning Research 3, 463-482.
- P. Massart (2000). Some applications of concentration inequalities to statistics. Annales de la Faculté des Sciences
  de Toulouse 9, 245-303. The finite class lemma.
"""

from kernelrules.bounds.machines import covering, margin_bound, of_model, rademacher, rademacher_monte_carlo
from kernelrules.bounds.trees import of_tree, tree, tree_labelings, tree_rademacher
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
    "tree_rademacher",
]
