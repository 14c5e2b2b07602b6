"""Kernel matrices K with K[i, j] = k(x_i, z_j), and products with them.

    kernels     THE table of kernels (kernels.h), and the vectorised function of the sum of each (kernel_values.h)
    dense       rows × columns → tiles of sums → the kernel's function of a sum, tile by tile on all threads
    csr         the same from sparse rows
    distances   squared distances that are kept, and RBF matrices for many widths made of them
    apply       K · C without ever storing K
    symmetric   K · C where K is stored and symmetric: each entry is read once and used twice

The sum over columns (inner products, squared or absolute differences) is one of few; a kernel is a function of it.
Tiling follows Goto and van de Geijn (2008), "Anatomy of high-performance matrix multiplication", ACM TOMS 34(3).
"""
