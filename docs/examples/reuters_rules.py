"""Classify Reuters-21578 stories about earnings: rules learned from words, a decision tree and a linear SVM.

The data are not part of the package. They are read from the folder `shared` beside the checkout, or from
$KERNELRULES_SHARED. If it is absent, nothing is run.
"""

import os
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

from kernelrules import kernels, rules, svm, tree

FILE = "reuters21578_modapte_bow.npz"
N_COMMON = 50  # least number of stories with a word for the tree, which uses dense columns


def load(path):
    """Return word counts and labels of the training and of the test stories, and the words."""
    with np.load(path) as stored:
        words = [word.decode() for word in stored["vocabulary"]]
        earn = [topic.decode() for topic in stored["topics"]].index("earn")
        parts = []
        for end in ("", "_test"):
            y = np.where(stored[f"labels{end}"][:, earn] == 1, "earn", "other")
            counts = stored[f"counts{end}"].astype(np.float32)
            indices, indptr = stored[f"indices{end}"].astype(np.int32), stored[f"indptr{end}"]
            parts.append((sparse.csr_array((counts, indices, indptr), shape=(len(y), len(words))), y))
    return *parts, words


def unit_rows(X):
    """Return 1 + log counts in rows of unit length, the usual scaling of text for linear SVMs."""
    X = X.copy()
    X.data = 1 + np.log(X.data)
    lengths = np.sqrt(X.multiply(X).sum(axis=1))
    return sparse.csr_array(sparse.diags_array((1 / np.maximum(lengths, 1e-9)).astype(np.float32)) @ X)


def precision_and_recall(said, y):
    """Return precision and recall of the class "earn"."""
    hit = ((said == "earn") & (y == "earn")).sum()
    return hit / (said == "earn").sum(), hit / (y == "earn").sum()


def main(path):
    """Fit and test the three models, and print the results."""
    (X, y), (Z, z), words = load(path)
    learned = rules.induce(X > 0, y, rng=0, feature_names=words)  # presence of each word
    common = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) >= N_COMMON)
    grown = tree.grow(X[:, common], y, min_leaf=5)
    machine = svm.svc(unit_rows(X), y, kernel=kernels.Linear())
    said = {
        f"{len(learned)} rules, {learned.n_conditions} conditions": rules.predict(learned, Z > 0),
        f"tree, {grown.n_leaves} leaves": tree.predict(grown, Z[:, common]),
        f"linear SVM, {len(machine.support)} support vectors": svm.predict(machine, unit_rows(Z)),
    }
    print(learned)
    print()
    for name, answers in said.items():
        precision, recall = precision_and_recall(answers, z)
        print(f"{name:40} precision {precision:.3f}  recall {recall:.3f}")
        assert precision > 0.9
        assert recall > 0.95
    used = {words[condition.feature] for rule in learned for condition in rule.conditions}
    assert {"vs", "cts", "dividend"} <= used


if __name__ == "__main__":
    places = (os.environ.get("KERNELRULES_SHARED"), Path(__file__).resolve().parents[3] / "shared")
    found = [Path(place, "data", FILE) for place in places if place and Path(place, "data", FILE).is_file()]
    if not found:
        print(f"no {FILE} beside the checkout: nothing to show", file=sys.stderr)
    else:
        main(found[0])
