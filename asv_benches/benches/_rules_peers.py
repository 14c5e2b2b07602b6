"""Rule learners: each learns from some rows, predicts others, and reports its size and time.

    learner(train, test) -> Outcome, or None if its library is not installed

All learners get the same rows. Weka's JRip reads them as ARFF in a separate process and reports its own learning
time, without the start of Java and reading. wittgenstein is for two classes (it learns the rarer) and gets a data
frame. imodels requires numbers: categories are one 0/1 column per level; missing categories have none.
"""

import functools
import math
import re
import shutil
import subprocess
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ._common import require
from ._peers import OURS

WEKA = Path("/usr/share/java/weka.jar")
JAVA = ("java", "-Xmx2g", "-cp", str(WEKA))
JRIP, J48, WITTGENSTEIN, FIGS, BOOSTED = "JRip", "J48", "wittgenstein", "imodels FIGS", "imodels BoostedRules"
ADDITIVE, RULEFIT = "our additive rules", "imodels RuleFit"
TREE, PRUNED, SIMPLIFIED = "our tree", "our pruned tree", "our simplified rules"


@dataclass(frozen=True)
class Outcome:
    """Accuracy on the test rows, numbers of rules and conditions, and seconds of learning."""

    accuracy: float
    n_rules: int
    n_conditions: int
    seconds: float


def timed(call):
    """Return the result of a call, and its seconds."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


# ---- kernelrules --------------------------------------------------------------------------------------------------


def ours(train, test, **options):
    """Run rules.induce; bounds of one column count separately, as in the others."""
    rules = require("rules", "induce")
    found, seconds = timed(lambda: rules.induce(train.X, train.y, rng=0, **options))
    hit = rules.predict(found, test.X) == test.y
    return Outcome(float(hit.mean()), len(found), n_tests(found), seconds)


def n_tests(found):
    """Return the number of conditions of a list; 2 < x <= 4 counts as two."""
    return sum(
        1 if condition.categories is not None else math.isfinite(condition.low) + math.isfinite(condition.high)
        for rule in found
        for condition in rule.conditions
    )


def our_tree(train, test):
    """Run tree.grow without limits; rules are its leaves."""
    grow = require("tree", "grow").grow
    return of_tree(test, *timed(lambda: grow(train.X, train.y)))


def our_pruned_tree(train, test):
    """Run prune.cross_validate with ten folds and the one-standard-error rule; None in a version without it."""
    try:
        prune = require("prune", "cross_validate")
    except NotImplementedError:
        return None
    return of_tree(test, *timed(lambda: prune.cross_validate(train.X, train.y, rng=0).tree))


def of_tree(test, grown, seconds):
    """Return the outcome of a tree; conditions are the splits on the paths to its leaves."""
    hit = require("tree", "predict").predict(grown, test.X) == test.y
    depth = np.zeros(grown.n_nodes, dtype=int)
    for node in np.flatnonzero(grown.left >= 0):  # parents precede their children
        depth[[grown.left[node], grown.right[node]]] = depth[node] + 1
    return Outcome(float(hit.mean()), grown.n_leaves, int(depth[grown.left < 0].sum()), seconds)


def our_simplified_rules(train, test):
    """Simplify the rules of a tree by a pessimistic estimate."""
    rules, grow = require("rules", "extract", "simplify"), require("tree", "grow").grow

    def learn():
        return rules.simplify(rules.extract(grow(train.X, train.y)), train.X, train.y, method="pessimistic")

    found, seconds = timed(learn)
    hit = rules.predict(found, test.X) == test.y
    return Outcome(float(hit.mean()), len(found), n_tests(found), seconds)


def our_additive_rules(train, test, **options):
    """Run rules.additive with its defaults: five folds, the one-standard-error rule."""
    rules = require("rules", "additive")
    found, seconds = timed(lambda: rules.additive(train.X, train.y, rng=0, **options))
    hit = rules.predict(found, test.X) == test.y
    used = found.weights[:, : len(found.rules)].any(axis=0)
    kept = [rule for rule, here in zip(found.rules, used, strict=True) if here]
    return Outcome(float(hit.mean()), len(found), n_tests(kept), seconds)


# ---- Weka -------------------------------------------------------------------------------------------------------


@functools.cache
def has_weka():
    """Return whether Java and Weka are installed."""
    return WEKA.exists() and shutil.which("java") is not None


def quoted(text):
    """Return a value in ARFF syntax."""
    return "'" + str(text).replace("\\", "\\\\").replace("'", "\\'") + "'"


def write_arff(data, path, classes):
    """Return the rows as ARFF, with the class last."""
    lines = ["@relation data"]
    cells = []
    for column in data.X.columns:
        series = data.X[column]
        if str(series.dtype) == "category":
            kind = "{" + ",".join(quoted(level) for level in series.cat.categories) + "}"
            names = [quoted(level) for level in series.cat.categories]
            cells.append([names[code] if code >= 0 else "?" for code in series.cat.codes])
        else:
            kind = "numeric"
            cells.append(["?" if value != value else repr(value) for value in series.tolist()])
        lines.append(f"@attribute {quoted(column)} {kind}")
    lines.append("@attribute 'class to learn' {" + ",".join(map(quoted, classes)) + "}")
    cells.append([quoted(label) for label in data.y])
    lines.append("@data")
    lines += [",".join(row) for row in zip(*cells, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def jrip(train, test, seed=1):
    """Run Weka's JRip with its defaults."""
    return read_jrip(weka(train, test, "weka.classifiers.rules.JRip", "-S", str(seed))) if has_weka() else None


def j48(train, test):
    """Run Weka's J48, a C4.5 tree, pruned by its defaults."""
    return read_j48(weka(train, test, "weka.classifiers.trees.J48")) if has_weka() else None


def weka(train, test, *classifier):
    """Return the output of a Weka classifier."""
    with tempfile.TemporaryDirectory() as folder:
        classes = sorted(set(train.y) | set(test.y))
        files = [Path(folder, name) for name in ("train.arff", "test.arff")]
        for data, file in zip((train, test), files, strict=True):
            write_arff(data, file, classes)
        done = subprocess.run(
            [*JAVA, *classifier, "-t", str(files[0]), "-T", str(files[1])],
            capture_output=True,
            text=True,
            check=True,
        )
    return done.stdout


def read_jrip(text):
    """Parse the output of JRip."""
    rules = [line for line in text.splitlines() if "=> class to learn=" in line]
    asked = [line.split("=> class to learn=")[0].strip() for line in rules]
    conditions = sum(text.count(") and (") + 1 for text in asked if text)
    accuracy, seconds = accuracy_and_seconds(text)
    return Outcome(accuracy, len(rules) - 1, conditions, seconds)


def read_j48(text):
    """Parse the output of J48: leaves, and the tests on the paths to them."""
    leaves = re.findall(r"^((?:\|   )*)\S.*: \S+ \([\d./]+\)$", text.split("Number of Leaves")[0], flags=re.M)
    accuracy, seconds = accuracy_and_seconds(text)
    return Outcome(accuracy, max(len(leaves), 1), sum(len(bars) // 4 + 1 for bars in leaves), seconds)


def accuracy_and_seconds(text):
    """Return the accuracy on the test rows and the learning time from Weka's output."""
    seconds = re.search(r"Time taken to build model: ([\d.]+)", text)
    tested = re.search(r"=== Error on test data ===.*?Correctly Classified Instances\s+\S+\s+([\d.]+)\s*%", text, re.S)
    return float(tested[1]) / 100, float(seconds[1])


# ---- wittgenstein -----------------------------------------------------------------------------------------------


def wittgenstein(train, test):
    """Run wittgenstein's RIPPER for the rarer class."""
    try:
        import wittgenstein as peer
    except ModuleNotFoundError:
        return None
    labels, counts = np.unique(train.y, return_counts=True)
    rare = labels[counts.argmin()]
    frame, others = as_objects(train.X), as_objects(test.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = peer.RIPPER(random_state=0)
        _, seconds = timed(lambda: learner.fit(frame, y=list(train.y == rare), pos_class=True))
        said = np.asarray(learner.predict(others), dtype=bool)
    hit = said == (test.y == rare)
    return Outcome(float(hit.mean()), len(learner.ruleset_.rules), learner.ruleset_.count_conds(), seconds)


def as_objects(X):
    """Return missing categories as a separate level, as wittgenstein requires."""
    frame = X.copy()
    for column in frame.columns:
        if str(frame[column].dtype) == "category":
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "missing").astype(str)
    return frame


# ---- imodels ----------------------------------------------------------------------------------------------------


def as_numbers(train, test):
    """Return both as numbers: one 0/1 column per level; missing numbers are replaced by the mean."""
    import pandas

    mean = {c: train.X[c].mean() for c in train.X.columns if str(train.X[c].dtype) != "category"}
    return [pandas.get_dummies(data.X.fillna(mean), dtype=float).to_numpy() for data in (train, test)]


def imodels(name, train, test, **options):
    """Run a learner of imodels for two classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import imodels as peer
        except ModuleNotFoundError:  # imodels itself or a dependency
            return None
        labels = np.unique(train.y)
        X, Z = as_numbers(train, test)
        learner = getattr(peer, name)(**options)
        _, seconds = timed(lambda: learner.fit(X, (train.y == labels[1]).astype(int)))
        hit = np.asarray(learner.predict(Z)).astype(bool) == (test.y == labels[1])
    return Outcome(float(hit.mean()), *size_of(learner), seconds)


def size_of(learner):
    """Return the numbers of rules and conditions: leaves of trees and the tests on their paths, or stumps."""
    trees = getattr(learner, "trees_", None)
    if trees is not None:
        depths = [depth for tree in trees for depth in leaf_depths(tree)]
        return len(depths), sum(depths)
    if hasattr(learner, "_get_rules"):  # RuleFit
        kept = learner._get_rules()
        kept = kept[kept.coef != 0]
        return len(kept), int(sum(text.count(" and ") + 1 for text in kept.rule))
    n = len(learner.estimators_)
    return n, n


def leaf_depths(node, depth=0):
    """Return the numbers for a tree of FIGS."""
    if node.left is None:
        return [depth]
    return leaf_depths(node.left, depth + 1) + leaf_depths(node.right, depth + 1)


LEARNERS = {
    OURS: ours,
    TREE: our_tree,
    PRUNED: our_pruned_tree,
    SIMPLIFIED: our_simplified_rules,
    JRIP: jrip,
    J48: j48,
    WITTGENSTEIN: wittgenstein,
    FIGS: functools.partial(imodels, "FIGSClassifier"),
    BOOSTED: functools.partial(imodels, "BoostedRulesClassifier"),
}
