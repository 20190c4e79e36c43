/* python_install.c - sets the hooks of python.c, and checks whether they are still set.
 *
 * Hooks set before the interpreter starts survive an ordinary start. PYTHONMALLOC and -X dev
 * replace them silently; tracemalloc covers them and removes itself again. So a thread that holds
 * the GIL checks the current functions from time to time, and sets the hooks again
 * if the allocator of the underlying blocks is known.
 */
#include <stdlib.h>

#include "core/state.h"
#include "core/system.h"
#include "hooks/python_hooks.h"
#include "process/objects.h"
#include "python/python.h"
#include "python/state.h"
#include "segment/sections.h"

enum python_domain { DOMAIN_RAW = 0, DOMAIN_MEMORY = 1, DOMAIN_OBJECT = 2 };

static void (*get_allocator)(int domain, struct tm_python_allocator *allocator);
static void (*set_allocator)(int domain, struct tm_python_allocator *allocator);
static void (*get_arenas)(struct tm_python_arenas *arenas);
static void (*set_arenas)(struct tm_python_arenas *arenas);
static const char *(*current_name)(void); /* "pymalloc"; NULL if wrapped or unknown */
static int arenas_covered;
static uintptr_t interpreter_start, interpreter_end;
static struct tm_python_allocator pymalloc[2]; /* by domain minus DOMAIN_MEMORY; malloc NULL: never seen unwrapped */
static unsigned settings[2];         /* records in use */
static int unlearned; /* a running interpreter's own allocator is unknown; guarded by tm_python_try_exclusive() */
static _Atomic int can_hook;

/* The record of one of our hooks; NULL: the function is not a hook. */
static const struct tm_python_record *find_record(void *(*function)(void *, size_t))
{
    for (unsigned domain = 0; domain < 2; domain++)
        for (unsigned i = 0; i < settings[domain]; i++)
            if (tm_python_hooks[domain][i].malloc == function)
                return &tm_python_records[domain][i];
    return NULL;
}

static int is_known_function(uintptr_t function)
{
    return (function >= interpreter_start && function < interpreter_end) ||
           find_record((void *(*)(void *, size_t))function) != NULL;
}

/* The allocator that a wrapper of the interpreter covers, if its context shows it:
 *   tracemalloc        context -> struct tm_python_allocator
 *   debug allocator    context -> 'r', 'm' or 'o' in a word, then struct tm_python_allocator
 * 0: no such wrapper. 1: like tracemalloc's. 2: debug. */
static int unwrap(const struct tm_python_allocator *outer, struct tm_python_allocator *inner)
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

/* The allocator at the bottom of a domain's `allocator`. *hooked: one of our hooks is in its chain. */
static enum tm_python_bottom find_bottom(int domain, struct tm_python_allocator allocator, int *hooked)
{
    struct tm_python_allocator raw, inner;
    get_allocator(DOMAIN_RAW, &raw);
    while (unwrap(&raw, &inner) == 1)
        raw = inner;
    for (unsigned depth = 0; depth < 4; depth++) {
        const struct tm_python_record *record = find_record(allocator.malloc);
        *hooked = record != NULL;
        if (record)
            return record->bottom;
        if (pymalloc[domain - 1].malloc && allocator.malloc == pymalloc[domain - 1].malloc)
            return TM_BOTTOM_PYMALLOC;
        if (allocator.malloc == raw.malloc)
            return TM_BOTTOM_MALLOC;
        switch (unwrap(&allocator, &inner)) {
        case 1:
            allocator = inner;
            continue;
        case 2:
            return TM_BOTTOM_DEBUG;
        default:
            return TM_BOTTOM_FOREIGN;
        }
    }
    return TM_BOTTOM_FOREIGN;
}

/* The number of a record that covers exactly this, from an earlier setting or new. */
static unsigned find_or_make_record(int domain, const struct tm_python_allocator *allocator, enum tm_python_bottom bottom)
{
    struct tm_python_record *records = tm_python_records[domain - 1];
    unsigned used = settings[domain - 1];
    for (unsigned i = 0; i < used; i++)
        if (records[i].malloc == allocator->malloc && records[i].calloc == allocator->calloc &&
            records[i].realloc == allocator->realloc && records[i].bottom == bottom)
            return i;
    if (used == TM_PYTHON_RECORDS)
        return used;
    records[used] = (struct tm_python_record){
        .malloc = allocator->malloc,
        .calloc = allocator->calloc,
        .realloc = allocator->realloc,
        .small_limit = bottom == TM_BOTTOM_PYMALLOC ? TM_PYTHON_SMALL_LIMIT : 0,
        .bottom = bottom,
    };
    settings[domain - 1] = used + 1;
    return used;
}

/* Hooks one domain unless it is hooked; returns the allocator at its bottom. */
static enum tm_python_bottom hook_domain(int domain)
{
    struct tm_python_allocator allocator;
    int hooked;
    get_allocator(domain, &allocator);
    enum tm_python_bottom bottom = find_bottom(domain, allocator, &hooked);
    if (hooked || bottom == TM_BOTTOM_FOREIGN)
        return bottom;
    unsigned index = find_or_make_record(domain, &allocator, bottom);
    if (index == TM_PYTHON_RECORDS)
        return TM_BOTTOM_FOREIGN; /* replaced too often */
    allocator.malloc = tm_python_hooks[domain - 1][index].malloc;
    allocator.calloc = tm_python_hooks[domain - 1][index].calloc;
    allocator.realloc = tm_python_hooks[domain - 1][index].realloc;
    set_allocator(domain, &allocator);
    return bottom;
}

static void report_bottom(enum tm_python_bottom bottom, int settled)
{
    switch (bottom) {
    case TM_BOTTOM_PYMALLOC:
        tm_set_python(settled ? TM_PYTHON_FULL : TM_PYTHON_FRAMES_ONLY, tm_python.version);
        break;
    case TM_BOTTOM_MALLOC:
        tm_set_python(TM_PYTHON_MALLOC, tm_python.version);
        break;
    case TM_BOTTOM_DEBUG:
        tm_set_limit(TM_LIMIT_DEBUG_ALLOCATOR);
        tm_set_python(TM_PYTHON_FRAMES_ONLY, tm_python.version);
        break;
    case TM_BOTTOM_FOREIGN:
        tm_set_limit(TM_LIMIT_HOOKS_REPLACED);
        tm_set_python(TM_PYTHON_FRAMES_ONLY, tm_python.version);
        tm_log("another allocator serves Python's small objects: they are not seen");
        break;
    }
}

/* If another tool has covered ours in the meantime, ours is still below it. If the allocator that we covered is
 * back, the runtime was initialized again (3.12 on). */
static void cover_arenas(void)
{
    struct tm_python_arenas arenas;
    get_arenas(&arenas);
    if (arenas_covered && !tm_python_is_covered_arenas(&arenas))
        return;
    arenas = tm_python_cover_arenas(arenas);
    set_arenas(&arenas);
    arenas_covered = 1;
}

/* Hooks what is not hooked, and reports what is seen then if that has changed. `settled`: only the program
 * itself can still replace the allocators. */
static _Atomic int reported = -1;

static void hook_both(int settled)
{
    cover_arenas();
    hook_domain(DOMAIN_MEMORY);
    enum tm_python_bottom bottom = hook_domain(DOMAIN_OBJECT);
    int now = (int)bottom * 2 + settled;
    if (atomic_exchange(&reported, now) == now)
        return;
    tm_python_arenas_are_containers(bottom == TM_BOTTOM_PYMALLOC);
    report_bottom(bottom, settled);
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

/* Removes wrappers like tracemalloc's from around an allocator; returns whether there was any. */
static int strip_wrappers(int domain, struct tm_python_allocator *allocator)
{
    struct tm_python_allocator inner;
    int wrapped = 0;
    get_allocator(domain, allocator);
    for (; wrapped < 4 && unwrap(allocator, &inner) == 1; wrapped++)
        *allocator = inner;
    return wrapped != 0;
}

/* Determines which functions are pymalloc's. A running interpreter names its allocator, unless tracemalloc
 * wraps it; then it is the one chosen by the environment. Before it runs (3.12 cannot be asked then) the
 * default applies, which is pymalloc except in builds without it and debug builds. */
static void remember_pymalloc(int running)
{
    struct tm_python_allocator raw, objects, memory, inner;
    strip_wrappers(DOMAIN_RAW, &raw);
    strip_wrappers(DOMAIN_MEMORY, &memory);
    int wrapped = strip_wrappers(DOMAIN_OBJECT, &objects);
    if (pymalloc[0].malloc || find_record(objects.malloc) || objects.malloc == raw.malloc || unwrap(&objects, &inner))
        return;
    if (wrapped) {
        const char *chosen = getenv("PYTHONMALLOC");
        if (chosen && strstr(chosen, "mimalloc"))
            return;
    } else if (running) {
        const char *name = current_name ? current_name() : NULL;
        if (!name || strcmp(name, "pymalloc") != 0)
            return;
    }
    pymalloc[DOMAIN_MEMORY - 1] = memory;
    pymalloc[DOMAIN_OBJECT - 1] = objects;
}

static void uncover_arenas(void)
{
    struct tm_python_arenas arenas;
    tm_python_arenas_are_containers(0);
    get_arenas(&arenas);
    if (!tm_python_uncover_arenas(&arenas))
        return;
    set_arenas(&arenas);
    arenas_covered = 0;
}

static void unhook_domain(int domain)
{
    struct tm_python_allocator allocator;
    get_allocator(domain, &allocator);
    const struct tm_python_record *record = find_record(allocator.malloc);
    if (!record)
        return;
    allocator.malloc = record->malloc;
    allocator.calloc = record->calloc;
    allocator.realloc = record->realloc;
    set_allocator(domain, &allocator);
}

/* `running`: a thread that holds the GIL must set the hooks. */
static void hook_allocators(const struct tm_object *object, int running)
{
    get_allocator = (void (*)(int, struct tm_python_allocator *))tm_object_symbol(object, "PyMem_GetAllocator");
    set_allocator = (void (*)(int, struct tm_python_allocator *))tm_object_symbol(object, "PyMem_SetAllocator");
    get_arenas = (void (*)(struct tm_python_arenas *))tm_object_symbol(object, "PyObject_GetArenaAllocator");
    set_arenas = (void (*)(struct tm_python_arenas *))tm_object_symbol(object, "PyObject_SetArenaAllocator");
    /* A sampled small object comes from malloc, and we would not see its end. */
    if (!get_allocator || !set_allocator || !get_arenas || !set_arenas || tm_settings.malloc_unseen) {
        tm_set_python(TM_PYTHON_FRAMES_ONLY, tm_python.version);
        return;
    }
    interpreter_start = object->start;
    interpreter_end = object->end;
    current_name = (const char *(*)(void))tm_object_symbol(object, "_PyMem_GetCurrentAllocatorName");
    if (running) { /* another thread may be finalizing it: the rest is left to a thread that holds the GIL, in tm_python_verify() */
        unlearned = 1;
        tm_set_python(TM_PYTHON_FRAMES_ONLY, tm_python.version);
    } else {
        remember_pymalloc(0);
        hook_both(default_is_kept());
    }
    atomic_store(&can_hook, 1);
}

void tm_python_probe(void)
{
    tm_python_find(hook_allocators);
}

void tm_python_verify(void)
{
    if (atomic_load(&tm_python.awaited))
        tm_python_probe();
    if (!atomic_load(&can_hook) || atomic_load(&tm_python.trust) == TM_TRUST_REFUSED || tm_python.is_finalizing() ||
        !tm_python_holds_gil() || !tm_python_try_exclusive())
        return;
    if (unlearned) {
        remember_pymalloc(1);
        unlearned = 0;
    }
    hook_both(1);
    tm_python_end_exclusive();
}

/* An interpreter that was hooked before and released. */
static void hook_again(void)
{
    if (!get_arenas || tm_settings.malloc_unseen)
        return;
    unlearned = 1;
    atomic_store(&reported, -1);
    atomic_store(&can_hook, 1);
}

void tm_python_attach(void)
{
    if (tm_python_is_known())
        hook_again();
    else
        tm_python_probe();
    tm_python_verify();
}

int tm_python_unhook(void)
{
    if (!atomic_load(&can_hook) || !atomic_load(&tm_python.ready) || tm_python_finalises())
        return 1;
    if (!tm_python_holds_gil() || !tm_python_try_exclusive())
        return 0;
    atomic_store(&can_hook, 0);
    unhook_domain(DOMAIN_OBJECT);
    unhook_domain(DOMAIN_MEMORY);
    uncover_arenas();
    tm_python_end_exclusive();
    return 1;
}
