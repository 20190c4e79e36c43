/* site.c - the figures of each (stack, label, thread, domain). (locked)
 *
 * Sums are updated as samples begin and end. What a sample added is recomputed from its own record when it
 * ends, so both updates use the same numbers. Rounding errors are cleared when the last live sample of a site
 * ends.
 */
#include <string.h>

#include "core/number.h"
#include "core/state.h"
#include "live/site.h"
#include "segment/intern.h"
#include "segment/sections.h"

#define SITE_INDEX (32u << 10)
static uint32_t site_index[SITE_INDEX] TM_WIPED; /* site + 1; size doubles as in segment/intern.c */
static struct __attribute__((aligned(TM_PAGE))) {
    uint32_t used, size;
} fill TM_WIPED;

static uint32_t hash_site(uint32_t stack, uint32_t label, uint32_t thread, uint32_t domain)
{
    uint64_t x = ((uint64_t)stack << 32 | label) * 0x9e3779b97f4a7c15ull;
    x ^= x >> 29;
    x = (x + ((uint64_t)thread << 3 | domain)) * 0xbf58476d1ce4e5b9ull;
    return (uint32_t)(x >> 32);
}

static void put(uint32_t hash, uint32_t site)
{
    uint32_t mask = fill.size - 1, at = hash & mask;
    while (site_index[at])
        at = (at + 1) & mask;
    site_index[at] = site + 1;
    fill.used++;
}

static void make_room(void)
{
    if (fill.used < fill.size / 4 * 3 || fill.size == SITE_INDEX)
        return; /* at its limit the index has twice as many entries as there can be sites */
    fill.size = fill.size ? fill.size * 2 : 256;
    memset(site_index, 0, (size_t)fill.size * sizeof *site_index);
    fill.used = 0;
    for (uint32_t i = 0; i < tm_core.rooms[TM_SECTION_SITES].count; i++) {
        const struct tm_site *site = tm_at(TM_SECTION_SITES, i);
        put(hash_site(site->stack, site->label, site->thread, site->domain), i);
    }
}

static uint32_t append(uint32_t stack, uint32_t label, uint32_t thread, enum tm_domain domain, uint64_t now_ms)
{
    uint32_t id = tm_core.rooms[TM_SECTION_SITES].count;
    if (!tm_room_for(TM_SECTION_SITES, id))
        return TM_NONE;
    make_room();
    struct tm_site *site = tm_at(TM_SECTION_SITES, id);
    site->stack = stack;
    site->label = label;
    site->thread = (uint16_t)thread;
    site->domain = (uint16_t)domain;
    site->first_ms = now_ms;
    site->peak_number = tm_core.header->peak_number; /* it held nothing then */
    tm_records_appended(TM_SECTION_SITES, id + 1);
    put(hash_site(stack, label, thread, domain), id);
    return id;
}

/* The last records are reserved for what no longer fits, one per domain. */
static uint32_t other_site(enum tm_domain domain, uint64_t now_ms)
{
    tm_section_lost(TM_SECTION_SITES, TM_LIMIT_SITES_FULL);
    if (!tm_core.other_site[domain]) {
        uint32_t stack = tm_intern_stack(0, tm_intern_mark("other sites"));
        uint32_t site = append(stack, 0, 0, domain, now_ms);
        if (site == TM_NONE)
            return TM_NONE;
        tm_core.other_site[domain] = site + 1;
    }
    return tm_core.other_site[domain] - 1;
}

uint32_t tm_find_site(uint32_t stack, uint32_t label, uint32_t thread, enum tm_domain domain, uint64_t now_ms)
{
    uint32_t mask = fill.size - 1, at = hash_site(stack, label, thread, domain) & mask;
    for (; fill.size && site_index[at]; at = (at + 1) & mask) {
        const struct tm_site *site = tm_at(TM_SECTION_SITES, site_index[at] - 1);
        if (site->stack == stack && site->label == label && site->thread == thread && site->domain == domain)
            return site_index[at] - 1;
    }
    if (tm_core.rooms[TM_SECTION_SITES].count + TM_DOMAIN_COUNT - 1 >= tm_core.rooms[TM_SECTION_SITES].maximum)
        return other_site(domain, now_ms);
    uint32_t site = append(stack, label, thread, domain, now_ms);
    return site != TM_NONE ? site : other_site(domain, now_ms);
}

struct tm_weight tm_weigh(uint64_t weight_bytes, uint64_t bytes, double period)
{
    double p = tm_chance((double)weight_bytes, period), value = (double)bytes / p;
    return (struct tm_weight){.bytes = value, .objects = 1.0 / p, .variance = (1.0 - p) * value * value};
}

static struct tm_site *begin(uint32_t site)
{
    struct tm_site *record = tm_at(TM_SECTION_SITES, site);
    tm_open(&record->sequence_begin, &record->sequence_end);
    return record;
}

static void end(struct tm_site *record, uint32_t site)
{
    tm_close(&record->sequence_begin, &record->sequence_end);
    tm_record_changed(TM_SECTION_SITES, site);
}

/* Before the live figures change for the first time since the peak, they are kept as the figures at the peak. */
static void keep_peak(struct tm_site *record)
{
    uint32_t number = tm_core.header->peak_number;
    if (record->peak_number == number)
        return;
    record->peak_number = number;
    record->peak_bytes = record->live_bytes;
    record->peak_objects = record->live_objects;
    record->peak_variance = record->live_variance;
}

/* The header's sums count memory: a mapped file is address space, which is resident only where it was read. */
static int is_memory(const struct tm_site *record)
{
    return record->domain != TM_DOMAIN_FILES;
}

/* Adds to the live figures of a record that is open. `samples`: -1, 0 or +1. */
static void add_live(struct tm_site *record, int samples, struct tm_weight weight)
{
    struct tm_segment_header *header = tm_core.header;
    keep_peak(record);
    record->live_samples += (uint32_t)samples;
    record->live_bytes += weight.bytes;
    record->live_objects += weight.objects;
    record->live_variance += weight.variance;
    if (record->live_samples == 0)
        record->live_bytes = record->live_objects = record->live_variance = 0;
    if (is_memory(record)) {
        header->live_bytes += weight.bytes;
        header->live_objects += weight.objects;
    }
    if (tm_core.live_count == 0)
        header->live_bytes = header->live_objects = 0;
}

static struct tm_weight less(struct tm_weight one, struct tm_weight other)
{
    return (struct tm_weight){
        .bytes = one.bytes - other.bytes,
        .objects = one.objects - other.objects,
        .variance = one.variance - other.variance,
    };
}

static const struct tm_weight nothing;

static void add_allocated(struct tm_site *record, unsigned samples, struct tm_weight weight, uint64_t now_ms)
{
    record->allocated_bytes += weight.bytes;
    record->allocated_objects += weight.objects;
    record->allocated_variance += weight.variance;
    record->allocated_samples += samples;
    record->last_ms = now_ms;
}

static void add_allocated_memory(struct tm_site *record, unsigned samples, struct tm_weight weight, uint64_t now_ms)
{
    add_allocated(record, samples, weight, now_ms);
    if (is_memory(record)) {
        tm_core.header->allocated_bytes += weight.bytes;
        tm_core.header->allocated_objects += weight.objects;
    }
}

void tm_site_sampled(uint32_t site, struct tm_weight weight, uint64_t now_ms)
{
    struct tm_site *record = begin(site);
    add_allocated_memory(record, 1, weight, now_ms);
    add_live(record, +1, weight);
    end(record, site);
}

void tm_site_copied(uint32_t site, struct tm_weight weight, uint64_t now_ms)
{
    struct tm_site *record = begin(site);
    add_allocated(record, 1, weight, now_ms);
    end(record, site);
}

void tm_site_removed(uint32_t site, struct tm_weight weight)
{
    struct tm_site *record = begin(site);
    add_live(record, -1, less(nothing, weight));
    end(record, site);
}

void tm_site_changed(uint32_t site, struct tm_weight before, struct tm_weight after)
{
    struct tm_site *record = begin(site);
    add_live(record, 0, less(after, before));
    end(record, site);
}

void tm_site_grown(uint32_t site, struct tm_weight before, struct tm_weight after, uint64_t now_ms)
{
    struct tm_weight change = less(after, before);
    struct tm_site *record = begin(site);
    add_live(record, 0, change);
    if (change.bytes > 0)
        add_allocated_memory(record, 0, change, now_ms);
    else
        record->freed_bytes -= change.bytes;
    end(record, site);
    tm_check_peak(now_ms);
}

void tm_site_freed(uint32_t site, struct tm_weight weight, uint64_t lifetime_ms)
{
    struct tm_site *record = begin(site);
    add_live(record, -1, less(nothing, weight));
    unsigned bucket = lifetime_ms ? 64u - (unsigned)__builtin_clzll(lifetime_ms) : 0;
    if (bucket >= TM_LIFETIME_BUCKETS)
        bucket = TM_LIFETIME_BUCKETS - 1;
    record->lifetimes[bucket] += (float)weight.objects;
    record->freed_bytes += weight.bytes;
    end(record, site);
}

/* A new high by 2 %: from now on, this moment's live figures are those at the peak. No site is rewritten; each
 * site keeps its own figures when it changes. */
void tm_check_peak(uint64_t now_ms)
{
    struct tm_segment_header *header = tm_core.header;
    if (header->live_bytes > tm_core.highest_live_bytes)
        tm_core.highest_live_bytes = header->live_bytes;
    if (header->live_bytes <= header->peak_live_bytes * 1.02)
        return;
    header->peak_live_bytes = header->live_bytes;
    header->peak_ms = now_ms;
    __atomic_store_n(&header->peak_number, header->peak_number + 1, __ATOMIC_RELEASE);
}
