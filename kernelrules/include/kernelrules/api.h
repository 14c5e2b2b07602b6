/* The public C types of kernelrules: status codes, kernels, suppliers of kernel rows, dual problems of kernel
 * machines, and columns, criteria and splits of trees.
 *
 * This header is the one list: core/base/status.pxd, cython_api.pxd and the Python enumerations read it. Structs and
 * codes are final once released; later versions add, and raise KR_API_VERSION. It is plain C and can be read without
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

#define KR_API_VERSION 3

/* What every function returns: < 0 an error, 0 done, > 0 done with a remark. */
typedef enum kr_status {
    KR_OK = 0,
    KR_MAX_ITER = 1,      /* stopped by the limit on iterations; the result stands, its certificate says how good */
    KR_STALLED = 2,       /* stopped because rounding left no step to take; the result stands likewise */
    KR_STOPPED = 3,       /* stopped because the caller's `proceed` asked for it; the result stands likewise */
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

/* The dual problem of a kernel machine:
 *
 *     minimise  1/2 beta' K beta + linear' beta + kink * sum |a_v|
 *     over      lower <= a <= upper, with the sum of a over each group as it is at the start,
 *
 * where beta of point i is a_i, or a_i + a_(n_points + i) where there are twice as many variables as points. Variables
 * below `split` are one group and the others a second one. With g = K beta + linear, the solution's violation is, over
 * the groups, the largest of max(-g - slope) over variables that can grow plus max(g + slope) over those that can
 * shrink; slope is +kink or -kink, the derivative of kink |a| in that direction.
 *
 *     C-SVC      linear = -y, 0 <= y a <= C;  one group; start at 0
 *     eps-SVR    linear = -y, |a| <= C, kink = eps;  one group; start at 0
 *     one-class  linear = 0, 0 <= a <= 1;  one group; the start's sum is nu n
 *     nu-SVC     linear = 0, 0 <= y a <= 1;  split after the positive class; the sums are nu n / 2 and -nu n / 2
 *     nu-SVR     linear = -y, twice as many variables, 0 <= a <= C then -C <= a <= 0;  split = n */
typedef struct {
    Py_ssize_t n_points;
    Py_ssize_t n_variables; /* n_points or 2 n_points */
    Py_ssize_t split;       /* 1 to n_variables; n_variables: one group */
    const double *diagonal; /* k(x, x) of every point */
    const double *linear;   /* of every point */
    const double *lower;    /* of every variable, <= 0 */
    const double *upper;    /* of every variable, >= 0 */
    double kink;            /* >= 0 */
} kr_smo_problem;

typedef struct {
    double *a;        /* of every variable. In: a start within the bounds; out: the solution */
    double *gradient; /* of every point. Out: K beta + linear */
} kr_smo_state;

typedef struct {
    double objective;   /* the minimum found */
    double violation;   /* of the optimality conditions */
    double offset[2];   /* of each group, the b for which free variables have g + slope + b = 0; 0 where there is none */
    Py_ssize_t n_steps; /* pairs of variables that were changed */
    Py_ssize_t n_rows;  /* kernel rows that were asked for */
} kr_smo_report;

typedef struct {
    double tol;             /* the violation at which a solution is good enough, > 0 */
    Py_ssize_t max_steps;   /* 0: ten million, or a hundred a point if that is more */
    size_t cache_bytes;     /* for kernel rows; 0: 100 MB. At least two rows are kept, whatever it says */
    int n_threads;          /* of the solver's own work, >= 1; the result does not depend on it */
    int (*proceed)(void *context, const kr_smo_report *report); /* asked now and then; 0 stops. NULL: never asked */
    void *context;          /* handed to proceed */
} kr_smo_options;

typedef enum kr_criterion_kind {
    KR_GINI = 0,              /* W (1 - sum p^2)                 of classes */
    KR_ENTROPY = 1,           /* -W sum p log2 p                 of classes */
    KR_MISCLASSIFICATION = 2, /* W (1 - max p)                   of classes */
    KR_SQUARED_ERROR = 3,     /* sum w (y - mean)^2              of targets */
    KR_POISSON = 4,           /* sum w (y log(y / mean) - y + mean)   of targets, y >= 0 */
    KR_OWN = 5                /* loss() below                    of classes */
} kr_criterion_kind;

/* What a split is to lower: the loss of its two sides. A criterion of the caller's own is a function of the weights of
 * the classes, concave in them; it is called without the GIL. */
typedef struct {
    int kind; /* a kr_criterion_kind */
    void *state;
    double (*loss)(void *state, const double *class_weights, Py_ssize_t n_classes); /* KR_OWN only */
} kr_criterion;

/* One column with the targets of its rows. Rows whose x is NaN are missing; the scan finds the better side for them. */
typedef struct {
    Py_ssize_t n;             /* rows, below 2^31 over the least power of 2 that is >= n_classes; of targets below 2^31 */
    const double *x;          /* of every row */
    const Py_ssize_t *order;  /* rows in ascending order of x, missing ones last, as kr_presort gives it */
    Py_ssize_t n_known;       /* those that are not missing */
    const Py_ssize_t *labels; /* 0 to n_classes - 1 of every row; NULL for criteria of targets */
    Py_ssize_t n_classes;
    const double *y;          /* of every row; NULL for criteria of classes */
    const double *weights;    /* > 0, of every row; NULL: all 1 */
    Py_ssize_t min_leaf;      /* rows that each side must have, >= 1 */
} kr_column;

typedef struct {
    double gain;       /* what the split takes off the loss; below 0: there is no split */
    double threshold;  /* x <= threshold goes left; infinite: known rows left, missing ones right */
    Py_ssize_t n_left; /* rows on the left */
    int missing_left;  /* whether missing rows are among them */
} kr_split;

/* A tree of thresholds. Children come after their parent; both are -1 in a leaf. */
typedef struct {
    Py_ssize_t n_nodes;
    Py_ssize_t n_features;
    const Py_ssize_t *feature;
    const double *threshold;
    const Py_ssize_t *left;
    const Py_ssize_t *right;
    const int *missing_left; /* NULL: missing values go right */
} kr_tree;

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
typedef int (*kr_smo_solve_fn)(const kr_row_source *source, const kr_smo_problem *problem,
                               const kr_smo_options *options, kr_smo_state *state, kr_smo_report *report);
typedef int (*kr_presort_fn)(const double *x, Py_ssize_t n, Py_ssize_t *order, Py_ssize_t *n_known);
typedef int (*kr_presort_f_fn)(const float *x, Py_ssize_t n, Py_ssize_t *order, Py_ssize_t *n_known);
typedef int (*kr_scan_column_fn)(const kr_column *column, const kr_criterion *criterion, kr_split *split);
typedef int (*kr_tree_apply_fn)(const kr_tree *tree, const double *x, Py_ssize_t n, Py_ssize_t stride,
                                Py_ssize_t *leaves, int n_threads);

#ifdef Py_PYTHON_H

typedef struct {
    kr_api_version_fn api_version;
    kr_status_text_fn status_text;
    kr_gram_fn gram;
    kr_gram_f_fn gram_f;
    kr_smo_solve_fn smo_solve;
    kr_presort_fn presort;
    kr_presort_f_fn presort_f;
    kr_scan_column_fn scan_column;
    kr_tree_apply_fn tree_apply;
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
        api->smo_solve = api->gram_f == NULL ? NULL : (kr_smo_solve_fn)kr_import_function(
            table, "kr_smo_solve",
            "int (kr_row_source const *, kr_smo_problem const *, kr_smo_options const *, kr_smo_state *, "
            "kr_smo_report *)");
        api->presort = api->smo_solve == NULL ? NULL : (kr_presort_fn)kr_import_function(
            table, "kr_presort", "int (double const *, Py_ssize_t, Py_ssize_t *, Py_ssize_t *)");
        api->presort_f = api->presort == NULL ? NULL : (kr_presort_f_fn)kr_import_function(
            table, "kr_presort_f", "int (float const *, Py_ssize_t, Py_ssize_t *, Py_ssize_t *)");
        api->scan_column = api->presort_f == NULL ? NULL : (kr_scan_column_fn)kr_import_function(
            table, "kr_scan_column", "int (kr_column const *, kr_criterion const *, kr_split *)");
        api->tree_apply = api->scan_column == NULL ? NULL : (kr_tree_apply_fn)kr_import_function(
            table, "kr_tree_apply",
            "int (kr_tree const *, double const *, Py_ssize_t, Py_ssize_t, Py_ssize_t *, int)");
        status = api->tree_apply == NULL ? -1 : 0;
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
