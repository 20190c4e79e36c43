/* gap.c - the bytes that a thread allocates between two samples.
 *
 * A gap of a raised period is counted down in steps of less than the configured one. Otherwise a program that
 * allocates little after an expensive start could not be sampled as finely as configured for minutes. A large
 * allocation, which exceeds every step, is not counted; it is decided separately (large.c). While the period of large
 * allocations is raised, gaps of the configured period are counted in steps as well.
 *
 * No thread can be notified that a recording has ended, so each thread carries its gap into the next recording.
 * The rest of a gap is as long as a new one of the same period, so this distorts nothing. But a gap of a much
 * coarser configured period would leave the next recording without samples for long. So no step of a coarse gap
 * is longer than TM_IDLE, and after it a gap of the period in force is drawn.
 *
 *   countdown     rest
 *   |--- step ---|-------- ... --------| sample
 */
#include <errno.h>

#include "core/lock.h"
#include "core/number.h"
#include "core/state.h"
#include "core/system.h"
#include "period/period.h"

static uint64_t longest_step(const struct tm_thread_state *thread)
{
    uint64_t configured = __atomic_load_n(&tm_core.configured_period, __ATOMIC_RELAXED);
    uint64_t step = thread->period > TM_IDLE ? TM_IDLE : UINT64_MAX;
    return thread->is_large_apart && configured && configured <= step ? configured - 1 : step;
}

static void count_down(struct tm_thread_state *thread, uint64_t gap)
{
    thread->is_large_apart = (uint32_t)tm_large_is_apart(thread->period);
    uint64_t step = longest_step(thread);
    thread->countdown = gap < step ? gap : step;
    thread->rest = gap - thread->countdown;
}

void tm_begin_gap(struct tm_thread_state *thread, uint64_t period)
{
    thread->period = period;
    count_down(thread, tm_draw(thread, period));
}

int tm_gap_ends(struct tm_thread_state *thread, uint64_t bytes)
{
    uint64_t left = thread->countdown + thread->rest;
    if (bytes > left)
        return 1;
    count_down(thread, left - bytes);
    return 0;
}

void tm_step_gap(struct tm_thread_state *thread)
{
    tm_control_passed(longest_step(thread));
    tm_renew_gap(thread);
}

/* The rest of a gap is again such a gap, so a new one may be drawn for it. */
void tm_renew_gap(struct tm_thread_state *thread)
{
    int saved = errno;
    if (tm_control_is_due() && tm_armed() && __atomic_load_n(&tm_core.pid, __ATOMIC_RELAXED) == tm_own_pid() &&
        tm_try_lock()) {
        thread->inside = 1;
        if (tm_armed())
            tm_control_recheck();
        thread->inside = 0;
        tm_unlock();
    }
    uint64_t in_force = __atomic_load_n(&tm_core.period, __ATOMIC_RELAXED);
    if (in_force && in_force < thread->period)
        tm_begin_gap(thread, in_force);
    errno = saved;
}
