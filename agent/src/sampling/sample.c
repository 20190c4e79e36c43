/* sample.c - the slow path: from "this allocation is the sample" to its record.
 *
 * Every thread counts bytes down through exponential gaps whose mean is the
 * period, so an allocation of s bytes is sampled with p = 1 - exp(-s/period), whatever preceded
 * it. A gap was drawn with the period of its time. When the period in force, or that of the
 * allocation's size (period/churn.c), is higher, the sample is kept with probability p(higher)/p(then),
 * so that one period describes it.
 */
#include <errno.h>

#include "core/lock.h"
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

void tm_adopt_thread(void)
{
    struct tm_thread_state *thread = &tm_own_thread;
    uint32_t incarnation = __atomic_load_n(&tm_core.incarnation, __ATOMIC_RELAXED);
    if (TM_LIKELY(thread->incarnation == incarnation))
        return;
    thread->incarnation = incarnation;
    thread->thread = 0;
    thread->random = (__atomic_load_n(&tm_core.seed, __ATOMIC_RELAXED) ^ (uint64_t)tm_own_tid() * 0x9e3779b97f4a7c15ull ^ tm_ticks() << 20) | 1;
    for (int i = 0; i < 8; i++) /* a sparse seed takes some steps to spread */
        tm_random(thread);
}

static void draw_next(struct tm_thread_state *thread)
{
    tm_begin_gap(thread, __atomic_load_n(&tm_core.period, __ATOMIC_RELAXED));
}

/* Not recording: check again only after a while, and draw a true gap before counting. */
static int idle(struct tm_thread_state *thread)
{
    thread->countdown = TM_IDLE;
    thread->rest = 0;
    thread->period = 0;
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
    if (thread->rest && !tm_gap_ends(thread, bytes)) {
        tm_step_gap(thread);
        return 0;
    }
    int saved = errno, sampled = 0;
    if (!tm_armed() && !tm_come_alive()) {
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
        if (thread->period == 0) { /* no true gap yet: draw one and spend on it */
            draw_next(thread);
            sampled = tm_gap_ends(thread, bytes);
        }
        if (sampled) {
            thread->inside = 1;
            thread->countdown = TM_HELD;
            thread->rest = 0;
        }
    }
    errno = saved;
    return sampled;
}

void tm_leave(void)
{
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
    uint64_t ticks; /* when it began */
};

/* (locked) */
static int write_sample(const struct sampled *sampled, const struct tm_captured *captured)
{
    uint64_t now = sampled->now_ms;
    tm_drain_pending();
    uint32_t stack = tm_intern_captured(captured);
    uint32_t label = captured->context ? tm_python_label(captured->context, 0) : 0;
    uint32_t site = tm_find_site(stack, label, tm_own_thread_index(), sampled->domain, now);
    if (site == TM_NONE)
        return 0;
    int mapped = sampled->domain == TM_DOMAIN_MAPPED || sampled->domain == TM_DOMAIN_FILES;
    uint32_t slot = tm_live_insert(sampled->address, sampled->bytes, sampled->period, site, !mapped, now);
    if (slot == TM_NONE)
        return 0;
    if (mapped && !tm_mapping_add((uintptr_t)sampled->address, sampled->bytes, slot)) {
        tm_live_resize(slot, 0, now);
        return 0;
    }
    tm_site_allocated(site, tm_weigh(sampled->bytes, sampled->bytes, (float)sampled->period), now);
    tm_check_peak(now);
    tm_churn_taken(sampled->bytes);
    tm_core.header->samples++;
    tm_heartbeat(now);
    return 1;
}

/* (locked) */
static void commit(const struct tm_captured *captured, void *data)
{
    struct sampled *sampled = data;
    double now_in_force = (double)tm_core.period; /* thinned since the period was read: one step more */
    if (now_in_force > sampled->period) {
        double before = tm_chance((double)sampled->bytes, sampled->period);
        double after = tm_chance((double)sampled->bytes, now_in_force);
        sampled->period = now_in_force;
        if (tm_random_unit(&tm_own_thread) * before > after)
            return;
    }
    if (!write_sample(sampled, captured))
        tm_core.header->samples_lost++;
    if (sampled->domain == TM_DOMAIN_PYTHON)
        tm_python_end_cached_names(sampled->now_ms);
    tm_control(tm_ticks() - sampled->ticks);
}

void tm_record(const void *address, size_t bytes, enum tm_domain domain, const void *return_address)
{
    int saved = errno;
    struct tm_thread_state *thread = &tm_own_thread;
    uint64_t in_force = __atomic_load_n(&tm_core.period, __ATOMIC_RELAXED);
    struct sampled sampled = {
        .now_ms = tm_now_ms(),
        .address = address,
        .bytes = bytes,
        .domain = domain,
        .period = (double)thread->period,
        .ticks = tm_ticks(),
    };
    int stays = (uintptr_t)address >> 48 == 0;
    uint64_t period = tm_churn_period(bytes, in_force);
    if (period > thread->period) {
        double before = tm_chance((double)bytes, sampled.period);
        sampled.period = (double)period;
        stays = stays && tm_random_unit(thread) * before <= tm_chance((double)bytes, sampled.period);
        if (!stays)
            tm_control_thinned();
    }
    if (stays && tm_armed()) {
        tm_check_objects(sampled.now_ms);
        if (!tm_with_stack(return_address, commit, &sampled) && tm_core.header)
            __atomic_fetch_add(&tm_core.header->samples_lost, 1, __ATOMIC_RELAXED);
    }
    draw_next(thread);
    thread->inside = 0;
    errno = saved;
}

/* ---- the way out ------------------------------------------------------------------------ */

void tm_turn_off(const char *why)
{
    uint32_t armed = TM_PHASE_ARMED;
    if (!__atomic_compare_exchange_n(&tm_core.phase, &armed, TM_PHASE_OFF, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    tm_log("turned itself off: %s", why);
    tm_set_limit(TM_LIMIT_TURNED_OFF);
    if (tm_try_lock()) { /* a stuck lock is one of the reasons to come here */
        tm_event(TM_EVENT_OFF, 0, 0);
        tm_unlock();
    }
    tm_core.header->state = TM_STATE_DISARMED;
    tm_heartbeat(tm_now_ms());
}
