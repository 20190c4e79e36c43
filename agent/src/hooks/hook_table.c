/* hook_table.c - which functions of the program ours replace, and where the real ones are.
 *
 * A slot may be changed if it holds the first definition in the program's global scope, to which its calls go.
 * Another allocator's own definition (bound by RTLD_DEEPBIND, by -Bsymbolic, within a library that contains
 * one) belongs to another heap.
 */
#include <string.h>

#include "hooks/hook_table.h"
#include "process/objects.h"

#define OWN(name) extern char tm_own_##name[] __attribute__((visibility("hidden")))
OWN(malloc);
OWN(calloc);
OWN(realloc);
OWN(reallocarray);
OWN(free);
OWN(posix_memalign);
OWN(aligned_alloc);
OWN(memalign);
OWN(valloc);
OWN(pvalloc);
OWN(strdup);
OWN(strndup);
OWN(mmap);
OWN(mmap64);
OWN(munmap);
OWN(mremap);
OWN(open);
OWN(open64);
OWN(openat);
OWN(openat64);
OWN(fopen);
OWN(fopen64);
OWN(socket);
OWN(socketpair);
OWN(accept);
OWN(accept4);
OWN(pipe);
OWN(pipe2);
OWN(epoll_create1);
OWN(eventfd);
OWN(memcpy);
OWN(memmove);
OWN(mempcpy);
OWN(__memcpy_chk);
OWN(__memmove_chk);
#ifdef TM_TEST_ENTRIES
#define tm_own_dlsym NULL /* only the library has it */
#else
OWN(dlsym);
#endif

#define ENDS(name) {#name, tm_own_##name, NULL, TM_SLOTS_ENDS}
#define BEGINS(name) {#name, tm_own_##name, NULL, TM_SLOTS_BEGINNINGS}
#define COPIES(name) {#name, tm_own_##name, NULL, TM_SLOTS_COPIES}
struct tm_hook tm_hooks[TM_HOOK_COUNT] = { /* free is TM_HOOK_FREE */
    ENDS(free),            ENDS(realloc),         ENDS(reallocarray), ENDS(munmap),   ENDS(mremap),
    BEGINS(malloc),        BEGINS(calloc),        BEGINS(memalign),   BEGINS(valloc), BEGINS(pvalloc),
    BEGINS(aligned_alloc), BEGINS(posix_memalign), BEGINS(strdup),    BEGINS(strndup),
    BEGINS(mmap),          BEGINS(mmap64),        BEGINS(dlsym),
    /* functions that open descriptors */
    BEGINS(open),          BEGINS(open64),        BEGINS(openat),     BEGINS(openat64),
    BEGINS(fopen),         BEGINS(fopen64),       BEGINS(socket),     BEGINS(socketpair),
    BEGINS(accept),        BEGINS(accept4),       BEGINS(pipe),       BEGINS(pipe2),
    BEGINS(epoll_create1), BEGINS(eventfd),
    /* in the order of copies.c */
    COPIES(memcpy),        COPIES(memmove),       COPIES(mempcpy),    COPIES(__memcpy_chk), COPIES(__memmove_chk),
};

static int is_system_call(const char *name)
{
    return strcmp(name, "mmap") == 0 || strcmp(name, "mmap64") == 0 || strcmp(name, "munmap") == 0 ||
           strcmp(name, "mremap") == 0;
}

struct search {
    void *first[TM_HOOK_COUNT];
    int in_libc[TM_HOOK_COUNT];
    unsigned groups; /* bits of enum tm_slot_group */
};

static int is_wanted(unsigned hook, unsigned groups)
{
    return (groups >> tm_hooks[hook].group & 1) != 0;
}

static int search_object(const struct tm_object *object, void *data)
{
    struct search *search = data;
#ifndef TM_TEST_ENTRIES
    if ((uintptr_t)tm_hooks >= object->start && (uintptr_t)tm_hooks < object->end)
        return 0;
#endif
    int is_libc = tm_object_symbol(object, "__libc_start_main") != NULL;
    for (unsigned i = 0; i < TM_HOOK_COUNT; i++)
        if (is_wanted(i, search->groups) && !search->first[i] &&
            (search->first[i] = tm_object_symbol(object, tm_hooks[i].name)) != NULL)
            search->in_libc[i] = is_libc;
    return 0;
}

static void find(unsigned groups)
{
    struct search search = {.groups = groups};
    tm_each_object(search_object, &search);
    for (unsigned i = 0; i < TM_HOOK_COUNT; i++) {
        if (!is_wanted(i, groups))
            continue;
        /* Our functions make the system call themselves, which would bypass another wrapper: such a slot is
         * left alone. */
        int is_replaceable = !is_system_call(tm_hooks[i].name) || search.in_libc[i];
        tm_hooks[i].real = tm_hooks[i].ours && is_replaceable ? search.first[i] : NULL;
    }
}

void tm_hooks_find(void)
{
    find(1u << TM_SLOTS_ENDS | 1u << TM_SLOTS_BEGINNINGS);
}

void tm_hooks_find_group(enum tm_slot_group group)
{
    find(1u << group);
}
