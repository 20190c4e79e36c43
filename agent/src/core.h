/* core.h - the boundary between the sampling core and the part that knows CPython.
 *
 * Who may call what, and when, is the whole point of this file:
 *
 *   hot path    tm_spend() in every allocation hook: one subtraction, nothing else.
 *   slow path   between tm_enter() and tm_record()/tm_leave(): no allocation, no
 *               lock of libc that an allocating thread could hold, errno kept.
 *   locked      functions marked (locked) want the core lock; they never call out of
 *               the agent, never allocate, never take the loader's lock.
 *
 * A fork may happen at any instruction: everything that belongs to one process image
 * lies on MADV_WIPEONFORK pages (struct tm_core in state.h), so a child starts with
 * zeros and takes nothing from its parent but code and settings. Private caches of the
 * Python part that must die with a fork are declared TM_WIPED.
 */
#ifndef TIDEMARK_CORE_H
#define TIDEMARK_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "../include/segment.h"

#define TM_LIKELY(x) __builtin_expect(!!(x), 1)
#define TM_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Stacks keep this many frames of the leaf and of the root; a mark stands between. */
#define TM_LEAF_FRAMES 100u
#define TM_ROOT_FRAMES 20u
#define TM_RAW_FRAMES (TM_LEAF_FRAMES + TM_ROOT_FRAMES)

/* ---- thread state ------------------------------------------------------------ */

/* One thread's state: it must stay under 64 bytes. */
struct tm_thread_state {
    uint64_t countdown;   /* bytes still to be allocated before the next sample, or the gap's next step */
    uint64_t rest;        /* of the gap, behind the countdown: 0 where it is not counted in steps */
    uint64_t period;      /* mean the countdown was drawn with; 0: not drawn yet */
    uint64_t random;      /* state of this thread's generator; never 0 once seeded */
    uint32_t inside;      /* > 0: inside the agent, hooks pass through */
    uint32_t domain;      /* enum tm_domain for what reaches our malloc now, plus 1; 0: native */
    uint32_t incarnation; /* of the process image that `thread` belongs to */
    uint32_t thread;      /* index in the threads section */
    uint32_t reads;       /* non-zero: is among those who read the interpreter's memory */
};
_Static_assert(sizeof(struct tm_thread_state) < 64, "static TLS is scarce");

/* In static TLS (initial-exec), which costs the hot path nothing. The loader keeps little of it for libraries that
 * come late: for a process that has none left the library is built a second time, as libtidemark-keyed.so, which
 * keeps the states under a thread-specific key (thread_states.c). */
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

/* Takes `bytes` off the thread's countdown. Non-zero: this allocation is the sample
 * (or the thread's first one): go on to tm_enter(). */
static inline int tm_spend(size_t bytes)
{
    uint64_t left;
    if (TM_UNLIKELY(__builtin_sub_overflow(tm_own_thread.countdown, (uint64_t)bytes, &left)))
        return 1;
    tm_own_thread.countdown = left;
    return 0;
}

/* ---- the slow path ----------------------------------------------------------- */

/* Begins the slow path for an allocation of `bytes` for which tm_spend() said 1.
 * 0: not sampled after all (disarmed, nested, first draw missed): allocate plainly,
 * nothing to undo. 1: sampled: hooks of this thread now pass through; allocate, then
 * call exactly one of tm_record() and tm_leave(). */
int tm_enter(size_t bytes);

/* Ends the slow path: records that `address` (of `bytes`, as asked for) was sampled.
 * `return_address` of the native caller becomes the leaf frame; NULL: none (the
 * Python part passes NULL for small objects). errno is left as it was. */
void tm_record(const void *address, size_t bytes, enum tm_domain domain, const void *return_address);

/* Ends the slow path without a sample (the allocation failed). */
void tm_leave(void);

/* Non-zero while this process image records. Relaxed: may change at any time. */
int tm_armed(void);

/* For hooks of Python allocators that see an object end without our free seeing it
 * (none is known: sampled small blocks come from malloc); address may be anything. */
void tm_forget(const void *address);

/* ---- what the Python part may tell the segment --------------------------------- */

/* Append a line to the segment's log (printf-like subset: %s %d %u %x %p). Takes the
 * core lock itself unless `tm_lock_is_mine()`. */
void tm_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sets bits of TM_LIMIT_* for good. */
void tm_set_limit(uint32_t limit_bits);

/* Sets header.python_state and header.python_version ("3.11.7"; NULL: leave). Safe
 * before a segment exists: kept, and written into every segment claimed later. */
void tm_set_python(enum tm_python_state python_state, const char *version);

/* ---- interning (locked) --------------------------------------------------------- */

/* Id of a string of `length` bytes of UTF-8 (copied; longer than 1000 is cut). 0 ("")
 * when the section is full. */
uint32_t tm_intern_string(const char *bytes, size_t length);

/* Frame ids; TM_NONE when the section is full. `function` and `file` are string ids. */
uint32_t tm_intern_python_frame(uint32_t function, uint32_t file, uint32_t line, uint32_t first_line);
uint32_t tm_intern_mark(const char *text);

/* Changes whenever ids handed out before have become meaningless (a forked child's
 * new segment): caches that hold ids compare it. Never 0 once a segment exists. */
uint32_t tm_incarnation(void);

/* ---- memory that a forked child finds zeroed ------------------------------------- */

/* Place a page-aligned static array whose size is a multiple of TM_PAGE; the
 * constructor marks the whole output section MADV_WIPEONFORK. */
#define TM_WIPED __attribute__((section("tm_wiped,\"aw\",@nobits#"), aligned(4096)))
/* The same, for what also survives the end of a recording: tables are zeroed then. */
#define TM_IMAGE __attribute__((section("tm_image,\"aw\",@nobits#"), aligned(4096)))

/* ---- ELF look-ups (resolve.c); no lock of ours, the loader's list lock inside -------- */

/* A loaded object as dl_iterate_phdr tells it; valid while it stays loaded. */
struct tm_object {
    uintptr_t bias;
    uintptr_t start, end; /* of all its loaded segments */
    const char *path;     /* as the loader names it; "" for the executable */
    const void *program_headers;
    uint32_t program_header_count;
};

/* Calls `visit` for every object in load order until it returns non-zero; gives that. */
int tm_each_object(int (*visit)(const struct tm_object *object, void *data), void *data);
/* Address of a symbol that the object defines in its dynamic table; NULL: none. */
void *tm_object_symbol(const struct tm_object *object, const char *name);
void *tm_object_symbol_sized(const struct tm_object *object, const char *name, size_t *size);
/* Objects ever added plus removed: a new value means the list changed. */
uint64_t tm_object_changes(void);

/* ---- the way out -------------------------------------------------------------------- */

/* Turns the agent off in this process, with a line for the log. Never blocks. */
void tm_turn_off(const char *why);

#endif
