/* Memory for large arrays. Fresh pages cost more time than what is written to them, the more so on virtual machines, so
 * large blocks ask for huge pages, where the system has them. free() gives a block back.
 */
#ifndef KERNELRULES_BLOCKS_H
#define KERNELRULES_BLOCKS_H

#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#define KR_HUGE_PAGE ((size_t)1 << 21)

static inline void *kr_block(size_t n_bytes)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (n_bytes >= 2 * KR_HUGE_PAGE) {
        void *block = NULL;
        if (posix_memalign(&block, KR_HUGE_PAGE, n_bytes) != 0)
            return NULL;
        (void)madvise(block, n_bytes & ~(KR_HUGE_PAGE - 1), MADV_HUGEPAGE);
        return block;
    }
#endif
    return malloc(n_bytes > 0 ? n_bytes : 1);
}

#endif
