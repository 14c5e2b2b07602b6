"""The bundled data: what was promised, and what other people's programs were given."""

import gzip
import json
from importlib import resources

import numpy as np

from kernelrules import datasets


def test_spambase():
    X, y, names, description = datasets.spambase()
    assert X.shape == (4601, 57)
    assert X.dtype == np.float64
    assert np.isfinite(X).all()
    assert len(names) == 57
    assert names[-1] == "capitalTotal"
    assert sorted(set(y)) == ["nonspam", "spam"]
    assert int((y == "spam").sum()) == 1813
    assert "CC BY 4.0" in description
    assert "Hopkins" in description
    assert X[0, -1] == 278
    np.testing.assert_allclose(X.sum(axis=0)[-3:], [23891.938, 239960.0, 1303387.0], rtol=1e-3)


def test_spambase_is_small():
    folder = resources.files("kernelrules") / "data"
    assert len((folder / "spambase.csv.gz").read_bytes()) < 200_000


def test_spambase_is_the_given_file(shared):
    packed = (resources.files("kernelrules") / "data" / "spambase.csv.gz").read_bytes()
    assert gzip.decompress(packed) == gzip.decompress((shared / "data" / "spambase.csv.gz").read_bytes())


def test_each_call_gives_arrays_of_its_own():
    first = datasets.spambase().X
    first[:] = 0
    assert datasets.spambase().X.any()


def test_lecture_table():
    X, y, names, _ = datasets.lecture_table()
    assert X.shape == (8, 2)
    assert names == ("x1", "x2")
    assert X[:, 0].tolist() == ["red", "red", "green", "blue", "red", "green", "green", "blue"]
    assert X[:, 1].tolist() == [0.5, 0.2, 0.5, 0.1, -0.5, 0.1, 0.4, 0.0]
    assert y.tolist() == [1, 2, 2, 1, 2, 1, 2, 2]


def test_lecture_table_is_the_golden_one(shared):
    golden = json.loads((shared / "golden" / "lecture_table.json").read_text())
    X, y, _, _ = datasets.lecture_table()
    assert X[:, 0].tolist() == golden["x1"]
    assert X[:, 1].tolist() == golden["x2"]
    assert y.tolist() == golden["y"]
