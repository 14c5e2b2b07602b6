/* A team of threads that shares out the indices of a loop.
 *
 * kr_team_run(first, last, chunk, n_threads, task, context) calls task(context, i, j, worker) for ranges i <= k < j
 * that together are first <= k < last, each index once, on at most n_threads threads, and returns when all calls
 * have returned. Threads that run at the same time have different numbers 0 <= worker < n_threads; the caller is
 * worker 0.
 *
 * Nobody waits for a thread that has no core. The caller starts at once, threads join when the system runs them, and
 * every one takes the next range from a shared counter (guided self-scheduling, Polychronopoulos & Kuck 1987, IEEE
 * Trans. Computers C-36). When the counter is at its end the caller closes the loop: a thread that has not joined by
 * then is not waited for, and one that is inside a range is waited for by yielding the core for KR_SPIN_NS, then by
 * sleeping, which hands the caller's core to it. So a loop on a busy machine takes at most the time of one thread,
 * plus the rest of one range. OpenMP's teams, by contrast, meet at a barrier after every loop and spin there for
 * milliseconds.
 *
 * Threads are shared by all callers of the process, start when they are first needed, block every signal but those of
 * faults, and sleep between loops. A loop inside of a task that threads share runs on one of them. A forked child
 * starts a team of its own.
 *
 * Included by team.pyx alone, which owns the one team. KERNELRULES_NO_THREADS builds it without threads.
 */
#ifndef KERNELRULES_TEAM_H
#define KERNELRULES_TEAM_H

#include <Python.h>
#if !defined(_WIN32)
#include <unistd.h>
#endif

typedef void (*kr_task)(void *context, Py_ssize_t first, Py_ssize_t last, int worker);

#if defined(KERNELRULES_NO_THREADS)

#define KR_HAS_THREADS 0

static inline int kr_team_begin(void)
{
    return 0;
}

static inline void kr_team_run(Py_ssize_t first, Py_ssize_t last, Py_ssize_t chunk, int n_threads, kr_task task,
                               void *context)
{
    (void)chunk;
    (void)n_threads;
    if (first < last)
        task(context, first, last, 0);
}

#else

#define KR_HAS_THREADS 1

#if defined(_WIN32)
#include <windows.h>
#include <process.h>
typedef SRWLOCK kr_mutex;
typedef CONDITION_VARIABLE kr_condition;
#define KR_MUTEX SRWLOCK_INIT
#define KR_CONDITION CONDITION_VARIABLE_INIT
#define kr_lock(mutex) AcquireSRWLockExclusive(mutex)
#define kr_unlock(mutex) ReleaseSRWLockExclusive(mutex)
#define kr_sleep(condition, mutex) SleepConditionVariableSRW(condition, mutex, INFINITE, 0)
#define kr_wake_one(condition) WakeConditionVariable(condition)
#define kr_wake_all(condition) WakeAllConditionVariable(condition)
#define kr_yield() SwitchToThread()
#else
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
typedef pthread_mutex_t kr_mutex;
typedef pthread_cond_t kr_condition;
#define KR_MUTEX PTHREAD_MUTEX_INITIALIZER
#define KR_CONDITION PTHREAD_COND_INITIALIZER
#define kr_lock(mutex) pthread_mutex_lock(mutex)
#define kr_unlock(mutex) pthread_mutex_unlock(mutex)
#define kr_sleep(condition, mutex) pthread_cond_wait(condition, mutex)
#define kr_wake_one(condition) pthread_cond_signal(condition)
#define kr_wake_all(condition) pthread_cond_broadcast(condition)
#define kr_yield() sched_yield()
#endif

/* A thread without work looks for some, yielding its core to other threads, before it sleeps: waking takes tens of
 * microseconds, and loops follow one another within that time. */
#define KR_SPIN_NS 100000
#define KR_STACK_BYTES ((size_t)4 << 20) /* of a thread; some systems give as little as 128 KB */
#define KR_SHARES 4                      /* a range without a given size is this part of a thread's share of the rest */

typedef struct kr_loop {
    kr_task task;
    void *context;
    Py_ssize_t next; /* atomic: the first index that nobody has taken */
    Py_ssize_t last;
    Py_ssize_t chunk; /* indices of a range; 0: fewer and fewer */
    int n_threads;
    int n_joined; /* threads that have been inside, the caller among them */
    int n_inside; /* atomic: those inside, without the caller; written under the lock */
    kr_condition left;
    struct kr_loop *following;
} kr_loop;

static kr_mutex kr_team_lock = KR_MUTEX;
static kr_condition kr_team_work = KR_CONDITION;
static kr_loop *kr_loops = NULL; /* that threads may join */
static unsigned kr_n_posted = 0; /* atomic: loops that there have been; written under the lock */
static int kr_n_workers = 0;
static int kr_n_looking = 0; /* of the workers, those that look for the next loop */
static int kr_n_asleep = 0;
static int kr_n_cores = 1;
static __thread int kr_inside_loop = 0;

static inline long long kr_nanoseconds(void)
{
#if defined(_WIN32)
    LARGE_INTEGER count, frequency;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&frequency);
    return (long long)((double)count.QuadPart * 1e9 / (double)frequency.QuadPart);
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000LL + now.tv_nsec;
#endif
}

/* Take ranges until there are none. */
static void kr_take_part(kr_loop *loop, int worker)
{
    Py_ssize_t first, size, last;
    kr_inside_loop = 1;
    for (;;) {
        first = __atomic_load_n(&loop->next, __ATOMIC_RELAXED);
        do {
            if (first >= loop->last) {
                kr_inside_loop = 0;
                return;
            }
            size = loop->chunk;
            if (size == 0)
                size = (loop->last - first) / (KR_SHARES * (Py_ssize_t)loop->n_threads) + 1;
            last = loop->last - first > size ? first + size : loop->last;
        } while (!__atomic_compare_exchange_n(&loop->next, &first, last, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        loop->task(loop->context, first, last, worker);
    }
}

/* A loop with a free place, or NULL. Under the lock. */
static kr_loop *kr_open_loop(void)
{
    kr_loop *loop;
    for (loop = kr_loops; loop != NULL; loop = loop->following)
        if (loop->n_joined < loop->n_threads && __atomic_load_n(&loop->next, __ATOMIC_RELAXED) < loop->last)
            return loop;
    return NULL;
}

/* Look for a loop that was not there before, for a while. Under the lock, which is free meanwhile. */
static void kr_look(void)
{
    long long until = kr_nanoseconds() + KR_SPIN_NS;
    unsigned seen = kr_n_posted;
    kr_n_looking++;
    kr_unlock(&kr_team_lock);
    while (__atomic_load_n(&kr_n_posted, __ATOMIC_RELAXED) == seen && kr_nanoseconds() < until)
        kr_yield();
    kr_lock(&kr_team_lock);
    kr_n_looking--;
}

static void kr_work(void)
{
    kr_loop *loop;
    int worker, looked = 0;
    kr_lock(&kr_team_lock);
    for (;;) {
        loop = kr_open_loop();
        if (loop != NULL) {
            worker = loop->n_joined++;
            __atomic_store_n(&loop->n_inside, loop->n_inside + 1, __ATOMIC_RELAXED);
            kr_unlock(&kr_team_lock);
            kr_take_part(loop, worker);
            kr_lock(&kr_team_lock);
            __atomic_store_n(&loop->n_inside, loop->n_inside - 1, __ATOMIC_RELEASE);
            if (loop->n_inside == 0)
                kr_wake_one(&loop->left); /* the loop is its caller's, who cannot go on before the lock is free */
            looked = 0;
        } else if (!looked) {
            kr_look();
            looked = 1;
        } else {
            kr_n_asleep++;
            kr_sleep(&kr_team_work, &kr_team_lock);
            kr_n_asleep--;
            looked = 0;
        }
    }
}

#if defined(_WIN32)
static unsigned __stdcall kr_worker_main(void *unused)
{
    (void)unused;
    kr_work();
    return 0;
}

static int kr_start_worker(void)
{
    uintptr_t handle = _beginthreadex(NULL, (unsigned)KR_STACK_BYTES, kr_worker_main, NULL, 0, NULL);
    if (handle == 0)
        return 0;
    CloseHandle((HANDLE)handle);
    return 1;
}

static int kr_team_begin(void)
{
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    kr_n_cores = (int)system.dwNumberOfProcessors;
    return 0;
}
#else
static void *kr_worker_main(void *unused)
{
    (void)unused;
    kr_work();
    return NULL;
}

/* Signals are for the threads of Python, which knows what to do with them; those that a thread's own instructions raise
 * are its own: blocked, they would end the process without a word of faulthandler's. */
static int kr_start_worker(void)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    size_t k;
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    int failed;
    if (pthread_attr_init(&attributes) != 0)
        return 0;
    pthread_attr_setstacksize(&attributes, KR_STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    for (k = 0; k < sizeof(own) / sizeof(own[0]); k++)
        sigdelset(&all, own[k]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&thread, &attributes, kr_worker_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed == 0;
}

static void kr_before_fork(void)
{
    kr_lock(&kr_team_lock);
}

static void kr_after_fork(void)
{
    kr_unlock(&kr_team_lock);
}

/* The child has the forking thread only: no workers, and no loops, whose callers are not there. */
static void kr_in_child(void)
{
    pthread_mutex_init(&kr_team_lock, NULL);
    pthread_cond_init(&kr_team_work, NULL);
    kr_loops = NULL;
    kr_n_workers = kr_n_looking = kr_n_asleep = kr_inside_loop = 0;
}

/* Called at import, by each interpreter of the process. Nonzero: there is no memory. */
static int kr_team_begin(void)
{
    static int begun = 0; /* the handlers lock: twice would be for ever */
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    kr_n_cores = n_cores > 1 ? (int)n_cores : 1;
    if (__atomic_exchange_n(&begun, 1, __ATOMIC_RELAXED))
        return 0;
    return pthread_atfork(kr_before_fork, kr_after_fork, kr_in_child);
}
#endif

/* Wake or start threads for a loop, as many as it has places. Under the lock. A thread that cannot be started is missed
 * by nobody. */
static void kr_call_workers(int n_wanted)
{
    int most = (kr_n_cores > n_wanted + 1 ? kr_n_cores : n_wanted + 1) - 1, n_woken;
    n_wanted -= kr_n_looking;
    for (n_woken = 0; n_wanted > 0 && n_woken < kr_n_asleep; n_wanted--, n_woken++)
        kr_wake_one(&kr_team_work);
    for (; n_wanted > 0 && kr_n_workers < most; n_wanted--) {
        if (!kr_start_worker())
            return;
        kr_n_workers++;
    }
}

/* Wait until no thread is inside of the loop, which nobody can join any more. */
static void kr_await(kr_loop *loop)
{
    long long until = kr_nanoseconds() + KR_SPIN_NS;
    while (__atomic_load_n(&loop->n_inside, __ATOMIC_RELAXED) > 0 && kr_nanoseconds() < until)
        kr_yield();
    kr_lock(&kr_team_lock);
    while (loop->n_inside > 0)
        kr_sleep(&loop->left, &kr_team_lock);
    kr_unlock(&kr_team_lock);
}

static void kr_team_run(Py_ssize_t first, Py_ssize_t last, Py_ssize_t chunk, int n_threads, kr_task task, void *context)
{
    kr_loop loop, **at;
    int n_inside;
    if (first >= last)
        return;
    if (n_threads > last - first)
        n_threads = (int)(last - first);
    if (n_threads <= 1 || last - first <= chunk || kr_inside_loop) {
        task(context, first, last, 0);
        return;
    }
    loop.task = task;
    loop.context = context;
    loop.next = first;
    loop.last = last;
    loop.chunk = chunk;
    loop.n_threads = n_threads;
    loop.n_joined = 1;
    loop.n_inside = 0;
#if defined(_WIN32)
    InitializeConditionVariable(&loop.left);
#else
    pthread_cond_init(&loop.left, NULL);
#endif
    kr_lock(&kr_team_lock);
    loop.following = kr_loops;
    kr_loops = &loop;
    __atomic_store_n(&kr_n_posted, kr_n_posted + 1, __ATOMIC_RELAXED);
    kr_call_workers(n_threads - 1);
    kr_unlock(&kr_team_lock);
    kr_take_part(&loop, 0);
    kr_lock(&kr_team_lock);
    for (at = &kr_loops; *at != NULL; at = &(*at)->following) /* in a child forked meanwhile it is not there */
        if (*at == &loop) {
            *at = loop.following;
            break;
        }
    n_inside = loop.n_inside;
    kr_unlock(&kr_team_lock);
    if (n_inside > 0)
        kr_await(&loop);
#if !defined(_WIN32)
    pthread_cond_destroy(&loop.left);
#endif
}

#endif

#endif
