/* processes.c - threads, forks, and readers that run beside the writer. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "harness.h"

static void *churn(void *argument)
{
    struct tm_thread_state random = {.random = (uintptr_t)argument * 2 + 1};
    void *blocks[64] = {0};
    for (int i = 0; i < 20000; i++) {
        unsigned at = (unsigned)(tm_random(&random) % 64);
        tidemark_test_free(blocks[at]);
        blocks[at] = tidemark_test_malloc(100 + tm_random(&random) % 1000);
    }
    for (int i = 0; i < 64; i++)
        tidemark_test_free(blocks[i]);
    return NULL;
}

/* Frees of samples that a thread could not record, because the lock was held too long on a busy machine. */
static void drain(void)
{
    CHECK(tm_lock());
    tm_drain_pending();
    tm_unlock();
}

static void threads_leave_nothing_behind(void)
{
    pthread_t threads[8];
    agent_on("period=4K", 5);
    no_controller(); /* every thread must reach its sample, however slow the machine */
    for (uintptr_t i = 0; i < 8; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    drain();
    CHECK(tm_core.header->samples > 100);
    CHECK(site_sums().live_samples == 0 && tm_core.live_count == 0);
    uint32_t named = tm_core.header->sections[TM_SECTION_THREADS].count;
    CHECK(named >= 9 && named <= 10);
}

static void *hand_over[4096];
static _Atomic unsigned given, freed;

static void *consume(void *unused)
{
    (void)unused;
    while (freed < 4096)
        if (freed < given)
            tidemark_test_free(hand_over[freed++]);
        else
            sched_yield();
    return NULL;
}

static void frees_by_other_threads_are_seen(void)
{
    pthread_t thread;
    agent_on("period=1", 5);
    no_controller();
    CHECK(pthread_create(&thread, NULL, consume, NULL) == 0);
    for (int i = 0; i < 4096; i++) {
        hand_over[i] = tidemark_test_malloc(100);
        given++;
    }
    pthread_join(thread, NULL);
    drain();
    uint64_t samples = tm_core.header->samples; /* on a busy machine a thread may wait without success */
    CHECK(samples + tm_core.header->samples_lost == 4096 && samples > 4000);
    CHECK(tm_core.header->frees_seen == samples && site_sums().live_samples == 0);
}

#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#endif

/* A forked child's memory is a copy in which only its one thread runs. ThreadSanitizer still compares it with
 * what the parent's threads last did before the fork, and reports a race. */
static void beyond_parents_threads(int begin)
{
#ifdef __SANITIZE_THREAD__
    if (begin)
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__), AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    else
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__), AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#else
    (void)begin;
#endif
}

/* A child has the parent's heap but not its profile; freeing inherited memory has no effect. */
static int child_starts_empty(void *inherited, uint64_t parent_samples)
{
    tidemark_test_free(inherited);
    void *own = tidemark_test_malloc(1 << 20);
    struct tm_site sums = site_sums();
    int good = tm_armed() && tm_core.pid == (uint32_t)getpid() && tm_core.header->pid == (uint32_t)getpid() &&
               tm_core.header->samples < parent_samples && sums.live_samples == 1 && sums.live_bytes >= 1 << 20;
    tidemark_test_free(own);
    good = good && site_sums().live_samples == 0;
    char path[128];
    snprintf(path, sizeof path, "%s/tidemark-%d.pool", test_directory, (int)getpid());
    good = good && access(path, R_OK) == 0;
    unlink(path);
    return good ? 0 : 1;
}

static void expect_child(pid_t pid)
{
    int status = -1;
    CHECK(pid > 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void forks_among_threads(void)
{
    pthread_t threads[4];
    agent_on("period=512", 5);
    no_controller();
    void *block = tidemark_test_malloc(100000);
    for (int i = 0; i < 100; i++)
        tidemark_test_free(tidemark_test_malloc(10000));
    CHECK(tm_is_sampled(block));
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, (void *)i);
    for (int i = 0; i < 25; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            beyond_parents_threads(1);
            int failed = child_starts_empty(block, tm_core.header ? 0 : 50);
            beyond_parents_threads(0);
            _exit(failed);
        }
        expect_child(pid);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    drain();
    CHECK(tm_is_sampled(block));
    tidemark_test_free(block);
    CHECK(site_sums().live_samples == 0);
}

/* Each child decides by itself whether to sample an allocation that is sampled about every second time. If they
 * shared the parent's countdown, all would sample it or none would. */
static void forked_children_sample_apart(void)
{
    agent_on("period=1M", 5);
    no_controller();
    tidemark_test_free(tidemark_test_malloc(100000)); /* draws the parent's gap */
    int sampled = 0;
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            char path[300];
            int taken = tm_is_sampled(tidemark_test_malloc(700000));
            snprintf(path, sizeof path, "%s/tidemark-%u.pool", test_directory, (unsigned)getpid());
            unlink(path);
            _exit(taken);
        }
        int status = -1;
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        sampled += WEXITSTATUS(status);
    }
    CHECK(sampled > 20 && sampled < 80); /* 49 expected, with a standard deviation of 5 */
}

#ifndef __SANITIZE_THREAD__ /* its runtime takes the loader's lock in fork() itself */
static volatile int holds_loader, let_go;

static int hold(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)info, (void)size, (void)data;
    holds_loader = 1;
    while (!let_go)
        usleep(1000);
    return 1;
}

static void *hold_loader(void *unused)
{
    dl_iterate_phdr(hold, NULL);
    return unused;
}

/* The loader's lock is copied while held, but its holder is not: a child that waited would never end. */
static void forks_while_the_loader_is_busy(void)
{
    pthread_t holder;
    agent_on("period=1K", 5);
    no_controller();
    holds_loader = let_go = 0;
    pthread_create(&holder, NULL, hold_loader, NULL);
    while (!holds_loader)
        usleep(1000);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 10; i++)
            tidemark_test_free(tidemark_test_malloc(100000));
        _exit(tm_core.header && tm_core.header->samples > 0 ? 0 : 1);
    }
    int status = -1;
    pid_t ended = 0;
    for (int i = 0; i < 3000 && ended == 0; i++, usleep(10000))
        ended = waitpid(pid, &status, WNOHANG);
    if (ended == 0)
        kill(pid, SIGKILL);
    let_go = 1;
    pthread_join(holder, NULL);
    CHECK(ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

/* Raw clone(2) runs no atfork handlers. */
static void clones_without_handlers(void)
{
    agent_on("period=512", 5);
    void *block = tidemark_test_malloc(100000);
    for (int i = 0; i < 100; i++)
        tidemark_test_free(tidemark_test_malloc(10000));
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(child_starts_empty(block, 50));
    expect_child(pid);
    CHECK(tm_is_sampled(block));
}

/* Between vfork and exec the child runs in our memory with another pid. */
static void vfork_writes_nothing(void)
{
    agent_on("period=1", 5);
    no_controller();
    tidemark_test_free(tidemark_test_malloc(1000));
    uint64_t samples = tm_core.header->samples;
    pid_t pid = vfork();
    if (pid == 0) {
        for (int i = 0; i < 100; i++)
            tidemark_test_free(tidemark_test_malloc(1000));
        _exit(0);
    }
    expect_child(pid);
    CHECK(tm_core.header->samples == samples && tm_armed());
    tidemark_test_free(tidemark_test_malloc(1000));
    CHECK(tm_core.header->samples == samples + 1);
}

/* ---- a reader beside the writer ------------------------------------------------------- */

static int read_at(int pool, void *to, size_t bytes, uint64_t offset)
{
    return pread(pool, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* As segment.h prescribes: begin, body and end in three reads. */
static int read_whole(int pool, void *to, size_t bytes, uint64_t offset, int *whole)
{
    uint32_t begin, end;
    int there = read_at(pool, &begin, sizeof begin, offset) && read_at(pool, to, bytes, offset) &&
                read_at(pool, &end, sizeof end, offset + bytes - sizeof end);
    *whole = there && begin == end;
    return there;
}

#define WHOLE_RECORDS 1000

/* If every allocation has 1000 bytes and weight 1, a whole record satisfies live_bytes = 1000 live_samples. */
static int watch(const char *path)
{
    int pool = open(path, O_RDONLY);
    struct tm_pool_header head;
    struct tm_segment_header header;
    unsigned whole = 0, torn = 0;
    /* A writer that loses its core within a record leaves it torn until it continues. */
    for (int look = 0; look < 20000 || whole <= WHOLE_RECORDS; look++) {
        if (!read_at(pool, &head, sizeof head, 0) || !read_at(pool, &header, sizeof header, head.slots_offset))
            return 2;
        const struct tm_section *sites = &header.sections[TM_SECTION_SITES], *live = &header.sections[TM_SECTION_LIVE];
        struct tm_site site;
        int is_whole;
        if (sites->count && read_whole(pool, &site, sizeof site, head.slots_offset + sites->offset, &is_whole)) {
            if (!is_whole)
                torn++;
            else if (whole++, fabs(site.live_bytes - 1000.0 * site.live_samples) > 0.5)
                return 3;
        }
        struct tm_live record;
        uint64_t at = (uint64_t)(look % 64) * sizeof record;
        if (read_whole(pool, &record, sizeof record, head.slots_offset + live->offset + at, &is_whole) && is_whole &&
            record.address && record.bytes != 1000)
            return 4;
    }
    fprintf(stderr, "# %u whole, %u torn\n", whole, torn);
    return 0;
}

static void readers_never_see_half_a_record(void)
{
    char path[128];
    agent_on("period=1", 5);
    no_controller();
    snprintf(path, sizeof path, "%s/tidemark-%d.pool", test_directory, (int)getpid());
    pid_t reader = fork();
    if (reader == 0)
        _exit(watch(path));
    void *blocks[50] = {0};
    int status;
    for (unsigned i = 0; waitpid(reader, &status, WNOHANG) == 0; i++) {
        for (int k = 0; k < 100; k++) {
            unsigned at = (i * 7 + (unsigned)k * 13) % 50;
            tidemark_test_free(blocks[at]);
            blocks[at] = tidemark_test_malloc(1000);
        }
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    begin_tests();
    RUN(threads_leave_nothing_behind);
    RUN(frees_by_other_threads_are_seen);
    RUN(forks_among_threads);
    RUN(forked_children_sample_apart);
#ifndef __SANITIZE_THREAD__
    RUN(forks_while_the_loader_is_busy);
#endif
    RUN(clones_without_handlers);
    RUN(vfork_writes_nothing);
    RUN(readers_never_see_half_a_record);
    return end_tests();
}
