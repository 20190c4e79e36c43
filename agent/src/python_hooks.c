/* python_hooks.c - sees Python's objects through PyMem_SetAllocator, at almost no cost.
 *
 * Only what allocates is hooked; free stays the interpreter's own. A small block that is
 * sampled is asked for as SAMPLED_SIZE bytes: one more than pymalloc serves, so it comes
 * from malloc, and its end is seen by our free like any other. Larger blocks reach malloc
 * by themselves and are counted there, once; the hook only marks them as Python's.
 *
 * A hook set anew keeps the context of the allocator it covers. So the fields of the
 * interpreter's table may be read torn (3.12+: interpreters with GILs of their own) and
 * still fit: any mix of old and new functions takes the same context. The functions
 * covered are kept beside the hook, one record for each time of setting, never reused:
 * wrappers may have saved a hook's address and call it for ever.
 *
 *   PyObject_Malloc -> [tracemalloc ->] hook (record i) -> pymalloc -> malloc (513 bytes) -> record
 */
#include <stdlib.h>

#include "python.h"
#include "python_state.h"
#include "state.h"

/* As PyMemAllocatorEx and PyObjectArenaAllocator in Include/cpython/pymem.h, objimpl.h. */
struct allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block);
};

struct arena_allocator {
    void *context;
    void *(*alloc)(void *context, size_t size);
    void (*free)(void *context, void *arena, size_t size);
};

enum python_domain { DOMAIN_RAW = 0, DOMAIN_MEMORY = 1, DOMAIN_OBJECT = 2 };

/* SMALL_REQUEST_THRESHOLD of Objects/obmalloc.c, the same in 3.9-3.15. */
#define SMALL_LIMIT 512u
#define SAMPLED_SIZE (SMALL_LIMIT + 1u)
/* 256 KiB in 3.9, 1 MiB since; smaller mappings are chunks of the frame stack (3.11 on). */
#define SMALLEST_ARENA (256u << 10)

/* What stands at the bottom of a domain's chain of allocators. */
enum bottom {
    BOTTOM_PYMALLOC,
    BOTTOM_MALLOC,
    BOTTOM_DEBUG,
    BOTTOM_FOREIGN,
};

/* What one setting of a hook covers. */
struct record {
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    size_t small_limit; /* blocks up to this come from pools; 0: everything reaches malloc */
    enum bottom bottom;
};

/* ---- the hooks -------------------------------------------------------------------- */

static void *python_malloc(const struct record *covered, void *context, size_t size)
{
    uint32_t outer = tm_thread.domain;
    tm_thread.domain = TM_DOMAIN_PYTHON + 1;
    void *block = covered->malloc(context, size);
    tm_thread.domain = outer;
    return block;
}

static void *python_calloc(const struct record *covered, void *context, size_t count, size_t size)
{
    uint32_t outer = tm_thread.domain;
    tm_thread.domain = TM_DOMAIN_PYTHON + 1;
    void *block = covered->calloc(context, count, size);
    tm_thread.domain = outer;
    return block;
}

static void *python_realloc(const struct record *covered, void *context, void *old, size_t size)
{
    uint32_t outer = tm_thread.domain;
    tm_thread.domain = TM_DOMAIN_PYTHON + 1;
    void *block = covered->realloc(context, old, size);
    tm_thread.domain = outer;
    return block;
}

/* While the covered allocator's own calls must count for nothing: neither samples nor
 * bytes off the countdown, which a gap drawn at random would not forgive. */
static inline uint64_t begin_uncounted(void)
{
    uint64_t left = tm_thread.countdown;
    tm_thread.countdown = TM_HELD;
    tm_thread.inside++;
    return left;
}

static inline void end_uncounted(uint64_t left)
{
    tm_thread.inside--;
    tm_thread.countdown = left;
}

/* Realloc to a small size. The old block may lie in a pool or in malloc's memory, and the
 * new one in either: what was sampled of the old ends here, and our realloc, should it be
 * reached, must not count the bytes a second time. */
static void *uncounted_realloc(const struct record *covered, void *context, void *old, size_t size)
{
    tm_forget(old);
    uint64_t left = begin_uncounted();
    void *block = covered->realloc(context, old, size);
    end_uncounted(left);
    return block;
}

/* The slow path: one of the three, told by `old` and `zeroed`. NULL: not sampled, or no
 * memory; the caller then does what it would have done without us. */
static __attribute__((noinline)) void *sample(const struct record *covered, void *context, void *old, size_t size,
                                              int zeroed)
{
    uint32_t outer = tm_thread.domain;
    void *block = NULL;
    tm_thread.domain = TM_DOMAIN_PYTHON + 1;
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
    tm_thread.domain = outer;
    return block;
}

static inline void *hooked_malloc(const struct record *covered, void *context, size_t size)
{
    if (TM_UNLIKELY(size > covered->small_limit))
        return python_malloc(covered, context, size);
    if (TM_UNLIKELY(tm_spend(size))) {
        void *block = sample(covered, context, NULL, size, 0);
        if (block)
            return block;
    }
    return covered->malloc(context, size);
}

static inline void *hooked_calloc(const struct record *covered, void *context, size_t count, size_t size)
{
    size_t bytes;
    if (TM_UNLIKELY(__builtin_mul_overflow(count, size, &bytes) || bytes > covered->small_limit))
        return python_calloc(covered, context, count, size);
    if (TM_UNLIKELY(tm_spend(bytes))) {
        void *block = sample(covered, context, NULL, bytes, 1);
        if (block)
            return block;
    }
    return covered->calloc(context, count, size);
}

static inline void *hooked_realloc(const struct record *covered, void *context, void *old, size_t size)
{
    if (!old)
        return hooked_malloc(covered, context, size);
    if (TM_UNLIKELY(size > covered->small_limit))
        return python_realloc(covered, context, old, size);
    if (TM_UNLIKELY(tm_spend(size))) {
        tm_forget(old);
        void *block = sample(covered, context, old, size, 0);
        if (block)
            return block;
    }
    return uncounted_realloc(covered, context, old, size);
}

/* Each setting needs functions of its own, for the context is not ours to use. */
#define RECORDS_PER_DOMAIN 4u
static struct record records[2][RECORDS_PER_DOMAIN];

#define HOOK(d, i)                                                                                         \
    static void *malloc_##d##i(void *c, size_t n) { return hooked_malloc(&records[d][i], c, n); }          \
    static void *calloc_##d##i(void *c, size_t k, size_t n) { return hooked_calloc(&records[d][i], c, k, n); } \
    static void *realloc_##d##i(void *c, void *p, size_t n) { return hooked_realloc(&records[d][i], c, p, n); }
HOOK(0, 0) HOOK(0, 1) HOOK(0, 2) HOOK(0, 3)
HOOK(1, 0) HOOK(1, 1) HOOK(1, 2) HOOK(1, 3)

#define FUNCTIONS(d, i) { NULL, malloc_##d##i, calloc_##d##i, realloc_##d##i, NULL }
static const struct allocator hooks[2][RECORDS_PER_DOMAIN] = {
    {FUNCTIONS(0, 0), FUNCTIONS(0, 1), FUNCTIONS(0, 2), FUNCTIONS(0, 3)},
    {FUNCTIONS(1, 0), FUNCTIONS(1, 1), FUNCTIONS(1, 2), FUNCTIONS(1, 3)},
};

/* ---- arenas ------------------------------------------------------------------------ */

static struct arena_allocator covered_arenas;
/* Pools are counted object by object: their arenas are containers, not allocations. */
static _Atomic int arenas_are_containers;

static void *arena_alloc(void *context, size_t size)
{
    if (size < SMALLEST_ARENA || !atomic_load_explicit(&arenas_are_containers, memory_order_relaxed))
        return covered_arenas.alloc(context, size);
    uint64_t left = begin_uncounted();
    void *arena = covered_arenas.alloc(context, size);
    end_uncounted(left);
    return arena;
}

static void arena_free(void *context, void *arena, size_t size)
{
    tm_python_wait_for_readers();
    covered_arenas.free(context, arena, size);
}

/* ---- setting, and looking whether they stand ----------------------------------------- */

static void (*get_allocator)(int domain, struct allocator *allocator);
static void (*set_allocator)(int domain, struct allocator *allocator);
static uintptr_t interpreter_start, interpreter_end;
static struct allocator pymalloc[2]; /* by domain less DOMAIN_MEMORY; malloc NULL: not seen bare */
static unsigned settings[2];         /* records in use */
static _Atomic int can_hook;

/* The record of one of our hooks; NULL: the function is no hook. */
static const struct record *find_record(void *(*function)(void *, size_t))
{
    for (unsigned domain = 0; domain < 2; domain++)
        for (unsigned i = 0; i < settings[domain]; i++)
            if (hooks[domain][i].malloc == function)
                return &records[domain][i];
    return NULL;
}

static int is_known_function(uintptr_t function)
{
    return (function >= interpreter_start && function < interpreter_end) ||
           find_record((void *(*)(void *, size_t))function) != NULL;
}

/* The allocator that a wrapper of the interpreter's covers, where its context tells:
 *   tracemalloc        context -> struct allocator
 *   debug allocator    context -> 'r', 'm' or 'o' in a word, then struct allocator
 * 0: no such wrapper. 1: tracemalloc's kind. 2: debug. */
static int unwrap(const struct allocator *outer, struct allocator *inner)
{
    uint64_t words[6];
    if ((uintptr_t)outer->context < TM_PAGE || !tm_python_read(outer->context, words, sizeof words))
        return 0;
    if ((words[0] == 'r' || words[0] == 'm' || words[0] == 'o') && is_known_function(words[2])) {
        memcpy(inner, &words[1], sizeof *inner);
        return 2;
    }
    if (is_known_function(words[1])) {
        memcpy(inner, &words[0], sizeof *inner);
        return 1;
    }
    return 0;
}

/* What `allocator` of a domain comes down to. *hooked: one of our hooks is in its chain. */
static enum bottom find_bottom(int domain, struct allocator allocator, int *hooked)
{
    struct allocator raw, inner;
    get_allocator(DOMAIN_RAW, &raw);
    while (unwrap(&raw, &inner) == 1)
        raw = inner;
    for (unsigned depth = 0; depth < 4; depth++) {
        const struct record *record = find_record(allocator.malloc);
        *hooked = record != NULL;
        if (record)
            return record->bottom;
        if (pymalloc[domain - 1].malloc && allocator.malloc == pymalloc[domain - 1].malloc)
            return BOTTOM_PYMALLOC;
        if (allocator.malloc == raw.malloc)
            return BOTTOM_MALLOC;
        switch (unwrap(&allocator, &inner)) {
        case 1:
            allocator = inner;
            continue;
        case 2:
            return BOTTOM_DEBUG;
        default:
            return BOTTOM_FOREIGN;
        }
    }
    return BOTTOM_FOREIGN;
}

/* Hooks one domain unless it is hooked; gives what stands at its bottom. */
static enum bottom hook_domain(int domain)
{
    struct allocator allocator;
    int hooked;
    get_allocator(domain, &allocator);
    enum bottom bottom = find_bottom(domain, allocator, &hooked);
    unsigned index = settings[domain - 1];
    if (hooked || bottom == BOTTOM_FOREIGN)
        return bottom;
    if (index == RECORDS_PER_DOMAIN)
        return BOTTOM_FOREIGN; /* replaced once too often */
    records[domain - 1][index] = (struct record){
        .malloc = allocator.malloc,
        .calloc = allocator.calloc,
        .realloc = allocator.realloc,
        .small_limit = bottom == BOTTOM_PYMALLOC ? SMALL_LIMIT : 0,
        .bottom = bottom,
    };
    settings[domain - 1] = index + 1;
    allocator.malloc = hooks[domain - 1][index].malloc;
    allocator.calloc = hooks[domain - 1][index].calloc;
    allocator.realloc = hooks[domain - 1][index].realloc;
    set_allocator(domain, &allocator);
    return bottom;
}

static void tell(enum bottom bottom, int settled)
{
    switch (bottom) {
    case BOTTOM_PYMALLOC:
        tm_set_python(settled ? TM_PYTHON_FULL : TM_PYTHON_FRAMES_ONLY, tm_python.version);
        break;
    case BOTTOM_MALLOC:
        tm_set_python(TM_PYTHON_MALLOC, tm_python.version);
        break;
    case BOTTOM_DEBUG:
        tm_set_limit(TM_LIMIT_DEBUG_ALLOCATOR);
        tm_set_python(TM_PYTHON_FRAMES_ONLY, tm_python.version);
        tm_log("Python's debug allocator is on: small objects show as its arenas");
        break;
    case BOTTOM_FOREIGN:
        tm_set_limit(TM_LIMIT_HOOKS_REPLACED);
        tm_set_python(TM_PYTHON_FRAMES_ONLY, tm_python.version);
        tm_log("another allocator serves Python's small objects: they are not seen");
        break;
    }
}

/* Hooks what is not hooked, and tells what is seen then when it is not what was told last.
 * `settled`: nothing will replace the allocators any more without the program's own doing. */
static void hook_both(int settled)
{
    static _Atomic int told = -1;
    hook_domain(DOMAIN_MEMORY);
    enum bottom bottom = hook_domain(DOMAIN_OBJECT);
    int now = (int)bottom * 2 + settled;
    if (atomic_exchange(&told, now) == now)
        return;
    atomic_store(&arenas_are_containers, bottom == BOTTOM_PYMALLOC);
    tell(bottom, settled);
}

/* Whether an interpreter that starts now keeps its default allocator. */
static int default_is_kept(void)
{
    const char *names[] = {"PYTHONMALLOC", "PYTHONDEVMODE"};
    for (unsigned i = 0; i < 2; i++)
        if (getenv(names[i]) && *getenv(names[i]))
            return 0;
    return 1;
}

/* Learns which functions are pymalloc's. A running interpreter names its allocator, unless
 * somebody wrapped it; before it runs (3.12 cannot be asked then) the default stands, which
 * is pymalloc but for builds without it and debug builds. */
static void remember_pymalloc(const struct tm_object *object)
{
    const char *(*current_name)(void) = (const char *(*)(void))tm_object_symbol(object, "_PyMem_GetCurrentAllocatorName");
    struct allocator raw, objects, inner;
    get_allocator(DOMAIN_RAW, &raw);
    get_allocator(DOMAIN_OBJECT, &objects);
    if (objects.malloc == raw.malloc || unwrap(&objects, &inner))
        return;
    if (tm_python.is_initialized()) {
        const char *name = current_name ? current_name() : NULL;
        if (!name || strcmp(name, "pymalloc") != 0)
            return;
    }
    get_allocator(DOMAIN_MEMORY, &pymalloc[DOMAIN_MEMORY - 1]);
    pymalloc[DOMAIN_OBJECT - 1] = objects;
}

void tm_python_hook_allocators(const struct tm_object *object)
{
    get_allocator = (void (*)(int, struct allocator *))tm_object_symbol(object, "PyMem_GetAllocator");
    set_allocator = (void (*)(int, struct allocator *))tm_object_symbol(object, "PyMem_SetAllocator");
    void (*get_arenas)(struct arena_allocator *) =
        (void (*)(struct arena_allocator *))tm_object_symbol(object, "PyObject_GetArenaAllocator");
    void (*set_arenas)(struct arena_allocator *) =
        (void (*)(struct arena_allocator *))tm_object_symbol(object, "PyObject_SetArenaAllocator");
    if (!get_allocator || !set_allocator || !get_arenas || !set_arenas) {
        tm_set_python(TM_PYTHON_FRAMES_ONLY, tm_python.version);
        return;
    }
    interpreter_start = object->start;
    interpreter_end = object->end;
    remember_pymalloc(object);

    get_arenas(&covered_arenas);
    struct arena_allocator arenas = covered_arenas;
    arenas.alloc = arena_alloc;
    arenas.free = arena_free;
    set_arenas(&arenas);

    atomic_store(&can_hook, 1);
    /* Once it runs, its tables may change only under the GIL: tm_python_verify() then. */
    if (!tm_python.is_initialized())
        hook_both(default_is_kept());
    else
        tm_set_python(TM_PYTHON_FRAMES_ONLY, tm_python.version);
}

void tm_python_verify(void)
{
    if (!atomic_load(&can_hook) || atomic_load(&tm_python.trust) == TM_TRUST_REFUSED || !tm_python_holds_gil() ||
        !tm_python_try_exclusive())
        return;
    hook_both(1);
    tm_python_end_exclusive();
}
