"""Rules for spam

RIPPER's rules for Spambase, as a person would write them. Each is asked in turn; what none of them covers is not spam.
Bars are the share of the training rows that a rule answers for, the paler part those that it gets wrong.
"""

from kernelrules import datasets, plot, rules

X, y, names, _ = datasets.spambase()
found = rules.induce(X[::2], y[::2], feature_names=names, rng=0)
error = (rules.predict(found, X[1::2]) != y[1::2]).mean()
print(found, f"error on the other half: {error:.3f}", sep="\n")

ax = plot.rules(found)
assert error < 0.11
