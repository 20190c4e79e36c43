/* late.c - attaching to a running program and leaving it: under load, by lease, forked, refused.
 *
 *     late [CYCLES]     the number of attaches under the load of threads
 */
#include <sched.h>

#include "late/objects.h"

static int cycles = 150;

static _Atomic int stop;

static void *churn(void *argument)
{
    struct object objects[KINDS];
    memcpy(objects, argument, sizeof objects);
    struct tm_thread_state random = {.random = (uintptr_t)&objects | 1};
    void *blocks[64] = {0};
    while (!stop) {
        const struct object *one = &objects[tm_random(&random) % KINDS], *other = &objects[tm_random(&random) % KINDS];
        unsigned at = (unsigned)(tm_random(&random) % 64);
        other->give(blocks[at]);
        blocks[at] = one->take(1 + tm_random(&random) % 3000);
        CHECK(blocks[at] != NULL);
        memset(blocks[at], 1, 1);
        if (at % 4 == 0)
            blocks[at] = other->change(blocks[at], 1 + tm_random(&random) % 3000);
    }
    for (unsigned i = 0; i < 64; i++)
        objects[0].give(blocks[i]);
    return NULL;
}

#ifndef __SANITIZE_THREAD__ /* its runtime does not support libraries that are loaded and unloaded among threads */
static void *come_and_go(void *unused)
{
    while (!stop) {
        struct object object = open_object("norelro");
        use_unseen(&object);
        dlclose(object.handle);
        sched_yield();
    }
    return unused;
}
#endif

static unsigned count_lines(const char *path)
{
    unsigned lines = 0;
    FILE *file = fopen(path, "r");
    for (int c; file && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}

/* Under load from four threads, through objects of every kind; one object is closed and reopened meanwhile. */
static void many_cycles_among_threads(void)
{
    struct object objects[KINDS];
    pthread_t threads[5];
    load();
    for (unsigned i = 0; i < KINDS; i++) {
        objects[i] = open_object(kinds[i]);
        use_unseen(&objects[i]);
    }
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, objects) == 0);
#ifndef __SANITIZE_THREAD__
    CHECK(pthread_create(&threads[4], NULL, come_and_go, NULL) == 0);
#endif
    for (unsigned i = 0; i < KINDS; i++)
        if (strcmp(kinds[i], "norelro") != 0)
            take_image(&images[i], kinds[i]);
    const uint8_t *segment = NULL;
    unsigned lines = 0;
    uint64_t samples = 0;
    for (int cycle = 0; cycle < cycles; cycle++) {
        arm("period=4K");
        uint64_t taken = 0;
        for (int wait = 0; wait < 200 && taken < 3; wait++) {
            sched_yield();
            if (tm_lock()) {
                taken = tm_core.header->samples;
                tm_unlock();
            }
        }
        samples += taken;
        CHECK(!segment || segment == tm_core.segment);
        segment = tm_core.segment;
        disarm();
        if (cycle == cycles / 3)
            lines = count_lines("/proc/self/maps");
    }
    stop = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
#ifndef __SANITIZE_THREAD__
    pthread_join(threads[4], NULL);
#endif
    CHECK(samples > (uint64_t)cycles / 2);
    CHECK(count_lines("/proc/self/maps") < lines + 60); /* threads' stacks and heaps are mapped and unmapped, too */
    for (unsigned i = 0; i < KINDS; i++)
        CHECK(strcmp(kinds[i], "norelro") == 0 || same_image(&images[i]));
}
static void a_lapsed_lease_leaves(void)
{
    struct object object = open_object("now");
    use_unseen(&object);
    take_image(&images[0], "now");
    arm("period=64");
    no_controller();
    object.give(object.take(10000));
    tm_settings.pool.head->lease_until_ms = 1;
    for (int i = 0; i < 100; i++)
        object.give(object.take(10000));
    CHECK(!tm_armed() && tm_core.phase == TM_PHASE_UNBORN && same_image(&images[0]));
    CHECK(tm_slots_count().slots == 0 && tm_settings.pool.head->lease_until_ms == 0);
    arm("period=1");
    no_controller();
    object.give(object.take(TM_IDLE)); /* a moment ago, it found that nothing was recording */
    use(&object);
    disarm();
    CHECK(same_image(&images[0]));
}

static void children_record_and_leave_for_themselves(void)
{
    struct object object = open_object("now");
    use_unseen(&object);
    take_image(&images[0], "now");
    arm("period=1");
    no_controller();
    void *inherited = object.take(5000);
    for (int i = 0; i < 3; i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0) {
            char path[300];
            object.give(inherited);
            object.give(object.take(100000));
            CHECK(tm_armed() && tm_core.pid == (uint32_t)getpid());
            if (tm_loader_is_safe()) {
                disarm();
                CHECK(same_image(&images[0]));
                arm("period=1");
                no_controller();
                use(&object);
                disarm();
            }
            snprintf(path, sizeof path, "%s/tidemark-%u.pool", test_directory, (unsigned)getpid());
            unlink(path);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK(tm_is_sampled(inherited));
    object.give(inherited);
    use(&object);
    disarm();
    CHECK(same_image(&images[0]));
}

static void a_thread_that_never_returns_blocks_the_next(void)
{
    struct object object = open_object("now");
    use_unseen(&object);
    take_image(&images[0], "now");
    arm("period=64");
    void *block = object.take(10000);
    tm_core.lock = 1; /* a holder that does not return */
    tm_core.lock_owner = &block;
    char why[256] = "";
    CHECK(tidemark_disarm(why, sizeof why) == EBUSY && strncmp(why, "busy: ", 6) == 0);
    CHECK(!tm_armed() && same_image(&images[0]));
    object.give(block);
    use_unseen(&object);
    CHECK(tidemark_arm("period=64", why, sizeof why) == EBUSY && strncmp(why, "busy: ", 6) == 0);
    tm_core.lock = 0;
    tm_core.lock_owner = NULL;
    arm("period=1");
    no_controller();
    use(&object);
    disarm();
}

static void refusals_touch_nothing(void)
{
    struct object object = open_object("now");
    use_unseen(&object);
    take_image(&images[0], "now");
    static const char *const wrong[][2] = {
        {"pool=/nonexistent/pool", "pool: "}, {"pool=/dev/null", "pool: "},   {"pool=/proc/self/stat", "pool: "},
        {"period=64K,wrong", "options: "},    {"period=wrong", "options: "}, {"off", "options: "},
    };
    char why[256], small[12];
    load();
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(tidemark_arm(wrong[i][0], why, sizeof why) != 0);
        CHECK(strncmp(why, wrong[i][1], strlen(wrong[i][1])) == 0);
        CHECK(tidemark_arm(wrong[i][0], small, sizeof small) != 0 && strlen(small) == sizeof small - 1);
        CHECK(tidemark_arm(wrong[i][0], NULL, 0) != 0);
        CHECK(!tm_armed() && same_image(&images[0]));
    }
    char status[2048];
    CHECK(tidemark_status(status, sizeof status) == strlen(status) && strstr(status, "\"state\":\"inert\""));
    CHECK(tidemark_status(status, 10) == 9 && strlen(status) == 9);
    arm("period=1");
    CHECK(tidemark_status(status, sizeof status) == strlen(status) && strstr(status, "\"state\":\"armed\""));
    disarm();
    CHECK(tidemark_disarm(why, sizeof why) == 0);
}

enum { BLOCKS = 2000 };

/* Adds the estimate of BLOCKS live blocks of 1,000 bytes, and its variance; the blocks are freed again. */
static void add_live(struct object object, double *live, double *variance)
{
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = object.take(1000);
    struct tm_site sums = site_sums();
    *live += sums.live_bytes;
    *variance += sums.live_variance;
    for (int i = 0; i < BLOCKS; i++)
        object.give(blocks[i]);
}

/* The heap of the attach itself, sampled at random, is correct over many attaches. */
static void sums_are_unbiased_from_the_first_byte(void)
{
    struct object object = open_object("noplt");
    double live = 0, variance = 0;
    for (int round = 0; round < 40; round++) {
        arm("period=64K");
        no_controller();
        add_live(object, &live, &variance);
        CHECK(site_sums().live_samples < 5);
        disarm();
    }
    CHECK_NEAR(live, 40 * BLOCKS * 1000.0, 5.5 * sqrt(variance));
}

/* A recording with a very coarse period leaves each thread a gap that would last for most of the next recording. */
static void a_gap_ends_with_its_recording(void)
{
    struct object object = open_object("noplt");
    double live = 0, variance = 0;
    for (int round = 0; round < 40; round++) {
        arm("period=1G");
        no_controller();
        object.give(object.take(4 << 20)); /* ends the gap of the round before */
        CHECK(tm_own_thread.period == 1u << 30);
        disarm();
        arm("period=64K");
        no_controller();
        for (int passed = 0; passed <= (int)TM_IDLE; passed += 1000)
            object.give(object.take(1000));
        CHECK(tm_own_thread.period == 64u << 10);
        add_live(object, &live, &variance);
        disarm();
    }
    CHECK_NEAR(live, 40 * BLOCKS * 1000.0, 5.5 * sqrt(variance));
}

int main(int count, char **arguments)
{
    if (count > 1)
        cycles = atoi(arguments[1]);
    begin_late_tests(arguments[0]);
    RUN(many_cycles_among_threads);
    RUN(a_lapsed_lease_leaves);
    RUN(children_record_and_leave_for_themselves);
    RUN(a_thread_that_never_returns_blocks_the_next);
    RUN(refusals_touch_nothing);
    RUN(sums_are_unbiased_from_the_first_byte);
    RUN(a_gap_ends_with_its_recording);
    return end_tests();
}
