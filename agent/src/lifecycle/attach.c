/* attach.c - arms the agent in a running program, on request, and leaves it without a trace.
 *
 *   arm     pool -> segment -> slots of functions that end allocations -> recording -> slots of
 *           functions that begin them -> Python's hooks
 *   leave   recording ends -> Python's hooks -> slots, in reverse order -> private memory
 *           in the pool's place, tables zeroed
 *
 * Meanwhile a thread may be anywhere in the agent, and may have saved the address of any of its functions. So
 * the library stays mapped, its functions always call the program's allocator, and a thread that takes the core
 * lock after the end finds the tables locked (core/lock.c). Addresses within the segment stay valid, and the
 * next recording gets the same ones.
 *
 * The next arming finds what the first one found: the same copy, the same addresses, no additional
 * thread-local data, mapping or descriptor. `tm_core.arming` lets one thread at a time
 * arm, disarm or rewrite. The program's threads never wait for it; a call to arm or disarm does, for a while.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "core/lock.h"
#include "core/state.h"
#include "core/system.h"
#include "hooks/hook_table.h"
#include "hooks/hooks.h"
#include "hooks/python_hooks.h"
#include "lifecycle/arming.h"
#include "lifecycle/options.h"
#include "period/period.h"
#include "process/loader.h"
#include "process/objects.h"
#include "sampling/lifecycle.h"
#include "sampling/sampling.h"
#include "segment/pool.h"
#include "segment/sections.h"
#include "slots/slots.h"
#include "tidemark.h"

/* ---- one at a time -------------------------------------------------------------------------- */

static int begin(void)
{
    uint32_t free_now = 0;
    if (!__atomic_compare_exchange_n(&tm_core.arming, &free_now, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return 0;
    tm_own_thread.inside++;
    return 1;
}

/* A rewrite takes far less than a second, unless its thread is not scheduled: a thousand waits of a millisecond. */
static int begin_within_a_second(void)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    for (int waits = 0; !begin(); waits++) {
        if (waits == 1000)
            return 0;
        nanosleep(&pause, NULL);
    }
    return 1;
}

static void end(void)
{
    tm_own_thread.inside--;
    __atomic_store_n(&tm_core.arming, 0, __ATOMIC_RELEASE);
}

/* ---- leaving -------------------------------------------------------------------------------- */

static void restore_slots(void)
{
    if (!tm_slots_are_used() || !tm_loader_is_safe())
        return; /* they lead to our functions, which call the program's own */
    uint32_t stayed = tm_slots_restore(TM_SLOTS_COPIES);
    stayed += tm_slots_restore(TM_SLOTS_BEGINNINGS);
    stayed += tm_slots_restore(TM_SLOTS_ENDS);
    if (!stayed)
        tm_slots_forget();
}

/* `tries` waits of 100 ms for the core lock: one for a thread of the program, and more for a call that asks for
 * it, as the lock's holder may not be scheduled on a busy machine. */
enum { LEAVE_AT_ONCE = 1, LEAVE_PATIENTLY = 5 };

/* Returns 0 if the lock was not released: recording has ended and everything is restored, but a thread may
 * still write to the tables, so they cannot be used again. */
static int leave(int tries)
{
    uint32_t armed = TM_PHASE_ARMED;
    tm_enable(0);
    int recorded = __atomic_compare_exchange_n(&tm_core.phase, &armed, TM_PHASE_OFF, 0, __ATOMIC_ACQ_REL,
                                               __ATOMIC_RELAXED);
    __atomic_store_n(&tm_core.unhooking, !tm_python_unhook(), __ATOMIC_RELEASE);
    restore_slots();
    int locked = 0;
    while (!locked && tries-- > 0)
        locked = tm_lock_always();
    if (recorded) {
        if (locked)
            tm_control_report();
        tm_heartbeat(tm_now_ms());
        __atomic_store_n(&tm_core.header->state, TM_STATE_DISARMED, __ATOMIC_RELEASE);
    }
    tm_pool_detach();
    if (!locked) {
        __atomic_store_n(&tm_core.phase, TM_PHASE_OFF, __ATOMIC_RELEASE);
        return 0;
    }
    tm_forget_recording();
    __atomic_store_n(&tm_core.phase, TM_PHASE_UNBORN, __ATOMIC_RELEASE);
    tm_unlock();
    return 1;
}

void tm_lease_lapsed(void)
{
    static const char why[] = "the recorder went away";
    if (!tm_settings.attached) {
        tm_turn_off(why);
    } else if (begin()) {
        tm_turn_off(why);
        leave(LEAVE_AT_ONCE);
        end();
    }
}

/* A child that was not to be followed, or whose pool is gone, leaves as its parent would; a thread
 * that holds the GIL removes the hooks that another could not. */
void tm_finish_leaving(void)
{
    int ended = __atomic_load_n(&tm_settings.enabled, __ATOMIC_RELAXED) &&
                __atomic_load_n(&tm_core.phase, __ATOMIC_ACQUIRE) == TM_PHASE_OFF;
    if ((!ended && !__atomic_load_n(&tm_core.unhooking, __ATOMIC_ACQUIRE)) || !begin())
        return;
    if (ended)
        leave(LEAVE_AT_ONCE);
    else if (tm_python_unhook())
        __atomic_store_n(&tm_core.unhooking, 0, __ATOMIC_RELEASE);
    end();
}

void tm_update_slots(int objects_changed)
{
    if (!tm_slots_are_used() || (!objects_changed && !tm_slots_due()) || !tm_loader_is_safe() || !begin())
        return;
    if (tm_armed())
        tm_slots_write_all();
    end();
}

/* Another tool overwrote our functions and left: nothing known about the slots is valid any more. */
void tm_rewrite_slots(void)
{
    if (!begin())
        return;
    if (tm_armed() && tm_loader_is_safe()) {
        restore_slots();
        tm_slots_write_all();
    }
    end();
}

/* ---- arming --------------------------------------------------------------------------------- */

struct refusal {
    char *text;
    size_t capacity;
};

#define REFUSE(refusal, code, ...) (tm_format((refusal)->text, (refusal)->capacity, __VA_ARGS__), (code))

static int refuse_pool(const struct refusal *refusal, int why, const char *path)
{
    const char *what = why == EPROTO                    ? "is of another version of Tidemark"
                       : why == EINVAL                  ? "is no pool"
                       : why == ENOSPC                  ? "has no free slot, or memory is short"
                       : why == ENOENT || why == ESTALE ? "is gone"
                       : why == EACCES || why == EPERM  ? "may not be opened by this process"
                                                        : "cannot be used";
    return REFUSE(refusal, why, "pool: %s %s (error %d)", path[0] ? path : "memory of its own", what, why);
}

static int write_slots(const struct refusal *refusal, enum tm_slot_group group)
{
    int why = tm_slots_are_used() ? tm_slots_write(group) : 0;
    return why ? REFUSE(refusal, why, "objects: the pointers of loaded objects cannot be rewritten (error %d)", why) : 0;
}

static int come_on(const struct tm_options *options, const struct refusal *refusal)
{
    int why = tm_open_pool(options);
    if (!why) {
        tm_note_other_allocators();
        __atomic_store_n(&tm_core.phase, TM_PHASE_CLAIMING, __ATOMIC_RELEASE);
        why = tm_begin_image();
    }
    if (why)
        return refuse_pool(refusal, why, options->pool);
    tm_slots_begin();
    if ((why = write_slots(refusal, TM_SLOTS_ENDS)) != 0)
        return why;
    tm_cover_begin();
    tm_enable(1);
    tm_begin_sampling();
    if ((why = write_slots(refusal, TM_SLOTS_BEGINNINGS)) != 0 || (why = write_slots(refusal, TM_SLOTS_COPIES)) != 0)
        return why;
    tm_cover_end();
    tm_python_attach();
    return 0;
}

static int arm(const struct tm_options *options, const struct refusal *refusal)
{
    if (tm_armed() || tm_claim_in_child())
        return REFUSE(refusal, EALREADY, "armed: the agent records into %s already",
                      tm_settings.pool.path[0] ? tm_settings.pool.path : "memory of its own");
    if (!tm_wipe_on_fork())
        return REFUSE(refusal, ENOSYS, "system: the kernel cannot wipe memory on fork (Linux 4.14 can)");
    int is_left_over = tm_core.segment || tm_settings.pool.head; /* turned off, inherited, or partly restored */
    if (is_left_over && !leave(LEAVE_PATIENTLY))
        return REFUSE(refusal, EBUSY, "busy: a thread has never come back from the agent");
    if (tm_settings.loaded_by != tm_own_pid())
        tm_core.is_first = 0;
    if (!tm_loader_is_safe())
        return REFUSE(refusal, EBUSY, "objects: this forked process may have inherited a held lock of the loader");
    tm_settings.limits = 0;
    tm_settings.log_length = 0;
    __atomic_store_n(&tm_settings.attached, 1, __ATOMIC_RELAXED);
    if (tm_is_loaded_late())
        tm_hooks_find();
    int why = come_on(options, refusal);
    if (why)
        leave(LEAVE_PATIENTLY);
    return why;
}

/* ---- entry points --------------------------------------------------------------------------- */

/* The library may be loaded twice, from two files: the first copy of this version acts for both. A copy of another
 * version, which an older or newer Tidemark loaded, acts for itself. */
enum { MOST_COPIES = 16, STATUS_HEAD = 256 };

struct copy {
    size_t (*status)(char *, size_t);
    void *function;
    int is_earlier;
};

struct copies {
    const char *name;
    struct copy list[MOST_COPIES];
    unsigned count;
    int found_own;
};

static int find_copy(const struct tm_object *object, void *data)
{
    struct copies *copies = data;
    if ((uintptr_t)find_copy >= object->start && (uintptr_t)find_copy < object->end) {
        copies->found_own = 1;
        return 0;
    }
    struct copy copy = {
        .status = (size_t (*)(char *, size_t))tm_object_symbol(object, "tidemark_status"),
        .function = tm_object_symbol(object, copies->name),
        .is_earlier = !copies->found_own,
    };
    if (copy.status && copy.function && copies->count < MOST_COPIES)
        copies->list[copies->count++] = copy;
    return 0;
}

static void find_copies(struct copies *copies, const char *name)
{
    *copies = (struct copies){.name = name};
    if (tm_loader_is_safe() || !tm_settings.attached) /* an attached agent has checked this before */
        tm_each_object(find_copy, copies);
}

/* The beginning of its status, which names its version, state and entry; returns whether it has this version. */
static int read_copy(const struct copy *copy, char head[STATUS_HEAD])
{
    char own[40];
    tm_format(own, sizeof own, "{\"version\":%u,", TM_SEGMENT_VERSION);
    memset(head, 0, STATUS_HEAD);
    copy->status(head, STATUS_HEAD);
    return strncmp(head, own, strlen(own)) == 0;
}

static void *first_copy(const char *name)
{
    struct copies copies;
    char head[STATUS_HEAD];
    find_copies(&copies, name);
    for (unsigned i = 0; i < copies.count && copies.list[i].is_earlier; i++)
        if (read_copy(&copies.list[i], head))
            return copies.list[i].function;
    return NULL;
}

/* Two versions must not record at the same time, and a preloaded one stays in front of the allocators for good. */
static int another_version_acts(void)
{
    struct copies copies;
    char head[STATUS_HEAD];
    find_copies(&copies, "tidemark_arm");
    for (unsigned i = 0; i < copies.count; i++)
        if (!read_copy(&copies.list[i], head) &&
            !(strstr(head, "\"state\":\"inert\"") && strstr(head, "\"entry\":\"attached\"")))
            return 1;
    return 0;
}

int tidemark_arm(const char *text, char *why, size_t capacity)
{
    int (*other)(const char *, char *, size_t) = (int (*)(const char *, char *, size_t))first_copy("tidemark_arm");
    if (other)
        return other(text, why, capacity);
    char unheard[256];
    struct refusal refusal = {capacity ? why : unheard, capacity ? capacity : sizeof unheard};
    int saved = errno, result;
    struct tm_options options;
    tm_read_options(text, &options);
    if (options.unknown[0] || !options.on)
        result = REFUSE(&refusal, EINVAL, "options: \"%s\" is not understood", options.unknown[0] ? options.unknown : "off");
    else if (another_version_acts())
        result = REFUSE(&refusal, EALREADY, "armed: the agent of another version of Tidemark is preloaded or still records");
    else if (!tm_has_states())
        result = REFUSE(&refusal, EAGAIN, "storage: the process has no thread-specific key left");
    else if (!begin_within_a_second())
        result = REFUSE(&refusal, EBUSY, "busy: another thread is arming or disarming");
    else {
        result = arm(&options, &refusal);
        end();
    }
    errno = saved;
    return result;
}

int tidemark_disarm(char *why, size_t capacity)
{
    int (*other)(char *, size_t) = (int (*)(char *, size_t))first_copy("tidemark_disarm");
    if (other)
        return other(why, capacity);
    char unheard[256];
    struct refusal refusal = {capacity ? why : unheard, capacity ? capacity : sizeof unheard};
    int saved = errno, result = 0;
    if (!begin_within_a_second()) {
        result = REFUSE(&refusal, EBUSY, "busy: another thread is arming or disarming");
    } else {
        int something = tm_settings.enabled || tm_core.unhooking || tm_settings.pool.head;
        if (something && !leave(LEAVE_PATIENTLY))
            result = REFUSE(&refusal, EBUSY, "busy: a thread has never come back from the agent");
        end();
    }
    errno = saved;
    return result;
}

size_t tidemark_status(char *text, size_t capacity)
{
    size_t (*other)(char *, size_t) = (size_t (*)(char *, size_t))first_copy("tidemark_status");
    return other ? other(text, capacity) : tm_status(text, capacity);
}
