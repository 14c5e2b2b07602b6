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
from kernelrules.kernels.specs import RBF, Kernel, Laplacian, Linear, Polynomial, Precomputed, Sigmoid

__all__ = [
    "RBF",
    "FeatureMap",
    "FourierMap",
    "IdentityMap",
    "Kernel",
    "Laplacian",
    "Linear",
    "MonomialMap",
    "NystroemMap",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "diagonal",
    "feature_map",
    "gram",
    "nystroem",
    "random_fourier",
]
