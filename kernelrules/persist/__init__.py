"""Results in files: `save`, `load`, and the one error for what is no such file.

files.py      save and load: paths and file objects, the header, atomic writing
writing.py    a result as a tree of JSON and arrays           reading.py   and back
arrays.py     arrays as bytes                                 container.py members of a zip archive
registry.py   what can be saved                               verify.py, hints.py   what must hold in it
"""

from kernelrules.persist.container import PersistError
from kernelrules.persist.files import load, save

__all__ = ["PersistError", "load", "save"]
