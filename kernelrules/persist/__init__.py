"""Saving results to files and loading them: `save`, `load` and `PersistError`.

A result becomes a JSON tree and arrays (writing.py, arrays.py); these become members of a ZIP archive (container.py),
which is written to a path or a file object (files.py). Loading goes the other way (files.py, container.py, reading.py)
and checks everything that compiled code relies on. registry.py lists the classes that can be saved; hints.py checks the
types of fields, verify.py what must hold between fields.
"""

from kernelrules.persist.container import PersistError
from kernelrules.persist.files import load, save

__all__ = ["PersistError", "load", "save"]
