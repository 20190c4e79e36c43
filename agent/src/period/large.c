/* large.c - allocations of at least the configured period have a separate period.
 *
 * They are few and make up most of a program's bytes, so they are sampled at the configured period whatever the
 * small ones cost: their samples have a separate share of CPU time, a few thousand samples per second. Their
 * period rises only beyond that, and when the live table is full; it is never coarser than that of a small
 * allocation.
 *
 * While the period in force is the configured one, gaps decide about them as about all others. While it is
 * raised, gaps count only the bytes of small allocations, in steps of less than the configured period (gap.c).
 * So every large allocation exceeds the countdown and reaches this code, where a random number decides.
 */
#include "core/number.h"
#include "core/state.h"
#include "core/system.h"
#include "period/period.h"

#define SHARE 0.003
#define CREDIT_NS 10000000ll /* an account holds at most 10 ms, either way */
#define LARGEST_PERIOD (8ull << 20)

void tm_large_begin(void)
{
    tm_core.large_credit_ns = CREDIT_NS;
    __atomic_store_n(&tm_core.large_period, tm_core.configured_period, __ATOMIC_RELAXED);
}

int tm_is_large(uint64_t bytes)
{
    return bytes >= __atomic_load_n(&tm_core.configured_period, __ATOMIC_RELAXED);
}

uint64_t tm_period_of(uint64_t bytes, uint64_t in_force)
{
    uint64_t period = tm_churn_period(bytes, in_force);
    uint64_t large = __atomic_load_n(&tm_core.large_period, __ATOMIC_RELAXED);
    return tm_is_large(bytes) && large < period ? large : period;
}

int tm_decides_large(const struct tm_thread_state *thread, uint64_t bytes)
{
    uint64_t configured = __atomic_load_n(&tm_core.configured_period, __ATOMIC_RELAXED);
    return configured && thread->period > configured && bytes >= configured;
}

int tm_large_is_sampled(struct tm_thread_state *thread, uint64_t bytes)
{
    uint64_t period = tm_period_of(bytes, __atomic_load_n(&tm_core.period, __ATOMIC_RELAXED));
    if (tm_random_unit(thread) > tm_chance((double)bytes, (double)period))
        return 0;
    thread->period = period; /* a new gap is drawn when the sample is recorded */
    return 1;
}

void tm_large_check(double budget_ns, double spent_ns)
{
    double balance = (double)tm_core.large_credit_ns + budget_ns * SHARE - spent_ns, bound = (double)CREDIT_NS;
    tm_core.large_credit_ns = (int64_t)(balance > bound ? bound : balance < -bound ? -bound : balance);
    uint64_t period = tm_core.large_period;
    if (tm_core.large_credit_ns < 0 && period < LARGEST_PERIOD && !tm_is_fixed())
        period *= 2;
    else if (tm_core.large_credit_ns > CREDIT_NS / 2 && tm_may_halve(period))
        period /= 2;
    __atomic_store_n(&tm_core.large_period, period, __ATOMIC_RELAXED);
}

void tm_large_thinned(uint64_t period)
{
    if (tm_core.large_period < period)
        __atomic_store_n(&tm_core.large_period, period, __ATOMIC_RELAXED);
}
