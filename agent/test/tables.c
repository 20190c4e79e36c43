/* tables.c - bounds and bookkeeping: growth, thinning, overflow, eviction, peaks, ages. */
#include <time.h>

#include "harness.h"
#include "tidemark.h"

static void lock(void) { CHECK(tm_lock()); }

static void live_table_grows_and_thins(void)
{
    enum { COUNT = 200000, SIZE = 64 };
    static void *blocks[COUNT];
    agent_on("period=64", 11);
    no_controller();
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = tidemark_test_malloc(SIZE);
        CHECK(tm_core.live_count <= TM_LIVE_COUNT / 4 * 3);
    }
    struct tm_site sums = site_sums();
    CHECK(tm_core.header->thinnings >= 1 && tm_core.header->period_bytes > 64);
    CHECK(sums.live_samples == tm_core.live_count);
    CHECK(sums.live_samples == tm_core.header->sections[TM_SECTION_LIVE].count);
    CHECK_NEAR(sums.live_bytes, (double)COUNT * SIZE, 5 * sqrt(sums.live_variance));
    CHECK_NEAR(tm_core.header->live_bytes, sums.live_bytes, 1);
    CHECK(tm_core.header->samples_lost == 0);
    uint32_t found = 0;
    for (int i = 0; i < COUNT; i++)
        found += (uint32_t)(tm_maybe_sampled(blocks[i]) && tm_is_sampled(blocks[i]));
    CHECK(found == sums.live_samples);
    for (int i = 0; i < COUNT; i++)
        tidemark_test_free(blocks[i]);
    CHECK(site_sums().live_samples == 0 && tm_core.header->live_bytes == 0);
    for (unsigned i = 0; i < TM_FILTER_SLOTS / 64; i++)
        CHECK(tm_filter[i] == 0);
}

static void random_churn_agrees_with_a_plain_list(void)
{
    enum { COUNT = 3000 };
    static struct { void *address; size_t size; } list[COUNT];
    agent_on("period=1", 5);
    no_controller();
    struct tm_thread_state random = {.random = 99};
    for (int step = 0; step < 60000; step++) {
        unsigned at = (unsigned)(tm_random(&random) % COUNT);
        size_t size = 100 + tm_random(&random) % 5000;
        if (list[at].address && step % 3 == 0) {
            list[at].address = tidemark_test_realloc(list[at].address, size);
        } else {
            tidemark_test_free(list[at].address);
            list[at].address = step % 5 ? tidemark_test_malloc(size) : NULL;
        }
        list[at].size = list[at].address ? size : 0;
    }
    uint32_t live = 0;
    double bytes = 0;
    for (int i = 0; i < COUNT; i++) {
        live += list[i].address != NULL;
        bytes += (double)list[i].size;
        CHECK(!list[i].address || tm_is_sampled(list[i].address));
    }
    struct tm_site sums = site_sums();
    CHECK(sums.live_samples == live);
    CHECK_NEAR(sums.live_bytes, bytes, 1e-3);
    for (int i = 0; i < COUNT; i++)
        tidemark_test_free(list[i].address);
    CHECK(site_sums().live_samples == 0);
}

static void stale_entry_is_replaced(void)
{
    agent_on("period=1", 5);
    no_controller();
    void *block = tidemark_test_malloc(1000);
    lock();
    struct tm_sampled_block known, moved;
    CHECK(tm_live_find(block, &known));
    tm_live_move(&known, (char *)block + 4096, 1010, 1);
    CHECK(!tm_is_sampled(block) && tm_live_find((char *)block + 4096, &moved));
    tm_live_move(&moved, block, 1000, 1);
    CHECK(tm_is_sampled(block));
    tm_unlock();
    /* freed where the agent did not see it, and the same address is handed out again */
    tm_own_thread.inside = 1, tm_own_thread.countdown = TM_HELD;
    CHECK(tm_enter(1000) == 0);
    tm_own_thread.inside = 0, tm_own_thread.countdown = 0;
    CHECK(tm_spend(1000) && tm_enter(1000));
    tm_record(block, 2000, TM_DOMAIN_NATIVE, NULL);
    struct tm_site sums = site_sums();
    CHECK(sums.live_samples == 1);
    CHECK_NEAR(sums.live_bytes, 2000, 1e-6);
    tidemark_test_free(block);
    CHECK(site_sums().live_samples == 0);
}

static void nested_frees_are_not_lost(void)
{
    agent_on("period=1", 5);
    no_controller();
    void *blocks[10];
    for (int i = 0; i < 10; i++)
        blocks[i] = tidemark_test_malloc(1000);
    tm_own_thread.inside = 1; /* as in a signal handler that interrupts the slow path */
    for (int i = 0; i < 10; i++)
        tidemark_test_free(blocks[i]);
    tm_own_thread.inside = 0;
    CHECK(site_sums().live_samples == 10);
    void *last = tidemark_test_malloc(1000);
    CHECK(site_sums().live_samples == 1);
    tidemark_test_free(last);
}

static void strings_are_bounded(void)
{
    agent_on("period=64K", 5);
    lock();
    CHECK(tm_intern_string("", 0) == 0);
    uint32_t hello = tm_intern_string("hello", 5);
    CHECK(hello && tm_intern_string("hello", 5) == hello && tm_intern_string("hell", 4) != hello);
    char text[3000];
    memset(text, 'x', sizeof text);
    memcpy(text + 999, "\xe2\x82\xac", 3); /* a character across the truncation */
    uint32_t length;
    uint32_t id = tm_intern_string(text, sizeof text);
    memcpy(&length, tm_at(TM_SECTION_STRINGS, id * 8), 4);
    CHECK(length == 999);
    uint32_t refused = 0;
    for (unsigned i = 0; i < 100000; i++) {
        size_t n = tm_format(text, 200, "a name of some length, number %u", i);
        refused += tm_intern_string(text, n) == 0;
    }
    const struct tm_section *section = &tm_core.header->sections[TM_SECTION_STRINGS];
    CHECK(refused > 0 && section->lost == refused && section->count <= section->capacity);
    CHECK(section->capacity == TM_STRING_BYTES);
    CHECK(tm_core.header->limits & TM_LIMIT_STRINGS_FULL);
    CHECK(tm_intern_string("hello", 5) == hello);
    tm_unlock();
}

static void stacks_and_sites_are_bounded(void)
{
    agent_on("period=64K", 5);
    lock();
    uint32_t last_stack = 0, stack = 0;
    for (unsigned i = 0; i < 200000; i++) {
        uint32_t frame = tm_intern_native_frame(0, i);
        CHECK(frame == TM_NONE || frame < TM_FRAME_COUNT);
        stack = tm_intern_stack(i % 7 ? stack : 0, frame == TM_NONE ? i % 1000 : frame);
        CHECK(stack < TM_STACK_COUNT);
        uint32_t site = tm_find_site(stack, 0, i % 5, i % 3, 1);
        CHECK(site < TM_SITE_COUNT);
        CHECK(tm_find_site(stack, 0, i % 5, i % 3, 1) == site);
        last_stack = stack > last_stack ? stack : last_stack;
    }
    const struct tm_section *sections = tm_core.header->sections;
    CHECK(sections[TM_SECTION_FRAMES].count == TM_FRAME_COUNT && sections[TM_SECTION_FRAMES].lost > 0);
    CHECK(sections[TM_SECTION_SITES].count <= TM_SITE_COUNT && sections[TM_SECTION_SITES].lost > 0);
    CHECK(tm_core.header->limits & TM_LIMIT_SITES_FULL);
    for (uint32_t i = 1; i <= last_stack; i++) {
        const struct tm_stack_node *node = tm_at(TM_SECTION_STACKS, i);
        CHECK(node->parent < i && node->frame < TM_FRAME_COUNT);
    }
    tm_unlock();
}

static void peak_holds_what_lived_then(void)
{
    enum { COUNT = 1000 };
    void *blocks[COUNT];
    agent_on("period=1", 5);
    no_controller();
    for (int i = 0; i < COUNT; i++)
        blocks[i] = tidemark_test_malloc(1000);
    for (int i = 0; i < COUNT; i++)
        tidemark_test_free(blocks[i]);
    struct tm_site sums = site_sums();
    CHECK(sums.live_bytes == 0);
    CHECK_NEAR(sums.peak_bytes, tm_core.header->peak_live_bytes, 1e-3);
    CHECK(sums.peak_bytes > 1000.0 * COUNT * 0.979 && sums.peak_bytes <= 1000.0 * COUNT + 1);
    CHECK_NEAR(tm_core.highest_live_bytes, 1000.0 * COUNT, 1e-9);
    char status[8192];
    tidemark_status(status, sizeof status);
    CHECK(strstr(status, "\"liveBytes\":0,\"peakBytes\":1000000,\"periodBytes\":1,\"coarsestPeriodBytes\":1,") != NULL);
}

/* The bucket that gained one; TM_LIFETIME_BUCKETS: none, or more than one. */
static unsigned bucket_filled(const struct tm_site *before, const struct tm_site *after)
{
    unsigned filled = TM_LIFETIME_BUCKETS, count = 0;
    for (unsigned b = 0; b < TM_LIFETIME_BUCKETS; b++)
        if (after->lifetimes[b] != before->lifetimes[b])
            filled = b, count++;
    return count == 1 ? filled : TM_LIFETIME_BUCKETS;
}

/* Bucket b contains lifetimes from 2^(b-1) to 2^b ms. Each is determined by clocks read before and after,
 * because on a busy machine anything may happen in between. */
static void lifetimes_fall_into_their_buckets(void)
{
    static const long pauses_ms[] = {0, 3, 20, 70};
    enum { LIVES = sizeof pauses_ms / sizeof pauses_ms[0] };
    agent_on("period=1", 5);
    no_controller();
    for (unsigned i = 0; i < LIVES; i++) {
        struct tm_site before = site_sums();
        uint64_t earliest = tm_now_ms();
        void *block = tidemark_test_malloc(1000);
        uint64_t born = tm_now_ms();
        struct timespec pause = {.tv_nsec = pauses_ms[i] * 1000000};
        nanosleep(&pause, NULL);
        uint64_t least = tm_now_ms() - born;
        tidemark_test_free(block);
        uint64_t most = tm_now_ms() - earliest;
        struct tm_site after = site_sums();
        unsigned bucket = bucket_filled(&before, &after);
        CHECK(bucket < TM_LIFETIME_BUCKETS);
        CHECK((least >> bucket) == 0 && (bucket == 0 || most >> (bucket - 1) != 0));
        CHECK(least + 1 >= (uint64_t)pauses_ms[i]);
    }
    CHECK_NEAR(site_sums().freed_bytes, 1000.0 * LIVES, 1e-6);
    CHECK(tm_core.header->frees_seen == LIVES);
}

static void events_are_a_ring(void)
{
    extern void tidemark_step_begin(const char *, uint64_t);
    agent_on("period=64K", 5);
    for (unsigned i = 0; i < 3 * TM_EVENT_COUNT; i++)
        tidemark_step_begin("train", i);
    const struct tm_section *section = &tm_core.header->sections[TM_SECTION_EVENTS];
    CHECK(section->count == 3 * TM_EVENT_COUNT && section->capacity == TM_EVENT_COUNT);
    for (unsigned i = 0; i < TM_EVENT_COUNT; i++) {
        const struct tm_event *event = tm_at(TM_SECTION_EVENTS, i);
        CHECK(event->value == 2 * TM_EVENT_COUNT + i && event->kind == TM_EVENT_STEP_BEGIN && event->label);
    }
}

static void turning_off_is_on_the_timeline(void)
{
    agent_on("period=64K", 5);
    tm_turn_off("requested by the test");
    const struct tm_section *section = &tm_core.header->sections[TM_SECTION_EVENTS];
    const struct tm_event *event = tm_at(TM_SECTION_EVENTS, section->count - 1);
    CHECK(section->count == 1 && event->kind == TM_EVENT_OFF && !tm_armed());
    CHECK(tm_core.header->state == TM_STATE_DISARMED && tm_core.header->limits & TM_LIMIT_TURNED_OFF);
}

static void a_lock_that_is_never_released_turns_the_agent_off(void)
{
    agent_on("period=64K", 5);
    lock();
    tm_core.lock_owner = &tm_core; /* held by another thread that never releases it */
    tm_core.lock_timeouts = 18;
    CHECK(!tm_lock() && tm_armed()); /* the nineteenth wait in a row */
    CHECK(!tm_lock() && !tm_armed());
    CHECK(tm_core.header->state == TM_STATE_DISARMED && tm_core.header->limits & TM_LIMIT_TURNED_OFF);
}

static void the_end_waits_for_nobody(void)
{
    agent_on("period=64K", 5);
    lock(); /* as by a thread that has lost its core */
    tm_end();
    CHECK(tm_core.header->state == TM_STATE_ENDED && !tm_armed());
}

static void controller_answers_to_debt(void)
{
    agent_on("period=1K", 5);
    tm_core.credit_ns = -1000000;
    tm_core.header->slow_path_ns += 3600000000000ull; /* an hour spent: more than any clock can add */
    for (int i = 0; i < 20000; i++)
        tidemark_test_free(tidemark_test_malloc(1000));
    CHECK(tm_core.header->period_bytes > 1024 && tm_core.header->samples > 0);
}

int main(void)
{
    begin_tests();
    RUN(live_table_grows_and_thins);
    RUN(random_churn_agrees_with_a_plain_list);
    RUN(stale_entry_is_replaced);
    RUN(nested_frees_are_not_lost);
    RUN(strings_are_bounded);
    RUN(stacks_and_sites_are_bounded);
    RUN(peak_holds_what_lived_then);
    RUN(lifetimes_fall_into_their_buckets);
    RUN(events_are_a_ring);
    RUN(turning_off_is_on_the_timeline);
    RUN(a_lock_that_is_never_released_turns_the_agent_off);
    RUN(the_end_waits_for_nobody);
    RUN(controller_answers_to_debt);
    return end_tests();
}
