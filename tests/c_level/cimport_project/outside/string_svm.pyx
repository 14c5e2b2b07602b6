"""A support vector machine for words: a string kernel of our own, given to the solver row by row."""

from libc.math cimport sqrt

from kernelrules.cython_api cimport (
    KR_CALLBACK, KR_OK, kr_row_source, kr_smo_options, kr_smo_problem, kr_smo_report, kr_smo_solve, kr_smo_state,
    kr_status_text,
)

import numpy as np


cdef struct Words:                  # the letters of all words in a row; word i is letters[start[i]:start[i + 1]]
    const unsigned char *letters
    const Py_ssize_t *start
    Py_ssize_t n
    Py_ssize_t length               # of the pieces that two words are compared by
    const double *scale             # 1 / sqrt of a word's value with itself
    int calls


cdef double common_pieces(const Words *words, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """How many pairs of equal pieces the words i and j have: the spectrum kernel."""
    cdef Py_ssize_t a, b, k
    cdef double count = 0
    for a in range(words.start[i], words.start[i + 1] - words.length + 1):
        for b in range(words.start[j], words.start[j + 1] - words.length + 1):
            k = 0
            while k < words.length and words.letters[a + k] == words.letters[b + k]:
                k += 1
            count += k == words.length
    return count


cdef int fill(void *state, const Py_ssize_t *rows, Py_ssize_t n_rows, double *out) noexcept nogil:
    """Rows of the normalised kernel matrix, which as a whole never exists."""
    cdef Words *words = <Words *> state
    cdef Py_ssize_t r, j
    words.calls += 1
    for r in range(n_rows):
        if rows[r] < 0 or rows[r] >= words.n:
            return KR_CALLBACK
        for j in range(words.n):
            out[r * words.n + j] = common_pieces(words, rows[r], j) * words.scale[rows[r]] * words.scale[j]
    return KR_OK


def classify(words, signs, double C, Py_ssize_t length=2, size_t cache_bytes=0, double tol=1e-6):
    """Coefficients, offset, objective and violation of the C-SVC that tells the words of sign +1 from those of -1."""
    cdef Py_ssize_t n = len(words), i
    cdef const unsigned char[::1] letters = np.frombuffer("".join(words).encode("ascii"), dtype=np.uint8)
    cdef Py_ssize_t[::1] start = np.concatenate([[0], np.cumsum([len(w) for w in words])]).astype(np.intp)
    cdef double[::1] scale = np.ones(n), a = np.zeros(n), gradient = np.empty(n)
    cdef double[::1] y = np.asarray(signs, dtype=float), linear = -np.asarray(signs, dtype=float)
    cdef double[::1] lower = np.minimum(C * np.asarray(y), 0.0), upper = np.maximum(C * np.asarray(y), 0.0)
    cdef double[::1] ones = np.ones(n)
    cdef Words data
    cdef kr_row_source source
    cdef kr_smo_problem problem
    cdef kr_smo_options options
    cdef kr_smo_state state
    cdef kr_smo_report report
    cdef int status
    data.letters, data.start, data.n, data.length, data.scale = &letters[0], &start[0], n, length, &scale[0]
    data.calls = 0
    for i in range(n):
        scale[i] = 1.0 / sqrt(common_pieces(&data, i, i))
    source.state, source.fill = &data, fill
    problem.n_points = problem.n_variables = problem.split = n
    problem.diagonal, problem.linear, problem.lower, problem.upper = &ones[0], &linear[0], &lower[0], &upper[0]
    problem.kink = 0.0
    options.tol, options.max_steps, options.cache_bytes, options.n_threads = tol, 0, cache_bytes, 1
    options.proceed, options.context = NULL, NULL
    state.a, state.gradient = &a[0], &gradient[0]
    with nogil:
        status = kr_smo_solve(&source, &problem, &options, &state, &report)
    if status != KR_OK:
        raise RuntimeError(kr_status_text(status).decode())
    return {
        "coefficients": np.asarray(a).tolist(),
        "offset": report.offset[0],
        "objective": report.objective,
        "violation": report.violation,
        "rows": report.n_rows,
        "calls": data.calls,
    }
