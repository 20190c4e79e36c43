/* control.c - the controller of the period, driven through simulated intervals of a program.
 *
 * The clocks it reads are the process's own. A test simulates an interval by moving the controller's
 * last check back: that much CPU time has passed since, and that much of it was the slow path's.
 */
#include "harness.h"


/* The simulated program: bytes that it allocates per nanosecond of CPU time, ns that a sample costs. */
struct load {
    double rate, cost;
};

static double asleep; /* ns that it waits for each ns that it works */

static void look_after(double cpu_ns, double slow_ns, int32_t samples, int whole)
{
    tm_core.slow_ticks = 0;
    tm_core.wall_ns = tm_now_ns() - (uint64_t)(cpu_ns * (1 + asleep));
    tm_core.cpu_ns = tm_process_cpu_ns() - (uint64_t)cpu_ns;
    tm_core.header->slow_path_ns = tm_core.slow_ns_checked + (uint64_t)slow_ns;
    tm_core.slow_samples = samples - 1;
    tm_core.check_at_ticks = whole ? UINT64_MAX : 0;
    tm_control(0, 0);
    CHECK(tm_core.slow_samples == 0);
    CHECK(tm_core.period >= tm_core.configured_period);
    CHECK(tm_core.header->period_bytes == tm_core.period);
}

/* Runs rounds of 32 samples at whatever period is in force. Returns the CPU share of the second half. */
static double rounds(struct load load, int count)
{
    double cpu = 0, slow = 0;
    for (int i = 0; i < count; i++) {
        double passed = 32 * (double)tm_core.period / load.rate;
        look_after(passed, 32 * load.cost, 32, 1);
        cpu += i < count / 2 ? 0 : passed;
        slow += i < count / 2 ? 0 : 32 * load.cost;
    }
    return slow / cpu;
}

/* Checks a program every 100 ms of CPU time in which it took fewer than 32 samples. */
static void sparse(struct load load, int count)
{
    for (int i = 0; i < count; i++) {
        double samples = 1e8 * load.rate / (double)tm_core.period;
        int32_t whole_samples = samples < 1 ? 1 : samples > 31 ? 31 : (int32_t)samples;
        double passed = whole_samples * (double)tm_core.period / load.rate;
        look_after(passed, whole_samples * load.cost, whole_samples, 0);
    }
}

static void on(void)
{
    agent_on("period=64K", 5);
    CHECK(tm_lock());
}

static void rises_until_it_keeps_its_share(void)
{
    on();
    for (int step = 0; step < 3; step++) {
        struct load load = {.rate = 0.25 * (step + 1), .cost = 8000}; /* 250 to 750 MB a second */
        double share = rounds(load, 400);
        CHECK(tm_core.period > 4 * tm_core.configured_period);
        CHECK(share > 0.0005 && share < 0.0045);
    }
}

static void stays_where_it_is_fixed(void)
{
    agent_on("period=4K,fixed", 5);
    CHECK(tm_lock());
    rounds((struct load){.rate = 1, .cost = 8000}, 400);
    CHECK(tm_core.period == 4096 && tm_core.coarsest_period == 0);
}

static void comes_down_when_the_rate_falls(void)
{
    on();
    rounds((struct load){.rate = 1, .cost = 8000}, 400);
    CHECK(tm_core.period >= 1 << 20);
    sparse((struct load){.rate = 0.001, .cost = 8000}, 200);
    CHECK(tm_core.period == tm_core.configured_period);
}

/* No sample is taken for a long time: the bytes allocated between two samples show that the program has
 * become quiet. */
static void comes_down_between_samples(void)
{
    on();
    rounds((struct load){.rate = 1, .cost = 8000}, 400);
    tm_unlock();
    CHECK(tm_core.period >= 1 << 20);
    uint64_t samples = tm_core.header->samples;
    tm_own_thread.period = 0; /* a gap at the raised period, and a long one */
    while (tm_own_thread.rest < 1 << 20)
        if (tm_own_thread.countdown = tm_own_thread.rest = tm_own_thread.period = 0, tm_spend(1) && tm_enter(1))
            tm_leave();
    for (int step = 0; step < 4; step++) {
        tm_core.wall_ns = tm_now_ns() - 5000000000ull; /* five seconds pass, idle */
        tm_core.check_at_ticks = 0;
        for (int i = 0; i < 50; i++)
            if (tm_spend(1000) && tm_enter(1000))
                tm_leave();
    }
    CHECK(tm_core.header->samples == samples);
    CHECK(tm_core.period == tm_core.configured_period);
    CHECK(tm_own_thread.period == tm_core.configured_period);
    CHECK(tm_lock());
}

static void a_cheap_program_stays_as_configured(void)
{
    on();
    rounds((struct load){.rate = 0.01, .cost = 3000}, 200);
    CHECK(tm_core.period == tm_core.configured_period);
}

/* 4 MB a second in 1 % of a core: a hundredth of its CPU time would be two samples a second. */
static void a_program_that_waits_is_sampled_by_the_clock(void)
{
    struct load load = {.rate = 0.4, .cost = 10000};
    on();
    rounds(load, 400);
    CHECK(tm_core.period >= 16 * tm_core.configured_period);
    asleep = 99;
    sparse(load, 200);
    CHECK(tm_core.period == tm_core.configured_period);
    double share = rounds(load, 400) / (1 + asleep);
    CHECK(share < 0.0012 && tm_core.period <= 2 * tm_core.configured_period);
    load.rate *= 25; /* a thousandth of a core, and no more */
    share = rounds(load, 400) / (1 + asleep);
    CHECK(share > 0.0002 && share < 0.0018 && tm_core.period > 8 * tm_core.configured_period);
    asleep = 0;
}

static void the_start_has_an_allowance(void)
{
    struct load load = {.rate = 0.5, .cost = 2000};
    on();
    int64_t allowance = tm_core.start_ns;
    CHECK(allowance > 20000000 && allowance < 25000000);
    double spent = 0;
    while (tm_core.start_ns > 0) {
        CHECK(tm_core.period == tm_core.configured_period);
        rounds(load, 1);
        spent += 32 * load.cost;
        CHECK(spent < 30e6);
    }
    CHECK(!tm_control_starts());
    tm_core.start_ns = 1; /* a fixed period is not made coarser for sizes that churn, not even at the start */
    CHECK(tm_control_starts());
    tm_settings.fixed_period = 1;
    CHECK(!tm_control_starts());
    tm_settings.fixed_period = 0;
    tm_core.start_ns = 0;
    CHECK(spent > 22e6 && tm_core.start_debt_ns == allowance);
    double share = rounds(load, 2000); /* paid back in the meantime */
    CHECK(tm_core.period > 4 * tm_core.configured_period && share < 0.0015);
    CHECK(tm_core.start_debt_ns < allowance * 9 / 10);
    double cpu = 0;
    while (tm_core.start_debt_ns > 0) {
        cpu += 32 * (double)tm_core.period / load.rate;
        rounds(load, 1);
        CHECK(cpu < 300e9);
    }
    rounds(load, 400);
    CHECK(tm_core.start_ns == 0 && tm_core.start_debt_ns == 0);
}

/* A child may be one of thousands: it spends an allowance at a share of its CPU time, then keeps to the usual one. */
static void a_child_spends_its_allowance_slowly(void)
{
    on();
    tm_core.is_first = 0;
    tm_core.start_ns = 150000000; /* intervals long enough for the clock under Valgrind */
    struct load load = {.rate = 0.4, .cost = 40000};
    double share = rounds(load, 40);
    CHECK(share > 0.02 && share < 0.08 && tm_core.start_ns > 0 && tm_core.start_debt_ns > 0);
    while (tm_core.start_ns > 0)
        rounds(load, 1);
    CHECK(tm_core.start_debt_ns > 0);
    rounds(load, 400);
    CHECK(rounds(load, 400) < 0.004);
}

/* The coarsest period limits how much memory can go unnoticed, so the period itself must be limited. */
static void no_period_is_coarser_than_the_budget_demands(void)
{
    on();
    struct load load = {.rate = 1, .cost = 4000}; /* its share would require a period of 2.7 MB */
    rounds(load, 800);
    CHECK(tm_core.period == 1 << 20 && tm_churn_coarsest(tm_core.period) == 1 << 20);
    load.rate *= 8; /* more than twice its share: its cost is also bounded */
    double share = rounds(load, 400);
    CHECK(tm_core.period >= 4 << 20 && share < 0.0045);
}

/* Nearly all bytes are of sizes that churn: their period is bounded, so a finer one for the others is free. */
static void lasting_blocks_are_sampled_finely_beside_churn(void)
{
    on();
    tm_core.mix[0] = 0.02;
    tm_core.mix[4] = 0.98;
    rounds((struct load){.rate = 1, .cost = 1500}, 800); /* alike, they would all be sampled at 1 MiB */
    CHECK(tm_core.period <= 4 * tm_core.configured_period && tm_core.period > tm_core.configured_period);
}

/* Seconds in which samples of large allocations cost so much. */
static void large_seconds(int count, int32_t samples, double spent_ns)
{
    for (int i = 0; i < count; i++) {
        tm_core.large_samples = samples;
        tm_large_check(1e9, spent_ns);
    }
}

/* Large allocations have a share of their own, and are sampled as configured within it. */
static void large_allocations_keep_the_configured_period(void)
{
    enum { LARGE = 256 << 10 };
    on();
    rounds((struct load){.rate = 1, .cost = 8000}, 400);
    uint64_t in_force = tm_core.period, configured = tm_core.configured_period;
    CHECK(in_force > 4 * configured && tm_period_of(LARGE, 0, in_force) == configured);
    CHECK(tm_period_of(configured - 1, 0, in_force) >= in_force);
    large_seconds(100, 2500, 0.0025e9);
    CHECK(tm_period_of(LARGE, 0, in_force) == configured);
    large_seconds(100, 1900, 0.02e9); /* few, however expensive they are */
    CHECK(tm_period_of(LARGE, 0, in_force) == configured);
    large_seconds(100, 20000, 0.02e9);
    CHECK(tm_period_of(LARGE, 0, in_force) == in_force); /* they stay: never coarser than the others */
    large_seconds(100, 2000, 0);
    CHECK(tm_period_of(LARGE, 0, in_force) == configured);
    tm_core.table_period = tm_core.large_period = 4 * configured;
    tm_core.live_count = TM_LIVE_COUNT / 2;
    large_seconds(100, 2000, 0);
    CHECK(tm_period_of(LARGE, 0, in_force) == 4 * configured); /* the table has no room for more */
}

/* Blocks of `bytes` are sampled, of which all but one of `of` are freed again. */
static void churn_in(uint64_t functions, uint64_t bytes, int of, int count)
{
    for (int i = 0; i < count; i++) {
        tm_churn_taken(bytes, functions, 65536);
        if ((i + 1) % of)
            tm_churn_ended(bytes, tm_churn_kind(bytes, functions));
    }
}

static void churn_of(uint64_t bytes, int of)
{
    churn_in(0, bytes, of, 4096);
}

/* Blocks of one size that some functions free, and others keep. */
static void functions_of_one_size_have_periods_of_their_own(void)
{
    enum { FREES = 1000, KEEPS = 2000, NEW = 3000, BYTES = 100 };
    on();
    uint64_t in_force = 2 * tm_core.configured_period;
    CHECK(!tm_churn_asks_functions(in_force));
    churn_in(FREES, BYTES, 4096, 4096);
    CHECK(tm_churn_asks_functions(in_force) && !tm_churn_asks_functions(tm_core.configured_period));
    uint64_t coarse = tm_churn_period(BYTES, FREES, in_force);
    CHECK(coarse >= 4 * in_force && tm_churn_period(BYTES, 0, in_force) == coarse);
    CHECK(tm_churn_period(BYTES, NEW, in_force) == in_force); /* nothing is known about it yet */
    churn_in(NEW, BYTES, 4096, 8);
    CHECK(tm_churn_period(BYTES, NEW, in_force) == coarse); /* its first samples were freed: as its size */
    churn_in(KEEPS, BYTES, 1, 4096);
    CHECK(tm_churn_period(BYTES, KEEPS, in_force) == in_force && tm_churn_period(BYTES, FREES, in_force) == coarse);
    CHECK(tm_churn_period(BYTES + 16, FREES, in_force) == in_force); /* another size */
    CHECK(tm_churn_coarsest(in_force) == coarse);
    churn_in(FREES, BYTES, 1, 4096); /* what they allocate stays now */
    churn_in(NEW, BYTES, 1, 4096);
    CHECK(!tm_churn_asks_functions(in_force) && tm_churn_coarsest(in_force) == in_force);
}

/* Large blocks that are soon freed, hundreds of thousands a second, while small ones cost nothing. */
static void large_churn_keeps_its_share(void)
{
    enum { FREED = 80 << 10, MOSTLY_FREED = 200 << 10, LASTING = 600 << 10 };
    on();
    uint64_t configured = tm_core.configured_period;
    churn_of(FREED, 4096);
    churn_of(MOSTLY_FREED, 8);
    churn_of(LASTING, 1);
    large_seconds(1, 3000, 0.0029e9);
    CHECK(tm_core.large_period == configured);
    double blocks = 1e6, cost = 500;
    for (int i = 0; i < 100; i++) {
        double samples = blocks * tm_chance(FREED, (double)tm_period_of(FREED, 0, configured));
        large_seconds(1, (int32_t)samples, samples * cost);
    }
    double share = blocks * tm_chance(FREED, (double)tm_period_of(FREED, 0, configured)) * cost / 1e9;
    CHECK(share < 0.006 && tm_period_of(FREED, 0, configured) == 8 << 20);
    CHECK(tm_period_of(MOSTLY_FREED, 0, configured) == 2 << 20);
    CHECK(tm_period_of(LASTING, 0, configured) == configured);
    CHECK(tm_core.header->period_bytes == tm_period_of(FREED, 0, configured));
    for (int i = 0; i < 100; i++)
        large_seconds(1, 0, 0);
    CHECK(tm_core.large_period == configured && tm_core.header->period_bytes == configured);
    large_seconds(100, 20000, 0.005e9); /* less than twice its share at the coarsest usual period */
    CHECK(tm_core.large_period <= 1 << 20);
}

/* After only a few samples, an expensive moment cannot be distinguished from an expensive program. */
static void a_sparse_check_never_raises(void)
{
    on();
    for (int i = 0; i < 100; i++) {
        uint64_t before = tm_core.period;
        look_after(1e6, 1e6, 2, 0);
        CHECK(tm_core.period <= before);
    }
}

/* The samples of a deep recursion are expensive. After it, no sample shows that others are cheap, until one is taken. */
static void an_expensive_moment_is_forgotten(void)
{
    on();
    struct load deep = {.rate = 0.1, .cost = 300000};
    rounds(deep, 40);
    CHECK(tm_core.period >= 1 << 20);
    for (int i = 0; i < 100; i++) {
        tm_core.wall_ns = tm_now_ns() - 100000000ull;
        tm_core.cpu_ns = tm_process_cpu_ns() - 100000000ull;
        tm_core.slow_ticks = 0;
        tm_core.slow_samples = 0;
        tm_core.passed_bytes = (uint64_t)(1e8 * deep.rate);
        tm_core.check_at_ticks = 0;
        tm_control_recheck();
    }
    CHECK(tm_core.period <= 4 * tm_core.configured_period);
}

static void goes_no_lower_than_the_table_allows(void)
{
    on();
    rounds((struct load){.rate = 1, .cost = 8000}, 400);
    tm_core.table_period = 1 << 20;
    tm_core.live_count = TM_LIVE_COUNT / 2;
    sparse((struct load){.rate = 0.001, .cost = 8000}, 200);
    CHECK(tm_core.period == 1 << 20);
    tm_core.live_count = TM_LIVE_COUNT / 8; /* the table emptied */
    sparse((struct load){.rate = 0.001, .cost = 8000}, 200);
    CHECK(tm_core.period == tm_core.configured_period);
}

/* No figure may move the account or the period beyond its limits. */
static void extremes_stay_within_bounds(void)
{
    on();
    struct tm_thread_state random = {.random = 4711};
    for (int i = 0; i < 20000; i++) {
        double cpu = tm_random(&random) % 5 ? pow(10, (double)(tm_random(&random) % 13)) : 0;
        double slow = tm_random(&random) % 5 ? pow(10, (double)(tm_random(&random) % 13)) : 0;
        look_after(cpu, slow, 1 + (int32_t)(tm_random(&random) % 31), 0);
        CHECK(tm_core.period <= (8ull << 20) && (tm_core.period & (tm_core.period - 1)) == 0);
        look_after(cpu, slow, 32, 1);
        CHECK(tm_core.period <= (8ull << 20) && (tm_core.period & (tm_core.period - 1)) == 0);
        CHECK(isfinite(tm_core.cost) && isfinite(tm_core.rate) && tm_core.cost >= 0 && tm_core.rate >= 0);
    }
    sparse((struct load){.rate = 0.0001, .cost = 3000}, 400); /* and it recovers from them */
    CHECK(tm_core.period == tm_core.configured_period);
}

int main(void)
{
    begin_tests();
    RUN(rises_until_it_keeps_its_share);
    RUN(stays_where_it_is_fixed);
    RUN(comes_down_when_the_rate_falls);
    RUN(comes_down_between_samples);
    RUN(a_cheap_program_stays_as_configured);
    RUN(a_program_that_waits_is_sampled_by_the_clock);
    RUN(the_start_has_an_allowance);
    RUN(a_child_spends_its_allowance_slowly);
    RUN(no_period_is_coarser_than_the_budget_demands);
    RUN(lasting_blocks_are_sampled_finely_beside_churn);
    RUN(functions_of_one_size_have_periods_of_their_own);
    RUN(large_allocations_keep_the_configured_period);
    RUN(large_churn_keeps_its_share);
    RUN(a_sparse_check_never_raises);
    RUN(an_expensive_moment_is_forgotten);
    RUN(goes_no_lower_than_the_table_allows);
    RUN(extremes_stay_within_bounds);
    return end_tests();
}
