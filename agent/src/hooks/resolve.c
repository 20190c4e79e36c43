/* resolve.c - finds the real functions behind ours, and answers dlsym().
 *
 * The real functions are found in the objects' own tables (process/objects.c), not with dlsym(),
 * which the agent itself replaces.
 */
#include <string.h>

#include "hooks/hook_table.h"
#include "hooks/hooks.h"
#include "process/objects.h"

static void *boot_malloc(size_t bytes)
{
    tm_resolve();
    return tm_real.malloc(bytes);
}
static void *boot_calloc(size_t count, size_t bytes)
{
    tm_resolve();
    return tm_real.calloc(count, bytes);
}
static void *boot_realloc(void *address, size_t bytes)
{
    tm_resolve();
    return tm_real.realloc(address, bytes);
}
static void boot_free(void *address)
{
    tm_resolve();
    tm_real.free(address);
}
static int boot_posix_memalign(void **result, size_t alignment, size_t bytes)
{
    tm_resolve();
    return tm_real.posix_memalign(result, alignment, bytes);
}
static void *boot_aligned_alloc(size_t alignment, size_t bytes)
{
    tm_resolve();
    return tm_real.aligned_alloc(alignment, bytes);
}
static void *boot_memalign(size_t alignment, size_t bytes)
{
    tm_resolve();
    return tm_real.memalign(alignment, bytes);
}
static void *boot_valloc(size_t bytes)
{
    tm_resolve();
    return tm_real.valloc(bytes);
}
static void *boot_pvalloc(size_t bytes)
{
    tm_resolve();
    return tm_real.pvalloc(bytes);
}

struct tm_real tm_real = {
    .malloc = boot_malloc,
    .calloc = boot_calloc,
    .realloc = boot_realloc,
    .free = boot_free,
    .posix_memalign = boot_posix_memalign,
    .aligned_alloc = boot_aligned_alloc,
    .memalign = boot_memalign,
    .valloc = boot_valloc,
    .pvalloc = boot_pvalloc,
};

static const char *const names[] = {
    "malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc",
    "open", "open64", "openat", "openat64", "fopen", "fopen64", "socket", "socketpair", "accept", "accept4",
    "pipe", "pipe2", "epoll_create1", "eventfd",
};
#define NAME_COUNT (sizeof names / sizeof names[0])
_Static_assert(sizeof(struct tm_real) == NAME_COUNT * sizeof(void *), "one name a pointer, in order");

/* The first definitions among some objects. */
struct definitions {
    void *found[NAME_COUNT];
    void *dlsym, *usable_size, *realloc_hook;
    uintptr_t malloc_start, malloc_end;
    int malloc_in_libc;
    int libc; /* the C library is one of them */
};

struct search {
    struct definitions before_us, after_us;
    int past_us;
};

void *(*tm_real_dlsym)(void *, const char *) __attribute__((visibility("hidden")));
size_t (*tm_usable_size)(void *);
void *const *tm_realloc_hook;
static uintptr_t foreign_start, foreign_end;
static int hidden_behind_other, is_late;

static int search_object(const struct tm_object *object, void *data)
{
    struct search *search = data;
    if ((uintptr_t)search_object >= object->start && (uintptr_t)search_object < object->end) {
        search->past_us = 1;
#ifndef TM_TEST_ENTRIES
        return 0;
#endif
    }
    struct definitions *definitions = search->past_us ? &search->after_us : &search->before_us;
    int is_libc = tm_object_symbol(object, "__libc_start_main") != NULL;
    definitions->libc |= is_libc;
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (definitions->found[i] || !(definitions->found[i] = tm_object_symbol(object, names[i])) || i != 0)
            continue;
        definitions->malloc_start = object->start;
        definitions->malloc_end = object->end;
        definitions->malloc_in_libc = is_libc;
        definitions->usable_size = is_libc ? tm_object_symbol(object, "malloc_usable_size") : NULL;
        definitions->realloc_hook = is_libc ? tm_object_symbol(object, "__realloc_hook") : NULL;
    }
    if (!definitions->dlsym)
        definitions->dlsym = tm_object_symbol(object, "dlsym");
    return 0;
}

/* When preloaded, we precede the allocator behind ours. When loaded into a running program, we come after the C
 * library, and the program's calls go to the first definition of all. */
void tm_resolve(void)
{
    struct search search = {.past_us = 0};
    tm_each_object(search_object, &search);
    is_late = search.before_us.libc;
    const struct definitions *behind = is_late ? &search.before_us : &search.after_us;
    void **real = (void **)&tm_real;
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (behind->found[i])
            __atomic_store_n(&real[i], behind->found[i], __ATOMIC_RELEASE);
    __atomic_store_n((void **)&tm_real_dlsym, behind->dlsym, __ATOMIC_RELEASE);
    __atomic_store_n(&tm_realloc_hook, behind->realloc_hook, __ATOMIC_RELEASE);
    __atomic_store_n((void **)&tm_usable_size, behind->usable_size, __ATOMIC_RELEASE);
    if (!behind->malloc_in_libc) {
        foreign_start = behind->malloc_start;
        foreign_end = behind->malloc_end;
    }
    hidden_behind_other = !is_late && search.before_us.found[0] != NULL;
}

#ifdef TM_TEST_ENTRIES
int tm_test_late; /* in the core's tests it is in the executable */
#else
#define tm_test_late 0
#endif

int tm_is_loaded_late(void)
{
    return is_late || tm_test_late;
}

int tm_foreign_allocator(uintptr_t *start, uintptr_t *end)
{
    *start = foreign_start;
    *end = foreign_end;
    return foreign_end != 0 || hidden_behind_other;
}

int tm_is_preceded(void)
{
    if (!tm_real_dlsym)
        tm_resolve();
    return hidden_behind_other;
}

/* ---- dlsym (dlsym.S) -------------------------------------------------------------------- */

/* The entry point for dlsym(handle, name); everything else is a tail jump. */
static const struct tm_hook *hook_named(const char *name)
{
    for (size_t i = 0; name && i < TM_HOOK_COUNT; i++)
        if (strcmp(name, tm_hooks[i].name) == 0)
            return &tm_hooks[i];
    return NULL;
}

__attribute__((visibility("hidden"))) int tm_dlsym_concerns(const char *name)
{
    if (!tm_real_dlsym)
        tm_resolve();
    return hook_named(name) != NULL;
}

#ifndef TM_TEST_ENTRIES
/* If the symbol of an explicit handle is the C library's allocator, or its mmap, returns ours, so that its
 * callers are seen. Any other answer (an allocator of the library's own) is not changed: ours in its place
 * would change which allocator the caller gets. */
__attribute__((visibility("hidden"))) void *tm_dlsym_allocator(void *handle, const char *name)
{
    void *answer = tm_real_dlsym(handle, name);
    const struct tm_hook *hook = hook_named(name);
    return hook && answer && answer == hook->real ? hook->ours : answer;
}
#endif
