/* mapping.c - mappings: the mmap family in front of the system calls.
 *
 * A mapping counts as an allocation of its length, through the same countdown as malloc.
 * That of a file, of shared memory or of a device is told apart by its domain, for it is
 * address space and no allocated memory; the loader's own are not seen. Reservations
 * (PROT_NONE, MAP_NORESERVE) and stacks do not count, nor do the containers of allocators
 * whose content is counted already: pymalloc's arenas (its hook passes through here with
 * `inside` set), and whatever the program's own malloc maps when that is not the C library's.
 *
 * Only sampled mappings are tracked, as pieces [start, end) of what is still mapped, sorted
 * and disjoint: munmap may take any part of several of them, MAP_FIXED may map over them.
 * A call that touches a tracked piece runs under the core lock, so that nobody is given
 * the range by the kernel and records it before the old piece is gone.
 *
 * What mremap() adds to a mapping is an allocation of who calls it, as if it were mapped there:
 *
 *   mmap      |-- who mapped --|
 *   mremap    |-- who mapped --|-- who resized --|              the pieces move with their mapping
 *   mremap    |-- who mapped --|-- who re                       a smaller one loses its end
 *
 * What is unmapped while the interpreter is taken down (sampling/ending.c) is noted only, and cut should the
 * process live on: until then it is what the program held.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/lock.h"
#include "core/state.h"
#include "core/system.h"
#include "hooks/hooks.h"
#include "live/live.h"
#include "live/mapping.h"
#include "process/maps.h"
#include "sampling/sampling.h"
#include "segment/sections.h"

static struct tm_fragment fragments[4096] TM_WIPED;
static uint8_t mapped_slots[TM_LIVE_COUNT / 8] TM_WIPED;
static struct __attribute__((aligned(TM_PAGE))) {
    struct {
        uintptr_t start, end;
    } ranges[255];
    uint64_t used;
} teardown TM_WIPED;
_Static_assert(sizeof fragments % TM_PAGE == 0 && TM_FRAGMENT_COUNT == 4096, "whole pages");

int tm_mapping_owns(uint32_t slot)
{
    return mapped_slots[slot / 8] >> slot % 8 & 1;
}

static uint32_t count(void)
{
    return __atomic_load_n(&tm_core.fragment_count, __ATOMIC_RELAXED);
}

static void set_count(uint32_t value)
{
    __atomic_store_n(&tm_core.fragment_count, value, __ATOMIC_RELEASE);
}

/* First piece that ends after `address`. */
static uint32_t position(uintptr_t address)
{
    uint32_t low = 0, high = count();
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (fragments[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_piece(uint32_t at)
{
    memmove(&fragments[at], &fragments[at + 1], (count() - at - 1) * sizeof fragments[0]);
    set_count(count() - 1);
}

static int insert_piece(uintptr_t start, uintptr_t end, uint32_t slot)
{
    if (count() >= TM_FRAGMENT_COUNT)
        return 0;
    uint32_t at = position(start);
    memmove(&fragments[at + 1], &fragments[at], (count() - at) * sizeof fragments[0]);
    fragments[at] = (struct tm_fragment){start, end, slot};
    set_count(count() + 1);
    return 1;
}

int tm_mapping_forget(uint32_t slot)
{
    if (!tm_mapping_owns(slot))
        return 0;
    for (uint32_t at = count(); at-- > 0;)
        if (fragments[at].slot == slot)
            remove_piece(at);
    mapped_slots[slot / 8] &= (uint8_t)~(1u << slot % 8);
    return 1;
}

static uint64_t mapped_bytes(uint32_t slot)
{
    uint64_t bytes = 0;
    for (uint32_t at = 0; at < count(); at++)
        if (fragments[at].slot == slot)
            bytes += fragments[at].end - fragments[at].start;
    return bytes;
}

static void resize(uint32_t slot)
{
    uint64_t bytes = mapped_bytes(slot);
    if (bytes == 0)
        mapped_slots[slot / 8] &= (uint8_t)~(1u << slot % 8);
    tm_live_resize(slot, bytes, tm_now_ms());
}

/* Takes [start, end) out of what is tracked. */
static void cut(uintptr_t start, uintptr_t end)
{
    for (uint32_t at = position(start); at < count() && fragments[at].start < end;) {
        struct tm_fragment *piece = &fragments[at];
        uint32_t slot = piece->slot;
        uintptr_t rest_start = end, rest_end = piece->end;
        if (piece->start < start && piece->end > end) { /* a hole in the middle */
            piece->end = start;
            insert_piece(rest_start, rest_end, slot); /* no room: the rest counts as gone */
        } else if (piece->start < start) {
            piece->end = start;
        } else if (piece->end > end) {
            piece->start = end;
        } else {
            remove_piece(at--);
        }
        resize(slot);
        at++;
    }
}

static void end_range(uintptr_t start, uintptr_t end, int quiet)
{
    uint32_t at = position(start);
    if (at == count() || fragments[at].start >= end)
        return;
    if (!quiet || teardown.used == sizeof teardown.ranges / sizeof teardown.ranges[0]) {
        cut(start, end);
        return;
    }
    teardown.ranges[teardown.used].start = start;
    teardown.ranges[teardown.used++].end = end;
}

void tm_mapping_end_the_noted(void)
{
    for (uint64_t i = 0; i < teardown.used; i++)
        cut(teardown.ranges[i].start, teardown.ranges[i].end);
    teardown.used = 0;
}

int tm_mapping_add(uintptr_t start, size_t bytes, uint32_t slot)
{
    cut(start, start + bytes); /* unmapped where we could not see it */
    if (!insert_piece(start, start + bytes, slot))
        return 0;
    mapped_slots[slot / 8] |= (uint8_t)(1u << slot % 8);
    return 1;
}

/* ---- the family ------------------------------------------------------------------------ */

static size_t page_up(size_t bytes)
{
    return (bytes + TM_PAGE - 1) & ~(size_t)(TM_PAGE - 1);
}

/* While anything is tracked, a call that may end a piece is worth the lock. */
static int may_end_a_piece(size_t bytes)
{
    return count() != 0 && bytes != 0 && tm_armed() && tm_core.pid == tm_own_pid() && !tm_own_thread.inside;
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
            cut((uintptr_t)result, (uintptr_t)result + page_up(length));
        tm_unlock();
        errno = saved;
    }
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
        end_range((uintptr_t)address, (uintptr_t)address + page_up(length), quiet);
    tm_unlock();
    errno = saved;
    return result;
}

/* A piece ends at `address` and another begins, or none stands over it. */
static void split(uintptr_t address)
{
    uint32_t at = position(address);
    if (at == count() || fragments[at].start >= address)
        return;
    uint32_t slot = fragments[at].slot;
    uintptr_t end = fragments[at].end;
    fragments[at].end = address;
    if (!insert_piece(address, end, slot))
        resize(slot); /* no room: the rest counts as gone */
}

static void reverse(uint32_t first, uint32_t end)
{
    for (; first + 1 < end; first++) {
        struct tm_fragment piece = fragments[first];
        fragments[first] = fragments[--end];
        fragments[end] = piece;
    }
}

/* The pieces [middle, end) come before [first, middle). */
static void swap_neighbours(uint32_t first, uint32_t middle, uint32_t end)
{
    reverse(first, middle);
    reverse(middle, end);
    reverse(first, end);
}

/* What is tracked in [start, end) goes to `to`, where nothing is. */
static void shift(uintptr_t start, uintptr_t end, uintptr_t to)
{
    split(start);
    split(end);
    uint32_t first = position(start), last = first, place;
    for (; last < count() && fragments[last].start < end; last++) {
        fragments[last].start += to - start;
        fragments[last].end += to - start;
    }
    if (to > start) {
        for (place = last; place < count() && fragments[place].start < to; place++)
            ;
        swap_neighbours(first, last, place);
    } else {
        for (place = first; place > 0 && fragments[place - 1].start > to; place--)
            ;
        swap_neighbours(place, first, last);
    }
}

static void moved(uintptr_t old_start, size_t old_length, uintptr_t new_start, size_t new_length)
{
    size_t kept = old_length < new_length ? old_length : new_length;
    cut(old_start + kept, old_start + old_length);
    if (new_start == old_start) {
        cut(new_start + kept, new_start + new_length); /* unmapped where we could not see it */
    } else {
        cut(new_start, new_start + new_length); /* MREMAP_FIXED maps over what was there */
        shift(old_start, old_start + kept, new_start);
    }
}

/* Of the piece that ends where a mapping has grown; 0: none is tracked there. */
static int tracked_domain(uintptr_t grown, enum tm_domain *domain)
{
    uint32_t at = position(grown - 1);
    if (at == count() || fragments[at].start >= grown)
        return 0;
    const struct tm_live *live = tm_at(TM_SECTION_LIVE, fragments[at].slot);
    if (live->site >= tm_core.rooms[TM_SECTION_SITES].count)
        return 0;
    *domain = ((const struct tm_site *)tm_at(TM_SECTION_SITES, live->site))->domain;
    return 1;
}

/* As the kernel lists it; 0: a reservation, which does not count. What cannot be read is taken for memory. */
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
            moved((uintptr_t)address, before, (uintptr_t)result, after);
            known = tracked_domain(grown, &domain);
        }
        tm_unlock();
    }
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
