/* Kernel values from sums, for every row of the table of kernels, instruction-set level and float type. Included by
 * kernels.pyx only. */
#ifndef KERNELRULES_KERNEL_VALUES_H
#define KERNELRULES_KERNEL_VALUES_H

#include "gram/kernels.h"

#define KR_BODY "gram/kernel_values_body.h"
#include "simd/levels.h"

#define KR_KERNEL_ROW(name, number, sum, parameters, unit, semidefinite, value)                                    \
    {#name, number, KR_SUM_##sum, parameters, unit, #semidefinite, #value},
static const kr_kernel_row kr_kernel_table[] = {KR_KERNELS(KR_KERNEL_ROW)};
#undef KR_KERNEL_ROW
enum { KR_N_KERNELS = sizeof(kr_kernel_table) / sizeof(kr_kernel_table[0]) };

static inline void kr_choose_level(kr_kernel_function *function, int level)
{
    function->row_d = KR_AT_LEVEL(kernel_row, _d, level);
    function->row_f = KR_AT_LEVEL(kernel_row, _f, level);
}

#endif
