/* wrapper.lib.c - a malloc wrapper that a user may preload in addition to ours: it finds the next allocator by
 * RTLD_NEXT, and our malloc comes before its malloc. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

static void *(*below_malloc)(size_t);
static void (*below_free)(void *);
static _Atomic unsigned long calls;

void *malloc(size_t bytes)
{
    if (!below_malloc)
        below_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    calls++;
    return below_malloc(bytes);
}

void free(void *address)
{
    if (!below_free)
        below_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    if (address)
        below_free(address);
}

__attribute__((destructor)) static void used(void)
{
    if (!calls)
        abort();
}
