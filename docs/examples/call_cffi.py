"""Call kr_gram from cffi in ABI mode, which needs no compiler."""

import ctypes

import cffi
import numpy as np

from kernelrules import cython_api, kernels

ffi = cffi.FFI()
ffi.cdef("""
    typedef struct { int kind; int degree; double gamma; double coef0; } kr_kernel;
    typedef int (*kr_gram_fn)(const double *x, ssize_t n_x, ssize_t stride_x, const double *z, ssize_t n_z,
                              ssize_t stride_z, ssize_t n_features, const kr_kernel *kernel, double *out,
                              ssize_t stride_out, int n_threads);
""")
KR_POLYNOMIAL = 1  # kr_kernel_kind in api.h


def address_of(name):
    """Return the address of an exported function, without checking its signature."""
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    capsule = cython_api.__pyx_capi__[name]
    return get_pointer(capsule, get_name(capsule))


kr_gram = ffi.cast("kr_gram_fn", address_of("kr_gram"))

X = np.random.default_rng(0).normal(size=(100, 5))
Z = np.random.default_rng(1).normal(size=(30, 5))
K = np.empty((100, 30))
kernel = ffi.new("kr_kernel *", {"kind": KR_POLYNOMIAL, "degree": 2, "gamma": 0.1, "coef0": 1.0})
x, z = ffi.from_buffer("double[]", X), ffi.from_buffer("double[]", Z)
out = ffi.from_buffer("double[]", K, require_writable=True)
status = kr_gram(x, 100, 5, z, 30, 5, 5, kernel, out, 30, 2)
print("status", status)

assert status == 0
assert np.array_equal(K, kernels.gram(X, Z, kernels.Polynomial(degree=2, gamma=0.1)))
