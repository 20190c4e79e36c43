/* thread_states.c - where the state of a thread is stored.
 *
 * In static TLS or, if built with TM_KEYED_STATES, in a table of the library:
 *
 *   key of this thread ──> states[i] { state, owner }      owner 0: free; else a thread's id
 *
 * Dynamic TLS is not an alternative. The loader allocates it at the first use, with the `malloc` that the
 * executable names. If that is a stub in the executable itself (a static Python's), it leads to our hook,
 * endlessly.
 *
 * Setting a key may also allocate (the C library's second level of keys). A thread that re-enters from there
 * finds its id in `beginning` and gets a state that samples nothing; so does a thread for which there is no
 * room. A thread that ends returns its state. In a forked child, the states of the other threads stay taken.
 */
#include "core/state.h"
#include "core/system.h"

#ifndef TM_KEYED_STATES

__thread struct tm_thread_state tm_own_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

#else

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>


#define STATES 32768u
#define BEGINNING 64u
#define NEVER (1u << 30)

struct kept {
    struct tm_thread_state state;
    _Atomic uint32_t owner;
};

static struct kept states[STATES]; /* untouched pages cost nothing */
static _Atomic uint32_t next_state;
static _Atomic uint32_t beginning[BEGINNING];
static struct tm_thread_state unsampled;
static pthread_key_t key;
static int has_key;

static void give_back(void *state)
{
    struct kept *kept = (struct kept *)state;
    memset(&kept->state, 0, sizeof kept->state);
    atomic_store_explicit(&kept->owner, 0, memory_order_release);
}

/* Before any other constructor of this library needs a state. */
__attribute__((constructor(101))) static void make_key(void)
{
    has_key = pthread_key_create(&key, give_back) == 0;
}

int tm_has_states(void)
{
    return has_key;
}

static struct tm_thread_state *sample_nothing(void)
{
    unsampled.inside = NEVER;
    unsampled.countdown = TM_HELD;
    return &unsampled;
}

static struct kept *claim(uint32_t thread)
{
    uint32_t from = atomic_load_explicit(&next_state, memory_order_relaxed);
    for (uint32_t i = 0; i < STATES; i++) {
        uint32_t at = (from + i) % STATES, nobody = 0;
        if (atomic_compare_exchange_strong(&states[at].owner, &nobody, thread)) {
            atomic_store_explicit(&next_state, at + 1, memory_order_relaxed);
            return &states[at];
        }
    }
    return NULL;
}

/* Index of this thread's entry; -1: it has none, or there is no room. */
static int note(uint32_t thread)
{
    for (unsigned i = 0; i < BEGINNING; i++)
        if (atomic_load_explicit(&beginning[i], memory_order_relaxed) == thread)
            return -1;
    for (unsigned i = 0; i < BEGINNING; i++) {
        uint32_t nobody = 0;
        if (atomic_compare_exchange_strong(&beginning[i], &nobody, thread))
            return (int)i;
    }
    return -1;
}

static __attribute__((noinline)) struct tm_thread_state *begin_state(void)
{
    uint32_t thread = tm_own_tid();
    int place = has_key ? note(thread) : -1;
    if (place < 0)
        return sample_nothing();
    struct kept *kept = claim(thread);
    if (kept && pthread_setspecific(key, kept) != 0) {
        give_back(kept);
        kept = NULL;
    }
    atomic_store_explicit(&beginning[place], 0, memory_order_release);
    return kept ? &kept->state : sample_nothing();
}

struct tm_thread_state *tm_keyed_state(void)
{
    struct kept *kept = has_key ? pthread_getspecific(key) : NULL;
    return TM_UNLIKELY(!kept) ? begin_state() : &kept->state;
}

#endif
