/* copies.c - memcpy and memmove in front of the C library's, if copies are counted.
 *
 * They are not exported: without the option, no call reaches them. Their addresses are written into the slots of
 * loaded objects (slots/slots.c), also in a program that started with the library. Not seen: copies that the compiler
 * inlined, loops of a library's own (NumPy's strided copies), and copies by the C library itself (in realloc, fread).
 */
#include <string.h>

#include "core/core.h"
#include "hooks/hook_table.h"
#include "hooks/hooks.h"
#include "sampling/sampling.h"

static struct {
    void *(*memcpy)(void *, const void *, size_t);
    void *(*memmove)(void *, const void *, size_t);
    void *(*mempcpy)(void *, const void *, size_t);
    void *(*memcpy_checked)(void *, const void *, size_t, size_t);
    void *(*memmove_checked)(void *, const void *, size_t, size_t);
} real;

static inline void count(size_t bytes, const void *caller)
{
    if (TM_LIKELY(bytes < TM_LEAST_COPY))
        return;
    if (TM_LIKELY(bytes < tm_own_thread.copies))
        tm_own_thread.copies -= (uint32_t)bytes;
    else
        tm_copied(bytes, caller);
}

/* The copy is counted first, so that the call of the real function stays a jump. */
#define COPY(name)                                                                            \
    __attribute__((visibility("hidden"))) void *tm_own_##name(void *to, const void *from, size_t bytes) \
    {                                                                                         \
        count(bytes, __builtin_return_address(0));                                            \
        return real.name(to, from, bytes);                                                    \
    }
COPY(memcpy)
COPY(memmove)
COPY(mempcpy)

/* Of programs compiled with _FORTIFY_SOURCE. */
#define CHECKED_COPY(name, checked)                                                           \
    __attribute__((visibility("hidden"))) void *tm_own_##checked(void *to, const void *from, size_t bytes, size_t room) \
    {                                                                                         \
        count(bytes, __builtin_return_address(0));                                            \
        return real.name(to, from, bytes, room);                                              \
    }
CHECKED_COPY(memcpy_checked, __memcpy_chk)
CHECKED_COPY(memmove_checked, __memmove_chk)

void tm_copies_begin(void)
{
    void **functions = (void **)&real;
    unsigned at = 0;
    tm_hooks_find_group(TM_SLOTS_COPIES);
    for (unsigned i = 0; i < TM_HOOK_COUNT; i++) {
        if (tm_hooks[i].group != TM_SLOTS_COPIES)
            continue;
        if (tm_hooks[i].real)
            __atomic_store_n(&functions[at], tm_hooks[i].real, __ATOMIC_RELEASE);
        at++;
    }
}
