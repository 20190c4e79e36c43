/* sample.c - the slow path: from "this allocation is the sample" to a record of it.
 *
 * Every thread counts bytes down through gaps that are exponential with the period as
 * mean, so an allocation of s bytes is sampled with p = 1 - exp(-s/period), whatever came
 * before it. A gap was drawn with the period of its time; when the period in force is
 * higher by now, the sample stays with p(now)/p(then), so one period describes it.
 */
#include <errno.h>

#include "mapping.h"
#include "python.h"
#include "state.h"

#define OBJECTS_CHECK_MS 10

struct tm_core tm_core TM_IMAGE;
struct tm_settings tm_settings = {.pool = {.kept_descriptor = -1}};

int tm_armed(void)
{
    return __atomic_load_n(&tm_core.phase, __ATOMIC_ACQUIRE) == TM_PHASE_ARMED;
}

uint32_t tm_incarnation(void)
{
    return tm_core.incarnation;
}

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

/* Not recording: look again only after a while, and draw a true gap before counting. */
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
        draw_next(thread); /* between vfork and exec: the memory is the parent's, the sample is nobody's */
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

/* ---- stacks (locked) ------------------------------------------------------------------ */

static uint32_t push_mark(uint32_t stack, unsigned left_out)
{
    char text[48];
    tm_format(text, sizeof text, "%u frames left out", left_out);
    return tm_intern_stack(stack, tm_intern_mark(text));
}

static uint32_t push_python(uint32_t stack, const struct tm_raw_frame *raw)
{
    if (raw->left_out)
        stack = push_mark(stack, raw->left_out);
    return tm_intern_stack(stack, tm_python_intern(raw));
}

static uint32_t plain_stack(const struct tm_raw_frame *raw, unsigned count, const void *return_address)
{
    uint32_t stack = 0;
    while (count)
        stack = push_python(stack, &raw[--count]);
    return return_address ? tm_intern_stack(stack, tm_native_intern(return_address)) : stack;
}

/* How many evaluator calls the Python frames stand for. */
static unsigned count_entries(const struct tm_raw_frame *raw, unsigned count)
{
    unsigned entries = 0;
    for (unsigned i = 0; i < count; i++)
        entries += raw[i].entry;
    return entries;
}

/* Native and Python frames in one stack: each native frame of the evaluator gives way to the
 * Python frames it was running. `pcs` and `raw` are leaf first; the stack grows from the root. */
static uint32_t merged_stack(const struct tm_raw_frame *raw, unsigned raw_count, void *const *pcs, unsigned pc_count)
{
    unsigned evaluators = 0, entries = count_entries(raw, raw_count), pushed = 0;
    for (unsigned i = 0; i < pc_count; i++)
        evaluators += tm_python_is_evaluator(pcs[i]) != 0;
    if (evaluators == 0) /* native code alone, or an evaluator that we cannot tell */
        pc_count = raw_count ? 0 : pc_count;
    uint32_t stack = 0;
    unsigned depth = raw_count + pc_count - evaluators;
    unsigned left_out = depth > TM_RAW_FRAMES ? depth - TM_RAW_FRAMES : 0;
    while (raw_count && entries > evaluators) { /* the native stack was cut nearer the leaf */
        stack = push_python(stack, &raw[--raw_count]);
        pushed++;
        while (raw_count && !raw[raw_count - 1].entry) {
            stack = push_python(stack, &raw[--raw_count]);
            pushed++;
        }
        entries--;
    }
    while (pc_count) {
        const void *pc = pcs[--pc_count];
        if (!tm_python_is_evaluator(pc)) {
            if (pushed++ < TM_ROOT_FRAMES || pushed > TM_ROOT_FRAMES + left_out)
                stack = tm_intern_stack(stack, tm_native_intern(pc));
            else if (pushed == TM_ROOT_FRAMES + 1)
                stack = push_mark(stack, left_out);
            continue;
        }
        evaluators--;
        for (int first = 1; raw_count && (first || evaluators == 0 || !raw[raw_count - 1].entry); first = 0) {
            if (entries == 0 && evaluators != 0)
                break; /* the version does not tell entries: all Python frames stand at the leaf's */
            stack = push_python(stack, &raw[--raw_count]);
            pushed++;
        }
    }
    while (raw_count)
        stack = push_python(stack, &raw[--raw_count]);
    return stack;
}

/* ---- recording -------------------------------------------------------------------------- */

struct capture {
    uint64_t now_ms;
    const void *address;
    size_t bytes;
    enum tm_domain domain;
    double period;
    const void *return_address;
    const void *context;
    const struct tm_raw_frame *raw;
    unsigned raw_count;
    void *const *pcs;
    unsigned pc_count;
};

/* (locked) */
static int write_sample(const struct capture *capture)
{
    uint64_t now = capture->now_ms;
    tm_drain_pending();
    uint32_t stack = capture->pc_count
                         ? merged_stack(capture->raw, capture->raw_count, capture->pcs, capture->pc_count)
                         : plain_stack(capture->raw, capture->raw_count, capture->return_address);
    uint32_t label = capture->context ? tm_python_label(capture->context, 0) : 0;
    uint32_t site = tm_find_site(stack, label, tm_own_thread_index(), capture->domain, now);
    if (site == TM_NONE)
        return 0;
    int mapped = capture->domain == TM_DOMAIN_MAPPED || capture->domain == TM_DOMAIN_FILES;
    uint32_t slot = tm_live_insert(capture->address, capture->bytes, capture->period, site, !mapped, now);
    if (slot == TM_NONE)
        return 0;
    if (mapped && !tm_mapping_add((uintptr_t)capture->address, capture->bytes, slot)) {
        tm_live_resize(slot, 0, now);
        return 0;
    }
    tm_site_allocated(site, tm_weigh(capture->bytes, capture->bytes, (float)capture->period), now);
    tm_check_peak(now);
    tm_core.header->samples++;
    tm_heartbeat(now);
    return 1;
}

/* (locked) Objects that the table does not know: let the lock go for a look at the loader's. */
static int knows_all(const struct capture *capture)
{
    if (capture->return_address && !tm_native_knows(capture->return_address))
        return 0;
    for (unsigned i = 0; i < capture->pc_count; i++)
        if (!tm_native_knows(capture->pcs[i]))
            return 0;
    return 1;
}

/* A sample that began in a recording that has ended belongs to no other. */
static int lock_this_recording(void)
{
    if (!tm_lock())
        return 0;
    if (tm_own_thread.incarnation == tm_core.incarnation)
        return 1;
    tm_unlock();
    return 0;
}

static void commit(struct capture *capture, uint64_t ticks)
{
    if (!lock_this_recording()) {
        if (tm_core.header)
            __atomic_fetch_add(&tm_core.header->samples_lost, 1, __ATOMIC_RELAXED);
        return;
    }
    if (!knows_all(capture)) {
        tm_unlock();
        tm_native_refresh();
        if (!lock_this_recording())
            return;
    }
    double now_in_force = (double)tm_core.period; /* thinned since we looked: one step more */
    if (now_in_force > capture->period) {
        double before = tm_chance((double)capture->bytes, capture->period);
        double after = tm_chance((double)capture->bytes, now_in_force);
        capture->period = now_in_force;
        if (tm_random_unit(&tm_own_thread) * before > after) {
            tm_unlock();
            return;
        }
    }
    if (!write_sample(capture))
        tm_core.header->samples_lost++;
    tm_control(tm_ticks() - ticks);
    tm_unlock();
}

/* Kept apart, for its arrays are large and threads' stacks may be small. */
static __attribute__((noinline)) void commit_with_native(struct capture *capture, uint64_t ticks)
{
    void *pcs[TM_NATIVE_FRAMES];
    capture->pcs = pcs;
    capture->pc_count = tm_native_backtrace(pcs, capture->return_address);
    commit(capture, ticks);
}

static void look_at_objects(uint64_t now)
{
    uint64_t last = __atomic_load_n(&tm_core.objects_checked_ms, __ATOMIC_RELAXED);
    if (now - last < OBJECTS_CHECK_MS ||
        !__atomic_compare_exchange_n(&tm_core.objects_checked_ms, &last, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        if (tm_settings.python_state == TM_PYTHON_FRAMES_ONLY)
            tm_python_verify(); /* a short program may have no later look */
        return;
    }
    uint64_t changes = tm_loader_answers() ? tm_object_changes() : tm_core.object_changes;
    int changed = __atomic_exchange_n(&tm_core.object_changes, changes, __ATOMIC_RELAXED) != changes;
    if (changed) {
        tm_python_probe();
        tm_native_refresh();
    }
    tm_attach_look(changed);
    tm_python_verify();
}

static __attribute__((noinline)) void capture_and_commit(struct capture *capture, uint64_t ticks)
{
    struct tm_raw_frame raw[TM_RAW_FRAMES];
    look_at_objects(capture->now_ms);
    capture->raw = raw;
    capture->raw_count = tm_python_capture(raw);
    capture->context = tm_python_context();
    if (__atomic_load_n(&tm_core.options, __ATOMIC_RELAXED) & TM_OPTION_NATIVE)
        commit_with_native(capture, ticks);
    else
        commit(capture, ticks);
    tm_python_release();
}

void tm_record(const void *address, size_t bytes, enum tm_domain domain, const void *return_address)
{
    int saved = errno;
    struct tm_thread_state *thread = &tm_own_thread;
    uint64_t ticks = tm_ticks(), in_force = __atomic_load_n(&tm_core.period, __ATOMIC_RELAXED);
    struct capture capture = {
        .now_ms = tm_now_ms(),
        .address = address,
        .bytes = bytes,
        .domain = domain,
        .period = (double)thread->period,
        .return_address = return_address,
    };
    int stays = (uintptr_t)address >> 48 == 0;
    if (in_force > thread->period) {
        double before = tm_chance((double)bytes, capture.period);
        capture.period = (double)in_force;
        stays = stays && tm_random_unit(thread) * before <= tm_chance((double)bytes, capture.period);
    }
    if (stays && tm_armed())
        capture_and_commit(&capture, ticks);
    draw_next(thread);
    thread->inside = 0;
    errno = saved;
}

/* ---- period and the way out ------------------------------------------------------------------ */

void tm_set_period(uint64_t period)
{
    if (period == tm_core.period)
        return;
    __atomic_store_n(&tm_core.period, period, __ATOMIC_RELAXED);
    tm_core.header->period_bytes = period;
    tm_event(TM_EVENT_PERIOD, 0, period);
}

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
