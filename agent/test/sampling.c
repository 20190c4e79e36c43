/* sampling.c - checks the sums. Programs that know what they allocated run many times with fixed seeds: the
 * mean of the estimates must be the true value, their scatter the stated one, and their 95 % intervals must
 * contain it in 95 % of the runs.
 *
 * Seeds determine every case except the thinned one: thinning draws in the order of the table, which depends on
 * the addresses that the kernel assigns. The limits below are for that one: a correct implementation misses any
 * of them less than once in a million runs. */
#include <errno.h>

#include "harness.h"

/* For a case whose runs are all the same. Under ThreadSanitizer a replicate takes fifteen times as long, and says
 * no more than the first ones did: one thread, the same random numbers. */
#ifdef __SANITIZE_THREAD__
#define REPLICATES 40
#else
#define REPLICATES 120
#endif
#define MOST_REPLICATES 1000 /* for a case that chance decides */
/* Minimum share of 95 % intervals that must contain the true value. With MOST_REPLICATES, a correct
 * implementation (0.94, because the width itself comes from a few hundred samples) misses it once in ten
 * million runs. */
#define LEAST_HELD 0.88

struct outcome {
    double truth_live, truth_allocated, truth_objects;
    struct tm_site sums;
};

static void begin_replicate(uint64_t seed)
{
    tm_own_thread.random = (seed + 1) * 0x9e3779b97f4a7c15ull | 1;
    tm_own_thread.countdown = tm_own_thread.rest = 0;
    tm_own_thread.period = 0;
    tm_own_thread.large_gap = 0;
}

static struct tm_site sums_since(const struct tm_site *before)
{
    struct tm_site sums = site_sums();
    sums.live_bytes -= before->live_bytes;
    sums.live_objects -= before->live_objects;
    sums.live_variance -= before->live_variance;
    sums.allocated_bytes -= before->allocated_bytes;
    sums.allocated_variance -= before->allocated_variance;
    sums.freed_bytes -= before->freed_bytes;
    return sums;
}

/* One replicate: its own sites' figures are separated from earlier ones by subtraction. */
static struct outcome replicate(unsigned count, const size_t *sizes, unsigned size_count, uint64_t seed,
                                void (*midway)(unsigned at))
{
    static void *blocks[20000];
    begin_replicate(seed);
    struct outcome outcome = {0};
    struct tm_site before = site_sums();
    for (unsigned i = 0; i < count; i++) {
        size_t size = sizes[i % size_count];
        blocks[i] = tidemark_test_malloc(size);
        outcome.truth_allocated += (double)size;
        if (midway)
            midway(i);
    }
    for (unsigned i = 0; i < count; i += 3) {
        tidemark_test_free(blocks[i]);
        blocks[i] = NULL;
    }
    for (unsigned i = 0; i < count; i++)
        if (blocks[i]) {
            outcome.truth_live += (double)sizes[i % size_count];
            outcome.truth_objects++;
        }
    outcome.sums = sums_since(&before);
    for (unsigned i = 0; i < count; i++)
        tidemark_test_free(blocks[i]);
    CHECK(site_sums().live_samples == before.live_samples);
    return outcome;
}

/* Checks that the mean is within its error, the scatter is as stated, and the intervals hold. */
static void judge(int replicates, const double *estimates, const double *variances, double truth)
{
    double sum = 0, squares = 0, stated = 0;
    int held = 0;
    for (int i = 0; i < replicates; i++) {
        sum += estimates[i];
        squares += (estimates[i] - truth) * (estimates[i] - truth);
        stated += variances[i];
        held += fabs(estimates[i] - truth) <= 1.96 * sqrt(variances[i]);
    }
    double mean = sum / replicates, scatter = squares / replicates;
    double sigmas = replicates == MOST_REPLICATES ? 5.45 : 3.5; /* normal: 5e-8, 5e-4 */
    CHECK_NEAR(mean, truth, sigmas * sqrt(scatter / replicates) + 1e-6 * truth);
    /* With a period of a few bytes nothing is missed, and nothing scatters. The square of a normal variable
     * scatters by sqrt(2) of its mean. */
    if (!isinf(stated) && stated > replicates * truth)
        CHECK_NEAR(squares / stated, 1, sigmas * sqrt(2.5 / replicates));
    if (held < replicates * LEAST_HELD)
        fprintf(stderr, "# only %d of %d intervals hold the truth; spread %g, claimed %g\n", held, replicates,
                sqrt(scatter), sqrt(stated / replicates));
    CHECK(held >= replicates * LEAST_HELD);
}

static void judge_mix(int replicates, uint64_t period, unsigned count, const size_t *sizes, unsigned size_count,
                      void (*midway)(unsigned), void (*before_each)(void))
{
    static double live[MOST_REPLICATES], live_variance[MOST_REPLICATES], allocated[MOST_REPLICATES],
        allocated_variance[MOST_REPLICATES], objects[MOST_REPLICATES], unknown[MOST_REPLICATES];
    struct outcome outcome = {0};
    char options[64];
    snprintf(options, sizeof options, "period=%llu", (unsigned long long)period);
    agent_on(options, 1);
    no_controller();
    for (int i = 0; i < replicates; i++) {
        if (before_each)
            before_each();
        outcome = replicate(count, sizes, size_count, (uint64_t)i, midway);
        live[i] = outcome.sums.live_bytes;
        live_variance[i] = outcome.sums.live_variance;
        allocated[i] = outcome.sums.allocated_bytes;
        allocated_variance[i] = outcome.sums.allocated_variance;
        objects[i] = outcome.sums.live_objects;
    }
    judge(replicates, live, live_variance, outcome.truth_live);
    judge(replicates, allocated, allocated_variance, outcome.truth_allocated);
    for (int i = 0; i < replicates; i++)
        unknown[i] = INFINITY; /* objects have no variance: only the mean is checked */
    judge(replicates, objects, unknown, outcome.truth_objects);
}

static const size_t small[] = {24}, medium[] = {300, 5000}, large[] = {100000},
                    mixed[] = {16, 16, 40, 100, 100, 513, 2048, 9000, 70000};

static void small_objects(void) { judge_mix(REPLICATES, 4096, 20000, small, 1, NULL, NULL); }
static void medium_objects(void) { judge_mix(REPLICATES, 32768, 3000, medium, 2, NULL, NULL); }
static void large_objects(void) { judge_mix(REPLICATES, 65536, 120, large, 1, NULL, NULL); }
static void mixed_objects(void) { judge_mix(REPLICATES, 16384, 2000, mixed, 9, NULL, NULL); }
static void every_byte(void) { judge_mix(REPLICATES, 1, 300, mixed, 9, NULL, NULL); }

/* The period rises and falls between allocations, as the controller would change it. */
static void wander(unsigned at)
{
    if (at % 500 != 250)
        return;
    CHECK(tm_lock());
    tm_set_period(at % 1000 == 250 ? 32768 : 8192);
    tm_unlock();
}
static void changing_period(void) { judge_mix(REPLICATES, 16384, 4000, mixed, 9, wander, NULL); }

/* Live samples are thinned halfway, twice. */
static void thin_midway(unsigned at)
{
    if (at != 1000 && at != 1500)
        return;
    CHECK(tm_lock());
    tm_thin();
    tm_unlock();
}
static void reset_period(void)
{
    CHECK(tm_lock());
    tm_core.table_period = 0;
    tm_set_period(8192);
    tm_unlock();
}
static void thinned(void) { judge_mix(MOST_REPLICATES, 8192, 2000, mixed, 9, thin_midway, reset_period); }

/* Small sizes: at first no block stays live, later some do. */
static void churn_before(void)
{
    CHECK(tm_lock());
    tm_set_period(8192);
    tm_unlock();
    for (unsigned i = 0; i < 40000; i++)
        tidemark_test_free(tidemark_test_malloc(mixed[i % 5]));
    CHECK(tm_churn_period(100, 0, 8192) >= 4 * 8192 && tm_churn_period(100, 0, 1024) > 2 * 1024);
    CHECK(tm_churn_period(100, 0, 1024) <= 8 * 1024);
    CHECK(tm_churn_period(100, 0, 512) == 512 && tm_churn_period(600000, 0, 8192) == 8192);
    CHECK(tm_core.header->period_bytes == tm_churn_coarsest(8192) && tm_churn_coarsest(8192) > 8192);
    CHECK(tm_lock());
    tm_set_period(2048); /* then enough of the small ones are sampled for intervals to hold */
    tm_unlock();
}
static void sizes_that_churn(void) { judge_mix(REPLICATES, 512, 9000, mixed, 9, NULL, churn_before); }

/* The period in force is raised, and large allocations are sampled as configured. */
static const size_t around_4096[] = {40, 100, 2048, 4095, 4096, 5000, 9000, 70000};
static void raise_period(void)
{
    CHECK(tm_lock());
    tm_set_period(65536);
    tm_unlock();
    CHECK(tm_period_of(4095, 0, 65536) >= 65536 && tm_period_of(4096, 0, 65536) == 4096);
}
static void large_beside_small(void) { judge_mix(REPLICATES, 4096, 15000, around_4096, 8, NULL, raise_period); }

/* What a realloc that made a block of `bytes` counts as allocated: the whole block if it was decided again whether it is
 * sampled, otherwise what it has grown by. `usable`: before and after. */
static double counted(size_t before, size_t bytes, size_t usable_before, size_t usable)
{
    unsigned shift = usable ? 60u - (unsigned)__builtin_clzll(usable) : 0;
    int is_same_step = bytes >= 8192 && tm_usable_size && usable >> shift == usable_before >> shift;
    return is_same_step ? bytes > before ? (double)(bytes - before) : 0 : (double)bytes;
}

/* Blocks that grow a little, and sometimes shrink, beside others that end and take their places. */
static struct outcome replicate_growth(uint64_t seed)
{
    enum { BLOCKS = 40, ROUNDS = 50 };
    static struct { char *start; size_t bytes; } blocks[BLOCKS];
    struct tm_thread_state random = {.random = (seed + 7) * 0x9e3779b97f4a7c15ull | 1};
    begin_replicate(seed);
    struct outcome outcome = {0};
    struct tm_site before = site_sums();
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i].bytes = 3000u << i % 5;
        outcome.truth_allocated += (double)blocks[i].bytes;
        blocks[i].start = tidemark_test_malloc(blocks[i].bytes);
    }
    for (unsigned at = 0; at < BLOCKS * ROUNDS; at++) {
        unsigned i = (unsigned)(tm_random(&random) % BLOCKS);
        size_t old = blocks[i].bytes, more = tm_random(&random) % (old / 16), bytes = at % 16 ? old + more : old - more;
        size_t usable = tm_usable_size ? tm_usable_size(blocks[i].start) : 0;
        blocks[i].start = tidemark_test_realloc(blocks[i].start, bytes);
        blocks[i].bytes = bytes;
        outcome.truth_allocated += counted(old, bytes, usable, tm_usable_size ? tm_usable_size(blocks[i].start) : 0);
        if (at % 8)
            continue;
        char *other = tidemark_test_malloc(bytes);
        outcome.truth_allocated += (double)bytes;
        tidemark_test_free(other);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        outcome.truth_live += (double)blocks[i].bytes;
        outcome.truth_objects++;
    }
    outcome.sums = sums_since(&before);
    CHECK_NEAR(outcome.sums.allocated_bytes - outcome.sums.freed_bytes, outcome.sums.live_bytes, 1e-6 * outcome.sums.allocated_bytes);
    for (unsigned i = 0; i < BLOCKS; i++)
        tidemark_test_free(blocks[i].start);
    CHECK(site_sums().live_samples == before.live_samples);
    return outcome;
}

static void growing_blocks(void)
{
    static double live[REPLICATES], variance[REPLICATES], allocated[REPLICATES], objects[REPLICATES], unknown[REPLICATES];
    struct outcome outcome = {0};
    agent_on("period=65536", 1);
    no_controller();
    double truth_live = 0, truth_allocated = 0;
    for (int i = 0; i < REPLICATES; i++) { /* the blocks differ by seed, so it is the difference that is judged */
        outcome = replicate_growth((uint64_t)i);
        truth_live += outcome.truth_live / REPLICATES;
        truth_allocated += outcome.truth_allocated / REPLICATES;
        live[i] = outcome.sums.live_bytes - outcome.truth_live;
        variance[i] = outcome.sums.live_variance;
        allocated[i] = outcome.sums.allocated_bytes - outcome.truth_allocated;
        objects[i] = outcome.sums.live_objects;
        unknown[i] = INFINITY;
    }
    for (int i = 0; i < REPLICATES; i++) {
        live[i] += truth_live;
        allocated[i] += truth_allocated;
    }
    judge(REPLICATES, live, variance, truth_live);
    judge(REPLICATES, allocated, unknown, truth_allocated);
    judge(REPLICATES, objects, unknown, outcome.truth_objects);
}

static char *grown_text(void)
{
    char *text = tidemark_test_malloc(1000);
    for (size_t bytes = 1000; bytes <= 1000000; bytes += 100)
        text = tidemark_test_realloc(text, bytes);
    return text;
}

/* A text that grows to 1 MB, a few bytes at a time, is not sampled every time. */
static void appending_takes_few_samples(void)
{
    agent_on("period=65536", 1);
    no_controller();
    char *text = grown_text();
    if (tm_usable_size)
        CHECK(tm_core.header->samples < 100);
    CHECK_NEAR(site_sums().live_bytes, 1000000, 1000000 / 128);
    tidemark_test_free(text);
    CHECK(site_sums().live_samples == 0);
    void *hook = text;
    tm_realloc_hook = &hook;
    text = grown_text();
    CHECK(tm_core.header->samples > 5000); /* sizes are not asked for */
    tm_realloc_hook = NULL;
    tidemark_test_free(text);
    CHECK(site_sums().live_samples == 0);
}

static void others_of_the_family(void)
{
    agent_on("period=1", 3);
    no_controller();
    void *aligned = NULL;
    errno = 77;
    void *blocks[] = {tidemark_test_calloc(100, 10), tidemark_test_memalign(64, 1000),
                      tidemark_test_reallocarray(NULL, 10, 100), tidemark_test_strdup(strlen("hello") ? "hello" : ""),
                      tidemark_test_realloc(NULL, 1000)};
    CHECK(tidemark_test_posix_memalign(&aligned, 256, 1000) == 0 && (uintptr_t)aligned % 256 == 0);
    CHECK(errno == 77);
    CHECK(site_sums().live_samples == 6);
    CHECK_NEAR(site_sums().live_bytes, 5006 + 6 / (1 - exp(-6)) - 6, 0.02);
    blocks[0] = tidemark_test_realloc(blocks[0], 5000);
    CHECK_NEAR(site_sums().live_bytes, 9006 + 6 / (1 - exp(-6)) - 6, 0.02);
    CHECK(errno == 77);
    for (unsigned i = 0; i < 5; i++)
        tidemark_test_free(blocks[i]);
    tidemark_test_free(aligned);
    CHECK(site_sums().live_samples == 0 && site_sums().live_bytes == 0 && errno == 77);
    CHECK(tm_core.header->live_bytes == 0);
}

static void failures_change_nothing(void)
{
    agent_on("period=1", 3);
    no_controller();
    void *block = tidemark_test_malloc(1000);
    struct tm_site before = site_sums();
    volatile size_t huge = SIZE_MAX / 2;
    CHECK(tidemark_test_malloc(huge) == NULL && errno == ENOMEM);
    CHECK(tidemark_test_calloc(huge, 16) == NULL);
    CHECK(tidemark_test_realloc(block, huge) == NULL);
    CHECK(tidemark_test_reallocarray(block, huge, 16) == NULL && errno == ENOMEM);
    void *untouched = (void *)16;
    CHECK(tidemark_test_posix_memalign(&untouched, 3, 100) == EINVAL);
    struct tm_site after = site_sums();
    CHECK(after.live_samples == 1 && after.live_bytes == before.live_bytes);
    CHECK(after.allocated_bytes == before.allocated_bytes && after.freed_bytes == 0);
    CHECK(tm_is_sampled(block));
    tidemark_test_free(tidemark_test_malloc(0));
    tidemark_test_free(NULL);
    CHECK(site_sums().live_samples == 1);
    tidemark_test_free(block);
    CHECK(site_sums().live_samples == 0 && tm_core.header->samples == 1);
}

int main(void)
{
    begin_tests();
    RUN(small_objects);
    RUN(medium_objects);
    RUN(large_objects);
    RUN(mixed_objects);
    RUN(every_byte);
    RUN(changing_period);
    RUN(thinned);
    RUN(sizes_that_churn);
    RUN(large_beside_small);
    RUN(growing_blocks);
    RUN(appending_takes_few_samples);
    RUN(others_of_the_family);
    RUN(failures_change_nothing);
    return end_tests();
}
