/* large.c - allocations of at least the configured period have a separate period.
 *
 * They are few and make up most of a program's bytes, so they are sampled at the configured period whatever the
 * small ones cost: their samples have a separate share of CPU time. Only beyond it, and at FEWEST samples a second and
 * more, does their period rise, and only for sizes that are soon freed again (the same rule as in churn.c):
 *
 *     stays live       the raised period, but none coarser than that of small allocations
 *     soon freed       the raised period if at most a 64th stays, half of it if a 16th does, a quarter of it if a quarter does
 *
 * While both periods are the configured one, gaps decide about large allocations as about all others. Otherwise, gaps
 * count only the bytes of small allocations, in steps of less than the configured period (gap.c). So every large
 * allocation exceeds the countdown and reaches this code. Each thread counts the rest of an exponential gap of mean 1
 * down by bytes / period: an allocation in which it ends is sampled with 1 - exp(-bytes / period), whatever the
 * periods of those before it.
 */
#include "core/number.h"
#include "core/state.h"
#include "core/system.h"
#include "period/period.h"

#define SHARE 0.003
#define CREDIT_NS 10000000ll /* an account holds at most 10 ms, either way */
#define SETTLED_NS 5000000.0 /* budget of the shortest interval that says what samples cost */
#define FEWEST 2000.0        /* samples for each second of the budget that are taken whatever they cost */
#define SAMPLES_A_CHECK 256
#define COARSEST 16u /* times the configured period: 1 MiB by default */
#define HARDEST 2.0  /* beyond COARSEST only if samples would take this many shares */
#define LARGEST 128u /* times the configured period: 8 MiB by default */
#define WHOLE_SHIFT 3u /* of a size of which at most a 64th stays */
#define STEPS 16 /* of a gap, after each of which the period may fall */

void tm_large_begin(void)
{
    tm_core.large_credit_ns = CREDIT_NS;
    tm_core.large_budget_ns = tm_core.large_spent_ns = 0;
    tm_core.large_samples = 0;
    __atomic_store_n(&tm_core.large_period, tm_core.configured_period, __ATOMIC_RELAXED);
}

int tm_is_large(uint64_t bytes)
{
    return bytes >= __atomic_load_n(&tm_core.configured_period, __ATOMIC_RELAXED);
}

static uint64_t shifted(uint64_t large, uint64_t in_force, uint32_t shift)
{
    uint64_t lasting = large < in_force ? large : in_force;
    uint64_t freed = shift == 0 ? 0 : shift < WHOLE_SHIFT ? large >> (WHOLE_SHIFT - shift) : large;
    return freed > lasting ? freed : lasting;
}

uint64_t tm_period_of(uint64_t bytes, uint64_t functions, uint64_t in_force)
{
    if (!tm_is_large(bytes))
        return tm_churn_period(bytes, functions, in_force);
    return shifted(__atomic_load_n(&tm_core.large_period, __ATOMIC_RELAXED), in_force, tm_churn_shift(bytes, 0));
}

uint64_t tm_large_coarsest(uint64_t in_force)
{
    return shifted(tm_core.large_period, in_force, tm_core.most_shift);
}

int tm_large_is_apart(uint64_t period)
{
    uint64_t configured = __atomic_load_n(&tm_core.configured_period, __ATOMIC_RELAXED);
    return configured && (period > configured || __atomic_load_n(&tm_core.large_period, __ATOMIC_RELAXED) > configured);
}

int tm_decides_large(const struct tm_thread_state *thread, uint64_t bytes)
{
    uint64_t configured = __atomic_load_n(&tm_core.configured_period, __ATOMIC_RELAXED);
    return thread->is_large_apart && configured && bytes >= configured;
}

static float unit_gap(struct tm_thread_state *thread)
{
    return (float)-tm_logarithm(tm_random_unit(thread));
}

int tm_large_is_sampled(struct tm_thread_state *thread, uint64_t bytes)
{
    uint64_t period = tm_period_of(bytes, 0, __atomic_load_n(&tm_core.period, __ATOMIC_RELAXED));
    float gap = thread->large_gap > 0 ? thread->large_gap : unit_gap(thread);
    float left = thread->large_gap = gap - (float)bytes / (float)period;
    if (left > 0) {
        if ((int)(gap * STEPS) != (int)(left * STEPS))
            tm_renew_gap(thread);
        return 0;
    }
    thread->period = period; /* a new gap is drawn when the sample is recorded */
    return 1;
}

int tm_large_is_due(void)
{
    int32_t samples = ++tm_core.large_samples;
    return samples > 0 && samples % SAMPLES_A_CHECK == 0;
}

/* Shares that samples took in the interval: as many doublings bring them down to about one. */
static uint64_t raised(uint64_t period, double load)
{
    uint64_t configured = tm_core.configured_period;
    for (; load > 1.0 && period < LARGEST * configured && (period < COARSEST * configured || load > HARDEST); load /= 2)
        period *= 2;
    return period;
}

void tm_large_check(double budget_ns, double spent_ns)
{
    double balance = (double)tm_core.large_credit_ns + budget_ns * SHARE - spent_ns, bound = (double)CREDIT_NS;
    tm_core.large_credit_ns = (int64_t)(balance > bound ? bound : balance < -bound ? -bound : balance);
    double budget = tm_core.large_budget_ns += budget_ns, spent = tm_core.large_spent_ns += spent_ns;
    if (budget < SETTLED_NS)
        return;
    double samples_a_second = tm_core.large_samples / budget * 1e9;
    tm_core.large_budget_ns = tm_core.large_spent_ns = 0;
    tm_core.large_samples = 0;
    uint64_t period = tm_core.large_period;
    if (tm_core.large_credit_ns < 0 && samples_a_second > FEWEST && !tm_is_fixed())
        period = raised(period, spent / (budget * SHARE));
    else if ((tm_core.large_credit_ns > CREDIT_NS / 2 || samples_a_second < FEWEST / 2) && tm_may_halve(period))
        period /= 2;
    if (period == tm_core.large_period)
        return;
    __atomic_store_n(&tm_core.large_period, period, __ATOMIC_RELAXED);
    tm_publish_period();
}

void tm_large_thinned(uint64_t period)
{
    if (tm_core.large_period < period)
        __atomic_store_n(&tm_core.large_period, period, __ATOMIC_RELAXED);
}
