/* What core/base/team.h promises, tried by eight callers at a time: every index once, worker numbers that differ among threads
 * that run at the same time, loops inside of tasks, a forked child, and sums that all threads' writes have reached.
 * Built by test_team.py, once as it is and once with ThreadSanitizer. Prints "passed" and ends with 0, or says what broke.
 */
#include "base/team.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLERS = 8, MOST = 700, MOST_THREADS = 5 };

typedef struct {
    int visits[MOST];
    int running[MOST_THREADS]; /* atomic: threads inside with this number */
    double sums[MOST_THREADS];
    Py_ssize_t first, last;
    int n_threads, broken; /* broken: atomic */
    int inner;             /* whether a loop runs inside of each task */
} Loop;

static void count(void *context, Py_ssize_t first, Py_ssize_t last, int worker)
{
    __atomic_fetch_add((Py_ssize_t *)context, last - first, __ATOMIC_RELAXED);
    (void)worker;
}

static void visit(void *context, Py_ssize_t first, Py_ssize_t last, int worker)
{
    Loop *loop = context;
    Py_ssize_t k, n = 0;
    int wrong = worker < 0 || worker >= loop->n_threads || first >= last || first < loop->first || last > loop->last;
    if (!wrong)
        wrong = __atomic_fetch_add(&loop->running[worker], 1, __ATOMIC_RELAXED) != 0;
    if (wrong) {
        __atomic_store_n(&loop->broken, 1, __ATOMIC_RELAXED);
        return;
    }
    for (k = first; k < last; k++) {
        loop->visits[k]++;
        loop->sums[worker] += (double)k;
    }
    if (loop->inner) {
        kr_team_run(0, 10, 1, 4, count, &n);
        if (n != 10)
            __atomic_store_n(&loop->broken, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_sub(&loop->running[worker], 1, __ATOMIC_RELAXED);
}

static int fails(unsigned *seed)
{
    Loop loop;
    Py_ssize_t k;
    double sum = 0, expected = 0;
    memset(&loop, 0, sizeof(loop));
    loop.first = rand_r(seed) % 50;
    loop.last = loop.first + rand_r(seed) % (MOST - 50);
    loop.n_threads = 1 + rand_r(seed) % MOST_THREADS;
    loop.inner = rand_r(seed) % 2;
    kr_team_run(loop.first, loop.last, rand_r(seed) % 4, loop.n_threads, visit, &loop);
    for (k = 0; k < MOST; k++)
        if (loop.visits[k] != (loop.first <= k && k < loop.last))
            return 1;
    for (k = loop.first; k < loop.last; k++)
        expected += (double)k;
    for (k = 0; k < MOST_THREADS; k++)
        sum += loop.sums[k];
    return loop.broken || sum != expected;
}

static void *call(void *argument)
{
    unsigned seed = (unsigned)(size_t)argument;
    int turn;
    for (turn = 0; turn < 400; turn++)
        if (fails(&seed))
            return argument;
    return NULL;
}

static int all_callers(void)
{
    pthread_t callers[CALLERS];
    void *answer;
    size_t k;
    int broken = 0;
    for (k = 0; k < CALLERS; k++)
        if (pthread_create(&callers[k], NULL, call, (void *)(k + 1)) != 0)
            return 1;
    for (k = 0; k < CALLERS; k++) {
        pthread_join(callers[k], &answer);
        broken |= answer != NULL;
    }
    return broken;
}

int main(int n_arguments, char **arguments)
{
    pthread_t caller;
    unsigned seed = 99;
    int status = 0, turn;
    pid_t child;
    if (kr_team_begin() != 0 || all_callers()) {
        puts("an index was left out or visited twice, or two threads had one number");
        return 1;
    }
    if (n_arguments > 1 && strcmp(arguments[1], "fork") == 0)
        for (turn = 0; turn < 10; turn++) { /* while another thread is inside of a loop */
            if (pthread_create(&caller, NULL, call, (void *)(size_t)(turn + 100)) != 0)
                return 1;
            child = fork();
            if (child == 0)
                _exit(fails(&seed) || fails(&seed));
            waitpid(child, &status, 0);
            pthread_join(caller, NULL);
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                puts("a forked child broke");
                return 1;
            }
        }
    puts("passed");
    return 0;
}
