"""Call kr_gram from ctypes, by the address in the capsule that Cython stores in the module."""

import ctypes

import numpy as np

from kernelrules import cython_api, kernels

KR_RBF = 2  # kr_kernel_kind in api.h


class Kernel(ctypes.Structure):
    """The struct kr_kernel of api.h."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("degree", ctypes.c_int),
        ("gamma", ctypes.c_double),
        ("coef0", ctypes.c_double),
    )


def address_of(name, signature):
    """Return the address of an exported function; raise ValueError if its signature differs."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return get_pointer(cython_api.__pyx_capi__[name], signature)


pointer, size = ctypes.POINTER(ctypes.c_double), ctypes.c_ssize_t
kr_gram = ctypes.CFUNCTYPE(  # CFUNCTYPE releases the GIL during the call
    ctypes.c_int, pointer, size, size, pointer, size, size, size, ctypes.POINTER(Kernel), pointer, size, ctypes.c_int
)(
    address_of(
        "kr_gram",
        b"int (double const *, Py_ssize_t, Py_ssize_t, double const *, Py_ssize_t, Py_ssize_t, Py_ssize_t, "
        b"kr_kernel const *, double *, Py_ssize_t, int)",
    )
)
kr_status_text = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int)(address_of("kr_status_text", b"char const *(int)"))

X = np.random.default_rng(0).normal(size=(100, 5))
K = np.empty((100, 100))
rbf = Kernel(KR_RBF, 0, 0.5, 0.0)
status = kr_gram(X.ctypes.data_as(pointer), 100, 5, None, 0, 0, 5, rbf, K.ctypes.data_as(pointer), 100, 2)
print(kr_status_text(status).decode())

assert status == 0
assert np.array_equal(K, kernels.gram(X, kernel=kernels.RBF(0.5)))
