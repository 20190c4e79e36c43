/* mmap.c - the mmap family in front of the system calls.
 *
 * A mapping counts as an allocation of its length, through the same countdown as malloc.
 * Mappings of files, shared memory and devices have a domain of their own, because they are
 * address space and not allocated memory; the loader's own are not seen. Reservations
 * (PROT_NONE, MAP_NORESERVE) and stacks do not count, nor do the containers of allocators
 * whose content is counted already: pymalloc's arenas (its hook passes through here with
 * `inside` set), and whatever the program's own malloc maps when it is not the C library's.
 *
 * A call that touches a tracked piece (live/mapping.c) runs under the core lock. Otherwise the kernel could
 * give the range to another thread, which would record it before the old piece is removed.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/lock.h"
#include "core/state.h"
#include "core/system.h"
#include "hooks/hooks.h"
#include "live/mapping.h"
#include "process/maps.h"
#include "sampling/sampling.h"

static size_t page_up(size_t bytes)
{
    return (bytes + TM_PAGE - 1) & ~(size_t)(TM_PAGE - 1);
}

/* While anything is tracked, a call that may end a piece takes the lock. */
static int may_end_a_piece(size_t bytes)
{
    return tm_mapping_any() && bytes != 0 && tm_armed() && tm_core.pid == tm_own_pid() && !tm_own_thread.inside;
}

static int lock_for_cut(size_t bytes)
{
    return may_end_a_piece(bytes) && tm_lock();
}

static int is_container(const void *return_address)
{
    uintptr_t start, end, at = (uintptr_t)return_address;
    return tm_foreign_allocator(&start, &end) && at >= start && at < end;
}

static __attribute__((noinline)) void *map(void *address, size_t length, int protection, int flags, int descriptor,
                                           off_t offset, const void *return_address)
{
    int live = protection != PROT_NONE && !(flags & (MAP_NORESERVE | MAP_STACK));
    enum tm_domain domain = flags & MAP_ANONYMOUS ? TM_DOMAIN_MAPPED : TM_DOMAIN_FILES;
    int locked = flags & MAP_FIXED && lock_for_cut(length);
    void *result = tm_real_mmap(address, length, protection, flags, descriptor, offset);
    if (locked) {
        int saved = errno;
        if (result != MAP_FAILED)
            tm_mapping_cut((uintptr_t)result, (uintptr_t)result + page_up(length));
        tm_unlock();
        errno = saved;
    }
    if (TM_UNLIKELY(result == MAP_FAILED) && errno == ENOMEM && live)
        tm_failed(page_up(length));
    if (result != MAP_FAILED && live && !is_container(return_address) && tm_spend(page_up(length)) &&
        tm_enter(page_up(length)))
        tm_record(result, page_up(length), domain, return_address);
    return result;
}

TM_EXPORT void *TM_ENTRY(mmap)(void *address, size_t length, int protection, int flags, int descriptor, off_t offset)
{
    return map(address, length, protection, flags, descriptor, offset, __builtin_return_address(0));
}

TM_EXPORT void *TM_ENTRY(mmap64)(void *address, size_t length, int protection, int flags, int descriptor, off_t offset)
{
    return map(address, length, protection, flags, descriptor, offset, __builtin_return_address(0));
}

TM_EXPORT int TM_ENTRY(munmap)(void *address, size_t length)
{
    int quiet = may_end_a_piece(length) && tm_quiet();
    if (!lock_for_cut(length))
        return tm_real_munmap(address, length);
    int result = tm_real_munmap(address, length), saved = errno;
    if (result == 0)
        tm_mapping_end_range((uintptr_t)address, (uintptr_t)address + page_up(length), quiet);
    tm_unlock();
    errno = saved;
    return result;
}

/* The domain, according to how the kernel lists the mapping; 0: a reservation, which does not count. A mapping
 * that cannot be read counts as memory. */
static int listed_domain(uintptr_t address, enum tm_domain *domain)
{
    struct tm_maps maps;
    struct tm_mapping mapping = {.writable = 1};
    *domain = TM_DOMAIN_MAPPED;
    if (tm_maps_open(&maps) != 0)
        return 1;
    int found;
    do
        found = tm_maps_next(&maps, &mapping);
    while (found > 0 && mapping.end <= address);
    close(maps.descriptor);
    if (found > 0 && mapping.of_file)
        *domain = TM_DOMAIN_FILES;
    return mapping.writable || mapping.of_file;
}

TM_EXPORT void *TM_ENTRY(mremap)(void *address, size_t old_length, size_t new_length, int flags, ...)
{
    void *new_address = NULL;
    if (flags & MREMAP_FIXED) {
        va_list list;
        va_start(list, flags);
        new_address = va_arg(list, void *);
        va_end(list);
    }
    int locked = lock_for_cut(old_length);
    void *result = tm_real_mremap(address, old_length, new_length, flags, new_address);
    int saved = errno;
    size_t before = page_up(old_length), after = page_up(new_length);
    uintptr_t grown = (uintptr_t)result + before;
    enum tm_domain domain = TM_DOMAIN_MAPPED;
    int known = 0;
    if (locked) {
        if (result != MAP_FAILED) {
            tm_mapping_moved((uintptr_t)address, before, (uintptr_t)result, after);
            known = tm_mapping_domain(grown, &domain);
        }
        tm_unlock();
    }
    if (TM_UNLIKELY(result == MAP_FAILED) && saved == ENOMEM && after > before)
        tm_failed(after - before);
    if (result != MAP_FAILED && after > before && !is_container(__builtin_return_address(0)) &&
        tm_spend(after - before) && tm_enter(after - before)) {
        if (known || listed_domain(grown, &domain))
            tm_record((void *)grown, after - before, domain, __builtin_return_address(0));
        else
            tm_leave();
    }
    errno = saved;
    return result;
}

TM_OWN(mmap);
TM_OWN(mmap64);
TM_OWN(munmap);
TM_OWN(mremap);
