"""Data of the package that tests of a process share: reading them takes a tenth of a second."""

from functools import cache

from kernelrules import datasets


@cache
def spambase():
    """Not to be written to."""
    found = datasets.spambase()
    found.X.flags.writeable = found.y.flags.writeable = False
    return found
