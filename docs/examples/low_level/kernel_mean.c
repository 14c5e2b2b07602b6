/* A C extension that calls kernelrules without the GIL, and a function for SciPy's LowLevelCallable.
 *
 *     row_sums(buffer, n, p, gamma)   sums of the rows of the RBF kernel matrix of n points, from 64 rows of it at a time
 *     integrand()                     a capsule "double (double, void *)": k(x, t) times the density of N(0, 1) at t;
 *                                     its data is a struct { double x, gamma; }
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>

#include "kernelrules/api.h"

enum { BLOCK = 64 };

static kr_api api;

static PyObject *row_sums(PyObject *self, PyObject *args)
{
    Py_buffer view;
    Py_ssize_t n, p;
    kr_kernel kernel = {KR_RBF, 0, 0.0, 0.0};
    int status = KR_OK;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*nnd", &view, &n, &p, &kernel.gamma))
        return NULL;
    if (n < 0 || p < 1 || n > PY_SSIZE_T_MAX / p / (Py_ssize_t)sizeof(double) / (BLOCK + 1)
        || view.len < n * p * (Py_ssize_t)sizeof(double)) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "the buffer is shorter than n * p numbers");
        return NULL;
    }
    PyObject *result = PyBytes_FromStringAndSize(NULL, n * sizeof(double));
    double *rows = malloc((n > 0 ? n : 1) * BLOCK * sizeof(double));
    if (result == NULL || rows == NULL)
        status = KR_NO_MEMORY;
    else {
        const double *x = view.buf;
        double *sums = (double *)PyBytes_AsString(result);
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t first = 0; first < n && status == KR_OK; first += BLOCK) {
            Py_ssize_t some = n - first < BLOCK ? n - first : BLOCK;
            status = api.gram(x + first * p, some, p, x, n, p, p, &kernel, rows, n, 1);
            for (Py_ssize_t i = 0; i < some && status == KR_OK; i++) {
                double sum = 0;
                for (Py_ssize_t j = 0; j < n; j++)
                    sum += rows[i * n + j];
                sums[first + i] = sum;
            }
        }
        Py_END_ALLOW_THREADS
    }
    free(rows);
    PyBuffer_Release(&view);
    if (status != KR_OK) {
        Py_CLEAR(result);
        PyErr_SetString(status == KR_NO_MEMORY ? PyExc_MemoryError : PyExc_ValueError, api.status_text(status));
    }
    return result;
}

typedef struct { double x, gamma; } mean_data;

static double mean_at(double t, void *data)
{
    const mean_data *given = data;
    const kr_kernel kernel = {KR_RBF, 0, given->gamma, 0.0};
    double value = NAN;
    if (api.gram(&given->x, 1, 1, &t, 1, 1, 1, &kernel, &value, 1, 1) != KR_OK)
        return NAN; /* an integrand has no other way to report failure */
    return value * exp(-t * t / 2) / 2.5066282746310002;
}

static PyObject *integrand(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyCapsule_New((void *)mean_at, "double (double, void *)", NULL);
}

static PyMethodDef methods[] = {
    {"row_sums", row_sums, METH_VARARGS, "Sums of the rows of an RBF kernel matrix, as bytes."},
    {"integrand", integrand, METH_NOARGS, "What scipy.LowLevelCallable takes."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "kernel_mean", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_kernel_mean(void)
{
    return kr_import(&api) == 0 ? PyModule_Create(&module) : NULL;
}
