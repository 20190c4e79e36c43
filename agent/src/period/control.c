/* control.c - keeps the slow path under its share of the process's own CPU time. (locked)
 *
 * A program that mostly waits has little CPU time to take a share of, and its samples are expensive, because
 * the caches are cold after each wait. Yet a thousandth of a core is negligible, and users look for slow leaks
 * in such programs. So the share is taken of `budget`: the process's CPU time or FLOOR of the elapsed time,
 * whichever is more.
 *
 * The cost of the next interval can be predicted: `rate` bytes are allocated per nanosecond of
 * the budget, and one sample costs `cost` ns, both smoothed over the recent past. The number of samples per byte
 * follows from the period and from the sizes (tm_churn_samples(); one in `period` if little is freed again):
 *
 *     spent, in shares = cost * rate * samples(period) / share
 *
 * The period follows in powers of two, up and down at once, so an expensive start leaves no coarse profile
 * behind. An account (the share of every nanosecond is added, what was spent is subtracted) corrects it: credit
 * allows a finer period, debt a coarser one. The period is never finer than configured, nor than thinning has
 * set it while the live table is still that full. A configured period of 1 requests every allocation, and
 * `fixed` requests the period unchanged: only a full table makes them coarser.
 *
 * Three exceptions favour allocations that stay. Imports, models and data are loaded at the start, so a program
 * that has just begun has an allowance: until it is spent, the period does not rise. A quarter of the share
 * later pays it back. A forked child, which may be one of thousands, has a higher share until a smaller allowance
 * is spent. And a site that is not listed may hold up to 3.7 periods unseen, so no period is coarser
 * than COARSEST unless samples would then take HARDEST times the share.
 */
#include "core/state.h"
#include "core/system.h"
#include "period/period.h"
#include "segment/sections.h"

/* Part of the 0.3 % that the slow path may take. The clock does not see the rest: the entry (tm_enter), and the
 * colder caches afterwards. */
#define SHARE 0.0015
#define FLOOR 0.67 /* SHARE of it is 0.1 % of a core */
#define CREDIT_NS 5000000ll       /* an account holds at most 5 ms, either way */
#define FIRST_CREDIT_NS 2000000ll /* code that runs for the first time is expensive, and that happens at the start */
#define START_NS 23000000ll       /* the allowance: with FIRST_CREDIT_NS, 25 ms */
/* A forked child may live for milliseconds: it has an allowance as well, but spends it at this share of its CPU time. */
#define CHILD_START_NS 15000000ll
#define CHILD_SHARE 0.05
#define PAID_BACK 0.25
#define COARSEST (1ull << 20)
#define HARDEST 2.0
#define SAMPLES_A_CHECK 32
#define TICKS_A_CHECK 300000000ull /* about 100 ms */
#define PREEMPTED_NS 100000u       /* longer than any slow path: the thread had lost its core */
#define COST_MEMORY 64.0           /* samples over which `cost` is smoothed */
#define RATE_MEMORY_NS 100e6       /* budget over which `rate` is smoothed */
/* After an expensive moment, such as a deep recursion, the period is coarse: `cost` would not be corrected for minutes. So in
 * each interval without a sample it falls, down to what samples usually take. */
#define COST_FALLS 0.8
#define USUAL_COST 1000.0
/* At a GiB allocated per second, 128 samples: always affordable, and a coarser profile would be useless.
 * (Thinning goes beyond it if the table is full.) */
#define LARGEST_PERIOD (8ull << 20)
/* With PYTHONMALLOC or -X dev, Python's allocators are replaced after the constructor's hooks were set, and
 * only a sample detects it. Until then the first samples are taken whatever they cost. */
#define SAMPLES_FOR_PYTHON 1000u

void tm_control_begin(void)
{
    tm_core.ticks_start = tm_ticks();
    tm_core.ticks_start_ns = tm_now_ns();
    tm_core.credit_ns = FIRST_CREDIT_NS;
    int64_t start_ns = tm_settings.attached ? 0 : tm_core.is_first ? START_NS : CHILD_START_NS;
    __atomic_store_n(&tm_core.start_ns, start_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&tm_core.coarsest, COARSEST, __ATOMIC_RELAXED);
    tm_large_begin();
    tm_core.cpu_ns = tm_process_cpu_ns();
    tm_core.wall_ns = tm_core.ticks_start_ns;
}

int tm_is_fixed(void)
{
    return __atomic_load_n(&tm_core.configured_period, __ATOMIC_RELAXED) == 1 ||
           __atomic_load_n(&tm_settings.fixed_period, __ATOMIC_RELAXED);
}

/* The counter's rate is measured over the life of the process; the first guess is 3 GHz. */
static double ns_a_tick(void)
{
    uint64_t ticks = tm_ticks() - tm_core.ticks_start, ns = tm_now_ns() - tm_core.ticks_start_ns;
    return ns > 1000000 && ticks ? (double)ns / (double)ticks : 0.33;
}

void tm_control_report(void)
{
    double ns = ns_a_tick();
    uint64_t large = (uint64_t)((double)tm_core.large_ticks * ns);
    uint64_t beside = (uint64_t)((double)tm_core.beside_ticks * ns) + large;
    tm_core.header->slow_path_ns += (uint64_t)((double)tm_core.slow_ticks * ns) + beside;
    tm_core.slow_ns_checked += beside;
    tm_core.large_ns += large;
    tm_core.slow_ticks = tm_core.beside_ticks = tm_core.large_ticks = 0;
    tm_core.header->process_cpu_ns = tm_process_cpu_ns();
}

static double smoothed(double before, double now, double weight)
{
    return before == 0.0 ? now : before + (now - before) * weight;
}

/* The share to aim at: credit is spent over the next interval, debt is paid back. */
static double share_now(void)
{
    double credit = (double)tm_core.credit_ns, share = tm_core.start_debt_ns ? SHARE * (1 - PAID_BACK) : SHARE;
    if (tm_core.start_ns > 0 && !tm_core.is_first)
        return CHILD_SHARE;
    return credit > 0 ? share + credit / RATE_MEMORY_NS : share / (1.0 - 3.0 * credit / (double)CREDIT_NS);
}

/* Time beyond the interval's share comes out of the start allowance; once that is spent, it must be paid back.
 * Returns what is left to be charged to the account. */
static double charge_start(double slow, double regular)
{
    double over = slow - regular;
    if (tm_core.start_ns > 0 && over > 0) {
        int64_t taken = over < (double)tm_core.start_ns ? (int64_t)over : tm_core.start_ns;
        __atomic_store_n(&tm_core.start_ns, tm_core.start_ns - taken, __ATOMIC_RELAXED);
        __atomic_store_n(&tm_core.start_debt_ns, tm_core.start_debt_ns + taken, __ATOMIC_RELAXED);
        tm_publish_period();
        return slow - (double)taken;
    }
    if (tm_core.start_ns <= 0 && tm_core.start_debt_ns > 0) {
        double back = regular * PAID_BACK;
        int64_t paid = back < (double)tm_core.start_debt_ns ? (int64_t)back : tm_core.start_debt_ns;
        __atomic_store_n(&tm_core.start_debt_ns, tm_core.start_debt_ns - paid, __ATOMIC_RELAXED);
        return slow + (double)paid;
    }
    return slow;
}

int tm_may_halve(uint64_t period)
{
    int table_is_full = period / 2 < tm_core.table_period && tm_core.live_count >= TM_LIVE_COUNT / 4;
    return period / 2 >= tm_core.configured_period && !table_is_full;
}

/* The coarsest period for any size, a power of two times the configured one. */
static uint64_t coarsest_now(void)
{
    double hardest = tm_core.cost * tm_core.rate / (HARDEST * SHARE);
    uint64_t coarsest = tm_core.configured_period;
    while (coarsest * 2 <= LARGEST_PERIOD && (coarsest * 2 <= COARSEST || (double)coarsest * 1.5 <= hardest))
        coarsest *= 2;
    return coarsest;
}

/* A finer period for what stays takes few more samples where what churns has its own, limited period. It is worth so much
 * of SHARE, even in debt, which is then due to the limit. */
#define WORTH 0.35

/* Whether a period that takes `more` of SHARE is worth it. */
static int is_worth(double more, double all)
{
    return more < WORTH && all < HARDEST;
}

/* The power of two times the period that spends about one share; a small deviation is left as it is. `load`: of `share`, for
 * each sample that a byte takes. */
static uint64_t follow(uint64_t period, double load, double share, int may_rise)
{
    double of_all = share / SHARE;
    double now = load * tm_churn_samples(period);
    while (may_rise && now > 1.5 && period < tm_core.coarsest) {
        double then = load * tm_churn_samples(period * 2);
        if (is_worth((now - then) * of_all, now * of_all))
            break;
        now = then;
        period *= 2;
    }
    while (tm_may_halve(period)) {
        double then = load * tm_churn_samples(period / 2);
        int is_coarse = period > tm_core.coarsest || is_worth((then - now) * of_all, then * of_all);
        if (then > 2.0 / 3.0 && !is_coarse)
            break;
        now = then;
        period /= 2;
    }
    return period;
}

/* Time since the last check, in ns, of which the slow path may take its share. */
static double budget_since(void)
{
    uint64_t cpu = tm_core.header->process_cpu_ns, wall = tm_now_ns();
    double used = (double)(cpu - tm_core.cpu_ns), passed = (double)(wall - tm_core.wall_ns);
    tm_core.cpu_ns = cpu;
    tm_core.wall_ns = wall;
    return used > passed * FLOOR ? used : passed * FLOOR;
}

/* An interval, in samples of small allocations: those taken, and those expected at the period in force, which
 * may be a fraction. */
struct interval {
    double taken, expected;
};

/* `whole`: a full round of samples, enough to distinguish an expensive slow path from an expensive moment.
 * After fewer samples, the period can only fall. */
static void check(struct interval interval, int whole)
{
    struct tm_segment_header *header = tm_core.header;
    tm_control_report();
    double budget = budget_since();
    double slow = (double)(header->slow_path_ns - tm_core.slow_ns_checked);
    tm_core.slow_ns_checked = header->slow_path_ns;
    tm_large_check(budget, (double)tm_core.large_ns);
    tm_core.large_ns = 0;
    double charged = charge_start(slow, budget * SHARE);
    double balance = (double)tm_core.credit_ns + budget * SHARE - charged, bound = (double)CREDIT_NS;
    tm_core.credit_ns = (int64_t)(balance > bound ? bound : balance < -bound ? -bound : balance);
    if (budget < 1.0 || interval.expected == 0.0)
        return;
    double period = (double)tm_core.period;
    int starts = tm_core.start_ns > 0 && tm_core.is_first;
    if (interval.taken > 0)
        tm_core.cost = smoothed(tm_core.cost, slow / interval.taken, interval.taken / (interval.taken + COST_MEMORY));
    else if (tm_core.cost > USUAL_COST)
        tm_core.cost = tm_core.cost * COST_FALLS > USUAL_COST ? tm_core.cost * COST_FALLS : USUAL_COST;
    tm_core.rate = smoothed(tm_core.rate, interval.expected * period / budget, budget / (budget + RATE_MEMORY_NS));
    __atomic_store_n(&tm_core.coarsest, coarsest_now(), __ATOMIC_RELAXED);
    double share = share_now(), load = tm_core.cost * tm_core.rate / share;
    int awaits_python = tm_settings.python_state == TM_PYTHON_FRAMES_ONLY && header->samples < SAMPLES_FOR_PYTHON;
    tm_set_period(follow(tm_core.period, load, share, whole && !starts && !awaits_python && !tm_is_fixed()));
}

/* Excludes the time in which other threads had the core. */
static uint64_t own_ticks(uint64_t ticks)
{
    uint64_t most = (uint64_t)(PREEMPTED_NS / 0.33);
    return ticks > most ? most : ticks;
}

void tm_control_spent(uint64_t ticks, uint64_t bytes)
{
    *(tm_is_large(bytes) ? &tm_core.large_ticks : &tm_core.slow_ticks) += own_ticks(ticks);
}

int64_t tm_control_without_sample(uint64_t ticks)
{
    tm_core.beside_ticks += own_ticks(ticks);
    return (int64_t)((double)own_ticks(ticks) * ns_a_tick());
}

void tm_control_passed(uint64_t bytes)
{
    __atomic_fetch_add(&tm_core.passed_bytes, bytes, __ATOMIC_RELAXED);
}

void tm_control_thinned(void)
{
    __atomic_fetch_add(&tm_core.thinned_samples, 1, __ATOMIC_RELAXED);
}

int tm_control_starts(void)
{
    return !tm_is_fixed() && __atomic_load_n(&tm_core.start_ns, __ATOMIC_RELAXED) > 0 &&
           __atomic_load_n(&tm_core.start_debt_ns, __ATOMIC_RELAXED) > 0;
}

int tm_control_is_due(void)
{
    return tm_ticks() >= __atomic_load_n(&tm_core.check_at_ticks, __ATOMIC_RELAXED);
}

/* Begins the next interval; returns this one. */
static struct interval end_interval(uint64_t now)
{
    double thinned = (double)__atomic_exchange_n(&tm_core.thinned_samples, 0, __ATOMIC_RELAXED);
    double taken = (double)tm_core.slow_samples, samples = taken + thinned;
    double passed = (double)__atomic_exchange_n(&tm_core.passed_bytes, 0, __ATOMIC_RELAXED) / (double)tm_core.period;
    tm_core.slow_samples = 0;
    __atomic_store_n(&tm_core.check_at_ticks, now + TICKS_A_CHECK, __ATOMIC_RELAXED);
    return (struct interval){taken, samples > passed ? samples : passed};
}

void tm_control_recheck(void)
{
    if (tm_control_is_due())
        check(end_interval(tm_ticks()), 0);
}

void tm_control(uint64_t ticks, uint64_t bytes)
{
    tm_control_spent(ticks, bytes);
    /* After an expensive start the period is coarse and samples are rare. To lower it, they do not wait for 31
     * others; otherwise it would stay coarse until the program has allocated 32 periods. */
    uint64_t now = tm_ticks();
    int is_large = tm_is_large(bytes);
    int32_t samples = tm_core.slow_samples += !is_large;
    int whole = !is_large && samples == SAMPLES_A_CHECK, is_due = is_large && tm_large_is_due();
    if (!whole && !is_due && now < tm_core.check_at_ticks)
        return;
    check(end_interval(now), whole);
}

void tm_set_period(uint64_t period)
{
    if (period == tm_core.period)
        return;
    if (tm_core.period > tm_core.coarsest_period)
        tm_core.coarsest_period = tm_core.period;
    __atomic_store_n(&tm_core.period, period, __ATOMIC_RELAXED);
    tm_publish_period();
    tm_event(TM_EVENT_PERIOD, 0, period);
}
