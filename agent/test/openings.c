/* openings.c - checks the recorded opener of each descriptor against the known one. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "harness.h"

int tidemark_test_open(const char *path, int flags, ...);
int tidemark_test_openat64(int directory, const char *path, int flags, ...);
FILE *tidemark_test_fopen(const char *path, const char *mode);
int tidemark_test_socketpair(int domain, int type, int protocol, int pair[2]);
int tidemark_test_pipe2(int pair[2], int flags);
int tidemark_test_accept4(int listening, struct sockaddr *peer, socklen_t *length, int flags);

#define PLENTY 400 /* more than the agent takes stacks for in one interval */

static void on(void)
{
    agent_on("period=1M", 3);
    no_controller();
}

/* As a reader sees it: 0 if no opener is recorded. */
static uint32_t opener(int descriptor)
{
    const struct tm_section *section = &tm_core.header->sections[TM_SECTION_OPENINGS];
    const struct tm_opening *openings = (const void *)((const char *)tm_core.header + section->offset);
    return (uint32_t)descriptor < section->count ? openings[descriptor].stack : 0;
}

static __attribute__((noinline)) int here(void)
{
    return tidemark_test_open("/dev/null", O_RDONLY);
}

static __attribute__((noinline)) int there(void)
{
    return tidemark_test_openat64(AT_FDCWD, "/dev/null", O_RDONLY);
}

static void each_place_has_its_stack(void)
{
    on();
    int first = here(), second = here(), other = there();
    CHECK(first >= 0 && opener(first) != 0);
    CHECK(opener(second) == opener(first));
    CHECK(opener(other) != 0 && opener(other) != opener(first));
}

static void the_latest_opening_counts(void)
{
    on();
    int first = here();
    uint32_t before = opener(first);
    close(first);
    CHECK(there() == first && opener(first) != 0 && opener(first) != before);
}

static void pairs_and_streams(void)
{
    on();
    int pair[2];
    CHECK(tidemark_test_socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(opener(pair[0]) != 0 && opener(pair[1]) == opener(pair[0]));
    CHECK(tidemark_test_pipe2(pair, O_CLOEXEC) == 0 && opener(pair[0]) != 0 && opener(pair[1]) != 0);
    CHECK(fcntl(pair[0], F_GETFD) == FD_CLOEXEC);
    FILE *stream = tidemark_test_fopen("/dev/null", "r");
    CHECK(stream && opener(fileno(stream)) != 0);
}

static void the_mode_arrives(void)
{
    on();
    char path[128];
    snprintf(path, sizeof path, "%s/made", test_directory);
    umask(0);
    int made = tidemark_test_open(path, O_CREAT | O_EXCL | O_WRONLY, 0640);
    struct stat status;
    CHECK(made >= 0 && fstat(made, &status) == 0 && (status.st_mode & 07777) == 0640);
    unlink(path);
}

static void failed_calls_change_nothing(void)
{
    on();
    int pair[2];
    errno = 0;
    CHECK(tidemark_test_open("/does/not/exist", O_RDONLY) == -1 && errno == ENOENT);
    CHECK(tidemark_test_fopen("/does/not/exist", "r") == NULL && errno == ENOENT);
    CHECK(tidemark_test_accept4(-1, NULL, NULL, 0) == -1 && errno == EBADF);
    CHECK(tidemark_test_socketpair(-1, 0, 0, pair) == -1 && errno == EAFNOSUPPORT);
    CHECK(tm_core.header->sections[TM_SECTION_OPENINGS].count == 0);
    errno = E2BIG;
    CHECK(here() >= 0 && errno == E2BIG);
}

/* Too many at once: a record never keeps the opener of an earlier descriptor with that number. */
static void too_many_are_not_known(void)
{
    on();
    int low = there();
    uint32_t before = opener(low);
    close(low);
    for (int i = 0; i < PLENTY; i++) {
        CHECK(here() == low);
        CHECK(opener(low) != before);
        close(low);
    }
    CHECK(here() == low && opener(low) == 0);
    usleep(150000); /* the next interval */
    close(low);
    CHECK(there() == low && opener(low) == before);
}

static void high_numbers(void)
{
    on();
    int one = here(), high = dup2(one, 900); /* beyond the initial number of records */
    CHECK(high == 900 && opener(high) == 0);
    for (int descriptor = one + 1; descriptor < 900; descriptor++)
        dup2(one, descriptor);
    close(900);
    CHECK(here() == 900 && opener(900) == opener(one));
    CHECK(opener(899) == 0);
}

static void no_samples_while_off(void)
{
    on();
    tm_turn_off("requested by the test");
    CHECK(opener(here()) == 0);
}

static void *open_and_close(void *unused)
{
    for (int i = 0; i < 2000; i++) {
        int descriptor = i % 2 ? here() : there();
        CHECK(descriptor >= 0);
        tidemark_test_free(tidemark_test_malloc(5000));
        close(descriptor);
    }
    return unused;
}

static void many_threads(void)
{
    on();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, open_and_close, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(tm_core.header->sections[TM_SECTION_OPENINGS].count > 0);
    CHECK(tm_armed() && !tm_lock_is_mine());
}

static void a_forked_child_has_its_own(void)
{
    on();
    int ours = here();
    uint32_t count = tm_core.header->sections[TM_SECTION_OPENINGS].count;
    pid_t child = fork();
    if (child == 0) {
        CHECK(there() == ours + 1); /* not recording yet, so not seen */
        CHECK(tm_core.header == NULL);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(tm_core.header->sections[TM_SECTION_OPENINGS].count == count);
}

int main(void)
{
    begin_tests();
    RUN(each_place_has_its_stack);
    RUN(the_latest_opening_counts);
    RUN(pairs_and_streams);
    RUN(the_mode_arrives);
    RUN(failed_calls_change_nothing);
    RUN(too_many_are_not_known);
    RUN(high_numbers);
    RUN(no_samples_while_off);
    RUN(many_threads);
    RUN(a_forked_child_has_its_own);
    return end_tests();
}
