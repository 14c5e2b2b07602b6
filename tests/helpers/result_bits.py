"""Results as bits, for children that import nothing else of the tests."""

import dataclasses
import hashlib
import marshal

import numpy as np
from scipy import sparse


def bits(thing):
    """All of a result as something that compares equal only where every bit is."""
    if isinstance(thing, np.ma.MaskedArray):
        return bits(thing.filled()), thing.mask.tobytes()
    if isinstance(thing, np.ndarray):
        return thing.dtype.str, thing.shape, tuple(map(bits, thing)) if thing.dtype.kind == "O" else thing.tobytes()
    if sparse.issparse(thing):
        return bits(thing.tocoo().toarray())
    if dataclasses.is_dataclass(thing):
        return tuple(bits(getattr(thing, field.name)) for field in dataclasses.fields(thing))
    if isinstance(thing, (tuple, list)):
        return tuple(map(bits, thing))
    return repr(thing)


def mark(thing):
    """A hash of these bits, the same in every process. Version 0 of marshal's format knows no references: what is equal
    is written alike."""
    return hashlib.sha256(marshal.dumps(bits(thing), 0)).hexdigest()
