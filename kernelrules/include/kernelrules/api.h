/* The public C types of kernelrules: status codes, kernels, and suppliers of kernel rows.
 *
 * This header is the one list: core/status.pxd, cython_api.pxd and the Python enumerations read it. Structs and codes
 * are final once released; later versions add, and raise KR_API_VERSION. It is plain C and can be read without
 * Python.h; include Python.h first to get kr_import() as well.
 */
#ifndef KERNELRULES_API_H
#define KERNELRULES_API_H

#include <stddef.h>

#ifndef Py_PYTHON_H
typedef ptrdiff_t Py_ssize_t;
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define KR_API_VERSION 1

/* What every function returns: < 0 an error, 0 done, > 0 done with a remark. */
typedef enum kr_status {
    KR_OK = 0,
    KR_MAX_ITER = 1,      /* stopped by the limit on iterations; the result stands, its certificate says how good */
    KR_NO_MEMORY = -1,    /* working memory could not be had; nothing was written */
    KR_BAD_ARGUMENT = -2, /* a null pointer, a negative size, a stride shorter than a row, a parameter out of range */
    KR_CALLBACK = -3      /* a function that the caller supplied reported failure */
} kr_status;

typedef enum kr_kernel_kind {
    KR_LINEAR = 0,     /* x.z                        */
    KR_POLYNOMIAL = 1, /* (gamma x.z + coef0)^degree */
    KR_RBF = 2,        /* exp(-gamma |x - z|^2)      */
    KR_LAPLACIAN = 3,  /* exp(-gamma |x - z|_1)      */
    KR_SIGMOID = 4     /* tanh(gamma x.z + coef0)    */
} kr_kernel_kind;

/* A kernel: its kind, and the parameters that the kind uses (the others are ignored). */
typedef struct {
    int kind;     /* a kr_kernel_kind */
    int degree;   /* >= 0 */
    double gamma; /* > 0 and finite */
    double coef0; /* finite */
} kr_kernel;

/* Any supplier of rows of an n by n kernel matrix. fill() writes row rows[r] of the matrix to out[r * n .. r * n + n)
 * for each r < n_rows and returns KR_OK, or a negative status, which ends what asked for it and is handed on. It is
 * called without the GIL, and may be called from several threads at once. */
typedef struct {
    void *state;
    int (*fill)(void *state, const Py_ssize_t *rows, Py_ssize_t n_rows, double *out);
} kr_row_source;

/* The exported functions, as pointers: from Cython `cimport kernelrules.cython_api`, from C kr_import() below, from
 * numba, cffi and ctypes by address. Their contract stands in cython_api.pxd. */
typedef int (*kr_api_version_fn)(void);
typedef const char *(*kr_status_text_fn)(int status);
typedef int (*kr_gram_fn)(const double *x, Py_ssize_t n_x, Py_ssize_t stride_x, const double *z, Py_ssize_t n_z,
                          Py_ssize_t stride_z, Py_ssize_t n_features, const kr_kernel *kernel, double *out,
                          Py_ssize_t stride_out, int n_threads);
typedef int (*kr_gram_f_fn)(const float *x, Py_ssize_t n_x, Py_ssize_t stride_x, const float *z, Py_ssize_t n_z,
                            Py_ssize_t stride_z, Py_ssize_t n_features, const kr_kernel *kernel, float *out,
                            Py_ssize_t stride_out, int n_threads);

#ifdef Py_PYTHON_H

typedef struct {
    kr_api_version_fn api_version;
    kr_status_text_fn status_text;
    kr_gram_fn gram;
    kr_gram_f_fn gram_f;
} kr_api;

/* The address of one function, or NULL with a Python error set if it is absent or has another signature. */
static inline void *kr_import_function(PyObject *table, const char *name, const char *signature)
{
    PyObject *capsule = PyMapping_GetItemString(table, name);
    void *address = NULL;
    if (capsule != NULL) {
        address = PyCapsule_GetPointer(capsule, signature);
        Py_DECREF(capsule);
    }
    return address;
}

/* Fills *api from the installed kernelrules. Needs the GIL. 0, or -1 with a Python error set. */
static inline int kr_import(kr_api *api)
{
    PyObject *module = PyImport_ImportModule("kernelrules.cython_api");
    PyObject *table = module == NULL ? NULL : PyObject_GetAttrString(module, "__pyx_capi__");
    int status = -1;
    if (table != NULL) {
        api->api_version = (kr_api_version_fn)kr_import_function(table, "kr_api_version", "int (void)");
        api->status_text = api->api_version == NULL ? NULL : (kr_status_text_fn)kr_import_function(
            table, "kr_status_text", "char const *(int)");
        api->gram = api->status_text == NULL ? NULL : (kr_gram_fn)kr_import_function(
            table, "kr_gram",
            "int (double const *, Py_ssize_t, Py_ssize_t, double const *, Py_ssize_t, Py_ssize_t, Py_ssize_t, "
            "kr_kernel const *, double *, Py_ssize_t, int)");
        api->gram_f = api->gram == NULL ? NULL : (kr_gram_f_fn)kr_import_function(
            table, "kr_gram_f",
            "int (float const *, Py_ssize_t, Py_ssize_t, float const *, Py_ssize_t, Py_ssize_t, Py_ssize_t, "
            "kr_kernel const *, float *, Py_ssize_t, int)");
        status = api->gram_f == NULL ? -1 : 0;
    }
    Py_XDECREF(table);
    Py_XDECREF(module);
    return status;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
