"""kernelrules: kernel machines and rule learners over plain arrays.

    arrays -> check -> core (nogil, compiled) -> results -> functions on results

Submodules: `kernels` (kernels, Gram matrices, feature maps), `losses` (losses of the margin), `ridge` (four
representations of one predictor), `svm` (support vector machines), `erm` (regularised risk of smooth losses), `graph`
(learning on graphs), `tree` (decision trees), `prune` (smaller trees of a grown one), `rules` (rules of trees, and
rules learned), `export` (trees and rules as text, code and pictures), `plot` (pictures, with matplotlib), `bounds`
(what can be promised of what was learned), `persist` (results in files: `save`, `load`), `datasets` (two small tables),
`estimators` (scikit-learn's classes over all this), `report` (a table read, learners compared, a page of HTML).
`python -m kernelrules` (`__main__`) runs the command line, which is in `report`.

What they share: `selection` (folds and model selection), `exact_weights` (weights whose sums are exact), `parallel`
(threads and executors), `progress` (callbacks and bars), `shared_data` (data that many tasks need), `cluster` (dask
workers), `docstrings` (parameters that many functions share). `cython_api` is the interface for other compiled code,
with `get_include()` for its header.
"""

from pathlib import Path as _Path

try:
    from kernelrules import (
        bounds,
        datasets,
        erm,
        export,
        graph,
        kernels,
        losses,
        persist,
        plot,
        prune,
        ridge,
        rules,
        svm,
        tree,
    )
except ModuleNotFoundError as _error:
    if _error.name is None or not _error.name.startswith("kernelrules."):
        raise
    raise ImportError(
        f"{_error.name} is not compiled in {_Path(__file__).parent}: run `pip install -e .` in the source folder, "
        "or start Python elsewhere to use the installed package"
    ) from _error

from kernelrules.kernels import RBF, Laplacian, Linear, Polynomial, Precomputed, Sigmoid, gram
from kernelrules.persist import load, save

__all__ = [
    "RBF",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "__version__",
    "bounds",
    "datasets",
    "erm",
    "export",
    "get_include",
    "gram",
    "graph",
    "kernels",
    "load",
    "losses",
    "persist",
    "plot",
    "prune",
    "ridge",
    "rules",
    "save",
    "svm",
    "tree",
]


def __getattr__(name: str) -> str:
    """`__version__`, when somebody asks: looking it up loads modules that would make every import slower."""
    if name == "__version__":
        from importlib.metadata import version

        globals()[name] = version("kernelrules")
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_include() -> str:
    """The folder to give to a C compiler for `#include "kernelrules/api.h"`.

    Returns
    -------
    str
        An absolute path.

    Examples
    --------
    >>> import os, kernelrules
    >>> os.path.exists(os.path.join(kernelrules.get_include(), "kernelrules", "api.h"))
    True
    """
    return str(_Path(__file__).parent / "include")
