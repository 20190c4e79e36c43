/* start.c - arms the agent in a new image and in a forked child, and ends it at exit. options.c parses the
 * environment's settings; attach.c arms the agent in a running program.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/lock.h"
#include "core/measure.h"
#include "core/number.h"
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
#include "python/python.h"
#include "sampling/lifecycle.h"
#include "sampling/sampling.h"
#include "segment/pool.h"
#include "segment/sections.h"
#include "stacks/native.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

extern char __start_tm_wiped[] __attribute__((visibility("hidden")));
extern char __stop_tm_wiped[] __attribute__((visibility("hidden")));
extern char __start_tm_image[] __attribute__((visibility("hidden")));
extern char __stop_tm_image[] __attribute__((visibility("hidden")));

/* The period that an image starts with. */
static uint64_t first_period(void)
{
    const struct tm_pool_header *head = tm_settings.pool.head;
    uint64_t period = tm_settings.period ? tm_settings.period : head ? head->period_bytes : 0;
    return period == 0 || period > 1ull << 40 ? TM_DEFAULT_PERIOD : period;
}

/* In the child of fork(). Otherwise it would continue its parent's countdown, like all its siblings: a thousand
 * workers would sample or miss the same allocation together, and their sum would be far off its standard error.
 * (Children of a raw clone() still do.) Touches only this thread's own state. */
static void separate_from_parent(void)
{
    struct tm_thread_state *thread = &tm_own_thread;
    if (thread->period == 0 || thread->inside)
        return; /* no gap drawn yet */
    thread->random = (tm_ticks() ^ (uint64_t)tm_own_pid() << 32) | 1;
    for (int i = 0; i < 8; i++) /* a sparse seed takes several steps to spread */
        tm_random(thread);
    thread->large_gap = 0;
    tm_begin_gap(thread, first_period());
}

static uint32_t own_options(void)
{
    return (tm_settings.native ? TM_OPTION_NATIVE : 0) | (tm_settings.copies ? TM_OPTION_COPIES : 0);
}

int tm_begin_image(void)
{
    const struct tm_pool_header *head = tm_settings.pool.head;
    uint8_t *segment;
    uint32_t image;
    __atomic_store_n(&tm_core.options, (head->options & (TM_OPTION_NATIVE | TM_OPTION_COPIES)) | own_options(),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&tm_core.configured_period, first_period(), __ATOMIC_RELAXED);
    __atomic_store_n(&tm_core.period, tm_core.configured_period, __ATOMIC_RELAXED);
    __atomic_store_n(&tm_core.incarnation, ++tm_settings.incarnations, __ATOMIC_RELAXED);
    uint64_t seed;
    if (syscall(SYS_getrandom, &seed, sizeof seed, 1u) != (long)sizeof seed)
        seed = tm_ticks() ^ (uint64_t)tm_own_pid() << 32;
    __atomic_store_n(&tm_core.seed, seed, __ATOMIC_RELAXED);
    int why = tm_pool_claim(&segment, &image);
    if (!why)
        why = tm_segment_begin(segment, image);
    if (why) {
        tm_pool_unserved(why);
        return why;
    }
    tm_control_begin();
    return 0;
}

static int arm(void)
{
    int why = tm_begin_image();
    __atomic_store_n(&tm_core.phase, why ? TM_PHASE_OFF : TM_PHASE_ARMED, __ATOMIC_RELEASE);
    return why == 0;
}

/* Only one thread of the image may claim. A thread that saw the agent enabled and then slept through an end and
 * a new beginning finds another number, and gives up. */
static int begin_claiming(void)
{
    uint32_t unborn = TM_PHASE_UNBORN, claiming = TM_PHASE_CLAIMING;
    uint32_t enabled = __atomic_load_n(&tm_settings.enabled, __ATOMIC_ACQUIRE);
    if (!enabled || !__atomic_compare_exchange_n(&tm_core.phase, &unborn, TM_PHASE_CLAIMING, 0, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_RELAXED))
        return 0;
    if (__atomic_load_n(&tm_settings.enabled, __ATOMIC_ACQUIRE) == enabled)
        return 1;
    __atomic_compare_exchange_n(&tm_core.phase, &claiming, TM_PHASE_UNBORN, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    return 0;
}

void tm_enable(int on)
{
    static uint32_t times;
    __atomic_store_n(&tm_settings.enabled, on ? ++times : 0, __ATOMIC_RELEASE);
}

int tm_claim_in_child(void)
{
    if (!begin_claiming())
        return 0;
    tm_own_thread.inside++;
    const struct tm_pool_header *head = tm_settings.pool.head;
    int alive = 0, why = 0;
    if (!tm_settings.own_pool && head->options & TM_OPTION_NO_FOLLOW)
        __atomic_store_n(&tm_core.phase, TM_PHASE_OFF, __ATOMIC_RELEASE);
    else if (tm_settings.own_pool && (why = tm_pool_make_own(own_options())) != 0)
        __atomic_store_n(&tm_core.phase, TM_PHASE_OFF, __ATOMIC_RELEASE);
    else
        alive = arm();
    tm_own_thread.inside--;
    return alive;
}

static int wipe(char *start, char *stop)
{
    return (uintptr_t)start % TM_PAGE == 0 && (uintptr_t)stop % TM_PAGE == 0 &&
           madvise(start, (size_t)(stop - start), MADV_WIPEONFORK) == 0;
}

int tm_wipe_on_fork(void)
{
    return wipe(__start_tm_wiped, __stop_tm_wiped) && wipe(__start_tm_image, __stop_tm_image);
}

void tm_forget_recording(void)
{
    madvise(__start_tm_wiped, (size_t)(__stop_tm_wiped - __start_tm_wiped), MADV_DONTNEED);
    uint64_t *words = (uint64_t *)&tm_core; /* one by one, because threads that are leaving still read some */
    for (size_t i = offsetof(struct tm_core, incarnation) / sizeof *words; i < sizeof tm_core / sizeof *words; i++)
        __atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
}

int tm_open_pool(const struct tm_options *options)
{
    tm_settings.native = options->native;
    tm_settings.copies = options->copies;
    tm_settings.period = options->period;
    __atomic_store_n(&tm_settings.fixed_period, options->fixed, __ATOMIC_RELAXED);
    memcpy(tm_settings.directory, options->directory, sizeof tm_settings.directory);
    tm_settings.own_pool = !options->pool[0] && !tm_settings.attached; /* late: one for all processes that it forks */
    return options->pool[0] ? tm_pool_open_given(options->pool)
                            : tm_pool_make_own(own_options() | (options->no_follow ? TM_OPTION_NO_FOLLOW : 0));
}

/* Another definition may precede ours (preloaded earlier, or in the executable): a wrapper passes calls on to
 * us, an allocator does not. The call is made as the program would make it. */
static int malloc_reaches_us(void)
{
    tm_own_thread.countdown = TM_HELD;
    free(malloc(1));
    return tm_own_thread.countdown != TM_HELD;
}

void tm_note_other_allocators(void)
{
    uintptr_t start, end;
    if (!tm_foreign_allocator(&start, &end))
        return;
    tm_settings.malloc_unseen = tm_is_preceded() && !malloc_reaches_us();
    tm_set_limit(tm_settings.malloc_unseen ? TM_LIMIT_MALLOC_UNSEEN : TM_LIMIT_FOREIGN_ALLOCATOR);
}

void tm_begin_sampling(void)
{
    static int parts_ways;
    if (!parts_ways++)
        (void)pthread_atfork(NULL, NULL, separate_from_parent);
    tm_lock_stuck = tm_turn_off;
    tm_native_begin((tm_core.options & TM_OPTION_NATIVE) != 0);
    __atomic_store_n(&tm_core.object_changes, tm_object_changes(), __ATOMIC_RELAXED);
    __atomic_store_n(&tm_core.phase, TM_PHASE_ARMED, __ATOMIC_RELEASE);
    tm_native_refresh();
}

static void come_on(const struct tm_options *options)
{
    if (tm_open_pool(options) != 0 || !tm_pool_may_follow())
        return;
    tm_note_other_allocators();
    tm_enable(1);
    tm_core.phase = TM_PHASE_CLAIMING;
    if (tm_begin_image() != 0) {
        __atomic_store_n(&tm_core.phase, TM_PHASE_OFF, __ATOMIC_RELEASE);
        return;
    }
    tm_slots_begin();
    tm_begin_sampling();
    if (tm_slots_are_used())
        tm_slots_write_all();
    tm_python_probe();
}

#ifndef TM_TEST_ENTRIES
__attribute__((constructor))
#endif
void tm_start(void)
{
    int saved = errno;
    tm_resolve();
    if (!tm_is_loaded_late())
        tm_hooks_find(); /* what dlsym() returns; when loaded late, attach.c asks when it arms */
    tm_loader_begin(); /* even if inert: a child may be armed late */
    tm_core.is_first = 1;
    tm_settings.loaded_by = tm_own_pid();
    const char *text = tm_is_loaded_late() ? NULL : getenv("TIDEMARK");
    struct tm_options options;
    if (text)
        tm_read_options(text, &options);
    if (text && *text && options.on && tm_wipe_on_fork()) {
        if (options.unknown[0])
            tm_log("TIDEMARK: \"%s\" is not a known option and was ignored", options.unknown);
        tm_own_thread.inside = 1;
        come_on(&options);
        tm_own_thread.inside = 0;
        tm_own_thread.countdown = 0; /* draw at the first allocation */
        tm_own_thread.rest = 0;
        tm_own_thread.period = 0;
    }
    errno = saved;
}

/* Exit handlers run, so what is live now is the final state. Nothing is freed, because threads may still be
 * inside; a child between vfork and exec that calls exit() is not this image.
 *
 * Only a few stores to mapped pages, and no waiting, because a thread inside the lock may not get a core for
 * long. Such a thread finishes its record; only the slow path's time then remains that of the controller's last
 * check. If an interpreter ended, there is no system call either: one is enough for a daemon thread to come
 * back to it (sampling/ending.c). Values that need a system call were written when the end began. */
#ifndef TM_TEST_ENTRIES
__attribute__((destructor))
#endif
void tm_end(void)
{
    tm_measure_write();
    int finalized = tm_python_finalises();
    if (!tm_armed() || (!finalized && tm_core.pid != tm_own_pid()))
        return;
    if (tm_settings.attached)
        tm_enable(0); /* no need to stop now: the process ends in a moment */
    __atomic_store_n(&tm_core.phase, TM_PHASE_OFF, __ATOMIC_RELEASE);
    if (!finalized && tm_try_lock()) {
        tm_control_report();
        tm_unlock();
    }
    tm_heartbeat(tm_now_ms());
    __atomic_store_n(&tm_core.header->state, TM_STATE_ENDED, __ATOMIC_RELEASE);
}
