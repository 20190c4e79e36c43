/* harness.h - each case runs in a forked child, because the agent is armed once per process.
 *
 * The children run the core itself, compiled with prefixed entry points, on a pool file in a temporary
 * directory. A case fails by CHECK, or by crashing.
 */
#ifndef TIDEMARK_HARNESS_H
#define TIDEMARK_HARNESS_H

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/lock.h"
#include "core/number.h"
#include "core/state.h"
#include "core/system.h"
#include "hooks/hooks.h"
#include "live/live.h"
#include "live/mapping.h"
#include "live/site.h"
#include "period/period.h"
#include "process/loader.h"
#include "python/python.h"
#include "sampling/lifecycle.h"
#include "sampling/sampling.h"
#include "segment/intern.h"
#include "segment/pool.h"
#include "segment/sections.h"
#include "stacks/native.h"
#include "stacks/stack.h"

/* The entry points under test. */
void *tidemark_test_malloc(size_t bytes);
void *tidemark_test_calloc(size_t count, size_t size);
void *tidemark_test_realloc(void *address, size_t bytes);
void *tidemark_test_reallocarray(void *address, size_t count, size_t size);
void tidemark_test_free(void *address);
int tidemark_test_posix_memalign(void **result, size_t alignment, size_t bytes);
void *tidemark_test_memalign(size_t alignment, size_t bytes);
char *tidemark_test_strdup(const char *text);
void *tidemark_test_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset);
int tidemark_test_munmap(void *address, size_t length);
void *tidemark_test_mremap(void *address, size_t old_length, size_t new_length, int flags, ...);
void tm_start(void);
void tm_end(void);

#define CHECK(condition)                                                                      \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #condition);                 \
            _exit(1);                                                                         \
        }                                                                                     \
    } while (0)
#define CHECK_NEAR(got, expected, tolerance)                                                  \
    do {                                                                                      \
        double got_ = (got), expected_ = (expected);                                          \
        if (!(fabs(got_ - expected_) <= (tolerance))) {                                       \
            fprintf(stderr, "# %s:%d: %s is %.17g, not %.17g\n", __FILE__, __LINE__, #got, got_, expected_); \
            _exit(1);                                                                         \
        }                                                                                     \
    } while (0)

static char test_directory[] = "/tmp/tidemark-test-XXXXXX";
static int cases_run;

static inline void run_case(const char *name, void (*function)(void))
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(300);
        function();
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    int good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    printf("%sok %d - %s", good ? "" : "not ", ++cases_run, name);
    if (WIFSIGNALED(status))
        printf(" (signal %d)", WTERMSIG(status));
    printf("\n");
    char path[128];
    snprintf(path, sizeof path, "%s/tidemark-%d.pool", test_directory, (int)pid);
    unlink(path);
}
#define RUN(function) run_case(#function, function)

static inline void begin_tests(void)
{
    if (!mkdtemp(test_directory))
        exit(1);
}

static inline int end_tests(void)
{
    rmdir(test_directory);
    return 0;
}

/* Switches the agent on in this process with a pool file, and fixes its random numbers. */
static inline void agent_on(const char *options, uint64_t seed)
{
    char value[256];
    snprintf(value, sizeof value, "dir=%s,%s", test_directory, options);
    setenv("TIDEMARK", value, 1);
    tm_start();
    CHECK(tm_armed());
    CHECK(tm_core.header != NULL);
    tm_adopt_thread();
    tm_own_thread.random = seed * 0x9e3779b97f4a7c15ull | 1;
}

/* Sums over sites, read as a reader would read them. */
static inline struct tm_site site_sums(void)
{
    struct tm_site sums = {0};
    const struct tm_section *section = &tm_core.header->sections[TM_SECTION_SITES];
    const struct tm_site *sites = (const struct tm_site *)((const char *)tm_core.header + section->offset);
    for (uint32_t i = 0; i < section->count; i++) {
        CHECK(sites[i].sequence_begin == sites[i].sequence_end);
        sums.live_samples += sites[i].live_samples;
        sums.live_bytes += sites[i].live_bytes;
        sums.live_objects += sites[i].live_objects;
        sums.live_variance += sites[i].live_variance;
        sums.allocated_bytes += sites[i].allocated_bytes;
        sums.allocated_objects += sites[i].allocated_objects;
        sums.allocated_variance += sites[i].allocated_variance;
        sums.allocated_samples += sites[i].allocated_samples;
        sums.freed_bytes += sites[i].freed_bytes;
        int is_kept = sites[i].peak_number == tm_core.header->peak_number;
        sums.peak_bytes += is_kept ? sites[i].peak_bytes : sites[i].live_bytes;
        sums.peak_objects += is_kept ? sites[i].peak_objects : sites[i].live_objects;
        for (unsigned b = 0; b < TM_LIFETIME_BUCKETS; b++)
            sums.lifetimes[b] += sites[i].lifetimes[b];
    }
    return sums;
}

static inline void no_controller(void)
{
    /* A slow machine or a checking tool must not change the period. */
    tm_core.slow_samples = tm_core.large_samples = INT32_MIN;
    tm_core.check_at_ticks = UINT64_MAX;
}

#endif
