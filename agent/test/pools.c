/* pools.c - arming, staying inert, turning off: pools that are invalid or full, limits, the lease. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "harness.h"

static void expect_child(pid_t pid)
{
    int status = -1;
    CHECK(pid > 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void try_pool(const char *path)
{
    char value[256];
    snprintf(value, sizeof value, "pool=%s", path);
    setenv("TIDEMARK", value, 1);
    tm_start();
    CHECK(!tm_armed());
    void *block = tidemark_test_malloc(1 << 22);
    CHECK(block);
    tidemark_test_free(block);
}

static void write_file(const char *path, const void *bytes, size_t length, size_t size)
{
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, bytes, length) == (ssize_t)length && ftruncate(file, (off_t)size) == 0);
    close(file);
}

static const struct tm_pool_header good_head = {
    .magic = TM_POOL_MAGIC,
    .version = TM_SEGMENT_VERSION,
    .slot_count = 2,
    .slots_offset = 2 * TM_PAGE,
    .slot_stride = TM_SLOT_STRIDE,
    .period_bytes = 4096,
};

static void invalid_pools_are_refused(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/pool", test_directory);
    try_pool("/nonexistent/pool");
    try_pool("/dev/null");
    try_pool("/proc/self/stat");
    try_pool(test_directory);
    struct tm_pool_header head = good_head;
    size_t size = 2 * TM_PAGE + 2 * TM_SLOT_STRIDE;
    write_file(path, "garbage", 7, 7), try_pool(path);
    write_file(path, &head, sizeof head, size - 1), try_pool(path);
    head.version = 99, write_file(path, &head, sizeof head, size), try_pool(path);
    head = good_head, head.slot_count = 0xffffffff, write_file(path, &head, sizeof head, size), try_pool(path);
    head = good_head, head.slots_offset = ~0ull, write_file(path, &head, sizeof head, size), try_pool(path);
    head = good_head, head.slot_stride = TM_PAGE, write_file(path, &head, sizeof head, size), try_pool(path);
    unlink(path);
}

static void full_pools_count_the_unserved(void)
{
    char path[128], value[160];
    struct tm_pool_header head = good_head;
    snprintf(path, sizeof path, "%s/full", test_directory);
    write_file(path, &head, sizeof head, 2 * TM_PAGE + 2 * TM_SLOT_STRIDE);
    snprintf(value, sizeof value, "pool=%s", path);
    setenv("TIDEMARK", value, 1);
    tm_start();
    CHECK(tm_armed() && tm_core.period == 4096);
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (int k = 0; k < 1000; k++)
                tidemark_test_free(tidemark_test_malloc(10000));
            _exit(tm_armed() == (i == 0) ? 0 : 1);
        }
        expect_child(pid);
    }
    const struct tm_pool_header *mapped = tm_settings.pool.head;
    CHECK(mapped->claims == 2 && mapped->unserved == 2 && mapped->unserved_reason == ENOSPC);
    unlink(path);
}

static void lease_ends_it(void)
{
    agent_on("period=64", 5);
    tidemark_test_free(tidemark_test_malloc(10000));
    tm_settings.pool.head->lease_until_ms = 1;
    for (int i = 0; i < 100; i++)
        tidemark_test_free(tidemark_test_malloc(10000));
    CHECK(!tm_armed() && tm_core.header->state == TM_STATE_DISARMED);
    CHECK(memmem(tm_core.header->log, tm_core.header->log_length, "recorder", 8));
    CHECK(tm_core.header->limits & TM_LIMIT_TURNED_OFF);
}

static void a_stuck_lock_ends_it(void)
{
    agent_on("period=64", 5);
    void *block = tidemark_test_malloc(10000);
    tm_core.lock = 1; /* a holder that never returns */
    tm_core.lock_owner = &block;
    for (int i = 0; i < 200; i++)
        tidemark_test_free(tidemark_test_malloc(10000));
    CHECK(!tm_armed() && tm_core.header->state == TM_STATE_DISARMED);
    tidemark_test_free(block);
}

static void off_is_off(void)
{
    setenv("TIDEMARK", "off", 1);
    tm_start();
    CHECK(!tm_armed());
    void *block = tidemark_test_realloc(tidemark_test_malloc(1 << 20), 1 << 21);
    CHECK(block && !tm_armed());
    tidemark_test_free(block);
    unsetenv("TIDEMARK");
    tm_start();
    CHECK(!tm_armed() && tm_settings.pool.head == NULL);
}

static void file_size_limits_raise_no_signal(void)
{
    struct rlimit limit = {1 << 20, 1 << 20};
    char value[160];
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    snprintf(value, sizeof value, "dir=%s", test_directory);
    setenv("TIDEMARK", value, 1);
    tm_start();
    CHECK(!tm_armed());
    tidemark_test_free(tidemark_test_malloc(1 << 22));
}

static void the_end_is_marked(void)
{
    agent_on("period=64,wrong=7", 5);
    void *block = tidemark_test_malloc(10000);
    tm_end();
    CHECK(!tm_armed() && tm_core.header->state == TM_STATE_ENDED && site_sums().live_samples == 1);
    CHECK(memmem(tm_core.header->log, tm_core.header->log_length, "wrong=7", 7));
    tidemark_test_free(block);
}

int main(void)
{
    begin_tests();
    RUN(invalid_pools_are_refused);
    RUN(full_pools_count_the_unserved);
    RUN(lease_ends_it);
    RUN(a_stuck_lock_ends_it);
    RUN(off_is_off);
    RUN(file_size_limits_raise_no_signal);
    RUN(the_end_is_marked);
    return end_tests();
}
