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

/* Rows of the linear kernel of the points 0, 1, ..., n-1; state points to n. */
static int line_rows(void *state, const Py_ssize_t *rows, Py_ssize_t n_rows, double *out)
{
    Py_ssize_t n = *(const Py_ssize_t *)state;
    for (Py_ssize_t r = 0; r < n_rows; r++)
        for (Py_ssize_t j = 0; j < n; j++)
            out[r * n + j] = (double)rows[r] * (double)j;
    return KR_OK;
}

static int count_questions(void *context, const kr_smo_report *report)
{
    ++*(int *)context;
    return report->violation >= 0;
}

/* svm_of_line(n, first, C): the soft margin between the points below `first` and the others: (slope, offset). */
static PyObject *svm_of_line(PyObject *self, PyObject *args)
{
    Py_ssize_t n, first;
    double C;
    int status, questions = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "nnd", &n, &first, &C))
        return NULL;
    double *numbers = PyMem_Calloc(n > 0 ? 6 * n : 1, sizeof(double));
    if (numbers == NULL)
        return PyErr_NoMemory();
    double *diagonal = numbers, *linear = numbers + n, *lower = numbers + 2 * n, *upper = numbers + 3 * n;
    for (Py_ssize_t i = 0; i < n; i++) {
        diagonal[i] = (double)i * (double)i;
        linear[i] = i < first ? 1.0 : -1.0;
        lower[i] = i < first ? -C : 0.0;
        upper[i] = i < first ? 0.0 : C;
    }
    kr_row_source source = {&n, line_rows};
    kr_smo_problem problem = {n, n, n, diagonal, linear, lower, upper, 0.0};
    kr_smo_options options = {1e-8, 0, 0, 1, count_questions, &questions};
    kr_smo_state state = {numbers + 4 * n, numbers + 5 * n};
    kr_smo_report report;
    double slope = 0.0;
    Py_BEGIN_ALLOW_THREADS
    status = api.smo_solve(&source, &problem, &options, &state, &report);
    Py_END_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < n; i++)
        slope += state.a[i] * (double)i;
    PyMem_Free(numbers);
    if (status != KR_OK) {
        PyErr_SetString(PyExc_ValueError, api.status_text(status));
        return NULL;
    }
    return Py_BuildValue("ddi", slope, report.offset[0], questions);
}

static PyMethodDef methods[] = {{"gram_of_line", gram_of_line, METH_VARARGS, "RBF Gram matrix of 0, ..., n-1."},
                                {"svm_of_line", svm_of_line, METH_VARARGS, "Soft margin on 0, ..., n-1."},
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
