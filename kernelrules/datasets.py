"""Bundled data sets: Spambase, and a table of eight rows."""

from __future__ import annotations

import gzip
from importlib import resources
from typing import NamedTuple

import numpy as np

__all__ = ["Dataset", "lecture_table", "spambase"]


class Dataset(NamedTuple):
    """Data with the names of their columns."""

    X: np.ndarray
    y: np.ndarray
    feature_names: tuple[str, ...]
    description: str


def spambase() -> Dataset:
    """Return the Spambase data: 4601 e-mails with 57 features, spam or not.

    Hopkins, Reeber, Forman, Suermondt: Spambase, UCI Machine Learning Repository, CC BY 4.0. 48 columns are the
    percentage of words that are the given one, 6 the percentage of characters that are the given one, 3 describe runs
    of capital letters.

    Returns
    -------
    Dataset
        X (4601, 57) float64, y (4601,) strings "spam" and "nonspam".

    Examples
    --------
    >>> from kernelrules import datasets
    >>> X, y, names, _ = datasets.spambase()
    >>> X.shape, names[0], int((y == "spam").sum())
    ((4601, 57), 'make', 1813)
    """
    folder = resources.files("kernelrules") / "data"
    packed = (folder / "spambase.csv.gz").read_bytes()
    header, *lines = gzip.decompress(packed).decode("ascii").split()
    names = header.split(",")
    rows = [line.rsplit(",", 1) for line in lines]
    X = np.array([row[0].split(",") for row in rows], dtype=np.float64)
    y = np.array([row[1] for row in rows])
    return Dataset(X, y, tuple(names[:-1]), (folder / "SPAMBASE.md").read_text(encoding="utf-8"))


def lecture_table() -> Dataset:
    """Return a worked example: eight rows with a colour and a number, two classes.

    Returns
    -------
    Dataset
        X (8, 2) of objects: a string and a float in each row; y (8,) of 1 and 2.

    Examples
    --------
    >>> from kernelrules import datasets
    >>> table = datasets.lecture_table()
    >>> table.X[0].tolist(), int(table.y[0])
    (['red', 0.5], 1)
    """
    colours = ["red", "red", "green", "blue", "red", "green", "green", "blue"]
    numbers = [0.5, 0.2, 0.5, 0.1, -0.5, 0.1, 0.4, 0.0]
    X = np.empty((8, 2), dtype=object)
    X[:, 0] = colours
    X[:, 1] = numbers
    y = np.array([1, 2, 2, 1, 2, 1, 2, 2])
    return Dataset(X, y, ("x1", "x2"), "The eight-row table of the lectures on rule learning.")
