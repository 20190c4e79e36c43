/* core.h - the state of a thread and of the process image, and who may call what, and when.
 *
 *   hot path    tm_spend() in every allocation hook: one subtraction, nothing else.
 *   slow path   between tm_enter() and tm_record() or tm_leave() (sampling/sampling.h): no allocation,
 *               no lock of libc that an allocating thread could hold, errno preserved.
 *   (locked)    functions marked so require the core lock; they never call out of
 *               the agent, never allocate, never take the loader's lock.
 *
 * A fork may happen at any instruction. Everything that belongs to one process image
 * lies on MADV_WIPEONFORK pages (struct tm_core in state.h), so a child starts with
 * zeros and inherits nothing from its parent but code and settings. Private caches that
 * must not survive a fork are declared TM_WIPED.
 */
#ifndef TIDEMARK_CORE_H
#define TIDEMARK_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "segment.h"

#define TM_LIKELY(x) __builtin_expect(!!(x), 1)
#define TM_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- thread state ------------------------------------------------------------ */

/* The state of one thread. It must stay under 64 bytes. */
struct tm_thread_state {
    uint64_t countdown;   /* bytes left to allocate before the next sample, or before the gap's next step */
    uint64_t rest;        /* bytes of the gap beyond the countdown; 0 if the gap is not counted in steps */
    uint64_t period;      /* mean with which the countdown was drawn; 0: not drawn yet */
    uint64_t random;      /* state of this thread's generator; never 0 once seeded */
    uint32_t inside;      /* > 0: inside the agent, hooks pass through */
    uint32_t domain;      /* enum tm_domain of the calls that reach our malloc now, plus 1; 0: native */
    uint32_t incarnation; /* of the process image that `thread` belongs to */
    uint32_t thread;      /* index in the threads section */
    uint32_t reads;       /* non-zero: this thread is reading the interpreter's memory */
    uint32_t copies;      /* bytes left to copy before the next sampled copy; 0: not drawn yet */
    uint32_t is_large_apart; /* the gap does not count large allocations */
    float large_gap;         /* what is left of the gap of large allocations, in periods; 0 or less: not drawn yet */
};
_Static_assert(sizeof(struct tm_thread_state) <= 64, "static TLS is scarce");

/* In static TLS (initial-exec), which costs the hot path nothing. The loader reserves little static TLS for
 * libraries that are loaded late. For a process that has none left, the library is built a second time as
 * libtidemark-keyed.so, which keeps the states under a thread-specific key (thread_states.c). */
#ifdef TM_KEYED_STATES
struct tm_thread_state *tm_keyed_state(void);
int tm_has_states(void);
#define tm_own_thread (*tm_keyed_state())
#else
extern __thread struct tm_thread_state tm_own_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));
static inline int tm_has_states(void)
{
    return 1;
}
#endif

/* Subtracts `bytes` from the thread's countdown. Non-zero: this allocation is the sample
 * (or the thread's first allocation); continue with tm_enter() of sampling/sampling.h. */
static inline int tm_spend(size_t bytes)
{
    uint64_t left;
    if (TM_UNLIKELY(__builtin_sub_overflow(tm_own_thread.countdown, (uint64_t)bytes, &left)))
        return 1;
    tm_own_thread.countdown = left;
    return 0;
}

/* ---- the process image ---------------------------------------------------------------- */

/* Non-zero while this process image records. Relaxed: may change at any time. */
int tm_armed(void);

/* Changes whenever ids handed out earlier have become meaningless (a forked child's
 * new segment). Caches that hold ids compare it. Never 0 once a segment exists. */
uint32_t tm_incarnation(void);

/* ---- memory that a forked child finds zeroed ------------------------------------- */

/* Place a page-aligned static array whose size is a multiple of TM_PAGE; the
 * constructor marks the whole output section MADV_WIPEONFORK. */
#define TM_WIPED __attribute__((section("tm_wiped,\"aw\",@nobits#"), aligned(4096)))
/* The same, for memory that also survives the end of a recording: tables are zeroed then. */
#define TM_IMAGE __attribute__((section("tm_image,\"aw\",@nobits#"), aligned(4096)))

#endif
