"""Data for the SVM benchmarks: from seeds, from the package, and from the shared folder beside a checkout.

Every function returns X and y. The synthetic data are as hard as the cases for which the goals were set: scikit-learn
takes about as long for them. Data in the shared folder stay there because of their licences; if the folder is absent,
a function raises FileNotFoundError.
"""

import gzip

import numpy as np
from scipy import sparse

from ._common import require, shared


def standardised(X):
    """Return columns with mean 0 and variance 1; constant columns become 0."""
    spread = X.std(axis=0)
    return np.ascontiguousarray((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def clusters(n, p, n_classes=2, seed=0):
    """Return four Gaussian clouds per class, separated in ten hidden directions; one label in fifty is wrong.

    The clouds overlap: of 20000 rows a third become support vectors, under the RBF and the linear kernel.
    """
    rng = np.random.default_rng(seed)
    n_clouds, n_hidden = 4 * n_classes, 10
    centres = rng.standard_normal((n_clouds, n_hidden))
    cloud = rng.integers(n_clouds, size=n)
    X = rng.standard_normal((n, p))
    X[:, :n_hidden] += centres[cloud]
    rotation = np.linalg.qr(rng.standard_normal((p, p)))[0]
    y = (cloud + (rng.random(n) < 0.02)) % n_classes
    return X @ rotation, y


def text(n, p=20000, seed=0):
    """Return bags of about 100 distinct words as TF-IDF rows of length 1, CSR; both classes follow Zipf's law.

    Three words in ten come from a class's own list of 1000 frequent ones, the others from what both use; one row in
    fifty has the wrong label.
    """
    rng = np.random.default_rng(seed)
    n_own = 1000
    own = np.stack([rng.permutation(p)[:n_own] for _ in range(2)])
    y = rng.integers(2, size=n)
    rows = np.repeat(np.arange(n), rng.poisson(108, size=n))
    words = zipf(rng, p, len(rows))
    topical = np.flatnonzero(rng.random(len(rows)) < 0.3)
    words[topical] = own[y[rows[topical]], zipf(rng, n_own, len(topical))]
    counts = sparse.coo_array((np.ones(len(rows)), (rows, words)), shape=(n, p)).tocsr()
    return tf_idf(counts), y ^ (rng.random(n) < 0.02)


def zipf(rng, n_words, size):
    """Draw word indices; the k-th has a probability proportional to 1 / (k + 10)."""
    shares = np.cumsum(1 / (np.arange(n_words) + 10.0))
    return np.searchsorted(shares, rng.random(size) * shares[-1])


def tf_idf(counts):
    """Return (1 + log count) · (1 + log of the inverse share of rows with the word) in rows of length 1, as CSR."""
    n, p = counts.shape
    n_rows_with = np.bincount(counts.indices, minlength=p)
    inverse = 1 + np.log((1 + n) / (1 + n_rows_with))
    rows = np.repeat(np.arange(n), np.diff(counts.indptr))
    values = (1 + np.log(counts.data)) * inverse[counts.indices]
    values /= np.sqrt(np.bincount(rows, weights=values**2, minlength=n))[rows]
    # scikit-learn's solver requires 32-bit indices
    return sparse.csr_array((values, counts.indices.astype(np.int32), counts.indptr.astype(np.int32)), shape=(n, p))


def response(n, p=10, seed=0):
    """Return regression data: a wave, a product and a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def spam(n=3601):
    """Return n e-mails in random order, standardised, with string labels."""
    X, y, *_ = require("datasets", "spambase").spambase()
    some = np.random.default_rng(0).permutation(len(X))[:n]
    return standardised(X[some]), y[some]


def mnist():
    """Return 5000 digits, 500 of each, in random order; pixels are between 0 and 1."""
    with np.load(shared("mnist5k.npz")) as stored:
        order = np.random.default_rng(0).permutation(len(stored["y"]))
        return stored["X"][order] / 255.0, stored["y"][order].astype(np.int64)


def a9a():
    """Return 32561 people with 123 indicators, CSR; about 14 per row are set."""
    with np.load(shared("a9a.npz")) as stored:
        indices = stored["indices"].astype(np.int32)
        X = sparse.csr_array((np.ones(len(indices)), indices, stored["indptr"]), shape=(len(stored["y"]), 123))
        return X, stored["y"].astype(np.int64)


def ijcnn1(n=20000):
    """Return the first n rows of the training part: 22 columns, a tenth of the rows positive."""
    with np.load(shared("ijcnn1.npz")) as stored:
        return stored["X"][:n] / 1e6, stored["y"][:n].astype(np.int64)


def letter():
    """Return 20000 letters of 26 classes with 16 standardised columns."""
    _, *lines = gzip.decompress(shared("letter.csv.gz").read_bytes()).decode("ascii").split()
    rows = [line.split(",") for line in lines]
    return standardised(np.array([row[1:] for row in rows], dtype=np.float64)), np.array([row[0] for row in rows])


def reuters():
    """Return 9603 news stories, TF-IDF of 7945 words, CSR; the class is whether the topic is "earn"."""
    with np.load(shared("reuters21578_modapte_bow.npz")) as stored:
        shape = (len(stored["labels"]), len(stored["vocabulary"]))
        counts = sparse.csr_array(
            (stored["counts"].astype(np.float64), stored["indices"], stored["indptr"]), shape=shape
        )
        return tf_idf(counts), stored["labels"][:, list(stored["topics"]).index(b"earn")].astype(np.int64)
