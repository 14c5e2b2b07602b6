/* A C extension that calls kernelrules through its header: kr_import() once, then plain function pointers. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "kernelrules/api.h"

static kr_api api;

/* gram_of_line(n, gamma): the RBF Gram matrix of the points 0, 1, ..., n-1 as nested lists. */
static PyObject *gram_of_line(PyObject *self, PyObject *args)
{
    Py_ssize_t n;
    kr_kernel kernel = {KR_RBF, 0, 0.0, 0.0};
    (void)self;
    if (!PyArg_ParseTuple(args, "nd", &n, &kernel.gamma))
        return NULL;
    double *x = PyMem_Calloc(n > 0 ? n : 1, sizeof(double));
    double *out = PyMem_Calloc(n > 0 ? n * n : 1, sizeof(double));
    PyObject *result = NULL;
    if (x == NULL || out == NULL) {
        PyErr_NoMemory();
    } else {
        int status;
        for (Py_ssize_t i = 0; i < n; i++)
            x[i] = (double)i;
        Py_BEGIN_ALLOW_THREADS
        status = api.gram(x, n, 1, NULL, 0, 0, 1, &kernel, out, n, 2);
        Py_END_ALLOW_THREADS
        if (status != KR_OK)
            PyErr_SetString(PyExc_ValueError, api.status_text(status));
        else
            result = PyList_New(n);
        for (Py_ssize_t i = 0; result != NULL && i < n; i++) {
            PyObject *row = PyList_New(n);
            for (Py_ssize_t j = 0; row != NULL && j < n; j++)
                PyList_SET_ITEM(row, j, PyFloat_FromDouble(out[i * n + j]));
            PyList_SET_ITEM(result, i, row);
        }
    }
    PyMem_Free(x);
    PyMem_Free(out);
    return result;
}

static PyMethodDef methods[] = {{"gram_of_line", gram_of_line, METH_VARARGS, "RBF Gram matrix of 0, ..., n-1."},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "outside.c_caller", "kernelrules from C.", -1, methods,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_c_caller(void)
{
    if (kr_import(&api) < 0)
        return NULL;
    if (api.api_version() < KR_API_VERSION) {
        PyErr_SetString(PyExc_ImportError, "the installed kernelrules is older than the one compiled against");
        return NULL;
    }
    return PyModule_Create(&module);
}
