/* A malloc, and a posix_memalign, that fail when they are told to, for calls out of kernelrules' own libraries only, and counts what these have
 * not freed. Preloaded by test_leaks.py into a process of its own.
 *
 *     watch()      look where kernelrules' libraries lie; from here on their memory is counted
 *     fail_at(k)   the k-th allocation from now on fails, and those after it do not; 0: none. A posix_memalign that fails
 *                  does so again when it is tried again, as memory.h does after letting go what it keeps
 *     asked()      allocations since fail_at
 *     live()       allocations that were not freed, since watch
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MOST_RANGES = 256, SLOTS = 1 << 16 };

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static struct { uintptr_t from, to; } ranges[MOST_RANGES];
static int n_ranges;
static void *slots[SLOTS]; /* open addressing; a freed one keeps its place as GONE */
static long n_live, n_asked, failing;
static int fails_again; /* the next posix_memalign */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define GONE ((void *)1)

static int add_ranges(struct dl_phdr_info *info, size_t size, void *unused)
{
    if (strstr(info->dlpi_name, "kernelrules") == NULL || strstr(info->dlpi_name, ".so") == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum && n_ranges < MOST_RANGES; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            ranges[n_ranges].from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            ranges[n_ranges].to = ranges[n_ranges].from + info->dlpi_phdr[i].p_memsz;
            n_ranges++;
        }
    return 0;
}

int watch(void)
{
    n_ranges = 0;
    dl_iterate_phdr(add_ranges, NULL);
    return n_ranges;
}

void fail_at(long k) { n_asked = 0; failing = k; fails_again = 0; }
long asked(void) { return n_asked; }
long live(void) { return n_live; }

static int ours(void *caller)
{
    for (int i = 0; i < n_ranges; i++)
        if ((uintptr_t)caller >= ranges[i].from && (uintptr_t)caller < ranges[i].to)
            return 1;
    return 0;
}

/* The slot of a pointer, or an empty one where it may be put. */
static size_t slot_of(void *p, int to_put)
{
    size_t at = ((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15u >> 48;
    size_t n;
    for (n = 0; n < SLOTS; n++, at = (at + 1) % SLOTS) {
        if (slots[at] == p || slots[at] == NULL || (to_put && slots[at] == GONE))
            return at;
    }
    return SLOTS;
}

static void remember(void *p)
{
    size_t at;
    if (p != NULL && (at = slot_of(p, 1)) < SLOTS) {
        slots[at] = p;
        n_live++;
    }
}

static void forget(void *p)
{
    size_t at = slot_of(p, 0);
    if (at < SLOTS && slots[at] == p) {
        slots[at] = GONE;
        n_live--;
    }
}

static int must_fail(void) { return ++n_asked == failing; }

void *malloc(size_t size)
{
    void *p;
    if (!ours(__builtin_return_address(0)))
        return __libc_malloc(size);
    pthread_mutex_lock(&lock);
    p = must_fail() ? NULL : __libc_malloc(size);
    remember(p);
    pthread_mutex_unlock(&lock);
    return p;
}

void *calloc(size_t n, size_t size)
{
    void *p;
    if (!ours(__builtin_return_address(0)))
        return __libc_calloc(n, size);
    pthread_mutex_lock(&lock);
    p = must_fail() ? NULL : __libc_calloc(n, size);
    remember(p);
    pthread_mutex_unlock(&lock);
    return p;
}

void *realloc(void *old, size_t size)
{
    void *p;
    if (!ours(__builtin_return_address(0)))
        return __libc_realloc(old, size);
    pthread_mutex_lock(&lock);
    p = must_fail() ? NULL : __libc_realloc(old, size);
    if (p != NULL) {
        if (old != NULL)
            forget(old);
        remember(p);
    }
    pthread_mutex_unlock(&lock);
    return p;
}

int posix_memalign(void **place, size_t alignment, size_t size)
{
    void *p = NULL;
    if (!ours(__builtin_return_address(0))) {
        p = __libc_memalign(alignment, size);
    } else {
        pthread_mutex_lock(&lock);
        if (fails_again)
            fails_again = 0;
        else if (must_fail())
            fails_again = 1;
        else
            p = __libc_memalign(alignment, size);
        remember(p);
        pthread_mutex_unlock(&lock);
    }
    if (p == NULL)
        return ENOMEM;
    *place = p;
    return 0;
}

void free(void *p)
{
    if (p != NULL && n_live > 0 && ours(__builtin_return_address(0))) {
        pthread_mutex_lock(&lock);
        forget(p);
        pthread_mutex_unlock(&lock);
    }
    __libc_free(p);
}
