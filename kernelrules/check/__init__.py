"""Checks of what users pass in: the one place that coerces, and that refuses.

Arrays, data frames and sparse matrices become one of two plain forms that the compiled core reads: an ndarray of
float32 or float64 whose rows have no gaps, or a `Csr`. Everything that a user can get wrong about the form of input is
refused here, with the argument's name, what was wrong and where. Other modules refuse only what depends on their own
mathematics.

scalars.py   single values                 by_row.py   labels, targets, weights
matrices.py  matrices of numbers           frames.py   tables with categories and missing values, for trees and rules
memory.py    arrays that would not fit
"""

from kernelrules.check.by_row import (
    class_factors,
    class_weights,
    counted_weights,
    known_codes,
    labels,
    require_classes,
    targets,
    weights,
)
from kernelrules.check.matrices import (
    Csr,
    dense,
    fewer_columns,
    float_type,
    in_order,
    matrix,
    output,
    pair,
    sparse_rows,
    sums_fit,
)
from kernelrules.check.memory import fits_memory, free_memory
from kernelrules.check.scalars import (
    DtypeError,
    WeightWarning,
    class_names,
    column_names,
    flag,
    generator,
    level_of_caller,
    names,
    not_negative,
    one_of,
    positive,
    real,
    shown,
    whole,
)

__all__ = [
    "Csr",
    "DtypeError",
    "WeightWarning",
    "class_factors",
    "class_names",
    "class_weights",
    "column_names",
    "counted_weights",
    "dense",
    "fewer_columns",
    "fits_memory",
    "flag",
    "float_type",
    "free_memory",
    "generator",
    "in_order",
    "known_codes",
    "labels",
    "level_of_caller",
    "matrix",
    "names",
    "not_negative",
    "one_of",
    "output",
    "pair",
    "positive",
    "real",
    "require_classes",
    "shown",
    "sparse_rows",
    "sums_fit",
    "targets",
    "weights",
    "whole",
]
