"""Rules for spam

RIPPER's rules for Spambase. The rules are tried in order; rows that none of them covers are not spam. Bars show the
share of the training rows that a rule decides; the paler part is the share that it misclassifies.
"""

from kernelrules import datasets, plot, rules

X, y, names, _ = datasets.spambase()
found = rules.induce(X[::2], y[::2], feature_names=names, rng=0)
error = (rules.predict(found, X[1::2]) != y[1::2]).mean()
print(found, f"error on the other half: {error:.3f}", sep="\n")

ax = plot.rules(found)
assert error < 0.11
