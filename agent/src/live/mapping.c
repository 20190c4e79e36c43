/* mapping.c - sampled mappings, tracked as pieces of what is still mapped.
 *
 * The pieces [start, end) are sorted and disjoint: munmap may take any part of several of
 * them, MAP_FIXED may map over them. What mremap() adds to a mapping is an allocation by its
 * caller, as if it were mapped there:
 *
 *   mmap      |-- mapper's stack --|
 *   mremap    |-- mapper's stack --|-- resizer's stack --|     the pieces move with their mapping
 *   mremap    |-- mapper's stack --|-- resize                  a smaller mapping loses its end
 *
 * Ranges that are unmapped while the interpreter is finalized (sampling/ending.c) are only noted, and removed
 * if the process continues: until then the process is reported as holding them.
 */
#include <string.h>

#include "core/state.h"
#include "core/system.h"
#include "live/live.h"
#include "live/mapping.h"
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

void tm_mapping_cut(uintptr_t start, uintptr_t end)
{
    for (uint32_t at = position(start); at < count() && fragments[at].start < end;) {
        struct tm_fragment *piece = &fragments[at];
        uint32_t slot = piece->slot;
        uintptr_t rest_start = end, rest_end = piece->end;
        if (piece->start < start && piece->end > end) { /* a hole in the middle */
            piece->end = start;
            insert_piece(rest_start, rest_end, slot); /* no room: the rest counts as unmapped */
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

void tm_mapping_end_range(uintptr_t start, uintptr_t end, int quiet)
{
    uint32_t at = position(start);
    if (at == count() || fragments[at].start >= end)
        return;
    if (!quiet || teardown.used == sizeof teardown.ranges / sizeof teardown.ranges[0]) {
        tm_mapping_cut(start, end);
        return;
    }
    teardown.ranges[teardown.used].start = start;
    teardown.ranges[teardown.used++].end = end;
}

void tm_mapping_end_noted(void)
{
    for (uint64_t i = 0; i < teardown.used; i++)
        tm_mapping_cut(teardown.ranges[i].start, teardown.ranges[i].end);
    teardown.used = 0;
}

int tm_mapping_add(uintptr_t start, size_t bytes, uint32_t slot)
{
    tm_mapping_cut(start, start + bytes); /* unmapped where we could not see it */
    if (!insert_piece(start, start + bytes, slot))
        return 0;
    mapped_slots[slot / 8] |= (uint8_t)(1u << slot % 8);
    return 1;
}

/* Splits the piece that contains `address`, if any, so that one piece ends there and another begins. */
static void split(uintptr_t address)
{
    uint32_t at = position(address);
    if (at == count() || fragments[at].start >= address)
        return;
    uint32_t slot = fragments[at].slot;
    uintptr_t end = fragments[at].end;
    fragments[at].end = address;
    if (!insert_piece(address, end, slot))
        resize(slot); /* no room: the rest counts as unmapped */
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

/* Moves what is tracked in [start, end) to `to`, where nothing is tracked. */
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

void tm_mapping_moved(uintptr_t old_start, size_t old_length, uintptr_t new_start, size_t new_length)
{
    size_t kept = old_length < new_length ? old_length : new_length;
    tm_mapping_cut(old_start + kept, old_start + old_length);
    if (new_start == old_start) {
        tm_mapping_cut(new_start + kept, new_start + new_length); /* unmapped where we could not see it */
    } else {
        tm_mapping_cut(new_start, new_start + new_length); /* MREMAP_FIXED maps over existing mappings */
        shift(old_start, old_start + kept, new_start);
    }
}

int tm_mapping_domain(uintptr_t grown, enum tm_domain *domain)
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
