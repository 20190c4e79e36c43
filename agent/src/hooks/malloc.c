/* malloc.c - malloc and its family in front of the program's allocator.
 *
 * The hot path is one subtraction and a jump; free() reads one bit and jumps. Everything else follows
 * tm_spend() and tm_maybe_sampled(). A sampled allocation is recorded after the real one succeeded. A sampled
 * address is removed before the real free, because the allocator may hand it out again at once.
 *
 * operator new and delete are not exported. C++ libraries that Python loads privately
 * bind them to whatever the global scope holds, ours would have to call
 * one of several libstdc++ (each with its own new_handler, any of which may be unloaded),
 * and the C library's allocator sees them anyway. If an allocator brings its own
 * operator new, that one is not seen: TM_LIMIT_FOREIGN_ALLOCATOR reports it. If such an
 * allocator precedes ours, malloc is not seen at all: TM_LIMIT_MALLOC_UNSEEN.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/hooks.h"
#include "live/live.h"
#include "sampling/sampling.h"

static inline enum tm_domain current_domain(void)
{
    return tm_own_thread.domain ? (enum tm_domain)(tm_own_thread.domain - 1) : TM_DOMAIN_NATIVE;
}

static void settle(void *address, size_t bytes, const void *caller)
{
    if (!address) {
        tm_failed(bytes);
        tm_leave();
        return;
    }
    enum tm_domain domain = current_domain();
    tm_record(address, bytes, domain, domain == TM_DOMAIN_NATIVE ? caller : NULL);
}

static __attribute__((noinline)) void *sampled_malloc(size_t bytes, const void *caller)
{
    if (!tm_enter(bytes))
        return tm_real.malloc(bytes);
    void *address = tm_real.malloc(bytes);
    settle(address, bytes, caller);
    return address;
}

TM_EXPORT void *TM_ENTRY(malloc)(size_t bytes)
{
    if (TM_UNLIKELY(tm_spend(bytes)))
        return sampled_malloc(bytes, __builtin_return_address(0));
    return tm_real.malloc(bytes);
}

static __attribute__((noinline)) void *sampled_calloc(size_t count, size_t size, const void *caller)
{
    if (!tm_enter(count * size))
        return tm_real.calloc(count, size);
    void *address = tm_real.calloc(count, size);
    settle(address, count * size, caller);
    return address;
}

TM_EXPORT void *TM_ENTRY(calloc)(size_t count, size_t size)
{
    size_t bytes;
    if (TM_UNLIKELY(__builtin_mul_overflow(count, size, &bytes)))
        return tm_real.calloc(count, size); /* which fails in its own way */
    if (TM_UNLIKELY(tm_spend(bytes)))
        return sampled_calloc(count, size, __builtin_return_address(0));
    return tm_real.calloc(count, size);
}

TM_EXPORT void TM_ENTRY(free)(void *address)
{
    if (TM_UNLIKELY(tm_maybe_sampled(address)))
        tm_sampled_free(address);
    tm_real.free(address);
}

/* A realloc ends one allocation and begins another; a failed realloc does neither. But a program that appends to a large
 * text a million times has not allocated it a million times. So whether a large block is sampled is decided again
 * only when its usable size leaves a step of an eighth of a power of two; within the step, its sample follows it.
 * This depends on sizes alone, so the sums stay unbiased. */
#define SMALLEST_STEPPED 8192u
#define STEPS 3u       /* log2 of eighths */
#define SMALL_STEPS 7u /* within which the figures may lag behind */

/* Whether two usable sizes are in the same of 2^`parts` steps of a power of two. */
static inline int is_same_step(size_t one, size_t other, unsigned parts)
{
    unsigned power = 63u - (unsigned)__builtin_clzll(one | SMALLEST_STEPPED);
    return one >> (power - parts) == other >> (power - parts);
}

/* Only for the C library's own blocks: what another allocator does when it is asked for a size is not known. */
static inline int is_stepped(const void *address, size_t bytes)
{
    return bytes >= SMALLEST_STEPPED && address && tm_usable_size && !(tm_realloc_hook && *tm_realloc_hook);
}

static __attribute__((noinline)) void *stepped_realloc(void *address, size_t bytes, const void *caller)
{
    struct tm_sampled_block block;
    int is_sampled = tm_maybe_sampled(address) && tm_realloc_begins(address, &block);
    size_t before = tm_usable_size(address);
    void *result = tm_real.realloc(address, bytes);
    size_t after = result ? tm_usable_size(result) : before;
    if (TM_UNLIKELY(!result))
        tm_failed(bytes);
    int is_kept = is_same_step(before, after, STEPS);
    if (is_sampled && !is_kept)
        tm_realloc_ended(&block);
    else if (is_sampled && result)
        tm_realloc_kept(&block, result, bytes, is_same_step(before, after, SMALL_STEPS));
    if (!is_kept && tm_spend(bytes) && tm_enter(bytes))
        settle(result, bytes, caller);
    return result;
}

static __attribute__((noinline)) void *watched_realloc(void *address, size_t bytes, int spent, const void *caller)
{
    struct tm_sampled_block block;
    int is_sampled = tm_maybe_sampled(address) && tm_realloc_begins(address, &block);
    int is_new_sampled = spent && tm_enter(bytes);
    void *result = tm_real.realloc(address, bytes);
    if (is_sampled && (result || bytes == 0))
        tm_realloc_ended(&block);
    if (is_new_sampled)
        settle(result, bytes, caller);
    return result;
}

static inline void *any_realloc(void *address, size_t bytes, const void *caller)
{
    if (TM_UNLIKELY(is_stepped(address, bytes)))
        return stepped_realloc(address, bytes, caller);
    int spent = tm_spend(bytes);
    if (TM_UNLIKELY(spent || tm_maybe_sampled(address)))
        return watched_realloc(address, bytes, spent, caller);
    return tm_real.realloc(address, bytes);
}

TM_EXPORT void *TM_ENTRY(realloc)(void *address, size_t bytes)
{
    return any_realloc(address, bytes, __builtin_return_address(0));
}

/* An allocator before ours need not define reallocarray and strdup. Those calls then reach us and must be
 * served, like those of the C library, by the malloc and realloc that match its free. */
TM_EXPORT void *TM_ENTRY(reallocarray)(void *address, size_t count, size_t size)
{
    size_t bytes;
    if (TM_UNLIKELY(__builtin_mul_overflow(count, size, &bytes))) {
        errno = ENOMEM;
        return NULL;
    }
    if (TM_UNLIKELY(tm_is_preceded()))
        return realloc(address, bytes);
    return any_realloc(address, bytes, __builtin_return_address(0));
}

/* ---- aligned ------------------------------------------------------------------------- */

TM_EXPORT int TM_ENTRY(posix_memalign)(void **result, size_t alignment, size_t bytes)
{
    if (TM_LIKELY(!tm_spend(bytes)) || !tm_enter(bytes))
        return tm_real.posix_memalign(result, alignment, bytes);
    int why = tm_real.posix_memalign(result, alignment, bytes);
    settle(why == 0 ? *result : NULL, bytes, __builtin_return_address(0));
    return why;
}

#define ALIGNED(name)                                                                         \
    TM_EXPORT void *TM_ENTRY(name)(size_t alignment, size_t bytes)                            \
    {                                                                                         \
        if (TM_LIKELY(!tm_spend(bytes)) || !tm_enter(bytes))                                  \
            return tm_real.name(alignment, bytes);                                            \
        void *address = tm_real.name(alignment, bytes);                                       \
        settle(address, bytes, __builtin_return_address(0));                                  \
        return address;                                                                       \
    }
ALIGNED(aligned_alloc)
ALIGNED(memalign)

#define PAGES(name)                                                                           \
    TM_EXPORT void *TM_ENTRY(name)(size_t bytes)                                              \
    {                                                                                         \
        if (TM_LIKELY(!tm_spend(bytes)) || !tm_enter(bytes))                                  \
            return tm_real.name(bytes);                                                       \
        void *address = tm_real.name(bytes);                                                  \
        settle(address, bytes, __builtin_return_address(0));                                  \
        return address;                                                                       \
    }
PAGES(valloc)
PAGES(pvalloc)

/* ---- strings: ours only so that the caller, not the C library, is the leaf --------------- */

static char *copy(const char *text, size_t length, const void *caller)
{
    char *result;
    if (TM_UNLIKELY(tm_is_preceded()))
        result = malloc(length + 1);
    else if (TM_UNLIKELY(tm_spend(length + 1)))
        result = sampled_malloc(length + 1, caller);
    else
        result = tm_real.malloc(length + 1);
    if (result) {
        memcpy(result, text, length);
        result[length] = 0;
    }
    return result;
}

TM_EXPORT char *TM_ENTRY(strdup)(const char *text)
{
    return copy(text, strlen(text), __builtin_return_address(0));
}

TM_EXPORT char *TM_ENTRY(strndup)(const char *text, size_t most)
{
    return copy(text, strnlen(text, most), __builtin_return_address(0));
}

/* ---- the same under names that only we define: what `malloc` resolves to depends on the process --- */

TM_OWN(malloc);
TM_OWN(calloc);
TM_OWN(realloc);
TM_OWN(reallocarray);
TM_OWN(free);
TM_OWN(posix_memalign);
TM_OWN(aligned_alloc);
TM_OWN(memalign);
TM_OWN(valloc);
TM_OWN(pvalloc);
TM_OWN(strdup);
TM_OWN(strndup);
