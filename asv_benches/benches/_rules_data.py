"""Data for the benchmarks of rule learners: six tables of the shared folder as data frames, and their folds.

A column is numerical, or a pandas category with the levels of the data's own description; missing values are NaN. If
the shared folder is absent, a function raises FileNotFoundError.
"""

import json
from dataclasses import dataclass

import numpy as np

from ._common import shared

FILES = {
    "vote": "weka_vote.csv.gz",
    "breast-cancer": "weka_breast_cancer.csv.gz",
    "credit-g": "weka_credit_g.csv.gz",
    "spam": "spambase.csv.gz",
    "mushroom": "mushroom.csv.gz",
    "adult": "adult.csv.gz",
}
N_ADULT = 3000  # rows of adult for ten folds; all rows take too long for some learners


@dataclass(frozen=True)
class Data:
    """A table with a data frame X and an array of strings y."""

    name: str
    X: object
    y: np.ndarray

    def rows(self, chosen):
        """Return the table of some of the rows."""
        return Data(self.name, self.X.iloc[chosen].reset_index(drop=True), self.y[chosen])


def load(name, n=None):
    """Load a table, or n random rows of it; adult has the 32561 rows of the usual training set."""
    import pandas

    path = shared(FILES[name])
    told = json.loads(shared("schema.json").read_text(encoding="utf-8"))[FILES[name]]
    kinds = {column["name"]: column for column in told["columns"]}
    frame = pandas.read_csv(path, dtype={c: str for c, k in kinds.items() if k["kind"] == "categorical"})
    if name == "adult":
        frame = frame[frame.pop("test") == 0].reset_index(drop=True)
    y = frame.pop(told["target"]).to_numpy(dtype=str)
    for column in frame.columns:
        if kinds[column]["kind"] == "categorical":
            frame[column] = frame[column].astype(pandas.CategoricalDtype(kinds[column]["levels"]))
        else:
            frame[column] = frame[column].astype(np.float64)
    data = Data(name, frame, y)
    return data if n is None else data.rows(np.random.default_rng(0).permutation(len(y))[:n])


def folds(y, k=10, seed=0):
    """Yield k pairs of training and test rows, stratified by class at random."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % k
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(k)]
