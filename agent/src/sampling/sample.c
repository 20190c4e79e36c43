/* sample.c - the slow path: from "this allocation is the sample" to its record.
 *
 * Every thread counts bytes down through exponential gaps whose mean is the
 * period, so an allocation of s bytes is sampled with p = 1 - exp(-s/period), whatever preceded
 * it. The gap was drawn with the period at that time. The allocation's own period depends on the period in force
 * now, on its size and on who allocates it (period/churn.c, period/large.c). If it is higher, the sample is kept with probability
 * p(higher)/p(then). From then on `thread->period` alone describes the sample.
 */
#include <errno.h>

#include "core/lock.h"
#include "core/measure.h"
#include "core/number.h"
#include "core/state.h"
#include "core/system.h"
#include "live/live.h"
#include "live/mapping.h"
#include "live/site.h"
#include "period/period.h"
#include "python/python.h"
#include "sampling/lifecycle.h"
#include "sampling/sampling.h"
#include "segment/intern.h"
#include "segment/sections.h"
#include "stacks/stack.h"

uint32_t tm_is_covered;

void tm_adopt_thread(void)
{
    struct tm_thread_state *thread = &tm_own_thread;
    uint32_t incarnation = __atomic_load_n(&tm_core.incarnation, __ATOMIC_RELAXED);
    if (TM_LIKELY(thread->incarnation == incarnation))
        return;
    thread->incarnation = incarnation;
    thread->thread = 0;
    thread->copies = 0;
    thread->random = (__atomic_load_n(&tm_core.seed, __ATOMIC_RELAXED) ^ (uint64_t)tm_own_tid() * 0x9e3779b97f4a7c15ull ^ tm_ticks() << 20) | 1;
    for (int i = 0; i < 8; i++) /* a sparse seed takes several steps to spread */
        tm_random(thread);
}

static void draw_next(struct tm_thread_state *thread)
{
    tm_begin_gap(thread, __atomic_load_n(&tm_core.period, __ATOMIC_RELAXED));
}

/* Whether `unit`, random in (0, 1], is at most p(coarser)/p(finer). With x = s/finer, this ratio lies between finer/coarser and
 * finer/coarser / (1 - x/2), which decides for most small sizes without an exponential. */
static int is_kept(double unit, double bytes, double finer, double coarser)
{
    double ratio = finer / coarser, half = bytes / finer / 2;
    if (unit <= ratio)
        return 1;
    if (half < 1 && unit * (1 - half) > ratio)
        return 0;
    return unit * tm_chance(bytes, finer) <= tm_chance(bytes, coarser);
}

/* The gap was drawn with the thread's period, and ended in an allocation of this size. If the period of the
 * allocation is coarser now, the sample is kept with probability p(coarser)/p(then). This is decided before the
 * allocation is made. */
static int stays(struct tm_thread_state *thread, uint64_t bytes)
{
    uint64_t in_force = __atomic_load_n(&tm_core.period, __ATOMIC_RELAXED);
    uint64_t functions = !tm_is_large(bytes) && tm_churn_asks_functions(in_force) ? tm_python_functions() : 0;
    uint64_t period = tm_period_of(bytes, functions, in_force);
    if (period <= thread->period)
        return 1;
    double then = (double)thread->period;
    thread->period = period;
    if (is_kept(tm_random_unit(thread), (double)bytes, then, (double)period))
        return 1;
    if (!tm_is_large(bytes))
        tm_control_thinned();
    return 0;
}

/* Not recording: check again only after a while, and draw a random gap before counting. */
static int idle(struct tm_thread_state *thread)
{
    thread->countdown = TM_IDLE;
    thread->rest = 0;
    thread->period = 0;
    thread->is_large_apart = 0;
    return 0;
}

static int is_lease_over(void)
{
    const struct tm_pool_header *head = __atomic_load_n(&tm_settings.pool.head, __ATOMIC_RELAXED);
    uint64_t until = head ? head->lease_until_ms : 0;
    return until != 0 && tm_now_ms() > until;
}

__attribute__((noinline)) int tm_enter(size_t bytes)
{
    struct tm_thread_state *thread = &tm_own_thread;
    if (thread->inside)
        return 0;
    if (tm_decides_large(thread, bytes)) {
        if (!tm_large_is_sampled(thread, bytes))
            return 0;
    } else if (thread->rest && !tm_gap_ends(thread, bytes)) {
        tm_step_gap(thread);
        return 0;
    } else if (thread->period && !stays(thread, bytes)) {
        draw_next(thread);
        return 0;
    }
    int saved = errno, sampled = 0;
    tm_part(TM_PART_ENTRY);
    if (!tm_armed() && !tm_claim_in_child()) {
        idle(thread);
        if (__atomic_load_n(&tm_settings.attached, __ATOMIC_RELAXED))
            tm_finish_leaving();
    } else if (__atomic_load_n(&tm_core.pid, __ATOMIC_RELAXED) != tm_own_pid()) {
        draw_next(thread); /* between vfork and exec: the memory is the parent's, so there is no sample */
    } else if (is_lease_over()) {
        tm_lease_lapsed();
        idle(thread);
    } else if (tm_quiet() || tm_covered()) {
        idle(thread);
    } else {
        tm_adopt_thread();
        sampled = 1;
        if (thread->period == 0) { /* no random gap yet: draw one and count these bytes */
            draw_next(thread);
            sampled = tm_gap_ends(thread, bytes);
        }
        if (sampled) {
            thread->inside = 1;
            thread->countdown = TM_HELD;
            thread->rest = 0;
        }
    }
    if (sampled)
        tm_part(TM_PART_OUTSIDE);
    else
        tm_measured(TM_MEASURED_NOTHING);
    errno = saved;
    return sampled;
}

void tm_leave(void)
{
    tm_measured(TM_MEASURED_NOTHING);
    draw_next(&tm_own_thread);
    tm_own_thread.inside = 0;
}

/* ---- recording -------------------------------------------------------------------------- */

struct sampled {
    uint64_t now_ms;
    const void *address;
    size_t bytes;
    enum tm_domain domain;
    double period;
    uint64_t ticks; /* when the slow path began */
};

/* (locked) */
static int write_sample(const struct sampled *sampled, const struct tm_captured *captured, uint64_t functions)
{
    uint64_t now = sampled->now_ms;
    tm_drain_pending();
    tm_part(TM_PART_INTERNING);
    uint32_t stack = tm_intern_captured(captured);
    uint32_t label = captured->context ? tm_python_label(captured->context, 0) : 0;
    uint32_t thread = tm_own_thread_index();
    tm_check_thread_name();
    tm_part(TM_PART_TABLE);
    uint32_t site = tm_find_site(stack, label, thread, sampled->domain, now);
    if (site == TM_NONE)
        return 0;
    int mapped = sampled->domain == TM_DOMAIN_MAPPED || sampled->domain == TM_DOMAIN_FILES;
    const struct tm_live values = {
        .site = site,
        .address = (uintptr_t)sampled->address,
        .bytes = sampled->bytes,
        .birth_ms = now,
        .weight_bytes = sampled->bytes,
        .period_bytes = (float)sampled->period,
    };
    uint32_t slot = tm_live_insert(&values, tm_churn_kind(sampled->bytes, functions), !mapped);
    if (slot == TM_NONE)
        return 0;
    tm_site_sampled(site, tm_weigh(values.weight_bytes, values.bytes, values.period_bytes), now);
    if (mapped && !tm_mapping_add((uintptr_t)sampled->address, sampled->bytes, slot)) {
        tm_live_resize(slot, 0, now);
        return 0;
    }
    tm_check_peak(now);
    tm_churn_taken(sampled->bytes, functions, sampled->period);
    tm_core.header->samples++;
    tm_heartbeat(now);
    return 1;
}

/* (locked) */
static void commit(const struct tm_captured *captured, void *data)
{
    struct sampled *sampled = data;
    /* The period has risen since the decision to sample: decide once more. */
    uint64_t functions = tm_python_functions_of(captured->raw, captured->raw_count);
    double now_in_force = (double)tm_period_of(sampled->bytes, functions, tm_core.period);
    if (now_in_force > sampled->period) {
        double then = sampled->period;
        sampled->period = now_in_force;
        if (!is_kept(tm_random_unit(&tm_own_thread), (double)sampled->bytes, then, now_in_force))
            return;
    }
    if (!write_sample(sampled, captured, functions))
        tm_core.header->samples_lost++;
    tm_part(TM_PART_CHECKS);
    if (sampled->domain == TM_DOMAIN_PYTHON)
        tm_python_end_cached_names(sampled->now_ms);
    tm_part(TM_PART_CONTROL);
    tm_control(tm_ticks() - sampled->ticks, sampled->bytes);
}

void tm_record(const void *address, size_t bytes, enum tm_domain domain, const void *return_address)
{
    int saved = errno;
    struct tm_thread_state *thread = &tm_own_thread;
    tm_part(TM_PART_ENTRY);
    struct sampled sampled = {
        .now_ms = tm_now_ms(),
        .address = address,
        .bytes = bytes,
        .domain = domain,
        .period = (double)thread->period,
        .ticks = tm_ticks(),
    };
    int is_recorded = (uintptr_t)address >> 48 == 0 && tm_armed();
    if (is_recorded) {
        tm_part(TM_PART_CHECKS);
        tm_check_objects(sampled.now_ms);
        tm_part(TM_PART_STACK);
        if (!tm_with_stack(return_address, commit, &sampled) && tm_core.header)
            __atomic_fetch_add(&tm_core.header->samples_lost, 1, __ATOMIC_RELAXED);
    }
    tm_part(TM_PART_ENTRY);
    draw_next(thread);
    thread->inside = 0;
    tm_measured(is_recorded ? TM_MEASURED_SAMPLE : TM_MEASURED_NOTHING);
    errno = saved;
}

/* ---- turning off ------------------------------------------------------------------------ */

void tm_turn_off(const char *why)
{
    uint32_t armed = TM_PHASE_ARMED;
    if (!__atomic_compare_exchange_n(&tm_core.phase, &armed, TM_PHASE_OFF, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    tm_log("turned itself off: %s", why);
    tm_set_limit(TM_LIMIT_TURNED_OFF);
    if (tm_try_lock()) { /* a stuck lock is one of the reasons to turn off */
        tm_event(TM_EVENT_OFF, 0, 0);
        tm_unlock();
    }
    tm_core.header->state = TM_STATE_DISARMED;
    tm_heartbeat(tm_now_ms());
}
