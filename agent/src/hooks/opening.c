/* opening.c - records where open files, sockets and other descriptors were opened.
 *
 *   open(), socket(), ... --> descriptor N --> record N of the openings: the stack that opened it last
 *
 * A handle is a few small objects, so a leak of handles is too little memory for samples to show it. Therefore
 * every opening is recorded. Its closing is not, and need not be: the kernel assigns the lowest free number, so
 * the next opening overwrites the record, and a reader compares the records with what is open (/proc/PID/fd).
 *
 * Capturing a shallow stack takes a microsecond or two, about as long as a system call that opens something. In
 * a program that opens thousands per second, only some of the stacks are captured. The other records are marked
 * as unknown, because their previous contents described an earlier opening. Not seen: descriptors that the C
 * library opens for itself, that arrive in another process's message, and that fcntl() or dup() copies.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/lock.h"
#include "core/state.h"
#include "core/system.h"
#include "hooks/hooks.h"
#include "period/period.h"
#include "sampling/sampling.h"
#include "segment/sections.h"
#include "stacks/stack.h"

/* Stacks captured per interval: 200 per second, as long as they take no more than 0.05 % of a core; a server's
 * stacks are deep and expensive. At least one; up to this much unused time is kept for a burst. */
#define STRETCH_MS 100
#define MOST_STACKS 20
#define NS_A_MS 500
#define MOST_CREDIT_NS 2000000

struct opening {
    uint32_t descriptor;
    uint64_t now_ms, ticks;
};

/* (locked) */
static void write_record(const struct opening *opening, uint32_t stack)
{
    struct tm_opening record = {stack, (uint32_t)((opening->now_ms - tm_core.header->start_monotonic_ms) / 1000)};
    uint64_t value;
    _Static_assert(sizeof value == sizeof record, "written at once");
    __builtin_memcpy(&value, &record, sizeof value);
    __atomic_store_n((uint64_t *)tm_at(TM_SECTION_OPENINGS, opening->descriptor), value, __ATOMIC_RELEASE);
    if (opening->descriptor >= tm_core.rooms[TM_SECTION_OPENINGS].count)
        tm_records_appended(TM_SECTION_OPENINGS, opening->descriptor + 1);
    else
        tm_record_changed(TM_SECTION_OPENINGS, opening->descriptor);
}

/* (locked) */
static void write_opening(const struct tm_captured *captured, void *data)
{
    const struct opening *opening = data;
    if (tm_room_for(TM_SECTION_OPENINGS, opening->descriptor))
        write_record(opening, tm_intern_captured(captured));
    __atomic_fetch_sub(&tm_core.openings_credit_ns, tm_control_without_sample(tm_ticks() - opening->ticks), __ATOMIC_RELAXED);
}

static void write_unknown(const struct opening *opening)
{
    if (!tm_lock())
        return;
    if (opening->descriptor < tm_core.rooms[TM_SECTION_OPENINGS].count)
        write_record(opening, 0);
    tm_unlock();
}

/* Lock-free. Reads the header's words, because they stay readable whatever ends in the meantime. */
static int is_unknown(uint32_t descriptor)
{
    const struct tm_section *section = &tm_core.header->sections[TM_SECTION_OPENINGS];
    if (descriptor >= __atomic_load_n(&section->count, __ATOMIC_ACQUIRE))
        return 1;
    const uint64_t *records = (const void *)(tm_core.segment + section->offset);
    return (uint32_t)__atomic_load_n(&records[descriptor], __ATOMIC_RELAXED) == 0;
}

static int may_take_stack(uint64_t now_ms)
{
    uint64_t since = __atomic_load_n(&tm_core.openings_since_ms, __ATOMIC_RELAXED);
    if ((int64_t)(now_ms - since) >= STRETCH_MS) { /* another thread may be slightly ahead */
        int64_t credit = __atomic_load_n(&tm_core.openings_credit_ns, __ATOMIC_RELAXED);
        uint64_t more = (now_ms - since) * NS_A_MS;
        credit = (credit < 0 ? 0 : credit) + (int64_t)(more < MOST_CREDIT_NS ? more : MOST_CREDIT_NS);
        __atomic_store_n(&tm_core.openings_credit_ns, credit < MOST_CREDIT_NS ? credit : MOST_CREDIT_NS, __ATOMIC_RELAXED);
        __atomic_store_n(&tm_core.openings, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&tm_core.openings_since_ms, now_ms, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&tm_core.openings_credit_ns, __ATOMIC_RELAXED) > 0 &&
           __atomic_fetch_add(&tm_core.openings, 1, __ATOMIC_RELAXED) < MOST_STACKS;
}

static __attribute__((noinline)) void look_at(uint32_t descriptor, const void *caller)
{
    struct tm_thread_state *thread = &tm_own_thread;
    if (thread->inside || !tm_armed() || tm_quiet() || tm_covered())
        return;
    int saved = errno;
    struct opening opening = {descriptor, tm_now_ms(), tm_ticks()};
    int takes_stack = may_take_stack(opening.now_ms);
    int nothing_to_write = !takes_stack && is_unknown(descriptor);
    int is_ours = !nothing_to_write && /* and not between vfork and exec */
                  __atomic_load_n(&tm_core.pid, __ATOMIC_RELAXED) == tm_own_pid();
    if (is_ours) {
        thread->inside = 1;
        tm_adopt_thread();
        if (takes_stack)
            tm_with_stack(caller, write_opening, &opening);
        else
            write_unknown(&opening);
        thread->inside = 0;
    }
    errno = saved;
}

static inline int opened(int descriptor, const void *caller)
{
    if (descriptor >= 0 && descriptor < (int)TM_OPENING_COUNT && tm_has_states())
        look_at((uint32_t)descriptor, caller);
    return descriptor;
}

#define CALLER __builtin_return_address(0)
/* The function behind ours: a library's constructor may open something before anything was allocated. */
#define REAL(name) (tm_real.name ? tm_real.name : (tm_resolve(), tm_real.name))

/* ---- files --------------------------------------------------------------------------- */

/* The mode is passed only with some flags; reading it and passing it on without them is harmless. */
#define MODE_AFTER(last)                                                                      \
    va_list more;                                                                             \
    va_start(more, last);                                                                     \
    mode_t mode = va_arg(more, mode_t);                                                       \
    va_end(more)

TM_EXPORT int TM_ENTRY(open)(const char *path, int flags, ...)
{
    MODE_AFTER(flags);
    return opened(REAL(open)(path, flags, mode), CALLER);
}

TM_EXPORT int TM_ENTRY(open64)(const char *path, int flags, ...)
{
    MODE_AFTER(flags);
    return opened(REAL(open64)(path, flags, mode), CALLER);
}

TM_EXPORT int TM_ENTRY(openat)(int directory, const char *path, int flags, ...)
{
    MODE_AFTER(flags);
    return opened(REAL(openat)(directory, path, flags, mode), CALLER);
}

TM_EXPORT int TM_ENTRY(openat64)(int directory, const char *path, int flags, ...)
{
    MODE_AFTER(flags);
    return opened(REAL(openat64)(directory, path, flags, mode), CALLER);
}

static FILE *opened_stream(FILE *stream, const void *caller)
{
    if (stream)
        opened(fileno(stream), caller);
    return stream;
}

TM_EXPORT FILE *TM_ENTRY(fopen)(const char *path, const char *mode)
{
    return opened_stream(REAL(fopen)(path, mode), CALLER);
}

TM_EXPORT FILE *TM_ENTRY(fopen64)(const char *path, const char *mode)
{
    return opened_stream(REAL(fopen64)(path, mode), CALLER);
}

/* ---- sockets ------------------------------------------------------------------------- */

static int opened_pair(int failed, const int pair[2], const void *caller)
{
    if (!failed) {
        opened(pair[0], caller);
        opened(pair[1], caller);
    }
    return failed;
}

TM_EXPORT int TM_ENTRY(socket)(int domain, int type, int protocol)
{
    return opened(REAL(socket)(domain, type, protocol), CALLER);
}

TM_EXPORT int TM_ENTRY(socketpair)(int domain, int type, int protocol, int pair[2])
{
    return opened_pair(REAL(socketpair)(domain, type, protocol, pair), pair, CALLER);
}

TM_EXPORT int TM_ENTRY(accept)(int listening, struct sockaddr *restrict peer, socklen_t *restrict length)
{
    return opened(REAL(accept)(listening, peer, length), CALLER);
}

TM_EXPORT int TM_ENTRY(accept4)(int listening, struct sockaddr *restrict peer, socklen_t *restrict length, int flags)
{
    return opened(REAL(accept4)(listening, peer, length, flags), CALLER);
}

/* ---- others -------------------------------------------------------------------------- */

TM_EXPORT int TM_ENTRY(pipe)(int pair[2])
{
    return opened_pair(REAL(pipe)(pair), pair, CALLER);
}

TM_EXPORT int TM_ENTRY(pipe2)(int pair[2], int flags)
{
    return opened_pair(REAL(pipe2)(pair, flags), pair, CALLER);
}

TM_EXPORT int TM_ENTRY(epoll_create1)(int flags)
{
    return opened(REAL(epoll_create1)(flags), CALLER);
}

TM_EXPORT int TM_ENTRY(eventfd)(unsigned first, int flags)
{
    return opened(REAL(eventfd)(first, flags), CALLER);
}

TM_OWN(open);
TM_OWN(open64);
TM_OWN(openat);
TM_OWN(openat64);
TM_OWN(fopen);
TM_OWN(fopen64);
TM_OWN(socket);
TM_OWN(socketpair);
TM_OWN(accept);
TM_OWN(accept4);
TM_OWN(pipe);
TM_OWN(pipe2);
TM_OWN(epoll_create1);
TM_OWN(eventfd);
