/* start.c - how the agent comes on, in a fresh image and in a forked child, and its end.
 *
 *   TIDEMARK=pool=/proc/PID/fd/N[,native]        the recorder's pool
 *   TIDEMARK=period=512K[,dir=/path][,native]    a pool of its own
 *   TIDEMARK=off, or no TIDEMARK                 inert
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks.h"
#include "python.h"
#include "state.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

extern char __start_tm_wiped[] __attribute__((visibility("hidden")));
extern char __stop_tm_wiped[] __attribute__((visibility("hidden")));

struct wish {
    char pool[sizeof tm_settings.pool.path];
    int on;
};

/* "512K", "1M", "65536"; 0: not a size. */
static uint64_t read_size(const char *text, size_t length)
{
    uint64_t value = 0;
    size_t at = 0;
    while (at < length && text[at] >= '0' && text[at] <= '9' && value < 1ull << 40)
        value = value * 10 + (uint64_t)(text[at++] - '0');
    unsigned shift = 0;
    if (at > 0 && at < length) {
        switch (text[at++]) {
        case 'k': case 'K': shift = 10; break;
        case 'm': case 'M': shift = 20; break;
        case 'g': case 'G': shift = 30; break;
        default: return 0;
        }
    }
    if (at < length && (text[at] == 'i' || text[at] == 'B'))
        at++;
    if (at < length && text[at] == 'B')
        at++;
    return at == length && value <= (1ull << 40) >> shift ? value << shift : 0;
}

static void read_option(struct wish *wish, const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    size_t name = equals ? (size_t)(equals - text) : length, rest = equals ? length - name - 1 : 0;
    if (name == 4 && memcmp(text, "pool", 4) == 0 && rest > 0 && rest < sizeof wish->pool) {
        memcpy(wish->pool, equals + 1, rest);
        wish->pool[rest] = 0;
    } else if (name == 3 && memcmp(text, "dir", 3) == 0 && rest > 0 && rest < sizeof tm_settings.directory) {
        memcpy(tm_settings.directory, equals + 1, rest);
        tm_settings.directory[rest] = 0;
    } else if (name == 6 && memcmp(text, "period", 6) == 0 && read_size(equals ? equals + 1 : "", rest)) {
        tm_settings.period = read_size(equals + 1, rest);
    } else if (length == 6 && memcmp(text, "native", 6) == 0) {
        tm_settings.native = 1;
    } else if (length == 3 && memcmp(text, "off", 3) == 0) {
        wish->on = 0;
    } else if (length) {
        char shown[64] = {0};
        memcpy(shown, text, length < sizeof shown ? length : sizeof shown - 1);
        tm_log("TIDEMARK: \"%s\" is not understood and was passed over", shown);
    }
}

static void read_environment(struct wish *wish)
{
    const char *text = getenv("TIDEMARK");
    wish->on = text && *text;
    while (text && *text) {
        size_t length = strcspn(text, ",");
        read_option(wish, text, length);
        text += length + (text[length] == ',');
    }
}

/* The period that an image starts with. */
static uint64_t first_period(void)
{
    const struct tm_pool_header *head = tm_settings.pool.head;
    uint64_t period = tm_settings.period ? tm_settings.period : head ? head->period_bytes : 0;
    return period == 0 || period > 1ull << 40 ? TM_DEFAULT_PERIOD : period;
}

/* In the child of fork(). It would count on with its parent's countdown, as all its siblings do: a
 * thousand workers would take or miss the same allocation together, and their sum would be far off
 * its standard error. (Children of a raw clone() still do.) Touches this thread's own state alone. */
static void part_ways(void)
{
    struct tm_thread_state *thread = &tm_thread;
    if (thread->period == 0 || thread->inside)
        return; /* no gap drawn yet */
    thread->random = (tm_ticks() ^ (uint64_t)tm_own_pid() << 32) | 1;
    for (int i = 0; i < 8; i++) /* a sparse seed takes some steps to spread */
        tm_random(thread);
    thread->period = first_period();
    thread->countdown = tm_draw(thread, thread->period);
}

/* Claims a segment for this image. Runs in exactly one thread (phase CLAIMING). */
static int begin_image(void)
{
    const struct tm_pool_header *head = tm_settings.pool.head;
    uint8_t *segment;
    uint32_t image;
    tm_core.options = (head->options & TM_OPTION_NATIVE) | (tm_settings.native ? TM_OPTION_NATIVE : 0);
    tm_core.configured_period = first_period();
    tm_core.period = tm_core.configured_period;
    tm_core.incarnation = ++tm_settings.incarnations;
    if (syscall(SYS_getrandom, &tm_core.seed, sizeof tm_core.seed, 1u) != (long)sizeof tm_core.seed)
        tm_core.seed = tm_ticks() ^ (uint64_t)tm_own_pid() << 32;
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
    int why = begin_image();
    __atomic_store_n(&tm_core.phase, why ? TM_PHASE_OFF : TM_PHASE_ARMED, __ATOMIC_RELEASE);
    return why == 0;
}

int tm_come_alive(void)
{
    uint32_t unborn = TM_PHASE_UNBORN;
    if (!tm_settings.enabled ||
        !__atomic_compare_exchange_n(&tm_core.phase, &unborn, TM_PHASE_CLAIMING, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return 0;
    tm_thread.inside++;
    const struct tm_pool_header *head = tm_settings.pool.head;
    int alive = 0, why = 0;
    if (!tm_settings.own_pool && head->options & TM_OPTION_NO_FOLLOW)
        __atomic_store_n(&tm_core.phase, TM_PHASE_OFF, __ATOMIC_RELEASE);
    else if (tm_settings.own_pool && (why = tm_pool_make_own()) != 0)
        __atomic_store_n(&tm_core.phase, TM_PHASE_OFF, __ATOMIC_RELEASE);
    else
        alive = arm();
    tm_thread.inside--;
    return alive;
}

static int wipe_on_fork(void)
{
    uintptr_t start = (uintptr_t)__start_tm_wiped, stop = (uintptr_t)__stop_tm_wiped;
    return start % TM_PAGE == 0 && stop % TM_PAGE == 0 &&
           madvise((void *)start, stop - start, MADV_WIPEONFORK) == 0;
}

/* Another definition may stand before ours (preloaded earlier, or in the executable): a wrapper
 * passes calls on to us, an allocator does not. Asked as the program would ask. */
static int malloc_reaches_us(void)
{
    tm_thread.countdown = TM_HELD;
    free(malloc(1));
    return tm_thread.countdown != TM_HELD;
}

static void come_on(const struct wish *wish)
{
    uintptr_t start, end;
    int why = wish->pool[0] ? tm_pool_open_given(wish->pool) : tm_pool_make_own();
    if (why || !tm_pool_may_follow())
        return;
    if (tm_foreign_allocator(&start, &end)) {
        tm_settings.malloc_unseen = tm_stands_behind() && !malloc_reaches_us();
        tm_set_limit(tm_settings.malloc_unseen ? TM_LIMIT_MALLOC_UNSEEN : TM_LIMIT_FOREIGN_ALLOCATOR);
    }
    tm_settings.own_pool = !wish->pool[0];
    tm_settings.enabled = 1;
    tm_core.phase = TM_PHASE_CLAIMING;
    if (!arm())
        return;
    (void)pthread_atfork(NULL, NULL, part_ways);
    tm_loader_begin();
    tm_native_begin((tm_core.options & TM_OPTION_NATIVE) != 0);
    tm_core.object_changes = tm_object_changes();
    tm_native_refresh();
    tm_python_probe();
}

#ifndef TM_TEST_ENTRIES
__attribute__((constructor))
#endif
void tm_start(void)
{
    int saved = errno;
    struct wish wish = {.on = 0};
    tm_resolve();
    read_environment(&wish);
    if (wish.on && wipe_on_fork()) {
        tm_thread.inside = 1;
        come_on(&wish);
        tm_thread.inside = 0;
        tm_thread.countdown = 0; /* draw at the first allocation */
        tm_thread.period = 0;
    }
    errno = saved;
}

/* Exit handlers run: what lives now is the last look. Nothing is freed, for threads may
 * still be inside; a child between vfork and exec that calls exit() is not this image.
 *
 * A few stores into pages already mapped, and no waiting: daemon threads that come back to
 * an interpreter that ended may crash in CPython itself (3.9, 3.10), so the less time passes
 * here the better, and a thread inside the lock may be off its core for long. Such a thread
 * finishes its record; only the slow path's time then stays as of the controller's last look. */
#ifndef TM_TEST_ENTRIES
__attribute__((destructor))
#endif
void tm_end(void)
{
    if (!tm_armed() || tm_core.pid != tm_own_pid())
        return;
    __atomic_store_n(&tm_core.phase, TM_PHASE_OFF, __ATOMIC_RELEASE);
    if (tm_try_lock()) {
        tm_control_report();
        tm_unlock();
    }
    tm_heartbeat(tm_now_ms());
    __atomic_store_n(&tm_core.header->state, TM_STATE_ENDED, __ATOMIC_RELEASE);
}
