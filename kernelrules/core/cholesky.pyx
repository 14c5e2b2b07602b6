"""Cholesky factors A = L·Lᵀ of dense symmetric matrices, and what is solved with them, by tiles spread over threads.

    factor          the lower triangle of A becomes L; the strict upper triangle is neither read nor written: it
                    still holds A, for a residual
    solve_lower     b := L⁻¹·b    for every row b
    solve           b := A⁻¹·b    for every row b

Right-looking: factor a tile on the diagonal, X := X·L_kk⁻ᵀ for the rows below it, then subtract X_i·X_jᵀ from every
tile to the right. Products go through the register blocks of the Gram builder. Triangles of STRIP columns are inverted,
so that solving is a product as well. The backward solve Lᵀ·x = z is a forward one with rows and columns of Lᵀ in
reverse order, which is a lower triangle again.

Invariant: tiles and the order of sums depend on the shapes alone, so any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kernelrules.core.gram cimport TILE
from kernelrules.core.machine cimport simd_level
from kernelrules.core.pace cimport better_step
from kernelrules.core.simd cimport (
    KR_SUM_ADD, KR_SUM_LOWER, KR_SUM_PRODUCTS, add_rows, dot, pack, pick, sliver_rows, sums,
)
from kernelrules.core.status cimport NO_MEMORY
from kernelrules.core.types cimport real_t

from time import perf_counter

from kernelrules.core.status import raise_for_status

cdef enum:
    STRIP = 48                  # columns whose triangle is inverted; a multiple of every sliver, a divisor of TILE
    STRIPS = TILE * STRIP       # numbers in all strips' inverses of a tile
    FEW = 12                    # right-hand sides up to which going through L once for each is faster
    GROUP = 8                   # rows of L that a backward solve uses at a time
    BATCH_BYTES = 64 << 20      # of right-hand sides in slivers

cdef struct Corner:             # what solving with a factored tile on the diagonal needs
    void *slivers               # of its rows, TILE deep
    void *inverses              # of its strips' triangles, as slivers of STRIP deep

cdef struct Bench:              # a thread's working memory
    void *tile                  # TILE x TILE
    void *strip                 # TILE x STRIP, twice: products, and slivers of what is multiplied


# ---- within a tile ---------------------------------------------------------------------------------------------

cdef void subtract(const real_t *part, Py_ssize_t stride_part, real_t *out, Py_ssize_t stride, Py_ssize_t n_rows,
                   Py_ssize_t n_columns, bint lower) noexcept nogil:
    """out -= part; with `lower` on and below the diagonal only."""
    cdef Py_ssize_t i, j
    for i in range(n_rows):
        for j in range(min(i + 1, n_columns) if lower else n_columns):
            out[i * stride + j] -= part[i * stride_part + j]


cdef void copy_rows(const real_t *source, Py_ssize_t stride_source, real_t *out, Py_ssize_t stride, Py_ssize_t n_rows,
                    Py_ssize_t n_columns) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n_rows):
        memcpy(out + i * stride, source + i * stride_source, n_columns * sizeof(real_t))


cdef Py_ssize_t factor_strip(real_t *a, Py_ssize_t n) noexcept nogil:
    """The lower triangle of a small block of a tile becomes its factor, zero above; gives how many pivots were
    positive."""
    cdef Py_ssize_t i, j, k
    cdef double total = 0
    for i in range(n):
        for j in range(i + 1):
            total = a[i * TILE + j]
            for k in range(j):
                total -= <double> a[i * TILE + k] * a[j * TILE + k]
            if j < i:
                a[i * TILE + j] = <real_t> (total / a[j * TILE + j])
        if not 0 < total < INFINITY:        # NaN as well
            return i
        a[i * TILE + i] = <real_t> sqrt(total)
        memset(a + i * TILE + i + 1, 0, (n - i - 1) * sizeof(real_t))
    return n


cdef void invert_strip(const real_t *a, Py_ssize_t n, real_t *out) noexcept nogil:
    """The inverse of that factor, STRIP numbers a row."""
    cdef Py_ssize_t i, j, k
    cdef double total
    for i in range(n):
        memset(out + i * STRIP, 0, STRIP * sizeof(real_t))
        for j in range(i):
            total = 0
            for k in range(j, i):
                total -= <double> a[i * TILE + k] * out[k * STRIP + j]
            out[i * STRIP + j] = <real_t> (total / a[i * TILE + i])
        out[i * STRIP + i] = <real_t> (1.0 / a[i * TILE + i])


cdef void solve_strip(const void *simd, Py_ssize_t sliver, const real_t *inverse, real_t *rows, Py_ssize_t stride,
                      Py_ssize_t n_rows, Py_ssize_t width, real_t *work) noexcept nogil:
    """rows := rows · inverseᵀ for n_rows x width numbers."""
    cdef Py_ssize_t step = sliver * STRIP
    cdef real_t *product = work
    cdef real_t *slivers = work + STRIPS
    pack(simd, rows, stride, n_rows, width, NULL, 1.0, slivers, step, NULL)
    sums(simd, KR_SUM_PRODUCTS, slivers, step, n_rows, inverse, step, width, width, product, STRIP, 0)
    copy_rows(product, STRIP, rows, stride, n_rows, width)


cdef void prepare_strip(const void *simd, Py_ssize_t sliver, const Corner *corner, const real_t *tile, Py_ssize_t b,
                        Py_ssize_t width, real_t *work) noexcept nogil:
    """The inverse of the factored triangle at (b, b) of a tile, into the corner."""
    invert_strip(tile + b * TILE + b, width, work)
    pack(simd, <const real_t *> work, STRIP, width, width, NULL, 1.0, <real_t *> corner.inverses + b * STRIP,
         sliver * STRIP, NULL)


cdef Py_ssize_t factor_tile(const void *simd, Py_ssize_t sliver, const Corner *corner, real_t *tile, Py_ssize_t n,
                            real_t *work) noexcept nogil:
    """Factor a tile of n rows, strip by strip, and fill its corner; gives how many pivots were positive."""
    cdef Py_ssize_t step = sliver * TILE, b = 0, width, below, done
    cdef real_t *slivers = <real_t *> corner.slivers
    while b < n:
        width, below = min(<Py_ssize_t> STRIP, n - b), n - b
        if b > 0:
            sums(simd, KR_SUM_PRODUCTS, slivers + b // sliver * step, step, below, slivers + b // sliver * step, step,
                 width, b, work, STRIP, 0)
            subtract(work, STRIP, tile + b * TILE + b, TILE, below, width, False)
        done = factor_strip(tile + b * TILE + b, width)
        if done < width:
            return b + done
        prepare_strip(simd, sliver, corner, tile, b, width, work)
        if below > width:
            solve_strip(simd, sliver, <const real_t *> corner.inverses + b * STRIP, tile + (b + width) * TILE + b, TILE,
                        below - width, width, work)
        pack(simd, <const real_t *> tile + b * TILE + b, TILE, below, width, NULL, 1.0,
             slivers + b // sliver * step + b * sliver, step, NULL)
        b += STRIP
    return n


cdef void solve_tile(const void *simd, Py_ssize_t sliver, const Corner *corner, real_t *rows, Py_ssize_t stride,
                     Py_ssize_t n_rows, Py_ssize_t width, real_t *slivers, Py_ssize_t step,
                     real_t *work) noexcept nogil:
    """rows := rows · L⁻ᵀ with the corner's L, for n_rows x width numbers; their slivers are made as well."""
    cdef Py_ssize_t b = 0, here
    while b < width:
        here = min(<Py_ssize_t> STRIP, width - b)
        if b > 0:
            sums(simd, KR_SUM_PRODUCTS, slivers, step, n_rows, <const real_t *> corner.slivers + b * TILE,
                 sliver * TILE, here, b, work, STRIP, 0)
            subtract(work, STRIP, rows + b, stride, n_rows, here, False)
        solve_strip(simd, sliver, <const real_t *> corner.inverses + b * STRIP, rows + b, stride, n_rows, here, work)
        pack(simd, <const real_t *> rows + b, stride, n_rows, here, NULL, 1.0, slivers + b * sliver, step, NULL)
        b += STRIP


# ---- working memory --------------------------------------------------------------------------------------------

cdef Corner *make_corner(real_t *example) noexcept nogil:
    """A corner and what it points to, in one block of memory; NULL where there is none. free() takes it."""
    cdef Py_ssize_t head = (sizeof(Corner) + 63) // 64 * 64
    cdef char *memory = <char *> calloc(head + (TILE * TILE + STRIPS) * sizeof(real_t) + 64, 1)
    cdef Corner *corner = <Corner *> memory
    if corner != NULL:
        corner.slivers = memory + head
        corner.inverses = memory + head + TILE * TILE * sizeof(real_t)
    return corner


cdef Bench *make_benches(int n, real_t *example) noexcept nogil:
    """Likewise, a bench for each of n threads."""
    cdef Py_ssize_t size = (TILE * TILE + 2 * STRIPS) * sizeof(real_t), head = (n * sizeof(Bench) + 63) // 64 * 64
    cdef char *memory = <char *> malloc(head + n * size + 64)
    cdef Bench *benches = <Bench *> memory
    cdef int c
    if memory == NULL:
        return NULL
    for c in range(n):
        benches[c].tile = memory + head + c * size
        benches[c].strip = memory + head + c * size + TILE * TILE * sizeof(real_t)
    return benches


# ---- the factor ------------------------------------------------------------------------------------------------

cdef Py_ssize_t factor_corner(const void *simd, Py_ssize_t sliver, const Corner *corner, real_t *a, Py_ssize_t stride,
                              Py_ssize_t n, const Bench *bench) noexcept nogil:
    """Factor the tile at `a`, whose upper triangle stays as it is; gives how many pivots were positive."""
    cdef real_t *tile = <real_t *> bench.tile
    cdef Py_ssize_t i, done
    for i in range(n):
        memcpy(tile + i * TILE, a + i * stride, (i + 1) * sizeof(real_t))
        memset(tile + i * TILE + i + 1, 0, (n - i - 1) * sizeof(real_t))
    done = factor_tile(simd, sliver, corner, tile, n, <real_t *> bench.strip)
    for i in range(n):
        memcpy(a + i * stride, tile + i * TILE, (i + 1) * sizeof(real_t))
    return done


cdef void update_tile(const void *simd, Py_ssize_t sliver, const real_t *panel, Py_ssize_t depth, Py_ssize_t i0,
                      Py_ssize_t n_i, Py_ssize_t j0, Py_ssize_t n_j, real_t *a, Py_ssize_t stride,
                      real_t *tile) noexcept nogil:
    """a -= X_i·X_jᵀ for rows i0.. and j0.. of the panel."""
    cdef Py_ssize_t step = sliver * TILE
    sums(simd, KR_SUM_PRODUCTS, panel + i0 // sliver * step, step, n_i, panel + j0 // sliver * step, step, n_j, depth,
         tile, TILE, KR_SUM_LOWER if i0 == j0 else 0)
    subtract(tile, TILE, a + i0 * stride + j0, stride, n_i, n_j, i0 == j0)


cdef void update_number(const void *simd, Py_ssize_t sliver, const real_t *panel, Py_ssize_t depth, Py_ssize_t number,
                        Py_ssize_t n, real_t *a, Py_ssize_t stride, real_t *tile) noexcept nogil:
    """update_tile for tile `number` of the lower triangle of n rows, counted row by row."""
    cdef Py_ssize_t i = <Py_ssize_t> ((sqrt(8.0 * number + 1) - 1) / 2), j
    while i * (i + 1) // 2 > number:
        i -= 1
    while (i + 1) * (i + 2) // 2 <= number:
        i += 1
    j = number - i * (i + 1) // 2
    update_tile(simd, sliver, panel, depth, i * TILE, min(<Py_ssize_t> TILE, n - i * TILE), j * TILE,
                min(<Py_ssize_t> TILE, n - j * TILE), a, stride, tile)


def factor(real_t[:, ::1] a, int n_threads, tick=None):
    """Replace the lower triangle of `a` by its Cholesky factor.

    Gives 0, or the number (from 1) of the first pivot that is not positive: then `a` is not positive definite, as far
    as rounding lets one see, and its lower triangle is spoilt. `tick(done, total)` is called, and signals are looked
    at, several times a second.
    """
    cdef Py_ssize_t n = a.shape[0], k0 = 0, width, rest, n_blocks, n_tiles, first, last, t, done, sliver, step_tiles
    cdef const void *simd
    cdef real_t *at
    cdef real_t *panel
    cdef Corner *corner
    cdef Bench *benches
    if a.shape[1] != n:
        raise ValueError("the matrix must be square")
    if n == 0:
        return 0
    at = &a[0, 0]
    simd = pick(simd_level(), at)
    sliver = sliver_rows(simd, at)
    corner, benches = make_corner(at), make_benches(n_threads, at)
    panel = <real_t *> malloc(((n + TILE - 1) // TILE) * TILE * TILE * sizeof(real_t))
    step_tiles = 64 * n_threads
    try:
        if corner == NULL or benches == NULL or panel == NULL:
            raise_for_status(NO_MEMORY)
        while k0 < n:
            width = min(<Py_ssize_t> TILE, n - k0)
            rest = n - k0 - width
            n_blocks = (rest + TILE - 1) // TILE
            with nogil:
                done = factor_corner(simd, sliver, corner, at + k0 * n + k0, n, width, benches)
                if done == width:
                    for t in prange(n_blocks, num_threads=n_threads, schedule="dynamic", chunksize=1):
                        solve_tile(simd, sliver, corner, at + (k0 + width + t * TILE) * n + k0, n,
                                   min(<Py_ssize_t> TILE, rest - t * TILE), width, panel + t * TILE * TILE,
                                   sliver * TILE, <real_t *> benches[threadid()].strip)
            if done < width:
                return k0 + done + 1
            first, n_tiles = 0, n_blocks * (n_blocks + 1) // 2
            while first < n_tiles:
                last = min(first + step_tiles, n_tiles)
                started = perf_counter()
                with nogil:
                    for t in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=1):
                        update_number(simd, sliver, panel, width, t, rest, at + (k0 + width) * (n + 1), n,
                                      <real_t *> benches[threadid()].tile)
                first, step_tiles = last, better_step(step_tiles, perf_counter() - started)
                PyErr_CheckSignals()
            k0 += width
            if tick is not None:
                tick(k0, n)
    finally:
        free(corner)
        free(benches)
        free(panel)
    return 0


# ---- solving ---------------------------------------------------------------------------------------------------

cdef void fetch(const real_t *factor, Py_ssize_t n, bint backward, Py_ssize_t i0, Py_ssize_t n_i, Py_ssize_t j0,
                Py_ssize_t n_j, real_t *tile) noexcept nogil:
    """Rows i0.. and columns j0.. of L; backward: of Lᵀ with rows and columns in reverse order."""
    cdef Py_ssize_t i, j
    if not backward:
        copy_rows(factor + i0 * n + j0, n, tile, TILE, n_i, n_j)
        return
    for j in range(n_j):
        for i in range(n_i):
            tile[i * TILE + j] = factor[(n - 1 - j0 - j) * n + n - 1 - i0 - i]


cdef void prepare_corner(const void *simd, Py_ssize_t sliver, const Corner *corner, const real_t *factor, Py_ssize_t n,
                         bint backward, Py_ssize_t k0, const Bench *bench) noexcept nogil:
    cdef Py_ssize_t width = min(<Py_ssize_t> TILE, n - k0), b = 0, i
    cdef real_t *tile = <real_t *> bench.tile
    fetch(factor, n, backward, k0, width, k0, width, tile)
    for i in range(width):
        memset(tile + i * TILE + i + 1, 0, (width - i - 1) * sizeof(real_t))
    while b < width:
        prepare_strip(simd, sliver, corner, tile, b, min(<Py_ssize_t> STRIP, width - b), <real_t *> bench.strip)
        b += STRIP
    pack(simd, <const real_t *> tile, TILE, width, width, NULL, 1.0, <real_t *> corner.slivers, sliver * TILE, NULL)


cdef void pack_tile(const void *simd, Py_ssize_t sliver, const real_t *factor, Py_ssize_t n, bint backward,
                    Py_ssize_t k, Py_ssize_t j, real_t *panel, const Bench *bench) noexcept nogil:
    """Tile (k, j) below the diagonal, into the slivers of its row of tiles."""
    cdef Py_ssize_t width = min(<Py_ssize_t> TILE, n - k * TILE), stride = n
    cdef const real_t *source = factor + k * TILE * n + j * TILE
    if backward:
        fetch(factor, n, True, k * TILE, width, j * TILE, TILE, <real_t *> bench.tile)
        source, stride = <const real_t *> bench.tile, TILE
    pack(simd, source, stride, width, TILE, NULL, 1.0, panel + j * TILE * sliver, sliver * n, NULL)


cdef void solve_block(const void *simd, Py_ssize_t sliver, const Corner *corner, Py_ssize_t n, Py_ssize_t k,
                      Py_ssize_t start, const real_t *panel, real_t *rows, Py_ssize_t n_rows, real_t *slivers,
                      const Bench *bench) noexcept nogil:
    """Columns of tile k of X = rows · L⁻ᵀ for at most TILE right-hand sides, whose slivers grow with k; those of tiles
    before `start` are zero."""
    cdef Py_ssize_t step = sliver * n, width = min(<Py_ssize_t> TILE, n - k * TILE), j
    cdef real_t *tile = <real_t *> bench.tile
    for j in range(start, k):
        sums(simd, KR_SUM_PRODUCTS, slivers + j * TILE * sliver, step, n_rows, panel + j * TILE * sliver, step, width,
             TILE, tile, TILE, KR_SUM_ADD if j > start else 0)
    if k > start:
        subtract(tile, TILE, rows + k * TILE, n, n_rows, width, False)
    solve_tile(simd, sliver, corner, rows + k * TILE, n, n_rows, width, slivers + k * TILE * sliver, step,
               <real_t *> bench.strip)


cdef int solve_blocks(const real_t *factor, Py_ssize_t n, bint backward, Py_ssize_t start, real_t *b,
                      Py_ssize_t n_rows, int n_threads, object tick) except -1:
    """b := b · L⁻ᵀ, at most TILE rows a task, as many tasks at a time as slivers of BATCH_BYTES allow: they share the
    slivers of L's tiles. Columns of b in tiles before `start` are zero, and stay so. A row's bits do not depend on the
    task it is in, so the tasks may depend on the threads."""
    cdef const void *simd = pick(simd_level(), b)
    cdef Py_ssize_t sliver = sliver_rows(simd, b), n_tiles = (n + TILE - 1) // TILE, first = 0, last, t, k, j
    cdef Py_ssize_t room = n * TILE, n_blocks = (n_rows + TILE * n_threads - 1) // (TILE * n_threads) * n_threads
    cdef Py_ssize_t height = (n_rows + n_blocks - 1) // n_blocks
    cdef Py_ssize_t batch = max(BATCH_BYTES // (room * <Py_ssize_t> sizeof(real_t)), <Py_ssize_t> n_threads)
    cdef Corner *corner = make_corner(b)
    cdef Bench *benches = make_benches(n_threads, b)
    cdef real_t *slivers
    cdef real_t *panel = <real_t *> malloc(room * sizeof(real_t))
    n_blocks = (n_rows + height - 1) // height
    batch = min(batch // n_threads * n_threads, n_blocks)
    slivers = <real_t *> malloc(batch * room * sizeof(real_t))
    try:
        if corner == NULL or benches == NULL or slivers == NULL or panel == NULL:
            raise_for_status(NO_MEMORY)
        while first < n_blocks:
            last = min(first + batch, n_blocks)
            for k in range(start, n_tiles):
                with nogil:
                    prepare_corner(simd, sliver, corner, factor, n, backward, k * TILE, benches)
                    for j in prange(start, k, num_threads=n_threads, schedule="static"):
                        pack_tile(simd, sliver, factor, n, backward, k, j, panel, &benches[threadid()])
                    for t in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=1):
                        solve_block(simd, sliver, corner, n, k, start, panel, b + t * height * n,
                                    min(height, n_rows - t * height), slivers + (t - first) * room,
                                    &benches[threadid()])
                PyErr_CheckSignals()
            first = last
            if tick is not None:
                tick(min(first * height, n_rows), n_rows)
    finally:
        free(corner)
        free(benches)
        free(slivers)
        free(panel)
    return 0


cdef void reverse_rows(real_t *b, Py_ssize_t n_rows, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t r, i
    cdef real_t kept
    for r in range(n_rows):
        for i in range(n // 2):
            kept = b[r * n + i]
            b[r * n + i] = b[r * n + n - 1 - i]
            b[r * n + n - 1 - i] = kept


cdef void forward_one(const void *simd, const real_t *factor, Py_ssize_t n, double *x) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        x[i] = (x[i] - dot(simd, factor + i * n, x, i)) / factor[i * n + i]


cdef void backward_one(const void *simd, const real_t *factor, Py_ssize_t n, double *x) noexcept nogil:
    """GROUP unknowns at a time: then x is gone through once for all of their rows."""
    cdef Py_ssize_t last = n, first, i, k
    cdef const real_t *rows[GROUP]
    cdef double minus[GROUP]
    while last > 0:
        first = max(last - GROUP, <Py_ssize_t> 0)
        i = last - 1
        while i >= first:
            for k in range(i + 1, last):
                x[i] -= x[k] * factor[k * n + i]
            x[i] /= factor[i * n + i]
            i -= 1
        for i in range(first, last):
            rows[i - first], minus[i - first] = factor + i * n, -x[i]
        add_rows(simd, rows, 0, minus, last - first, x, first)
        last = first


cdef void solve_one(const void *simd, const real_t *factor, Py_ssize_t n, bint both, real_t *b,
                    double *x) noexcept nogil:
    """One right-hand side, in float64 whatever the type of L."""
    cdef Py_ssize_t i
    for i in range(n):
        x[i] = b[i]
    forward_one(simd, factor, n, x)
    if both:
        backward_one(simd, factor, n, x)
    for i in range(n):
        b[i] = <real_t> x[i]


cdef int solve_few(const real_t *factor, Py_ssize_t n, bint both, real_t *b, Py_ssize_t n_rows,
                   int n_threads) except -1:
    cdef const void *simd = pick(simd_level(), b)
    cdef double *x = <double *> malloc(n_rows * n * sizeof(double))
    cdef Py_ssize_t r
    if x == NULL:
        raise_for_status(NO_MEMORY)
    with nogil:
        for r in prange(n_rows, num_threads=n_threads, schedule="dynamic", chunksize=1):
            solve_one(simd, factor, n, both, b + r * n, x + r * n)
    free(x)
    PyErr_CheckSignals()
    return 0


cdef int solve_all(const real_t[:, ::1] factor, real_t[:, ::1] b, bint both, int n_threads, object tick,
                   Py_ssize_t n_zero) except -1:
    cdef Py_ssize_t n = factor.shape[0], n_rows = b.shape[0]
    if factor.shape[1] != n or b.shape[1] != n:
        raise ValueError("the factor must be square and each row of b as long as it")
    if n == 0 or n_rows == 0:
        return 0
    if n_rows <= FEW:
        return solve_few(&factor[0, 0], n, both, &b[0, 0], n_rows, n_threads)
    solve_blocks(&factor[0, 0], n, False, n_zero // TILE, &b[0, 0], n_rows, n_threads, tick)
    if both:
        reverse_rows(&b[0, 0], n_rows, n)
        solve_blocks(&factor[0, 0], n, True, 0, &b[0, 0], n_rows, n_threads, tick)
        reverse_rows(&b[0, 0], n_rows, n)
    return 0


def solve_lower(const real_t[:, ::1] factor, real_t[:, ::1] b, int n_threads, tick=None, Py_ssize_t n_zero=0):
    """b := L⁻¹·b for every row of b, with the lower triangle of `factor`. Rows that begin with n_zero zeros, less than
    there are columns, cost less."""
    if not 0 <= n_zero <= factor.shape[0]:
        raise ValueError("n_zero must be a number of columns")
    solve_all(factor, b, False, n_threads, tick, n_zero)


def solve(const real_t[:, ::1] factor, real_t[:, ::1] b, int n_threads, tick=None):
    """b := (L·Lᵀ)⁻¹·b for every row of b."""
    solve_all(factor, b, True, n_threads, tick, 0)
