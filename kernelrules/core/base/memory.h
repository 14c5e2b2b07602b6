/* Memory for large arrays: huge pages, used again. Fresh pages often cost more time than what is written to them, the
 * more so on virtual machines (0.1 to 2.4 ms a megabyte where writing takes 0.05). So a block that is given back is kept
 * for the next of about its size, marked as free: the system takes its pages wherever memory runs short, and until then
 * they need not be found and cleared again. At most a 32nd of the machine's memory, 1 GB and KR_KEPT blocks are kept;
 * KERNELRULES_KEEP_MB in the environment says another number of megabytes, 0 keeps nothing. It is read once, at import:
 * later, without the GIL, another thread may be changing the environment.
 *
 * Included by memory.pyx alone, which owns the one store. A caller that finds it locked does without: no thread waits,
 * and a process forked meanwhile is not stuck.
 */
#ifndef KERNELRULES_BLOCKS_H
#define KERNELRULES_BLOCKS_H

#include <stdint.h>
#include <stdlib.h>
#if defined(__linux__)
#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#if defined(__linux__) && defined(MADV_HUGEPAGE) && defined(MADV_FREE)

#define KR_HUGE_PAGE ((size_t)1 << 21)
#define KR_KEPT 8   /* blocks that wait for their next use */
#define KR_MOST_MB 1024

typedef struct {
    void *block; /* NULL: no block here */
    size_t n_bytes;
    unsigned long long since;
} kr_entry;

static kr_entry kr_kept[KR_KEPT];
static unsigned long long kr_moment = 0;
static size_t kr_most_bytes = 0; /* that may be kept */
static int kr_locked = 0;

static inline int kr_lock(void)
{
    return __atomic_exchange_n(&kr_locked, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void kr_unlock(void)
{
    __atomic_store_n(&kr_locked, 0, __ATOMIC_RELEASE);
}

/* Decide how much may be kept. Called once, with the GIL held, before anything is taken. A number that cannot be read
 * counts as none; more than the machine's memory counts as all of it. */
static inline void kr_begin(void)
{
    const char *wanted = getenv("KERNELRULES_KEEP_MB");
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0, most = (size_t)KR_MOST_MB << 20;
    char *end = NULL;
    long long megabytes = wanted != NULL ? strtoll(wanted, &end, 10) : 0; /* the last number there is, if too large */
    if (end != NULL && end != wanted && *end == '\0')
        kr_most_bytes = megabytes <= 0 ? 0
                        : (unsigned long long)megabytes > memory >> 20 ? memory : (size_t)megabytes << 20;
    else
        kr_most_bytes = memory / 32 < most ? memory / 32 : most;
}

/* The smallest kept block of n_bytes to 2 n_bytes, or NULL. */
static inline void *kr_reuse(size_t n_bytes)
{
    kr_entry *best = NULL;
    void *block;
    int k;
    for (k = 0; k < KR_KEPT; k++)
        if (kr_kept[k].block != NULL && kr_kept[k].n_bytes >= n_bytes && kr_kept[k].n_bytes / 2 <= n_bytes
            && (best == NULL || kr_kept[k].n_bytes < best->n_bytes))
            best = &kr_kept[k];
    if (best == NULL)
        return NULL;
    block = best->block;
    best->block = NULL;
    return block;
}

/* Keep a block, and let go those kept longest where that is too much. One that is kept already was given back twice:
 * two arrays would lie in it, so that nothing that is computed from here on could be relied on. */
static inline void kr_keep(void *block, size_t n_bytes)
{
    size_t most = kr_most_bytes, total = n_bytes;
    kr_entry *oldest, *place;
    int k;
    if (n_bytes > most) {
        free(block);
        return;
    }
    for (k = 0; k < KR_KEPT; k++)
        if (kr_kept[k].block == block) {
            fputs("kernelrules: a block of memory was given back twice\n", stderr);
            abort();
        }
    (void)madvise(block, n_bytes & ~(KR_HUGE_PAGE - 1), MADV_FREE);
    for (k = 0; k < KR_KEPT; k++)
        total += kr_kept[k].block != NULL ? kr_kept[k].n_bytes : 0;
    for (;;) {
        oldest = place = NULL;
        for (k = 0; k < KR_KEPT; k++)
            if (kr_kept[k].block == NULL)
                place = &kr_kept[k];
            else if (oldest == NULL || kr_kept[k].since < oldest->since)
                oldest = &kr_kept[k];
        if (place != NULL && total <= most)
            break;
        total -= oldest->n_bytes;
        free(oldest->block);
        oldest->block = NULL;
    }
    place->block = block;
    place->n_bytes = n_bytes;
    place->since = kr_moment++;
}

/* Let go all that is kept. */
static inline void kr_release(void)
{
    int k;
    for (k = 0; k < KR_KEPT; k++) {
        free(kr_kept[k].block);
        kr_kept[k].block = NULL;
    }
}

static inline void *kr_take(size_t n_bytes)
{
    void *block = NULL;
    if (n_bytes < 2 * KR_HUGE_PAGE)
        return malloc(n_bytes > 0 ? n_bytes : 1);
    if (kr_lock()) {
        block = kr_reuse(n_bytes);
        kr_unlock();
    }
    if (block != NULL)
        return block;
    if (posix_memalign(&block, KR_HUGE_PAGE, n_bytes) != 0) { /* addresses are short, if anything is kept */
        if (!kr_lock())
            return NULL;
        kr_release();
        kr_unlock();
        if (posix_memalign(&block, KR_HUGE_PAGE, n_bytes) != 0)
            return NULL;
    }
    (void)madvise(block, n_bytes & ~(KR_HUGE_PAGE - 1), MADV_HUGEPAGE);
    return block;
}

static inline void kr_give_back(void *block)
{
    size_t n_bytes = block == NULL ? 0 : malloc_usable_size(block);
    int whole_pages = ((uintptr_t)block & (KR_HUGE_PAGE - 1)) == 0; /* malloc's own are not, whatever room they have */
    if (n_bytes >= 2 * KR_HUGE_PAGE && whole_pages && kr_lock()) {
        kr_keep(block, n_bytes);
        kr_unlock();
        return;
    }
    free(block);
}

#else

static inline void kr_begin(void)
{
}

static inline void *kr_take(size_t n_bytes)
{
    return malloc(n_bytes > 0 ? n_bytes : 1);
}

static inline void kr_give_back(void *block)
{
    free(block);
}

#endif

#endif
