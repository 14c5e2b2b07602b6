"""The compiled core: typed, without the GIL, without Python objects; it knows pointers, sizes and status codes.

One folder per subject. A folder imports only from those above it; its own `__init__.py` lists its files:

    base        float types, status codes, threads, signals, memory that is kept, growable arrays, bit sets
    simd        vectorised kernels, one source for every instruction set and both float types
    gram        kernel matrices of dense and of sparse data, and products with them
    linalg      factorisations and passes over matrices that beat LAPACK and SciPy here
    svm         the SMO solver of the soft-margin dual, and the kernel rows that it works on
    graph       exact nearest neighbours
    tree        growing, prediction and pruning of decision trees
    rules       rule induction, matching and simplification
    additive    L1-regularised sums of rules

A module is a `.pyx` file; its `.pxd` file declares what other modules may cimport; a header (`.h`) lies beside the one
module that owns it. `setup.py` finds modules by itself.
"""
