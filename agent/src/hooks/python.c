/* python.c - sees Python's objects through PyMem_SetAllocator, at almost no cost.
 *
 * Only functions that allocate are hooked; free stays the interpreter's own. For a small block that is sampled,
 * we request SAMPLED_SIZE bytes: one more than pymalloc serves. The block then comes from malloc, and our free
 * sees its end like any other. Larger blocks reach malloc anyway and are counted there, once; the hook only
 * marks them as Python's.
 *
 * A hook that is set again keeps the context of the allocator it covers. So the fields of the interpreter's
 * table may be read torn (3.12+: interpreters with their own GILs) and still fit: any mix of old and new
 * functions takes the same context. The covered functions are stored next to the hook, one record for each time
 * it is set. Records are never reused: wrappers may have saved a hook's address and may call it at any later
 * time.
 *
 *   PyObject_Malloc -> [tracemalloc ->] hook (record i) -> pymalloc -> malloc (513 bytes) -> record
 */
#include "core/state.h"
#include "hooks/python_hooks.h"
#include "live/live.h"
#include "python/state.h"
#include "sampling/lifecycle.h"
#include "sampling/sampling.h"

/* One more than pymalloc serves. */
#define SAMPLED_SIZE (TM_PYTHON_SMALL_LIMIT + 1u)
/* 256 KiB in 3.9, 1 MiB since; smaller mappings are chunks of the frame stack (3.11 on). */
#define SMALLEST_ARENA (256u << 10)

/* ---- the hooks -------------------------------------------------------------------- */

/* Everything but the hot path is in separate functions (noinline), so that the
 * hot path saves no register: a compare, a subtraction, a jump. */

static __attribute__((noinline)) void check_still_covered(size_t size)
{
    if (!tm_spend(size))
        return;
    tm_check_covered();
    if (tm_covered() && tm_enter(size)) /* puts the thread off until the next check */
        tm_leave();
}

/* Before a block that malloc serves. Where another tool has covered our malloc, only this and sample() notice that
 * the tool has left. The check is as rare as the samples would be. */
static inline void check_covered(size_t size)
{
    if (TM_UNLIKELY(tm_covered()))
        check_still_covered(size);
}

static __attribute__((noinline)) void *python_malloc(const struct tm_python_record *covered, void *context, size_t size)
{
    uint32_t outer = tm_own_thread.domain;
    tm_own_thread.domain = TM_DOMAIN_PYTHON + 1;
    check_covered(size);
    void *block = covered->malloc(context, size);
    tm_own_thread.domain = outer;
    if (TM_UNLIKELY(!block))
        tm_failed(size);
    return block;
}

static __attribute__((noinline)) void *python_calloc(const struct tm_python_record *covered, void *context, size_t count, size_t size)
{
    uint32_t outer = tm_own_thread.domain;
    tm_own_thread.domain = TM_DOMAIN_PYTHON + 1;
    check_covered(count * size);
    void *block = covered->calloc(context, count, size);
    tm_own_thread.domain = outer;
    if (TM_UNLIKELY(!block))
        tm_failed(count * size);
    return block;
}

static __attribute__((noinline)) void *python_realloc(const struct tm_python_record *covered, void *context, void *old, size_t size)
{
    uint32_t outer = tm_own_thread.domain;
    tm_own_thread.domain = TM_DOMAIN_PYTHON + 1;
    check_covered(size);
    void *block = covered->realloc(context, old, size);
    tm_own_thread.domain = outer;
    if (TM_UNLIKELY(!block))
        tm_failed(size);
    return block;
}

/* The slow path: one of the three, selected by `old` and `zeroed`. NULL: not sampled, or no memory; the caller
 * then does what it would have done without us. */
static __attribute__((noinline)) void *sample(const struct tm_python_record *covered, void *context, void *old, size_t size,
                                              int zeroed)
{
    uint32_t outer = tm_own_thread.domain;
    void *block = NULL;
    tm_own_thread.domain = TM_DOMAIN_PYTHON + 1;
    tm_check_covered();
    if (tm_enter(size)) {
        if (old)
            block = covered->realloc(context, old, SAMPLED_SIZE);
        else if (zeroed)
            block = covered->calloc(context, 1, SAMPLED_SIZE);
        else
            block = covered->malloc(context, SAMPLED_SIZE);
        if (block)
            tm_record(block, size, TM_DOMAIN_PYTHON, NULL);
        else
            tm_leave();
    }
    tm_own_thread.domain = outer;
    return block;
}

static __attribute__((noinline)) void *spent_malloc(const struct tm_python_record *covered, void *context, size_t size)
{
    void *block = sample(covered, context, NULL, size, 0);
    return block ? block : covered->malloc(context, size);
}

static inline void *hooked_malloc(const struct tm_python_record *covered, void *context, size_t size)
{
    if (TM_UNLIKELY(size > covered->small_limit))
        return python_malloc(covered, context, size);
    if (TM_UNLIKELY(tm_spend(size)))
        return spent_malloc(covered, context, size);
    return covered->malloc(context, size);
}

static __attribute__((noinline)) void *spent_calloc(const struct tm_python_record *covered, void *context, size_t count,
                                                    size_t size)
{
    void *block = sample(covered, context, NULL, count * size, 1);
    return block ? block : covered->calloc(context, count, size);
}

static inline void *hooked_calloc(const struct tm_python_record *covered, void *context, size_t count, size_t size)
{
    size_t bytes;
    if (TM_UNLIKELY(__builtin_mul_overflow(count, size, &bytes) || bytes > covered->small_limit))
        return python_calloc(covered, context, count, size);
    if (TM_UNLIKELY(tm_spend(bytes)))
        return spent_calloc(covered, context, count, size);
    return covered->calloc(context, count, size);
}

/* The old block may be in a pool or in malloc's memory, and the new one in either: our realloc, if it is
 * reached, must not count the bytes a second time. */
static inline void *uncounted_realloc(const struct tm_python_record *covered, void *context, void *old, size_t size)
{
    uint64_t left = tm_own_thread.countdown;
    tm_own_thread.countdown = TM_HELD;
    void *block = covered->realloc(context, old, size);
    tm_own_thread.countdown = left;
    return block;
}

/* Ends the old block's sample. */
static __attribute__((noinline)) void *watched_realloc(const struct tm_python_record *covered, void *context, void *old,
                                                       size_t size, int spent)
{
    tm_forget(old);
    void *block = spent ? sample(covered, context, old, size, 0) : NULL;
    return block ? block : uncounted_realloc(covered, context, old, size);
}

static inline void *hooked_realloc(const struct tm_python_record *covered, void *context, void *old, size_t size)
{
    if (!old)
        return hooked_malloc(covered, context, size);
    if (TM_UNLIKELY(size > covered->small_limit))
        return python_realloc(covered, context, old, size);
    int spent = tm_spend(size);
    if (TM_UNLIKELY(spent || tm_maybe_sampled(old)))
        return watched_realloc(covered, context, old, size, spent);
    return uncounted_realloc(covered, context, old, size);
}

struct tm_python_record tm_python_records[TM_PYTHON_HOOKED_DOMAINS][TM_PYTHON_RECORDS];

/* Each setting needs its own functions, because we may not use the context. */
#define HOOK(d, i)                                                                                         \
    static void *malloc_##d##i(void *c, size_t n) { return hooked_malloc(&tm_python_records[d][i], c, n); }          \
    static void *calloc_##d##i(void *c, size_t k, size_t n) { return hooked_calloc(&tm_python_records[d][i], c, k, n); } \
    static void *realloc_##d##i(void *c, void *p, size_t n) { return hooked_realloc(&tm_python_records[d][i], c, p, n); }
HOOK(0, 0) HOOK(0, 1) HOOK(0, 2) HOOK(0, 3)
HOOK(1, 0) HOOK(1, 1) HOOK(1, 2) HOOK(1, 3)

#define FUNCTIONS(d, i) { NULL, malloc_##d##i, calloc_##d##i, realloc_##d##i, NULL }
const struct tm_python_allocator tm_python_hooks[TM_PYTHON_HOOKED_DOMAINS][TM_PYTHON_RECORDS] = {
    {FUNCTIONS(0, 0), FUNCTIONS(0, 1), FUNCTIONS(0, 2), FUNCTIONS(0, 3)},
    {FUNCTIONS(1, 0), FUNCTIONS(1, 1), FUNCTIONS(1, 2), FUNCTIONS(1, 3)},
};

/* ---- arenas ------------------------------------------------------------------------ */

static struct tm_python_arenas covered_arenas;
static _Atomic int arenas_are_containers;

static void *arena_alloc(void *context, size_t size)
{
    if (size < SMALLEST_ARENA || !atomic_load_explicit(&arenas_are_containers, memory_order_relaxed))
        return covered_arenas.alloc(context, size);
    /* It counts neither as a sample nor as bytes of the countdown, because that would bias a gap drawn at random. */
    uint64_t left = tm_own_thread.countdown;
    tm_own_thread.countdown = TM_HELD;
    tm_own_thread.inside++;
    void *arena = covered_arenas.alloc(context, size);
    tm_own_thread.inside--;
    tm_own_thread.countdown = left;
    return arena;
}

static void arena_free(void *context, void *arena, size_t size)
{
    tm_python_wait_for_readers();
    covered_arenas.free(context, arena, size);
}

int tm_python_is_covered_arenas(const struct tm_python_arenas *arenas)
{
    return arenas->context == covered_arenas.context && arenas->alloc == covered_arenas.alloc &&
           arenas->free == covered_arenas.free;
}

struct tm_python_arenas tm_python_cover_arenas(struct tm_python_arenas covered)
{
    covered_arenas = covered;
    covered.alloc = arena_alloc;
    covered.free = arena_free;
    return covered;
}

int tm_python_uncover_arenas(struct tm_python_arenas *arenas)
{
    if (arenas->alloc != arena_alloc || arenas->free != arena_free)
        return 0;
    *arenas = covered_arenas;
    return 1;
}

void tm_python_arenas_are_containers(int containers)
{
    atomic_store(&arenas_are_containers, containers);
}
