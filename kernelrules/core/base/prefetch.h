/* Prefetching memory that is needed soon: a hint, which changes no result and is safe for any address. */
#ifndef KERNELRULES_FETCH_H
#define KERNELRULES_FETCH_H

#include <stddef.h>

#define KR_LINE 64 /* bytes of a cache line */

#if defined(__GNUC__)
#define kr_fetch(address) __builtin_prefetch(address)
#else
#define kr_fetch(address) ((void)(address))
#endif

/* Bytes that lie together. A macro: gcc drops calls of functions that do nothing but fetch. */
#define kr_fetch_lines(first, n_bytes)                                                                             \
    do {                                                                                                           \
        for (ptrdiff_t byte_ = 0; byte_ < (n_bytes); byte_ += KR_LINE)                                             \
            kr_fetch((first) + byte_);                                                                             \
    } while (0)

/* Rows one after another, of which scattered columns are needed: the processor prefetches short rows by itself, and most
 * of a long row would be fetched in vain. */
#define kr_fetch_rows(rows, n_rows, row_step)                                                                      \
    do {                                                                                                           \
        if ((row_step) > 2 * KR_LINE && (row_step) <= 16 * KR_LINE)                                                \
            kr_fetch_lines(rows, (n_rows) * (row_step));                                                           \
    } while (0)

#endif
