"""The page for contributors, followed literally: a kernel and a criterion are added to a copy of the source, which is
built and used. The diffs are those of the page; nothing else is changed."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import pytest
from places import ROOT

PAGE = ROOT / "docs" / "developers" / "contributing.rst"
COPIED = ["setup.py", "pyproject.toml", "README.md", "LICENSE", "kernelrules", "tests", "docs/guide", "build"]
MOST_STEPS = 3

pytestmark = pytest.mark.skipif(
    not (ROOT / "setup.py").exists() or not PAGE.exists(), reason="the source tree is not beside the tests"
)


@dataclass
class Diff:
    """One diff block of the page: the file of its caption, and its lines."""

    path: str
    lines: list[str]

    def hunks(self):
        """[(lines before, lines after)] of each hunk; hunks are separated by lines that begin with @@."""
        hunks = [[]]
        for line in self.lines:
            if line.startswith("@@"):
                hunks.append([])
            else:
                hunks[-1].append(line)
        return [
            ([line[1:] for line in hunk if line[:1] != "+"], [line[1:] for line in hunk if line[:1] != "-"])
            for hunk in hunks
            if hunk
        ]

    def apply(self, root):
        """Change the file under `root`. Every hunk's context is found in it exactly once."""
        path = root / self.path
        lines = path.read_text(encoding="utf-8").splitlines()
        for before, after in self.hunks():
            found = [i for i in range(len(lines)) if lines[i : i + len(before)] == before]
            assert len(found) == 1, f"{self.path}: found {len(found)} times:\n" + "\n".join(before)
            lines[found[0] : found[0] + len(before)] = after
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def section(title):
    """The text of the page's section with this title."""
    text = PAGE.read_text(encoding="utf-8")
    start = text.index(f"\n{title}\n{'-' * len(title)}\n")
    following = re.search(r"\n[^\n]+\n-{4,}\n", text[start + len(title) + 2 :])
    return text[start : start + len(title) + 2 + following.start()] if following else text[start:]


def diffs(text):
    """The diff blocks of a section, in order."""
    pattern = r"^( *)\.\. code-block:: diff\n\1   :caption: (\S+)\n\n((?:\1   .*\n|\s*\n)+)"
    found = []
    for match in re.finditer(pattern, text, flags=re.M):
        block = textwrap.dedent(match[3].replace("\n\n", "\n" + match[1] + "    \n"))
        found.append(Diff(match[2], [line or " " for line in block.rstrip().splitlines()]))
    return found


SECTIONS = ["How to add a kernel", "How to add a criterion"]


@pytest.mark.parametrize("title", SECTIONS)
def test_at_most_three_steps(title):
    steps = re.findall(r"^(\d+)\. ", section(title), flags=re.M)
    assert steps == [str(n + 1) for n in range(len(steps))]
    assert 1 <= len(steps) <= MOST_STEPS
    assert len(diffs(section(title))) >= len(steps)


@pytest.fixture(scope="session")
def extended(tmp_path_factory):
    """A copy of the source with everything that the page adds, built in place."""
    root = tmp_path_factory.mktemp("extended")
    ignore = shutil.ignore_patterns("__pycache__", ".git", "*.html")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=ignore)
        elif source.exists():
            shutil.copy2(source, root / name)
    for title in SECTIONS:
        for diff in diffs(section(title)):
            diff.apply(root)
    run(root, "setup.py", "-q", "build_ext", "--inplace")
    return root


def run(root, *arguments):
    """Run Python in the copy, and with it; the output is shown if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


KERNEL = """
import numpy as np
from scipy import sparse

import kernelrules
from kernelrules import kernels, ridge, svm

assert kernelrules.__file__.startswith({root!r}), kernelrules.__file__
rng = np.random.default_rng(0)
X, Z = rng.normal(size=(300, 5)), rng.normal(size=(250, 5))
kernel = kernels.Cauchy(gamma=0.7)


def cauchy(X, Z):
    return 1 / (1 + 0.7 * ((X[:, None] - Z) ** 2).sum(axis=-1))


for dtype, rtol in ((np.float64, 1e-13), (np.float32, 1e-5)):
    for scale in (1.0, 30.0):  # by the expansion of the distance, and by differences
        x, z = (scale * X).astype(dtype), (scale * Z).astype(dtype)
        sparse_x, sparse_z = (sparse.csr_array(np.where(a > 0, a, 0)) for a in (x, z))
        for a, b in ((x, z), (sparse_x, sparse_z), (sparse_x, z)):
            plain = [m.toarray() if sparse.issparse(m) else m for m in (a, b)]
            expected = cauchy(*(m.astype(np.float64) for m in plain))
            K = kernels.gram(a, b, kernel)
            assert K.dtype == dtype
            np.testing.assert_allclose(K, expected, rtol=rtol)
            assert (np.diag(kernels.gram(a, kernel=kernel)) == 1).all()
        assert (kernels.diagonal(x, kernel) == 1).all()
        assert kernels.diagonal(x, kernel).dtype == dtype

y = X[:, 0] * X[:, 1] > 0
fitted, given = (svm.svc(X, y, kernel=k, tol=1e-6) for k in (kernel, lambda X, Z: cauchy(X, Z)))
np.testing.assert_allclose(svm.decision(fitted, Z), svm.decision(given, Z), atol=1e-4)

target = np.sin(X[:, 0])
coefficients = np.linalg.solve(cauchy(X, X) + 0.1 * len(X) * np.eye(len(X)), target)
predicted = ridge.predict(ridge.fit(X, target, 0.1, kernel), Z)
np.testing.assert_allclose(predicted, cauchy(Z, X) @ coefficients, rtol=1e-6, atol=1e-8)
assert kernel.is_semidefinite()
"""


def test_the_kernel_of_the_page_works(extended):
    run(extended, "-c", KERNEL.format(root=str(extended)))


def test_the_tests_of_kernels_run_over_it(extended):
    """The third step, the oracle, is enough for the tests of all kernels."""
    arguments = ["-q", "-p", "no:cacheprovider", "-n", "0", "tests/kernels/test_table.py", "tests/gram/test_gram.py"]
    assert "Cauchy" in run(extended, "-m", "pytest", *arguments, "-k", "Cauchy", "-rA")


CRITERION = """
import numpy as np

import kernelrules
from kernelrules import estimators, prune, tree

assert kernelrules.__file__.startswith({root!r}), kernelrules.__file__
rng = np.random.default_rng(0)
X = rng.normal(size=(600, 4)).round(1)
X[:, 3] = rng.integers(0, 6, size=600)
y = np.digitize(X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=600) + (X[:, 3] > 2), [-0.3, 0.3])


def tsallis(shares):
    return (1 - (shares**3).sum(axis=1)) / 2


for weight in (None, rng.random(600) + 0.5):
    for options in ({{}}, {{"categorical": [3]}}, {{"max_leaves": 9}}, {{"splits": "oblique"}}):
        options = {{"max_depth": 6, "sample_weight": weight, **options}}
        grown = tree.grow(X, y, criterion="tsallis", **options)
        given = tree.grow(X, y, criterion=tsallis, **options)
        np.testing.assert_array_equal(grown.feature, given.feature)
        np.testing.assert_array_equal(grown.threshold, given.threshold)
        np.testing.assert_array_equal(grown.subset_left, given.subset_left)
        np.testing.assert_allclose(grown.impurity, given.impurity, atol=1e-12)
        np.testing.assert_allclose(grown.gain, given.gain, atol=1e-12)
        np.testing.assert_array_equal(tree.predict(grown, X), tree.predict(given, X))

grown, given = (tree.grow(X, y, criterion=c, max_depth=6) for c in ("tsallis", tsallis))
with_gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
for missing in ("extra", "surrogate", "fractional"):
    assert tree.grow(with_gaps, y, criterion="tsallis", missing=missing).n_leaves > 50
path, path_given = prune.cost_complexity_path(grown, loss="tsallis"), prune.cost_complexity_path(given, loss="tsallis")
np.testing.assert_allclose(path.alphas, path_given.alphas, rtol=1e-9, atol=1e-12)
pruned = prune.cost_complexity(grown, path.alphas[len(path.alphas) // 2], loss="tsallis")
assert 1 < pruned.n_leaves < grown.n_leaves
assert prune.pessimistic(grown, raising=True, X=X, y=y).criterion == "tsallis"
assert '"tsallis"' in tree.grow.__doc__ and '"tsallis"' in estimators.TreeClassifier.__doc__
np.testing.assert_array_equal(estimators.TreeClassifier(criterion="tsallis").fit(X, y).predict(X[:9]), y[:9])
"""


def test_the_criterion_of_the_page_works(extended):
    """It grows the trees that the same criterion does as a Python function."""
    run(extended, "-c", CRITERION.format(root=str(extended)))


def test_the_tests_of_criteria_run_over_it(extended):
    """The second step, the oracles, is enough for the tests of all criteria; the third keeps the guide complete."""
    arguments = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-n",
        "0",
        "tests/tree/test_tree_grow.py",
        "tests/tree/test_tree_large.py",
    ]
    assert "tsallis" in run(extended, "-m", "pytest", *arguments, "-k", "tsallis", "-rA")
    run(extended, "-m", "pytest", *arguments[:5], "tests/tree/test_criteria.py")
