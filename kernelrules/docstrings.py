"""Parameters that many functions share, documented once and inserted into docstrings.

A line `{n_threads, callback}` in a docstring becomes the numpydoc entries of these parameters. Indented lines below it
continue the last entry with what is particular to the function.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from kernelrules.core.tree.criteria import CLASS_CRITERIA, NUMBER_CRITERIA

__all__ = ["shared_parameters"]

_SHARED = {
    "n_threads": (
        "n_threads : int, optional",
        "    Number of threads. Default: the cores that the process may use. The result does not depend on it.",
    ),
    "callback": (
        "callback : callable, optional",
        "    Called with a `Progress` several times per second. An exception that it raises ends the computation.",
    ),
    "progress": (
        "progress : bool",
        "    Whether to show a progress bar, which requires tqdm.",
    ),
    "executor": (
        "executor : concurrent.futures.Executor, optional",
        "    Runs independent parts as tasks: the result is the same, bit for bit. A task uses one thread unless",
        "    `n_threads` is given.",
    ),
    "rng": (
        "rng : numpy.random.Generator, int or None",
        "    Random number generator, or the seed of one. None: a new seed for each call.",
    ),
    "unseen": (
        'unseen : "allow", "larger" or "error"',
        '    Categories that were not in the training data: "error" refuses them, "allow" accepts them. "larger" means',
        '    the same as "allow".',
    ),
    "class_criteria": (", ".join(f'"{name}"' for name in CLASS_CRITERIA),),
    "number_criteria": (", ".join(f'"{name}"' for name in NUMBER_CRITERIA),),
}
_LINE = re.compile(r"^([ \t]*)\{(\w+(?:, \w+)*)\}$", flags=re.M)
_Documented = TypeVar("_Documented")


def _entries(line: re.Match[str]) -> str:
    margin, names = line.groups()
    return "\n".join(margin + text for name in names.split(", ") for text in _SHARED[name])


def shared_parameters(documented: _Documented) -> _Documented:
    """Insert the shared parameters into the docstring of a function or class.

    Parameters
    ----------
    documented : function or class
        Its docstring is changed in place. Without docstrings (`python -OO`) nothing happens.

    Returns
    -------
    function or class
        The same object.

    Examples
    --------
    >>> @shared_parameters
    ... def double(x, progress=False):
    ...     '''Twice x.
    ...
    ...     {progress}
    ...     '''
    >>> print(double.__doc__.splitlines()[2].strip())
    progress : bool
    """
    changed: Any = documented
    if changed.__doc__ is not None:
        changed.__doc__ = _LINE.sub(_entries, changed.__doc__)
    return documented
