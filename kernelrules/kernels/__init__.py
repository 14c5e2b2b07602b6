"""Kernels, their Gram matrices and their feature maps.

specs.py    the kernels as frozen values
matrix.py   gram, diagonal
maps.py     feature_map, nystroem, random_fourier
values.py   the same on checked data and for callables, and products without the matrix
"""

from kernelrules.kernels.maps import (
    FeatureMap,
    FourierMap,
    IdentityMap,
    MonomialMap,
    NystroemMap,
    feature_map,
    nystroem,
    random_fourier,
)
from kernelrules.kernels.matrix import diagonal, gram
from kernelrules.kernels.specs import *  # noqa: F403
from kernelrules.kernels.specs import __all__ as _KERNELS

__all__ = [
    *_KERNELS,
    "FeatureMap",
    "FourierMap",
    "IdentityMap",
    "MonomialMap",
    "NystroemMap",
    "diagonal",
    "feature_map",
    "gram",
    "nystroem",
    "random_fourier",
]
