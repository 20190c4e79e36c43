/* live.c - the sampled allocations that are live.
 *
 *   filter   one counting byte per slot: "may this address be a sample?" The only memory
 *            that free() reads for the other 99.99 % of addresses
 *   index    address << 16 | slot, open addressing; read without the lock
 *   live     the records, in the segment; a freed slot is reused first
 *
 * Reading the index without the lock: an entry is one 64-bit load. A removal shifts later entries back, and a
 * reader in between could miss one. `index_version` is odd during a removal and different afterwards; a reader
 * that found nothing searches again if it has changed. So the address of a live sample is always found: the
 * allocator hands an address to its user only after the insertion, and a program orders an allocation before
 * its own free.
 */
#include <string.h>

#include "core/number.h"
#include "core/state.h"
#include "live/live.h"
#include "live/mapping.h"
#include "live/site.h"
#include "period/period.h"
#include "segment/sections.h"

#define INDEX_SIZE (128u << 10) /* three quarters of TM_LIVE_COUNT fill at most 3/8 of it */
#define FIRST_INDEX_BITS 10u
#define LIVE_BOUND (TM_LIVE_COUNT / 4 * 3)
#define STEADY_READS 1000

uint64_t tm_filter[TM_FILTER_SLOTS / 64] TM_WIPED;
/* Live samples of each slot of the filter. Only the slow path reads them. */
static uint8_t filter_counts[TM_FILTER_SLOTS] TM_WIPED;
static uint64_t index_entries[INDEX_SIZE] TM_WIPED;
static uint16_t free_slots[TM_LIVE_COUNT] TM_WIPED;
static uint16_t kinds[TM_LIVE_COUNT] TM_WIPED; /* of period/churn.c, by slot */
static uint32_t generations[TM_LIVE_COUNT] TM_WIPED; /* (atomic) how many samples have ended in each slot */
_Static_assert(TM_KINDS <= UINT16_MAX, "kinds");

/* ---- index --------------------------------------------------------------------------- */

static uint32_t hash_address(uintptr_t address, uint32_t bits)
{
    return (uint32_t)((uint64_t)(address >> 3) * 0x9e3779b97f4a7c15ull >> (64 - bits));
}

static uint64_t load_entry(uint32_t at)
{
    return __atomic_load_n(&index_entries[at], __ATOMIC_RELAXED);
}

static void store_entry(uint32_t at, uint64_t entry)
{
    __atomic_store_n(&index_entries[at], entry, __ATOMIC_RELAXED);
}

/* Position of an address, or TM_NONE. */
static uint32_t search(uintptr_t address, uint32_t bits)
{
    uint32_t mask = (1u << bits) - 1;
    for (uint32_t at = hash_address(address, bits), steps = 0; steps <= mask; at = (at + 1) & mask, steps++) {
        uint64_t entry = load_entry(at);
        if (entry == 0)
            return TM_NONE;
        if (entry >> 16 == address)
            return at;
    }
    return TM_NONE;
}

uint32_t tm_live_slot(const void *address)
{
    for (int i = 0; i < STEADY_READS; i++) {
        uint32_t version = __atomic_load_n(&tm_core.index_version, __ATOMIC_ACQUIRE);
        uint32_t bits = __atomic_load_n(&tm_core.index_bits, __ATOMIC_RELAXED);
        if (bits == 0)
            return TM_NONE;
        uint32_t at = search((uintptr_t)address, bits);
        uint64_t entry = at == TM_NONE ? 0 : load_entry(at);
        if (entry >> 16 == (uintptr_t)address && entry != 0)
            return entry & 0xffff;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (!(version & 1) && __atomic_load_n(&tm_core.index_version, __ATOMIC_RELAXED) == version)
            return TM_NONE;
    }
    return TM_LIVE_COUNT;
}

int tm_is_sampled(const void *address)
{
    return tm_live_slot(address) != TM_NONE; /* the index kept changing: retry under the lock */
}

static void rearrange_begin(void)
{
    __atomic_store_n(&tm_core.index_version, tm_core.index_version + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void rearrange_end(void)
{
    __atomic_store_n(&tm_core.index_version, tm_core.index_version + 1, __ATOMIC_RELEASE);
}

static void index_put(uintptr_t address, uint32_t slot)
{
    uint32_t mask = (1u << tm_core.index_bits) - 1, at = hash_address(address, tm_core.index_bits);
    while (load_entry(at))
        at = (at + 1) & mask;
    __atomic_store_n(&index_entries[at], (uint64_t)address << 16 | slot, __ATOMIC_RELEASE);
    tm_core.index_used++;
}

static void index_grow(void)
{
    uint32_t bits = tm_core.index_bits ? tm_core.index_bits + 1 : FIRST_INDEX_BITS;
    rearrange_begin();
    for (uint32_t i = 0; i < 1u << bits; i++)
        store_entry(i, 0);
    __atomic_store_n(&tm_core.index_bits, bits, __ATOMIC_RELAXED);
    tm_core.index_used = 0;
    for (uint32_t slot = 0; slot < tm_core.rooms[TM_SECTION_LIVE].count; slot++) {
        const struct tm_live *record = tm_at(TM_SECTION_LIVE, slot);
        if (record->address && !tm_mapping_owns(slot))
            index_put(record->address, slot);
    }
    rearrange_end();
}

/* Empties a position and shifts back the entries that had been displaced by it. */
static void index_remove(uint32_t hole)
{
    uint32_t bits = tm_core.index_bits, mask = (1u << bits) - 1;
    rearrange_begin();
    for (uint32_t at = (hole + 1) & mask; load_entry(at); at = (at + 1) & mask) {
        uint64_t entry = load_entry(at);
        uint32_t home = hash_address(entry >> 16, bits);
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        store_entry(hole, entry);
        hole = at;
    }
    store_entry(hole, 0);
    tm_core.index_used--;
    rearrange_end();
}

/* ---- filter ---------------------------------------------------------------------------- */

/* 255 means "255 or more" and stays: a false hit costs a lookup, a missed one reports a false leak. */
static void filter_add(uintptr_t address)
{
    size_t slot = tm_filter_slot((void *)address);
    uint64_t *bits = &tm_filter[slot / 64];
    filter_counts[slot] += filter_counts[slot] != 255;
    __atomic_store_n(bits, *bits | 1ull << slot % 64, __ATOMIC_RELAXED);
}

static void filter_remove(uintptr_t address)
{
    size_t slot = tm_filter_slot((void *)address);
    uint64_t *bits = &tm_filter[slot / 64];
    if (filter_counts[slot] == 255 || filter_counts[slot] == 0 || --filter_counts[slot] != 0)
        return;
    __atomic_store_n(bits, *bits & ~(1ull << slot % 64), __ATOMIC_RELAXED);
}

/* ---- records -------------------------------------------------------------------------------- */

static struct tm_weight weight_of(const struct tm_live *record)
{
    return tm_weigh(record->weight_bytes, record->bytes, record->period_bytes);
}

static void publish_count(void)
{
    __atomic_store_n(&tm_core.header->sections[TM_SECTION_LIVE].count, tm_core.live_count, __ATOMIC_RELEASE);
}

static uint32_t take_slot(void)
{
    if (tm_core.live_count >= LIVE_BOUND)
        tm_thin();
    if (tm_core.free_slot_count)
        return free_slots[--tm_core.free_slot_count];
    uint32_t slot = tm_core.rooms[TM_SECTION_LIVE].count;
    if (!tm_room_for(TM_SECTION_LIVE, slot)) {
        tm_thin(); /* memory is short: continue with the current table */
        return tm_core.free_slot_count ? free_slots[--tm_core.free_slot_count] : TM_NONE;
    }
    tm_core.rooms[TM_SECTION_LIVE].count = slot + 1;
    return slot;
}

static void write_record(uint32_t slot, const struct tm_live *values)
{
    struct tm_live *record = tm_at(TM_SECTION_LIVE, slot);
    tm_open(&record->sequence_begin, &record->sequence_end);
    record->site = values->site;
    record->address = values->address;
    record->bytes = values->bytes;
    record->birth_ms = values->birth_ms;
    record->weight_bytes = values->weight_bytes;
    record->period_bytes = values->period_bytes;
    tm_close(&record->sequence_begin, &record->sequence_end);
    tm_record_changed(TM_SECTION_LIVE, slot);
}

/* Puts a record into a slot; the caller updates its site's figures. */
static uint32_t add(const struct tm_live *values, uint32_t kind, int indexed)
{
    uint32_t slot = take_slot();
    if (slot == TM_NONE)
        return TM_NONE;
    if (indexed && tm_core.index_used >= (tm_core.index_bits ? (1u << tm_core.index_bits) / 2 : 0))
        index_grow();
    write_record(slot, values);
    kinds[slot] = (uint16_t)kind;
    if (indexed) {
        index_put(values->address, slot);
        filter_add(values->address);
    }
    tm_core.live_count++;
    publish_count();
    return slot;
}

/* Empties a slot. 0: the record was overwritten and must not be used. */
static int drop(uint32_t slot, struct tm_live *copy)
{
    struct tm_live *record = tm_at(TM_SECTION_LIVE, slot);
    *copy = *record;
    struct tm_live empty = {0};
    write_record(slot, &empty);
    __atomic_store_n(&generations[slot], generations[slot] + 1, __ATOMIC_RELAXED);
    if (copy->site >= tm_core.rooms[TM_SECTION_SITES].count)
        return 0; /* the slot is not used again */
    free_slots[tm_core.free_slot_count++] = (uint16_t)slot;
    tm_core.live_count--;
    publish_count();
    return 1;
}

uint32_t tm_live_insert(const struct tm_live *values, uint32_t kind, int indexed)
{
    if (indexed && tm_maybe_sampled((const void *)values->address))
        tm_live_free((const void *)values->address, values->birth_ms); /* freed where we could not see it */
    return add(values, kind, indexed);
}

static uint64_t lifetime_of(const struct tm_live *ended, uint64_t now_ms)
{
    return now_ms > ended->birth_ms ? now_ms - ended->birth_ms : 0;
}

/* Empties a slot whose block was freed; returns its bytes. */
static uint64_t end(uint32_t slot, uint64_t now_ms)
{
    struct tm_live ended;
    if (!drop(slot, &ended))
        return 0;
    tm_site_freed(ended.site, weight_of(&ended), lifetime_of(&ended, now_ms));
    tm_churn_ended(ended.weight_bytes, kinds[slot]);
    tm_core.header->frees_seen++;
    return ended.bytes;
}

uint64_t tm_live_free(const void *address, uint64_t now_ms)
{
    uint32_t at = tm_core.index_bits ? search((uintptr_t)address, tm_core.index_bits) : TM_NONE;
    if (at == TM_NONE)
        return 0;
    uint32_t slot = load_entry(at) & 0xffff;
    index_remove(at);
    filter_remove((uintptr_t)address);
    return end(slot, now_ms);
}

/* ---- blocks that a realloc may move ----------------------------------------------------------- */

int tm_live_find(const void *address, struct tm_sampled_block *block)
{
    uint32_t slot = tm_live_slot(address);
    if (slot >= TM_LIVE_COUNT)
        return 0;
    block->address = address;
    block->slot = slot;
    block->generation = __atomic_load_n(&generations[slot], __ATOMIC_RELAXED);
    block->recording = __atomic_load_n(&tm_core.incarnation, __ATOMIC_RELAXED);
    return 1;
}

static int is_live(const struct tm_sampled_block *block)
{
    return block->recording == tm_core.incarnation && block->generation == generations[block->slot];
}

void tm_live_end(const struct tm_sampled_block *block, uint64_t now_ms)
{
    if (is_live(block))
        tm_live_free(block->address, now_ms);
}

void tm_live_move(const struct tm_sampled_block *block, const void *address, uint64_t bytes, uint64_t now_ms)
{
    const struct tm_live *record = tm_at(TM_SECTION_LIVE, block->slot);
    if (!is_live(block) || record->site >= tm_core.rooms[TM_SECTION_SITES].count)
        return;
    if (address != block->address) {
        uint32_t at = search((uintptr_t)block->address, tm_core.index_bits);
        if (at == TM_NONE)
            return;
        index_remove(at);
        filter_remove((uintptr_t)block->address);
        if (tm_maybe_sampled(address))
            tm_live_free(address, now_ms); /* freed where we could not see it */
        index_put((uintptr_t)address, block->slot);
        filter_add((uintptr_t)address);
    }
    struct tm_live changed = *record;
    changed.address = (uintptr_t)address;
    changed.bytes = bytes;
    struct tm_weight before = weight_of(record);
    write_record(block->slot, &changed);
    tm_site_grown(changed.site, before, weight_of(&changed), now_ms);
}

/* ---- mappings ------------------------------------------------------------------------------------ */

void tm_live_resize(uint32_t slot, uint64_t bytes, uint64_t now_ms)
{
    struct tm_live *record = tm_at(TM_SECTION_LIVE, slot);
    if (record->address == 0 || record->site >= tm_core.rooms[TM_SECTION_SITES].count)
        return;
    if (bytes == 0) {
        end(slot, now_ms);
        return;
    }
    struct tm_live changed = *record;
    struct tm_weight before = weight_of(record);
    changed.bytes = bytes;
    write_record(slot, &changed);
    tm_site_changed(changed.site, before, weight_of(&changed));
}

/* ---- thinning ----------------------------------------------------------------------------------- */

/* A sample taken with probability p stays with p'/p and then weighs 1/p': the sums stay unbiased. */
static void thin_slot(uint32_t slot, double period)
{
    struct tm_live *record = tm_at(TM_SECTION_LIVE, slot);
    if (record->address == 0 || record->period_bytes >= (float)period ||
        record->site >= tm_core.rooms[TM_SECTION_SITES].count)
        return;
    struct tm_live changed = *record;
    double before = tm_chance((double)changed.weight_bytes, changed.period_bytes);
    changed.period_bytes = (float)period;
    double after = tm_chance((double)changed.weight_bytes, changed.period_bytes);
    if (tm_random_unit(&tm_own_thread) * before <= after) {
        struct tm_weight minus = weight_of(record);
        write_record(slot, &changed);
        tm_site_changed(changed.site, minus, weight_of(&changed));
        return;
    }
    if (!tm_mapping_forget(slot)) {
        uint32_t at = search(changed.address, tm_core.index_bits);
        if (at != TM_NONE) {
            index_remove(at);
            filter_remove(changed.address);
        }
    }
    if (drop(slot, &changed))
        tm_site_removed(changed.site, weight_of(&changed));
}

void tm_thin(void)
{
    uint32_t goal = tm_core.live_count / 4 * 3;
    for (int round = 0; round < 40 && tm_core.live_count > goal; round++) {
        uint64_t period = tm_core.period > tm_core.table_period ? tm_core.period : tm_core.table_period;
        period *= 2;
        if (period > 1ull << 40)
            return;
        tm_core.table_period = period;
        tm_set_period(period);
        tm_large_thinned(period);
        for (uint32_t slot = 0; slot < tm_core.rooms[TM_SECTION_LIVE].count; slot++)
            thin_slot(slot, (double)period);
        tm_core.header->thinnings++;
    }
}
